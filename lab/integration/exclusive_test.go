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

// Exclusive mode under every fault that can happen to one process, for both ways of nomination. Each case asserts what
// is special to it. At its end every election asserts that there were never two leaders, that tokens increase, that no
// vacancy was longer than the settings promise, and that members got the right events in the right order.

// busyMachine is added to every bound: two cores that run brokers, members of
// several cases and perhaps a compiler stall any of them for a moment.
const busyMachine = 2 * time.Second

// roundTrip is how long one round trip of a record may take: the p99 with three brokers.
const roundTrip = 25 * time.Millisecond

// rebalanceTime is J: from the end of a session until its partitions are assigned to others. These learn at their next
// heartbeat that they must join.
const rebalanceTime = 2 * time.Second

// openBound is the longest time that a role may be without a leader when any process may claim: W(T) after the last beat
// and the time of the claim. The last beat may come up to one beat interval after the last proof of leading.
func openBound(timeout time.Duration) time.Duration {
	const drift = 0.0005
	silence := time.Duration(float64(timeout)*(1+drift)/(1-drift)) + time.Millisecond
	return silence + timeout/5 + 3*roundTrip + busyMachine
}

// assignedBound is the same when the group nominates: the session has to end and
// the group to rebalance, during which the silence wait runs already.
func assignedBound(timeout, session time.Duration) time.Duration {
	return max(openBound(timeout), session+rebalanceTime+3*roundTrip+busyMachine)
}

// exclusiveParams are an election's settings, with T as given and the shortest session that the broker takes.
func exclusiveParams(e *env, nomination neli.Nomination, timeout time.Duration) contenderParams {
	p := contenderParams{Nomination: nomination, Timeout: timeout}
	if nomination == neli.NominationAssigned {
		p.Kafka = map[string]string{
			"session.timeout.ms":    fmt.Sprint(e.session.Milliseconds()),
			"heartbeat.interval.ms": "200",
		}
	}
	return p
}

// exclusive prepares an election with the bound that follows from its settings.
func exclusive(t *testing.T, e *env, nomination neli.Nomination, timeout time.Duration, change ...func(*contenderParams)) *election {
	t.Helper()
	params := exclusiveParams(e, nomination, timeout)
	for _, f := range change {
		f(&params)
	}
	el := newElection(t, e, params)
	el.bound = openBound(timeout)
	if nomination == neli.NominationAssigned {
		el.bound = assignedBound(timeout, e.session)
	}
	return el
}

// longEnough is how long a leader is kept away: longer than T, and longer than its session if it has one. Only a little
// longer, so that the test catches a leader that trusts its lease for too long.
func (e *election) longEnough() time.Duration {
	d := e.params.Timeout
	if e.grouped() {
		d = max(d, e.env.session)
	}
	return d + d/4
}

// firstLeader is how long the first leader may take: the topic has to be created, the group formed, and W(T) waited.
const firstLeader = time.Minute

func TestExclusiveOpen(t *testing.T) {
	testExclusive(t, neli.NominationOpen)
}

func TestExclusiveAssigned(t *testing.T) {
	testExclusive(t, neli.NominationAssigned)
}

func testExclusive(t *testing.T, nomination neli.Nomination) {
	e := newEnv(t, 1, 5, nil)
	e.proves = true
	for _, c := range []struct {
		name string
		test func(*testing.T, *env, neli.Nomination)
	}{
		{"leader killed", leaderKilled},
		{"leader suspended, wakes, leads again", leaderSuspended},
		{"leader wakes with a backlog of its own beats", leaderWithBacklog},
		{"leader suspended while it is being revoked", leaderSuspendedInRevoke},
		{"leader closes", leaderCloses},
		{"leader hangs", leaderHangs},
		{"others join and leave", othersJoinAndLeave},
		{"cut off, both directions", leaderCutOff(proxy.Both)},
		{"cut off, upstream only", leaderCutOff(proxy.Upstream)},
		{"cut off, downstream only", leaderCutOff(proxy.Downstream)},
		{"cut off, connections refused", leaderCutOff(proxy.Refuse)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.test(t, e, nomination)
		})
	}
}

