package elector

import (
	"errors"
	"testing"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/nominate"
	"github.com/goneli/neli/internal/elector/vacancy"
	"github.com/goneli/neli/internal/lease"
	"github.com/stretchr/testify/require"
)

// A process that reads the log late must not slow down all others: what it would write or decide may
// have been done by others in records that it has not read yet.

// late makes a process late: a Hello of it has been in flight for T/2.
func (a *actor) late(now clock.Instant) {
	a.channels[0].Link.Sent(lease.Hello, 1<<40, now.Add(-a.set.T/2))
}

func TestBehindProcessAnswersNoNewcomer(t *testing.T) {
	w := newWorld(1)
	a := w.start("a", 3, nil)
	w.pass(8 * time.Second)
	before := len(w.sent(0, "a", lease.Snapshot))
	a.do(func(now clock.Instant) {
		a.late(now)
		a.channels[0].OfferSnapshot(0, 0, a.in().Takes, now)
	})
	w.pass(a.set.T / 4)
	require.Len(t, w.sent(0, "a", lease.Snapshot), before, "others may have answered")
	a.do(func(now clock.Instant) { works(a.channels[0], now) })
	w.pass(a.set.T/20 + time.Millisecond)
	require.Len(t, w.sent(0, "a", lease.Snapshot), before+1, "nobody has")
}

func TestBehindProcessLeavesVacanciesAlone(t *testing.T) {
	w := newWorld(1)
	a := w.start("a", 3, nil)
	w.pass(8 * time.Second)
	s := a.shards[0]
	listed := func() (all []vacancy.Upcoming) {
		for what, roles := range listing(&s.claims) {
			for range roles {
				all = append(all, what)
			}
		}
		return all
	}
	a.do(func(now clock.Instant) {
		a.late(now)
		require.True(t, s.main.Link.Behind(now, a.set.T))
		s.assign([]int32{1}, a.in(), now)
		require.Equal(t, now.Mono.Add(a.set.T/2), s.claims.AssignAt(), "what it would assign may be held by now")
		s.claims.Clear()
		s.claims.AddFor(vacancy.ToRank, now.Mono, []int32{2})
		s.overdue(a.in(), now)
		require.Equal(t, []vacancy.Upcoming{vacancy.ToRank}, listed(), "others may have claimed it")
		require.Equal(t, now.Mono.Add(a.set.T/20), s.claims.Next(s.main.Pacing.ThinksAt()), "it looks again")
		works(s.main, now)
		later := now.Add(a.set.T / 20)
		s.overdue(a.in(), later)
		require.Equal(t, []vacancy.Upcoming{vacancy.ToClaim}, listed(), "nobody has")
	})
}

// While an own Claim is in flight, others' Claims are, too. Those behind it take about as long again.
func TestOwnClaimDelaysClaimsOfOthersShares(t *testing.T) {
	w := newWorld(1)
	a := w.start("a", 4, nil)
	w.pass(8 * time.Second)
	s := a.shards[0]
	a.do(func(now clock.Instant) {
		s.main.Pacing.Returned(true, 40*time.Millisecond, a.set.T, a.set.Random, now)
		s.claims.AddFor(vacancy.ToAssign, now.Mono, []int32{3})
		require.Equal(t, now.Mono.Add(40*time.Millisecond), s.claims.Next(s.main.Pacing.ThinksAt()))
		s.claims.Clear()
		_, ok := s.main.Log.Claim([]int32{7}, now)
		require.True(t, ok)
		later := now.Add(50 * time.Millisecond)
		s.claims.AddFor(vacancy.ToRank, later.Mono, []int32{3})
		s.overdue(a.in(), later)
		require.Len(t, listing(&s.claims)[vacancy.ToRank], 1, "an own Claim is under way")
	})
}

func TestBehindProcessHandsNothingOver(t *testing.T) {
	w := newWorld(1)
	a := w.start("a", 4, nil)
	w.pass(8 * time.Second)
	b := w.start("b", 4, nil)
	for range 400 { // it asks again what has become of the log
		a.do(func(now clock.Instant) { a.late(now) })
		w.pass(100 * time.Millisecond)
	}
	require.Len(t, a.leads(4), 4, "the answer would come too late")
	a.do(func(now clock.Instant) { works(a.channels[0], now) })
	w.pass(10 * time.Second)
	require.Len(t, b.leads(4), 2)
}

// Where round trips are always long, everybody is behind all the time.

func TestLongRoundTripsLeaveNothingVacant(t *testing.T) {
	for _, lag := range []time.Duration{300 * time.Millisecond, 600 * time.Millisecond, time.Second} {
		w := newWorld(1)
		a, b, c := w.start("a", 9, nil), w.start("b", 9, nil), w.start("c", 9, nil)
		w.pass(90 * time.Second)
		require.Len(t, b.leads(9), 3)
		w.lag = lag
		w.pass(30 * time.Second)
		b.dead = true
		w.pass(300 * time.Millisecond)
		c.dead = true
		w.pass(3 * a.set.T)
		require.Len(t, a.leads(9), 9, "round trips of %v", lag)
	}
}

func TestNewcomersLearnTheFoldDespiteLongRoundTrips(t *testing.T) {
	for _, lag := range []time.Duration{300 * time.Millisecond, 600 * time.Millisecond, time.Second} {
		w := newWorld(1)
		a := w.start("a", 2, nil)
		w.start("b", 2, nil)
		w.pass(time.Minute)
		w.lag = lag
		w.pass(20 * time.Second)
		w.head = int64(len(w.logs[0]))
		c := w.start("c", 3, nil)
		w.pass(2 * a.set.T)
		require.True(t, c.channels[0].Log.Known(), "round trips of %v", lag)
	}
}

