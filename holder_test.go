package neli

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestStanding(t *testing.T) {
	const wait = 5 * time.Second
	at := func(d time.Duration) instant { return instant{mono: time.Hour + d, wall: 2*time.Hour + d} }
	rec := func(k kind, token, read int64) record {
		return record{kind: k, group: "g", member: "X/1", name: "x", token: token, read: read, seq: 1}
	}
	claim, beat, release := rec(kindClaim, noToken, 9), rec(kindBeat, 10, 10), rec(kindRelease, 10, 11)
	doubtful := rec(kindBeat, 3, 4) // of a term that nobody knows
	for _, c := range []struct {
		name  string
		live  int64 // where the log ended; it is read from 10 on, a record a second
		rs    []record
		after time.Duration // since the last record
		want  standing
	}{
		{"nothing read", 10, nil, 0, standing{}},
		{"nothing read for T′", 10, nil, wait, standing{status: Vacant}},
		{"a claim", 10, []record{claim}, 0, standing{Held, 10, "X/1"}},
		{"a beat in the middle of a term", 10, []record{rec(kindBeat, 3, 9)}, 0, standing{Held, 3, "X/1"}},
		{"a doubtful record", 10, []record{doubtful}, 0, standing{}},
		{"a doubtful record and silence", 10, []record{doubtful}, wait, standing{status: Vacant}},
		{"silent, and not for long enough", 10, []record{claim, beat}, wait - 1, standing{Held, 10, "X/1"}},
		{"silent for T′", 10, []record{claim, beat}, wait, standing{status: Vacant}},
		{"released", 10, []record{claim, beat, release}, 0, standing{status: Vacant}},
		{"claimed anew", 10, []record{claim, beat, release, rec(kindClaim, noToken, 12)}, 0, standing{Held, 13, "X/1"}},
		{"a claim that lost the race", 10, []record{claim, {kind: kindClaim, member: "Y/1", read: 9, seq: 1}}, 0, standing{Held, 10, "X/1"}},
		{"a claim that was there before", 11, []record{claim}, 0, standing{}},
		{"and a beat that was not", 11, []record{claim, beat}, 0, standing{Held, 10, "X/1"}},
		{"a release that was there before", 13, []record{claim, beat, release}, 0, standing{}},
		{"and nothing since", 13, []record{claim, beat, release}, wait, standing{status: Vacant}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := lease{leaseRules: leaseRules{group: "g", term: threshold{wait, true}, wait: wait, every: wait / 5, newID: newID}}
			l.start(10, at(0))
			l.live = c.live
			for i, r := range c.rs {
				l.consume(r, 10+int64(i), at(time.Duration(i)*time.Second))
			}
			newest := at(time.Duration(max(0, len(c.rs)-1)) * time.Second)
			now := newest.add(c.after)
			s := l.standing(now)
			require.Equal(t, c.want, s)
			d := l.describe(s, now)
			require.Equal(t, c.want.status, d.Status)
			if c.want.status != Held {
				require.Zero(t, d.Holder)
				return
			}
			require.Equal(t, "x", d.Holder.Name)
			require.Equal(t, "X", d.Holder.Member)
			require.Equal(t, c.want.token, d.Holder.Token)
			require.LessOrEqual(t, d.Holder.Since, d.Holder.Seen)
			require.Equal(t, now.age(l.quiet), d.Holder.Age)
			now.wall += time.Hour // the machine slept
			require.Equal(t, now.age(l.quiet)+time.Hour, l.describe(s, now).Holder.Age)
		})
	}
	require.Empty(t, collectRoles(Standing{}))
}

func collectRoles(s Standing) (out []int) {
	for r := range s.Roles() {
		out = append(out, r)
	}
	return out
}

// Whatever happens in between, a watcher that has caught up was told last what is
// so, and never twice the same.
func TestWatcherCatchesUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const m = 4
		leases := make([]lease, m)
		now := instant{mono: time.Hour, wall: time.Hour}
		var s seats
		s.open(m)
		w := s.watch()
		told := make([]standing, m)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			p := rapid.IntRange(0, m-1).Draw(t, "partition")
			l := &leases[p]
			l.wait, l.quiet = time.Second, now
			l.token = rapid.SampledFrom([]int64{tokenUnknown, tokenNone, 3, 7}).Draw(t, "token")
			l.member = rapid.SampledFrom([]string{"a", "b"}).Draw(t, "member")
			before := s.now[p]
			s.note(p, l.standing(now))
			if s.now[p] != before {
				require.Len(t, w.bell, 1, "woken by every change")
			}
			for range rapid.IntRange(0, 3).Draw(t, "is told") {
				if p, st, ok := w.change(leases, now); ok {
					require.NotEqual(t, told[p], st, "told twice")
					told[p] = st
				}
			}
		}
		changes := 0
		for {
			p, st, ok := w.change(leases, now)
			if !ok {
				break
			}
			told[p] = st
			changes++
		}
		require.LessOrEqual(t, changes, m, "bounded by the number of partitions")
		for p := range leases {
			require.Equal(t, leases[p].standing(now), told[p])
		}
		require.Len(t, w.told, m)
		s.unwatch(w)
		require.Empty(t, s.watchers)
	})
}

// The stepper wakes when a holder's silence has lasted T′, also where T is short
// and this process wants nothing.
func TestSilenceIsNoticedInTime(t *testing.T) {
	bed := newArbiterBed(t, Config{HeartbeatTimeout: 200 * time.Millisecond})
	bed.posture = posture{}
	bed.read(record{kind: kindClaim, group: "bench", member: "x", name: "x", token: noToken, read: -1, seq: 1})
	require.Equal(t, Held, bed.seats.now[0].status)
	w := bed.watch()
	_, ok := bed.change(w)
	require.True(t, ok)
	d, _ := bed.stepAll()
	require.Equal(t, bed.set.silence(), d)
	bed.after(d - 1)
	require.Empty(t, w.bell)
	bed.after(1)
	require.Len(t, w.bell, 1)
	s, ok := bed.change(w)
	require.True(t, ok)
	require.Equal(t, Vacant, s.Status)
	d, _ = bed.stepAll()
	require.Equal(t, lookEvery, d, "nothing more to wait for")
}

// A loop that is left early leaves no watcher behind.
func TestWatchLeavesNothingBehind(t *testing.T) {
	bed := newBenchBed(t, 3)
	bed.lead(t)
	for range bed.n.Watch(context.Background()) {
		require.Len(t, bed.arb.seats.watchers, 1)
		break
	}
	require.Empty(t, bed.arb.seats.watchers)
	require.Panics(t, func() {
		for range bed.n.Watch(context.Background()) {
			panic("in the loop")
		}
	})
	require.Empty(t, bed.arb.seats.watchers)
}

// A beat of who is known to hold is told to nobody, and costs no allocation.
func TestNotingCostsNothing(t *testing.T) {
	var s seats
	s.open(1)
	w := s.watch()
	s.note(0, standing{Held, 1, "a"})
	<-w.bell
	require.Zero(t, testing.AllocsPerRun(100, func() { s.note(0, standing{Held, 1, "a"}) }))
	require.Empty(t, w.bell)
}

func TestProcessOf(t *testing.T) {
	s := resolved(t, Config{LeaderGroupID: "g"})
	a, b := s.newIncarnation(), s.newIncarnation()
	require.NotEqual(t, a, b)
	require.Equal(t, s.instance, processOf(a))
	require.Equal(t, s.instance, processOf(b))
	require.LessOrEqual(t, len(a), maxIDLength)
	require.Equal(t, "of another version", processOf("of another version"))
}