func leaderKilled(t *testing.T, e *env, nomination neli.Nomination) {
	el := exclusive(t, e, nomination, time.Second)
	el.start("first")
	old := el.leader(0, firstLeader)
	el.follow("second", "third")
	at := old.Kill()
	next := el.leader(0, el.bound+patience, old.member)
	assert.Greater(t, next.token, old.token)
	assert.Less(t, next.since-at, el.bound)
	t.Logf("killed → next leader: %v", (next.since - at).Round(time.Millisecond))
}

// A suspended leader does not know of its suspension. When it wakes, its clock must say at once that it no longer leads,
// before anything else does. It must receive an event for this before it can lead again.
func leaderSuspended(t *testing.T, e *env, nomination neli.Nomination) {
	el := exclusive(t, e, nomination, time.Second)
	el.start("first")
	el.leader(0, firstLeader)
	el.follow("second")
	old, asleep := el.suspendLeader(0)
	before := len(old.events("fenced"))
	next := el.leader(0, el.bound+patience, old.member)
	assert.Less(t, next.since-asleep, el.bound)
	waitPast(t, asleep+el.longEnough())

	joined := old.logged(assignedLine)
	woken := old.wake()
	waitUntil(t, patience, "the woken leader is told", func() bool { return len(old.events("fenced")) > before })
	fenced := old.events("fenced")[before]
	assert.Greater(t, fenced.At, woken)
	assert.Equal(t, old.token, fenced.Terms[0].Token)
	old.sampledMore(300)
	el.neverAgain(old, woken)
	if el.grouped() {
		old.logs(assignedLine, joined+1, patience) // back in the group
	}

	next.Kill()
	again := el.leader(0, el.bound+patience, next.member)
	assert.Equal(t, old.member, again.member)
	assert.Greater(t, again.token, next.token)
	assert.Less(t, fenced.At, again.since, "told that the old term is over before the new one begins")
	t.Logf("suspended → next leader: %v", (next.since - asleep).Round(time.Millisecond))
}

// The hardest case for a leader that wakes: it reads back an acknowledged beat of its own, and what was sent with it. They
// prove that it held the lease when it sent them, but not that it holds it now.
func leaderWithBacklog(t *testing.T, e *env, nomination neli.Nomination) {
	e = e.patient()
	p := e.proxy(t)
	el := exclusive(t, e, nomination, 5*time.Second, func(c *contenderParams) { c.Interval = c.Timeout / 10 })
	el.start("first", through(p))
	old := el.leader(0, firstLeader)
	second := el.follow("second")[0]

	// All records of the start have been read, so the next ones are beats.
	waitUntil(t, patience, "both have read the same", func() bool { return second.Records(0) == old.Records(0) })

	// Its writes arrive, but its reads wait in the proxy and later in its sockets. It must be suspended before T or its
	// session has passed, when it would notice that its reads are cut off. It sends one beat, since it sends no further
	// one before that has come back.
	require.NoError(t, p.Hold(proxy.Downstream))
	waitPast(t, witness.Now()+2*el.params.Interval)
	waitUntil(t, el.params.Timeout/2, "a beat is in the log that its sender has not read", func() bool { return second.Records(0) > old.Records(0) })
	asleep := old.suspend()
	require.NoError(t, p.Restore())
	next := el.leader(0, el.bound+patience, old.member)
	waitPast(t, asleep+el.longEnough())

	had := old.Records(0)
	woken := old.wake()
	waitUntil(t, patience, "the backlog is read", func() bool { return old.Records(0) > had+3 })
	old.awaits("fenced", patience)
	old.sampledMore(300)
	el.neverAgain(old, woken)
	assert.Greater(t, next.token, old.token)
	t.Logf("woke to %d records", old.Records(0)-had)
}

