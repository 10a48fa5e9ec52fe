package integration

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/lab/proxy"
	"github.com/goneli/neli/lab/witness"
)

// Non-exclusive mode promises a leader at every instant, in three cases: the old leader lives, is cut off, or is dead. At
// its end each election asserts that no instant was without a leader, or, after a crash, that no time without one was longer
// than S + J + B.

// cover prepares an election in which B is a twentieth of T, and T is five sessions. So T is longer than S + J + 2B, as the
// promise for cut-off members needs, even if J, a rebalance, takes several seconds on a busy machine.
func cover(t *testing.T, e *env, roles, partitions int, change ...func(*contenderParams)) *election {
	t.Helper()
	params := contenderParams{
		Mode:  neli.NonExclusive,
		Roles: roles, Partitions: partitions,
		Timeout: 5 * e.session,
		Kafka: map[string]string{
			"session.timeout.ms":    fmt.Sprint(e.session.Milliseconds()),
			"heartbeat.interval.ms": "200",
		},
	}
	for _, f := range change {
		f(&params)
	}
	broadcast := params.Timeout / 20
	require.Greater(t, params.Timeout, e.session+rebalanceTime+2*broadcast, "the premise of the promise")
	return newElection(t, e, params)
}

func TestNonExclusive(t *testing.T) {
	e := newEnv(t, 1, 5, nil)
	for _, c := range []struct {
		name string
		test func(*testing.T, *env)
	}{
		{"rolling restart of all members", membersRestarted("cooperative-sticky")},
		{"rolling restart of all members, eager range", membersRestarted("range")},
		{"member killed", memberKilled},
		{"cut off, both directions", memberCutOff(proxy.Both)},
		{"cut off, upstream only", memberCutOff(proxy.Upstream)},
		{"cut off, downstream only", memberCutOff(proxy.Downstream)},
		{"cut off, connections refused", memberCutOff(proxy.Refuse)},
		{"cut off while another joins", memberCutOffDuringJoin},
		{"member killed, two disjoint groups", memberKilledOfTwoGroups},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.test(t, e)
		})
	}
}

// The old leader lives, through joins, the rebalances that they cause, and clean leaves. In the end none of the
// first members is left.
func membersRestarted(assignor string) func(*testing.T, *env) {
	return func(t *testing.T, e *env) {
		el := cover(t, e, 6, 3, func(c *contenderParams) { c.Kafka["partition.assignment.strategy"] = assignor })
		old := []*member{el.start("first")}
		el.settle()
		old = append(old, el.follow("second", "third")...)
		for i, m := range old {
			m.close(patience)
			el.follow(fmt.Sprintf("successor%d", i))
		}
		closed := witness.Now()
		waitPast(t, closed+el.params.Timeout)
		el.allLed(patience)
		for role := range el.params.Roles {
			el.leader(role, patience, old...)
		}
	}
}

// The old leader is dead. Its role has no leader until its session has ended, the group has rebalanced and
// a record has come.
func memberKilled(t *testing.T, e *env) {
	el := cover(t, e, 3, 3)
	// This is less than T: nobody has to wait for T after a crash.
	el.bound = e.session + rebalanceTime + el.params.Timeout/20 + 2*busyMachine
	el.start("first")
	el.settle()
	el.follow("second", "third")
	waitPast(t, witness.Now()+el.params.Timeout) // until the members that lost partitions no longer presume
	for range 2 {
		role := soleLeader(t, el)
		leader := el.leader(role, patience)
		at := leader.Kill()
		next := el.leader(role, el.bound+patience, leader.member)
		assert.Less(t, next.since-at, el.bound)
		t.Logf("killed → next leader of role %d: %v", role, (next.since - at).Round(time.Millisecond))
		el.allLed(patience)
		next.sampledMore(100)
	}
}

// soleLeader waits until some role has one leader only, and returns that role.
func soleLeader(t *testing.T, el *election) int {
	t.Helper()
	sole := -1
	waitUntil(t, el.params.Timeout+patience, "a role has one leader only", func() bool {
		for role := range el.params.Roles {
			n := 0
			for _, m := range el.members {
				if _, ok := m.leads(0, role); ok {
					n++
				}
			}
			if n == 1 {
				sole = role
				return true
			}
		}
		return false
	})
	return sole
}

// The old leader runs but is cut off. It presumes to lead until the others have taken over, but not beyond T.
func memberCutOff(how proxy.Cut) func(*testing.T, *env) {
	return func(t *testing.T, e *env) {
		p := e.proxy(t)
		el := cover(t, e, 3, 3)
		old := el.start("first", through(p))
		el.settle()
		el.follow("second", "third")
		waitPast(t, witness.Now()+el.params.Timeout)

		require.NoError(t, p.CutOff(how))
		cut := witness.Now()
		for role := range el.params.Roles {
			el.leader(role, el.params.Timeout+patience, old)
		}
		waitPast(t, cut+el.params.Timeout+busyMachine)
		for role := range el.params.Roles {
			_, ok := old.leads(0, role)
			assert.False(t, ok, "%s presumes to lead role %d beyond T", old, role)
		}

		before := old.logged(assignedLine) // none follows while it is cut off
		require.NoError(t, p.Restore())
		old.logs(assignedLine, before+1, el.params.Timeout+patience)
		el.allLed(patience)
		waitPast(t, witness.Now()+el.params.Timeout/2)
	}
}

// The worst moment to be cut off is a rebalance: the member does not learn what the group withdraws from it.
func memberCutOffDuringJoin(t *testing.T, e *env) {
	p := e.proxy(t)
	el := cover(t, e, 3, 3)
	old := el.start("first", through(p))
	el.settle()
	joiner := el.start("second")
	joiner.logs("msg=starting", 1, patience)
	require.NoError(t, p.CutOff(proxy.Both))
	cut := witness.Now()
	for role := range el.params.Roles {
		el.leader(role, el.params.Timeout+patience, old)
	}
	waitPast(t, cut+el.params.Timeout+busyMachine)
	before := old.logged(assignedLine) // none follows while it is cut off
	require.NoError(t, p.Restore())
	old.logs(assignedLine, before+1, el.params.Timeout+patience)
	el.allLed(patience)
}

// With two disjoint groups over the same roles, a crash in one of them leaves no
// role without a leader: the other has its own.
func memberKilledOfTwoGroups(t *testing.T, e *env) {
	el := cover(t, e, 2, 2, func(c *contenderParams) {
		c.GroupsOnTopic = 2
		c.Interval = c.Timeout / 40 // so that B is a twentieth of T again
	})
	in := func(group string) func(*memberParams) {
		return func(m *memberParams) { m.Contenders[0].Group += "-" + group }
	}
	groups := map[string][]*member{}
	for _, group := range []string{"one", "two"} {
		for _, name := range []string{"first", "second"} {
			m := el.start(group+"-"+name, in(group))
			el.follows(m)
			groups[group] = append(groups[group], m)
		}
	}
	others := func(group string) []*member {
		var out []*member
		for name, ms := range groups {
			if name != group {
				out = append(out, ms...)
			}
		}
		return out
	}
	for group := range groups {
		for role := range el.params.Roles {
			el.leader(role, firstLeader, others(group)...)
		}
	}
	el.settle()
	waitPast(t, witness.Now()+el.params.Timeout)

	for _, group := range []string{"one", "two"} {
		victim := el.leader(0, patience, others(group)...)
		at := victim.Kill()
		next := el.leader(0, el.params.Timeout+patience, append(others(group), victim.member)...)
		t.Logf("group %s has its leader again after %v", group, (next.since - at).Round(time.Millisecond))
	}
}
