package elector

import (
	"testing"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
	"github.com/stretchr/testify/require"
)

func TestLink(t *testing.T) {
	const T = 8 * time.Second
	var l link
	require.False(t, l.check(at(0), T), "nothing has come back yet")
	l.sent(lease.Hello, 1, at(0))
	require.True(t, l.probing(at(T-1), T))
	require.False(t, l.probing(at(T), T), "it is given up")
	l.back(1, at(0), at(time.Second), T)
	require.False(t, l.probing(at(time.Second), T))
	require.True(t, l.check(at(time.Second), T))
	require.True(t, l.check(at(time.Second+T/2-1), T))
	require.False(t, l.check(at(time.Second+T/2), T), "too long ago")
	require.False(t, l.stalled, "that proves nothing")

	l.sent(lease.Beat, 2, at(10*time.Second))
	require.True(t, l.beating(at(10*time.Second), T))
	l.check(at(10*time.Second+T/4-1), T)
	require.False(t, l.stalled)
	l.check(at(10*time.Second+T/4), T)
	require.True(t, l.stalled, "it is overdue")
	require.True(t, l.doubtful(at(12*time.Second)), "whoever was silent meanwhile")

	l.back(2, at(10*time.Second), at(13*time.Second), T)
	require.True(t, l.stalled, "it took more than T/4")
	l.sent(lease.Claim, 3, at(14*time.Second))
	l.back(3, clock.Instant{}, at(30*time.Second), T)
	require.True(t, l.stalled, "it took more than T")
	l.sent(lease.Hello, 4, at(31*time.Second))
	l.back(4, at(31*time.Second), at(31*time.Second+T/4-1), T)
	require.False(t, l.stalled)
	require.True(t, l.doubtful(at(20*time.Second)), "heard before the log was back")
	require.False(t, l.doubtful(at(34*time.Second)))

	l.sent(lease.Beat, 5, at(40*time.Second))
	l.failed(5)
	require.True(t, l.stalled)
	require.False(t, l.beating(at(40*time.Second), T), "another one may be sent")
	l.sent(lease.Snapshot, 6, at(41*time.Second))
	require.Zero(t, l.beat.seq, "nobody waits for that")
}

// A Release has no stamp. It must not be taken for a record that took longer than T: who
// gave something up could not claim for a while.
func TestReleaseIsNoRoundTrip(t *testing.T) {
	w := newWorld(1)
	a := w.start("a", 2, func(s *Settings) { s.Rebalance = false })
	w.pass(6 * time.Second)
	w.start("b", 2, func(s *Settings) { s.Rebalance = false })
	w.pass(6 * time.Second)
	rtt := a.timing.rtt
	a.do(func(now clock.Instant) { _, err := a.Transfer(1, "b", now); require.NoError(t, err) })
	w.pass(50 * time.Millisecond)
	require.Equal(t, []int{1}, w.actor("b").leads(2))
	require.False(t, a.channels[0].link.stalled, "a Release that comes back late is no stall")
	require.LessOrEqual(t, a.timing.rtt, rtt)
	require.Equal(t, []Outcome{{1, nil}}, a.ends)
}

// Every own record that comes back tells the round trip, shorter ones more.
func TestRoundTripIsMeasured(t *testing.T) {
	for _, T := range []time.Duration{400 * time.Millisecond, 5 * time.Second} {
		tm := newTiming(T)
		require.Equal(t, maxRoundTrip, tm.roundTrip())
		for range 100 {
			tm.back(at(0), at(3*time.Millisecond))
		}
		require.InDelta(t, 3*time.Millisecond, tm.roundTrip(), float64(10*time.Microsecond))
		tm.back(at(0), at(11*time.Millisecond))
		require.InDelta(t, 4*time.Millisecond, tm.roundTrip(), float64(10*time.Microsecond), "an eighth of the difference")
		tm.back(at(0), at(time.Minute))
		require.InDelta(t, 4*time.Millisecond, tm.rtt, float64(10*time.Microsecond), "a record that was held up is no round trip")
		tm.back(clock.Instant{}, at(2*time.Minute))
		require.Equal(t, at(2*time.Minute), tm.lastBack)
	}
}

// A woken process says nothing of what it wants before the group could tell it that its
// session is over; one that was merely late goes on.
func TestWoken(t *testing.T) {
	now := at(13 * time.Second)
	for _, c := range []struct{ late, hello, want time.Duration }{
		{0, 10 * time.Second, 10 * time.Second},
		{time.Second, 10 * time.Second, 10 * time.Second},
		{3 * time.Second, 10 * time.Second, 15 * time.Second},
		{3 * time.Second, 20 * time.Second, 20 * time.Second},
	} {
		a := announcer{at: at(c.hello).Mono}
		if tm := (timing{due: now.Mono.Add(-c.late)}); tm.late(now) {
			a.putOff(now.Mono.Add(2 * time.Second))
		}
		require.Equal(t, at(c.want).Mono, a.at, "late by %v", c.late)
	}
	require.False(t, (&timing{}).late(now), "the first step is never late")
}

