package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/franz"
	"github.com/goneli/neli/internal/history"
	"github.com/goneli/neli/lab/witness"
)

// How the consumer group affects leaders, with every kind of group that Kafka has; many roles; and several groups on one
// topic.

func TestGroups(t *testing.T) {
	e := newEnv(t, 1, 0, nil)
	for _, c := range []struct {
		name string
		test func(*testing.T, *env)
	}{
		{"join under eager range, the leader keeps its partition", joinUnderRange},
		{"join under eager range, the partition moves", joinUnderRangeMoves},
		{"group.protocol=consumer", consumerProtocol},
		{"static membership", staticMembership},
		{"many roles, assigned", manyRoles(neli.NominationAssigned)},
		{"many roles, open", manyRoles(neli.NominationOpen)},
		{"fewer roles", fewerRoles},
		{"two exclusive groups on one topic", twoExclusiveGroups},
		{"two non-exclusive groups on one topic", twoNonExclusiveGroups},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.test(t, e)
		})
	}
}

func withAssignor(name string) func(*contenderParams) {
	return func(c *contenderParams) { c.Kafka["partition.assignment.strategy"] = name }
}

// The range assignor deals partitions out in the order of the member ids, which begin with the member's name. So
// the names decide which member gets the only partition. An eager rebalance withdraws it first in any case,
// which must not matter.
func joinUnderRange(t *testing.T, e *env) {
	e = e.patient()
	el := exclusive(t, e, neli.NominationAssigned, 4*time.Second, withAssignor("range"))
	el.start("a")
	leader := el.leader(0, firstLeader)
	// They join one after another, so that each causes its own rebalance.
	others := append(el.follow("b"), el.follow("c")...)
	leader.logs(assignedLine, 3, patience)
	others[0].close(patience)
	leader.logs(assignedLine, 4, patience)
	others[1].Kill()
	leader.logs(assignedLine, 5, e.session+patience)
	waitPast(t, witness.Now()+time.Second)
	el.soleTerm(leader)
	assert.Len(t, leader.events("acquired", "revoked", "fenced"), 1)
}

// When the assignment moves, the leader hands over cleanly, and no process waits for T.
func joinUnderRangeMoves(t *testing.T, e *env) {
	el := exclusive(t, e, neli.NominationAssigned, 4*time.Second, withAssignor("range"))
	el.bound = 100*time.Millisecond + busyMachine
	el.start("m")
	old := el.leader(0, firstLeader)
	joiner := el.follow("a")[0]
	next := el.leader(0, patience, old.member)
	assert.Equal(t, joiner, next.member)
	assert.Equal(t, "unassigned", old.awaits("revoked", patience).Reason)
	assert.Empty(t, old.events("fenced"))
}

// With KIP-848 the broker assigns, and sets the timeouts. A member to which nothing is assigned
// hears nothing, so there is a partition for each.
func consumerProtocol(t *testing.T, e *env) {
	el := exclusive(t, e, neli.NominationAssigned, 4*time.Second, func(c *contenderParams) { // longer than a hand-over may take
		c.Roles, c.Partitions = 3, 3
		c.Kafka = map[string]string{"group.protocol": "consumer"}
	})
	session := 6 * time.Second // quickGroups
	if e.cluster == nil {
		session = 45 * time.Second // a stock broker's
	}
	el.bound = assignedBound(el.params.Timeout, session)
	first := el.start("first")
	el.allLed(firstLeader)
	terms := map[int]held{}
	for role := range el.params.Roles {
		terms[role] = el.leader(role, patience)
	}
	others := el.follow("second", "third")
	var left []int
	waitUntil(t, patience, "each leads a role", func() bool {
		left = el.rolesOf(first)
		return len(left) == 1 && len(el.rolesOf(others[0])) == 1 && len(el.rolesOf(others[1])) == 1
	})
	kept := left[0]
	el.soleTerm(terms[kept])
	for _, v := range el.vacancies() {
		assert.Less(t, v.Length(), 100*time.Millisecond+busyMachine, "handed over in order")
	}

	at := first.Kill()
	next := el.leader(kept, el.bound+patience, first)
	t.Logf("killed → next leader: %v, session %v", (next.since - at).Round(time.Millisecond), session)
	others[0].close(patience)
	el.allLed(patience)
}

// vacancies returns the vacancies of all roles.
func (e *election) vacancies() []witness.Span {
	var out []witness.Span
	for role := range e.params.Roles {
		out = append(out, witness.Vacancies(e.terms(0, role))...)
	}
	return out
}

