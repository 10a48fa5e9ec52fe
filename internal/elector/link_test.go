package elector

import (
	"testing"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/announce"
	"github.com/goneli/neli/internal/elector/link"
	"github.com/goneli/neli/internal/elector/pace"
	"github.com/goneli/neli/internal/elector/request"
	"github.com/goneli/neli/internal/elector/roster"
	"github.com/goneli/neli/internal/elector/vacancy"
	"github.com/goneli/neli/internal/lease"
	"github.com/stretchr/testify/require"
)

// A Release has no stamp. It must not be taken for a record that took longer than T: otherwise a
// process that gave something up could not claim for a while.
func TestReleaseIsNoRoundTrip(t *testing.T) {
	w := newWorld(1)
	a := w.start("a", 2, func(s *Settings) { s.Rebalance = false })
	w.pass(6 * time.Second)
	w.start("b", 2, func(s *Settings) { s.Rebalance = false })
	w.pass(6 * time.Second)
	rtt := a.trip.Takes()
	a.do(func(now clock.Instant) { _, err := a.Transfer(1, "b", now); require.NoError(t, err) })
	w.pass(50 * time.Millisecond)
	require.Equal(t, []int{1}, w.actor("b").leads(2))
	require.False(t, a.channels[0].Link.IsStalled(), "a Release that comes back late is no stall")
	require.LessOrEqual(t, a.trip.Takes(), rtt)
	require.Equal(t, []request.Outcome{{ID: 1}}, a.ends)
}

// A process that was suspended announces nothing before the group could tell it that its session is
// over. A process that was merely late goes on.
func TestSuspensionPutsOffTheNextHello(t *testing.T) {
	now := at(13 * time.Second)
	for _, c := range []struct{ late, hello, want time.Duration }{
		{0, 10 * time.Second, 10 * time.Second},
		{time.Second, 10 * time.Second, 10 * time.Second},
		{3 * time.Second, 10 * time.Second, 15 * time.Second},
		{3 * time.Second, 20 * time.Second, 20 * time.Second},
	} {
		a := announce.Announcer{}
		a.SayNow(at(c.hello))
		var tm pace.Timing
		tm.Next(now.Mono.Add(-c.late))
		if tm.Late(now) {
			a.PutOff(now.Mono.Add(2 * time.Second))
		}
		require.Equal(t, at(c.want).Mono, a.Due(), "late by %v", c.late)
	}
	require.False(t, (&pace.Timing{}).Late(now), "the first step is never late")
}

// Reading the history of many roles may take longer than T/4. A process that says Hello first must
// not conclude that the log is slow: it would claim nothing for as long again, and longer.
func TestReadingTheHistoryIsNoRoundTrip(t *testing.T) {
	k := newRooms(1, 2, nil)
	s, c := k.reading(2)
	c.Hello(k.announcement(nil), k.told(k.now).Takes, k.now)
	hello := k.out()
	history := []lease.Record{
		{Kind: lease.Claim, Fresh: true, Roles: []int32{0, 1}},
		{Kind: lease.Release, Ended: []lease.Grant{{Token: 0, Roles: []int32{0, 1}}}},
	}
	for _, r := range history {
		k.now = k.now.Add(400 * time.Millisecond)
		k.read(0, k.from("b", 0, r))
		require.True(t, s.claims.IsEmpty(), "the rest of the history may show a holder")
		k.step(s, k.now)
	}
	k.now = k.now.Add(time.Millisecond)
	k.read(0, hello[0])
	require.False(t, c.Link.IsStalled())
	require.False(t, c.Link.Behind(k.now, k.set.T))
	require.LessOrEqual(t, k.trip.Takes(), link.MaxRoundTrip)
	k.step(s, k.now)
	require.NotContains(t, kinds(k.out()), lease.Claim, "others that start too have said Hello behind the history")
	k.members.Announced("c", "c", &lease.Announcement{Roles: 2, Period: roster.HelloEvery}, true, k.now)
	k.planner.Forget()
	k.now = k.now.Add(vacancy.StartupWaitMax)
	k.step(s, k.now)
	for _, r := range k.out() {
		require.NotEqual(t, []int32{0, 1}, r.Roles, "they get their share")
	}
	k.now = k.now.Add(k.set.T)
	k.step(s, k.now)
	require.False(t, s.claims.IsEmpty())
}

// If reading the history took longer than the wait for others that start too, the first claims wait
// until an own Hello behind it comes back, at most for T/2. Reading from farther back is no reason:
// the records behind the history are known by then.
func TestWaitForOthersRestartsAfterALongHistory(t *testing.T) {
	for _, c := range []struct {
		took  time.Duration
		again bool
		want  bool
	}{
		{vacancy.StartupWaitMax / 2, false, false}, {vacancy.StartupWaitMax, false, true}, {time.Second, false, true}, {time.Second, true, false},
	} {
		k := newRooms(1, 2, func(set *Settings) { set.T = 5 * time.Second })
		_, log := k.reading(1)
		log.Announcements.BeganBack(c.again, false)
		log.Hello(k.announcement(nil), k.told(k.now).Takes, k.now)
		k.flush()
		want := k.startup.End(2, false)
		k.now = k.now.Add(c.took)
		k.read(0, k.from("b", 0, lease.Record{Kind: lease.Claim, Fresh: true, Roles: []int32{0, 1}}))
		k.shards.of(log.Index).catchUp(log, k.told(k.now), k.now)
		k.flush()
		if c.want {
			want = k.now.Mono.Add(k.set.T / 2)
		}
		require.Equal(t, want, k.startup.End(2, false), "%+v", c)
	}
}

// After a long history the wait ends StartupWaitMax after the own Hello is back: others that start
// said theirs by then.
func TestWaitForOthersRestartsWhenTheHelloIsBack(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{vacancy.StartupWaitMax - time.Millisecond: vacancy.StartupWaitMax, time.Second: time.Second + 50*time.Millisecond + vacancy.StartupWaitMax} {
		k := newRooms(1, 2, func(set *Settings) { set.T = 5 * time.Second })
		_, c := k.reading(1)
		c.Hello(k.announcement(nil), k.told(k.now).Takes, k.now)
		hello, began := k.out()[0], k.now.Mono
		k.now = k.now.Add(took)
		k.read(0, k.from("b", 0, lease.Record{Kind: lease.Claim, Fresh: true, Roles: []int32{0, 1}}))
		k.shards.of(c.Index).catchUp(c, k.told(k.now), k.now)
		k.now = k.now.Add(50 * time.Millisecond)
		k.read(0, hello)
		require.Equal(t, began.Add(want), k.startup.End(2, false), "after %v", took)
	}
}

// The rest of a log may have no records. Then the own Hello ends the history, and is not late.
func TestAHelloEndsAHistoryWithGaps(t *testing.T) {
	k := newRooms(1, 2, nil)
	_, c := k.reading(9)
	c.Hello(k.announcement(nil), k.told(k.now).Takes, k.now)
	hello := k.out()[0]
	k.ends[0], k.now = 9, k.now.Add(600*time.Millisecond)
	require.False(t, c.Link.Check(k.now, k.set.T))
	require.False(t, c.Link.IsStalled(), "nothing is overdue while the history is read")
	k.read(0, hello)
	require.False(t, c.Link.IsStalled())
	require.False(t, c.Link.Behind(k.now, k.set.T))
}