func TestOneLateLogDelaysNothing(t *testing.T) {
	w := newWorld(2)
	a := w.start("a", 4, nil)
	w.pass(8 * time.Second)
	a.do(func(now clock.Instant) {
		lags(a.channels[1], a.set.T, now)
		require.False(t, a.shards.allBehind(now, a.set.T), "one log that is late puts nothing off")
		lags(a.channels[0], a.set.T, now)
		require.True(t, a.shards.allBehind(now, a.set.T))
	})
}

// A session that still holds a role beats on. So nobody can claim what it has released before the Release is read.
func TestReleaseIsRepeatedOftenWhileARoleIsHeld(t *testing.T) {
	w := newWorld(1)
	a := w.start("a", 2, func(s *Settings) { s.Rebalance = false })
	w.pass(20 * time.Second)
	b := w.start("b", 2, func(s *Settings) { s.Rebalance = false })
	w.pass(20 * time.Second)
	lost := 0
	w.drop = func(r *lease.Record) bool {
		if r.Kind == lease.Release && lost < 4 {
			lost++
			w.after(2*time.Millisecond, func() {
				a.do(func(now clock.Instant) { a.Acked(Append{Partition: 0, Record: *r}, errors.New("timed out"), now) })
			})
			return true
		}
		return false
	}
	a.do(func(now clock.Instant) { _, err := a.Transfer(0, "b", now); require.NoError(t, err) })
	w.pass(a.set.T + 500*time.Millisecond)
	require.Equal(t, []int{0}, b.leads(2), "four Releases are lost within T")
	require.Equal(t, 4, lost)
}

// All members read each repeated Release, which does not help a process that has lapsed because it was late.
func TestReleasesAreRepeatedLessAndLessOften(t *testing.T) {
	w := newWorld(1)
	a := w.start("a", 1, nil)
	w.pass(8 * time.Second)
	a.cut = true
	var at []time.Duration
	for from := w.now; w.now < from+time.Minute; w.pass(10 * time.Millisecond) {
		releases := a.since(from, lease.Release)
		for _, r := range releases[len(at):] {
			at = append(at, r.at)
			a.do(func(now clock.Instant) {
				a.Acked(Append{Partition: 0, Record: r.Record}, errors.New("timed out"), now)
			})
		}
	}
	require.GreaterOrEqual(t, len(at), 6)
	quarter := a.set.T / 4
	for i, want := range []time.Duration{quarter, 2 * quarter, 4 * quarter, 8 * quarter, 8 * quarter} {
		require.InDelta(t, want, at[i+1]-at[i], float64(30*time.Millisecond), "pause %d", i)
	}
}

// A partition's roles are claimed once its own history is read, whatever other partitions' logs do.
func TestVacanciesWaitForNoOtherLog(t *testing.T) {
	for _, nominated := range []bool{false, true} {
		k := newRooms(2, 4, func(s *Settings) { s.Nominated = nominated })
		s, _ := k.reading(2) // the other partition has no leader: its log never reports where it begins
		s.nomination = nominate.NewNomination(true)
		history := []lease.Record{
			{Kind: lease.Claim, Fresh: true, Roles: []int32{0, 1}},
			{Kind: lease.Release, Ended: []lease.Grant{{Token: 0, Roles: []int32{0, 1}}}},
		}
		for _, r := range history {
			require.True(t, s.claims.IsEmpty(), "the rest of the history may show a holder")
			k.read(0, k.from("b", 0, r))
		}
		require.True(t, s.claims.IsEmpty())
		require.True(t, s.claims.IsPostponed())
		k.pass(time.Second)
		require.Equal(t, 2, s.own.Len(), "nominated: %v", nominated)
	}
}

// A partition whose history is not read yet waits, although the histories of others are read.
func TestVacanciesWaitForTheirOwnLog(t *testing.T) {
	k := newRooms(3, 6, nil)
	k.begin()
	s, _ := k.reading(9)
	k.read(0, k.from("b", 0, lease.Record{Kind: lease.Claim, Fresh: true, Roles: []int32{0, 1}}))
	k.read(0, k.from("b", 0, lease.Record{Kind: lease.Release, Ended: []lease.Grant{{Token: 0, Roles: []int32{0, 1}}}}))
	require.True(t, s.claims.IsEmpty())
	require.True(t, s.claims.IsPostponed())
}

// A gap at the end of a log delays claims by at most T, even if this process has said nothing there.
func TestVacanciesDoNotWaitForAGap(t *testing.T) {
	k := newRooms(1, 2, nil)
	s, _ := k.reading(9)
	k.read(0, k.from("b", 0, lease.Record{Kind: lease.Claim, Fresh: true, Roles: []int32{0, 1}}))
	k.read(0, k.from("b", 0, lease.Record{Kind: lease.Release, Ended: []lease.Grant{{Token: 0, Roles: []int32{0, 1}}}}))
	require.True(t, s.claims.IsEmpty())
	k.now = k.now.Add(k.set.T)
	k.pass(k.set.T)
	require.Equal(t, 2, s.own.Len())
	require.False(t, s.claims.IsPostponed())
}