// A static member that crashes and comes back within its session gets its
// partition back without a rebalance: the others are never nominated, and only the
// silence wait keeps it from leading at once.
func staticMembership(t *testing.T, e *env) {
	const session = 20 * time.Second // the process has to start and T to pass within it
	instance := func(id string) func(*memberParams) {
		return func(m *memberParams) { m.Contenders[0].Kafka = static(m.Contenders[0].Kafka, id, session) }
	}
	el := exclusive(t, e, neli.NominationAssigned, 3*time.Second)
	el.bound = openBound(el.params.Timeout) + busyMachine // the process has to start, too
	el.start("first", instance("one"))
	old := el.leader(0, firstLeader)
	el.follows(el.start("second", instance("two")))
	el.soleTerm(old)
	at := old.Kill()
	back := el.start("first", instance("one"))
	next := el.leader(0, el.bound+patience, old.member)
	assert.Equal(t, back, next.member)
	assert.Greater(t, next.token, old.token)
	assert.Less(t, next.since-at, session)
}

// static returns properties with an instance id, as a new map, since members share the other one.
func static(props map[string]string, id string, session time.Duration) map[string]string {
	out := map[string]string{}
	for name, value := range props {
		out[name] = value
	}
	out["group.instance.id"] = id
	out["session.timeout.ms"] = fmt.Sprint(session.Milliseconds())
	return out
}

// Twelve roles on six partitions: each has its own leader and its own tokens. The group spreads
// them, and a crash moves only those of one member.
func manyRoles(nomination neli.Nomination) func(*testing.T, *env) {
	return func(t *testing.T, e *env) {
		el := exclusive(t, e, nomination, 4*time.Second, func(c *contenderParams) { c.Roles, c.Partitions = 12, 6 })
		el.start("first")
		el.allLed(firstLeader) // before others can claim what it has not claimed yet
		el.follow("second", "third")
		if nomination == neli.NominationAssigned {
			waitUntil(t, patience, "the roles are spread evenly", func() bool {
				for _, m := range el.members {
					if len(el.rolesOf(m)) != 4 {
						return false
					}
				}
				return true
			})
		}
		el.allLed(patience)
		share := 12
		if nomination == neli.NominationAssigned {
			share = 4
		}
		var victim held
		var lost []int
		waitUntil(t, patience, "the leader of role 0 says that it leads its share", func() bool { // it says nothing while it takes no samples
			victim = el.leader(0, patience)
			lost = el.rolesOf(victim.member)
			return len(lost) == share
		})
		kept := map[int]held{}
		for role := range el.params.Roles {
			if h := el.leader(role, patience); h.member != victim.member {
				kept[role] = h
			}
		}
		victim.Kill()
		for _, role := range lost {
			h := el.leader(role, el.bound+patience, victim.member)
			assert.Greater(t, h.token, int64(-1))
		}
		// The group gives out partitions: roles of one partition have one leader.
		for role := range el.params.Partitions {
			if nomination == neli.NominationAssigned {
				waitUntil(t, patience, fmt.Sprintf("roles %d and %d have one leader", role, role+el.params.Partitions), func() bool {
					a, b := el.leader(role, patience), el.leader(role+el.params.Partitions, patience)
					return a.member == b.member // unless the partition moves between the two looks
				})
			}
		}
		t.Logf("%d roles changed leaders, %d others were led elsewhere", len(lost), len(kept))
		assert.Len(t, kept, el.params.Roles-share)
	}
}

// rolesOf returns the roles that the member says it leads.
func (e *election) rolesOf(m *member) []int {
	var out []int
	for role := range e.params.Roles {
		if _, ok := m.leads(0, role); ok {
			out = append(out, role)
		}
	}
	return out
}

// Roles that no longer exist are given up cleanly, and the others are not touched.
func fewerRoles(t *testing.T, e *env) {
	el := exclusive(t, e, neli.NominationOpen, 3*time.Second, func(c *contenderParams) { c.Roles, c.Partitions = 4, 4 })
	first := el.start("first")
	el.allLed(firstLeader)
	kept := []held{el.leader(0, patience), el.leader(1, patience)}
	first.say(command{Do: "roles", Roles: 2})
	assert.Equal(t, "roles_changed", first.awaits("revoked", patience).Reason)
	waitUntil(t, patience, "roles 2 and 3 are given up", func() bool {
		return fmt.Sprint(el.rolesOf(first)) == "[0 1]"
	})
	// A member that still knows these roles takes them, and no others.
	second := el.start("second")
	waitUntil(t, patience, "another leads roles 2 and 3", func() bool {
		return fmt.Sprint(el.rolesOf(second)) == "[2 3]"
	})
	for _, h := range kept {
		el.soleTerm(h)
	}
}