// Reading the history of many roles may take longer than T/4. A process that says Hello first must
// not conclude that the log is slow: it would claim nothing for as long again, and longer.
func TestReadingTheHistoryIsNoRoundTrip(t *testing.T) {
	k := newRooms(1, 2, nil)
	s, c := k.reading(2)
	c.hello(nil, k.now)
	hello := k.out()
	history := []lease.Record{
		{Kind: lease.Claim, Fresh: true, Roles: []int32{0, 1}},
		{Kind: lease.Release, Ended: []lease.Grant{{Token: 0, Roles: []int32{0, 1}}}},
	}
	for _, r := range history {
		k.now = k.now.Add(400 * time.Millisecond)
		k.read(0, k.from("b", 0, r))
		require.Empty(t, s.claims.vacant, "the rest of the history may show a holder")
		s.step(k.now)
	}
	k.now = k.now.Add(time.Millisecond)
	k.read(0, hello[0])
	require.False(t, c.link.stalled)
	require.False(t, c.link.behind(k.now, k.set.T))
	require.LessOrEqual(t, k.timing.roundTrip(), maxRoundTrip)
	s.step(k.now)
	require.NotContains(t, kinds(k.out()), lease.Claim, "others that start too have said Hello behind the history")
	k.members.announced("c", "c", &lease.Announcement{Roles: 2, Period: helloEvery}, true, k.now)
	k.planner.forget()
	k.now = k.now.Add(settleFor)
	s.step(k.now)
	for _, r := range k.out() {
		require.NotEqual(t, []int32{0, 1}, r.Roles, "they get their share")
	}
	k.now = k.now.Add(k.set.T)
	s.step(k.now)
	require.NotEmpty(t, s.claims.vacant)
}

// If reading the history took longer than the wait for others that start too, the first claims wait
// until an own Hello behind it comes back, at most for T/2. Reading from farther back is no reason:
// the records behind the history are known by then.
func TestTheWaitForOthersBeginsAnewAfterALongHistory(t *testing.T) {
	for _, c := range []struct {
		took  time.Duration
		again bool
		want  bool
	}{
		{settleFor / 2, false, false}, {settleFor, false, true}, {time.Second, false, true}, {time.Second, true, false},
	} {
		k := newRooms(1, 2, func(set *Settings) { set.T = 5 * time.Second })
		_, log := k.reading(1)
		log.announcements.again = c.again
		log.hello(nil, k.now)
		want := k.timing.settleAt
		k.now = k.now.Add(c.took)
		k.read(0, k.from("b", 0, lease.Record{Kind: lease.Claim, Fresh: true, Roles: []int32{0, 1}}))
		log.catchUp(k.now)
		if c.want {
			want = k.now.Mono.Add(k.set.T / 2)
		}
		require.Equal(t, want, k.timing.settleAt, "%+v", c)
	}
}

// Others that start too say Hello when this process does, so that wait ends soon after the own Hello
// has come back.
func TestTheWaitForOthersBeginsAnewWithTheOwnHello(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{settleFor - time.Millisecond: settleFor, time.Second: time.Second + 50*time.Millisecond + settleFor} {
		k := newRooms(1, 2, func(set *Settings) { set.T = 5 * time.Second })
		_, log := k.reading(1)
		log.hello(nil, k.now)
		hello, began := k.out()[0], k.now.Mono
		k.now = k.now.Add(took)
		k.read(0, k.from("b", 0, lease.Record{Kind: lease.Claim, Fresh: true, Roles: []int32{0, 1}}))
		log.catchUp(k.now)
		k.now = k.now.Add(50 * time.Millisecond)
		k.read(0, hello)
		require.Equal(t, began.Add(want), k.timing.settleAt, "after %v", took)
	}
}

// The rest of a log may have no records. Then the own Hello ends the history, and is not late.
func TestAHelloEndsAHistoryWithGaps(t *testing.T) {
	k := newRooms(1, 2, nil)
	_, c := k.reading(9)
	c.hello(nil, k.now)
	hello := k.out()[0]
	k.ends[0], k.now = 9, k.now.Add(600*time.Millisecond)
	require.False(t, c.link.check(k.now, k.set.T))
	require.False(t, c.link.stalled, "nothing is overdue while the history is read")
	k.read(0, hello)
	require.False(t, c.link.stalled)
	require.False(t, c.link.behind(k.now, k.set.T))
}
