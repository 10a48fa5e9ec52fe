package elector

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/observe"
	"github.com/goneli/neli/internal/lease"
	"github.com/stretchr/testify/require"
)

// same asserts that Stats agrees with Standings: a count for each Status, and a vacancy for each role that is vacant.
func (a *actor) same(t *testing.T, msg ...any) {
	t.Helper()
	now := a.w.instant()
	a.do(a.Tick) // silence is noticed by then
	var want [3]int
	for _, s := range a.Standings(now) {
		want[s.Status] += len(s.Roles)
	}
	s := a.Stats(now)
	require.Equal(t, want, [3]int{s.Unknown, s.Vacant, s.Held}, msg...)
	require.Len(t, a.Members(now), s.Members)
	vacant := 0
	for _, p := range a.shards {
		count := 0
		for local := range p.Count(a.desired.Roles) {
			if p.vacancyStats.IsVacant(local) {
				count++
			}
		}
		require.Equal(t, count, p.vacancyStats.Vacant(), msg...)
		vacant += count
	}
	require.Equal(t, want[observe.Vacant], vacant, msg...)
	require.Equal(t, len(a.leads(a.desired.Roles)), s.Led)
	require.Equal(t, uint64(len(a.holding())), s.Terms.Started-ended(s), msg...)
}

func (a *actor) holding() (roles []int) {
	for _, s := range a.shards {
		for local := range s.own.All() {
			roles = append(roles, s.Role(local))
		}
	}
	return roles
}

func ended(s Stats) (n uint64) {
	for _, c := range s.Terms.Ended {
		n += c
	}
	return n
}

// Whatever happens, the counters that are kept step by step agree with a look at all roles.
func TestStatsAgreeWithStandings(t *testing.T) {
	for seed := range uint64(30) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		w := newWorld(2)
		o := w.start("o", 20, func(s *Settings) { s.Observer = true })
		o.same(t, "nothing is known")
		leaderless := 0.0
		for i := range 60 {
			w.disturb(rnd, i, nil)
			w.pass(time.Duration(rnd.IntN(4000)) * time.Millisecond)
			for _, a := range w.actors {
				if !a.dead {
					a.same(t, "seed %d, step %d, %s", seed, i, a.set.Name)
				}
			}
			s := o.Stats(w.instant())
			require.GreaterOrEqual(t, s.Leaderless, leaderless)
			leaderless = s.Leaderless
		}
		require.Positive(t, o.Stats(w.instant()).Vacancies.Count)
	}
}

// disturb lets something happen to one process.
func (w *world) disturb(rnd *rand.Rand, i int, change func(*Settings)) {
	a := w.actors[rnd.IntN(len(w.actors))]
	d := a.desired
	switch rnd.IntN(8) {
	case 0, 1:
		if len(w.actors) < 12 {
			w.start(string(rune('A'+i)), 20, change)
		}
	case 2:
		if !a.set.Observer {
			a.dead = true
		}
	case 3:
		a.cut = !a.cut
	case 4:
		d.Roles = 5 + rnd.IntN(20)
		a.want(d)
	case 5:
		d.Unhealthy = !d.Unhealthy
		a.want(d)
	case 6:
		a.alive = !a.alive
	case 7:
		p := rnd.IntN(len(w.logs))
		end := int64(len(w.logs[p]))
		a.do(func(now clock.Instant) {
			a.Read(Entry{Partition: p, Reset: true, Offset: end, End: end}, nil, nil, now)
		})
	}
}

// crowded returns a Node that knows of R roles, held by a hundred others, and the next offset.
func crowded(roles int) (*Node, *world, int64) {
	w := newWorld(1)
	a := w.start("o", roles, func(s *Settings) { s.Observer = true })
	n, o := a.Node, int64(0)
	read := func(r *lease.Record) { n.Read(Entry{Offset: o}, r, nil, w.instant()); o++ }
	read(&lease.Record{Kind: lease.Claim, Session: lease.Session{Process: "p0", N: 1}, Read: -1, T: time.Minute, Fresh: true, Roles: []int32{0}})
	for i := int32(1); i < 100; i++ {
		var mine []int32
		for local := i; int(local) < roles; local += 100 {
			mine = append(mine, local)
		}
		read(&lease.Record{Kind: lease.Claim, Session: lease.Session{Process: string(rune('a' + i)), N: 1}, Read: o - 1, T: time.Minute, Roles: mine})
	}
	return n, w, o
}