// Groups that share a topic do not disturb each other: each process contends in
// both, and the leaders of one group crash and close without the other's noticing.
func twoExclusiveGroups(t *testing.T, e *env) {
	el := exclusive(t, e, neli.NominationOpen, 3*time.Second)
	both := func(m *memberParams) {
		other := m.Contenders[0]
		other.Group += "-other"
		m.Contenders = append(m.Contenders, other)
	}
	first := el.start("first", both)
	leads := func(m *member, contender int) func() bool {
		return func() bool { _, ok := m.leads(contender, 0); return ok }
	}
	waitUntil(t, firstLeader, "first leads in its group", leads(first, 0))
	waitUntil(t, firstLeader, "first leads in the other group", leads(first, 1))
	kept := el.leader(0, patience)
	second := el.start("second", both)
	el.follows(second)
	// The processes change places in one of the groups only.
	first.say(command{Do: "close", Contender: 1})
	waitUntil(t, patience, "second leads in the other group", leads(second, 1))
	el.holds(kept)
	first.Kill()
	waitUntil(t, el.bound+patience, "second leads in both", leads(second, 0))
	assert.Len(t, el.terms(0, 0), 2)
	assert.Len(t, el.terms(1, 0), 2)
}

// Two non-exclusive groups on one topic keep each other's partitions alive, each at
// half the rate; each keeps its own promise through joins and leaves.
func twoNonExclusiveGroups(t *testing.T, e *env) {
	shared := slug(t.Name()) + "-" + fresh()
	var groups []*election
	for range 2 {
		el := cover(t, e, 2, 2, func(c *contenderParams) {
			c.Topic = shared
			c.GroupsOnTopic = 2
			c.Interval = c.Timeout / 40
		})
		el.start("first")
		groups = append(groups, el)
	}
	for _, el := range groups {
		el.settle()
		old := el.members[0]
		el.follow("second")
		old.close(patience)
		for role := range el.params.Roles {
			el.leader(role, patience, old)
		}
	}
	waitPast(t, witness.Now()+groups[0].params.Timeout)
	for _, el := range groups {
		el.allLed(patience)
	}
}

// proves checks that a topic's records prove what neli history --prove checks.
func proves(t *testing.T, bootstrap, topic, group string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // t's own has ended
	defer cancel()
	props, log := map[string]string{"bootstrap.servers": bootstrap}, slog.New(slog.DiscardHandler)
	producer, err := franz.Provider().Producer(props, log)
	require.NoError(t, err)
	defer producer.Close()
	admin, err := franz.Provider().Admin(producer)
	require.NoError(t, err)
	defer admin.Close()
	reader, err := franz.Provider().LogReader(props, log)
	require.NoError(t, err)
	defer reader.Close()
	var h *history.History
	err = history.Fetch(ctx, admin, reader, topic, group,
		func(read history.Log) (err error) { h, err = history.New(read); return err },
		func(e history.Entry) error { return h.Add(e) })
	require.NoError(t, err)
	r := h.Result()
	assert.Empty(t, r.Faults)
	assert.NotEmpty(t, r.Terms)
	t.Logf("proven by %d records: %d terms, %d waits, %d of them shown by timestamps; %s", r.Records, len(r.Terms), r.Waits, r.Shown, strings.Join(r.Unproven, "; "))
}

// historyTells checks what the command says of two leaders, from the topic and from a file of its records. The first
// leader was killed, and the second one closed.
func historyTells(t *testing.T, program, bootstrap, group string, leaders ...string) {
	neli := func(args ...string) string {
		out, err := exec.CommandContext(t.Context(), program, append([]string{"history"}, args...)...).Output()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	from := []string{"--bootstrap", bootstrap, "--group", group}
	proof := neli(append(from, "--prove")...)
	require.Contains(t, proof, "\nproven: ")
	file := filepath.Join(t.TempDir(), "records.jsonl")
	require.NoError(t, os.WriteFile(file, []byte(neli(append(from, "--records")...)), 0o600))
	require.Equal(t, proof, neli("--file", file, "--prove"))
	var told []string
	for line := range strings.Lines(neli("--file", file, "--json")) {
		var term history.Term
		require.NoError(t, json.Unmarshal([]byte(line), &term))
		require.Less(t, time.Since(term.From), time.Hour)
		told = append(told, term.Name+" "+term.End)
	}
	require.Equal(t, []string{leaders[0] + " " + history.Outlived, leaders[1] + " " + history.Released}, told)
}