// While LeaderRevoked runs, the lease is kept. If the process is suspended meanwhile, the lease ends, and the barrier that
// continues afterwards does not lead.
func leaderSuspendedInRevoke(t *testing.T, e *env, nomination neli.Nomination) {
	el := exclusive(t, e, nomination, 4*time.Second, func(c *contenderParams) { c.Drain = time.Minute })
	el.bound += el.params.Timeout // a term that is being revoked may end by itself
	first := el.start("first", func(m *memberParams) { m.Contenders[0].HoldRevoked = true })
	old := el.leader(0, firstLeader)
	el.follow("second")
	first.beginClose()
	revoked := first.awaits("revoked", patience)
	waitPast(t, revoked.At+2*el.params.Timeout)
	el.soleTerm(old)

	asleep := old.suspend()
	next := el.leader(0, el.bound+patience, old.member)
	assert.Less(t, next.since-asleep, el.bound)
	waitPast(t, asleep+el.longEnough())
	woken := old.wake()
	old.sampledMore(300)
	el.neverAgain(old, woken)
	first.say(command{Do: "finish"})
	first.endClose(patience)
	assert.Len(t, first.events("revoked"), 1)
	assert.Empty(t, first.events("fenced"), "told once that the term is over")
}

// A leader that closes hands over, and no process has to wait for T.
func leaderCloses(t *testing.T, e *env, nomination neli.Nomination) {
	el := exclusive(t, e, nomination, 4*time.Second)
	el.bound = 100*time.Millisecond + busyMachine
	el.start("first")
	old := el.leader(0, firstLeader)
	el.follow("second", "third")
	old.close(patience)
	next := el.leader(0, patience, old.member)
	revoked := old.awaits("revoked", patience)
	assert.Equal(t, "closing", revoked.Reason)
	next.close(patience)
	el.leader(0, patience, old.member, next.member)
}

// An application that hangs keeps its process alive, but does not keep its leadership.
func leaderHangs(t *testing.T, e *env, nomination neli.Nomination) {
	// Only a leader works, and so hangs. T is so long that its term does not end by itself before it is told to hang.
	el := exclusive(t, e, nomination, 4*time.Second, func(c *contenderParams) {
		c.MaxPulse = time.Second
		c.Drive = drivePulse
	})
	el.start("first")
	el.leader(0, firstLeader)
	el.follow("second")
	old := el.leader(0, patience)
	old.say(command{Do: "hang"})
	hung := old.awaits("hangs", patience)
	next := el.leader(0, el.bound+el.params.MaxPulse+patience, old.member)
	// It still leads for MaxPulseInterval, up to a second until the check, and then T.
	assert.Less(t, next.since-hung.At, el.params.MaxPulse+time.Second+el.bound)
}

// A member that joins or leaves, cleanly or not, does not disturb the leader.
func othersJoinAndLeave(t *testing.T, e *env, nomination neli.Nomination) {
	e = e.patient()
	el := exclusive(t, e, nomination, 4*time.Second)
	el.start("first")
	leader := el.leader(0, firstLeader)
	others := el.follow("second", "third")
	others[0].Kill()
	others = append(others, el.follow("fourth")...)
	others[1].close(patience)
	waitPast(t, witness.Now()+e.session+time.Second)
	el.soleTerm(leader)
	assert.Len(t, leader.events("acquired", "revoked", "fenced"), 1)
}

func leaderCutOff(how proxy.Cut) func(*testing.T, *env, neli.Nomination) {
	return func(t *testing.T, e *env, nomination neli.Nomination) {
		p := e.proxy(t)
		el := exclusive(t, e, nomination, time.Second)
		el.start("first", through(p))
		old := el.leader(0, firstLeader)
		el.follow("second", "third")
		require.NoError(t, p.CutOff(how))
		cut := witness.Now()
		next := el.leader(0, el.bound+patience, old.member)
		assert.Less(t, next.since-cut, el.bound+el.params.Timeout)
		old.awaits("fenced", patience)
		waitPast(t, cut+2*max(el.params.Timeout, e.session))

		require.NoError(t, p.Restore())
		restored := witness.Now()
		old.readsMore(5, patience)
		old.sampledMore(300)
		el.neverAgain(old, restored)
		el.leader(0, patience)
	}
}
