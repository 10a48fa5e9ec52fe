package elector

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/leases"
	"github.com/goneli/neli/internal/elector/observe"
	"github.com/goneli/neli/internal/elector/watch"
	"github.com/goneli/neli/internal/lease"
	"github.com/stretchr/testify/require"
)

// looked counts the roles that are looked at.
type looked struct {
	*leases.One
	roles int
}

func (l *looked) Grant(local int32) (token int64, holder int32) {
	l.roles++
	return l.One.Grant(local)
}

// asked is an Elector that is asked about roles. It records how many roles were looked at in each hold of its lock.
type asked struct {
	*Elector
	n     *Node
	w     *world
	next  int64 // offset
	holds []int
	of    *looked
}

func askable(roles int) *asked {
	n, w, next := crowded(roles)
	a := &asked{n: n, w: w, next: next, of: &looked{One: n.shards[0].leases.(*leases.One)}}
	n.shards[0].Standings = observe.NewStandings(n.shards[0].Numbering, a.of, a.of, leases.OneTraits.Tenure, &n.shards[0].logs, &n.shards[0].claims)
	a.Elector = &Elector{bell: watch.NewBell(), node: n, now: func() clock.Instant { // it is read once in each hold
		a.holds, a.of.roles = append(a.holds, a.of.roles), 0
		return w.instant()
	}}
	return a
}

// take returns how many roles were looked at in each hold since the last call. It leaves out holds in which none was.
func (a *asked) take() []int {
	holds := slices.DeleteFunc(append(a.holds, a.of.roles), func(n int) bool { return n == 0 })
	a.holds, a.of.roles = nil, 0
	return holds
}

func (a *asked) claim(roles ...int32) {
	r := &lease.Record{Kind: lease.Claim, Session: lease.Session{Process: "x", N: 1}, Read: a.next - 1, T: clock.Tmax, Roles: roles}
	a.n.Read(Entry{Offset: a.next}, r, nil, a.w.instant())
	a.next++
	a.bell.Ring()
	a.take()
}

const someRoles = 10*observe.SurveyRoles + 17

func inSlices() []int { return append(slices.Repeat([]int{observe.SurveyRoles}, 10), 17) }

func TestAllRolesAreSurveyedInSlices(t *testing.T) {
	a := askable(someRoles)
	a.take()
	s := a.Stats()
	require.Equal(t, inSlices(), a.take())
	require.Equal(t, someRoles, s.Held+s.Vacant)

	known, _ := a.Standings()
	require.Equal(t, inSlices(), a.take())
	require.Equal(t, a.n.Standings(a.w.instant()), known, "as in one hold")

	a.take()
	first, _ := a.Changes(observe.NewWatcher())
	require.Equal(t, inSlices(), a.take())
	require.Equal(t, known, first)
}

func TestFewRolesOfManyPartitionsAreOneSlice(t *testing.T) {
	w := newWorld(40)
	n := w.start("o", observe.SurveyRoles, func(s *Settings) { s.Observer = true }).Node
	var v observe.Survey
	require.False(t, v.Next(n.observed, n.desired.Roles, w.instant()))
	require.Len(t, v.Out, 40)
	var c observe.Headcount
	require.False(t, c.Next(n.observed, n.desired.Roles, w.instant()))
	require.Equal(t, observe.SurveyRoles, c.Of[observe.Unknown])
}

func TestWatchLooksOnlyWhereSomethingHasChanged(t *testing.T) {
	a := askable(someRoles)
	w := observe.NewWatcher()
	a.Changes(w)
	a.take()
	again, _ := a.Changes(w)
	require.Empty(t, again)
	require.Empty(t, a.take())

	a.claim(100, 200, 5*observe.SurveyRoles) // of p0
	news, _ := a.Changes(w)
	require.Len(t, news, 1)
	require.Equal(t, "x", news[0].Holder.Session.Process)
	require.Equal(t, []int{100, 200, 5 * observe.SurveyRoles}, news[0].Roles)
	require.Equal(t, []int{observe.SurveyRoles, observe.SurveyRoles}, a.take(), "two slices of eleven")
}

// A hundred Watches look at each change once, together. While nothing changes they take no lock at
// all, nor does a new Watch within T/50 of the last look.
func TestManyWatchesLookTogether(t *testing.T) {
	a := askable(someRoles)
	watches := make([]*observe.Watcher, 100)
	for i := range watches {
		watches[i] = observe.NewWatcher()
		first, _ := a.Changes(watches[i])
		require.NotEmpty(t, first)
	}
	require.Equal(t, inSlices(), a.take())
	locked := a.n.counts.Steps.Count
	for range 3 {
		for _, w := range watches {
			again, _ := a.Changes(w)
			require.Empty(t, again)
		}
	}
	require.Equal(t, locked, a.n.counts.Steps.Count)
	a.w.pass(clock.LongestStep(a.n.set.T))
	for round := range 3 {
		a.claim(int32(100 + 100*round))
		for _, w := range watches {
			news, _ := a.Changes(w)
			require.Len(t, news, 1)
			require.Equal(t, []int{100 + 100*round}, news[0].Roles)
		}
		require.Equal(t, []int{observe.SurveyRoles}, a.take())
	}
	require.LessOrEqual(t, a.n.counts.Steps.Count, locked+3*2)
}

// A new Watch says when a holder was last heard, though what it holds has not changed for long.
func TestLateWatchKnowsWhenHoldersWereHeard(t *testing.T) {
	w := newWorld(1)
	o := w.start("o", 3, func(s *Settings) { s.Observer = true })
	w.start("a", 3, nil)
	w.pass(10 * time.Second)
	e := &Elector{bell: watch.NewBell(), node: o.Node, now: w.instant}
	first := observe.NewWatcher()
	e.Changes(first)
	w.pass(time.Minute)
	known, now := e.Changes(observe.NewWatcher())
	require.Len(t, known, 1)
	require.LessOrEqual(t, now.Age(known[0].Holder.Heard), 1100*time.Millisecond)
}

// However many readers there are, they wait for each other before they wait for the lock of the Node,
// so that a step waits for at most one of them.
func TestReadersWaitForEachOtherFirst(t *testing.T) {
	n, w, _ := crowded(10)
	e := &Elector{bell: watch.NewBell(), node: n, now: w.instant}
	for _, read := range []func(){
		func() { e.Holder(0) },
		func() { e.Standings() },
		func() { e.Members() },
		func() { e.Stats() },
		func() { e.Shares() },
		func() { e.Idle() },
		func() { e.bell.Ring(); e.Changes(observe.NewWatcher()) },
	} {
		e.mu.Lock() // as a step does
		done := make(chan struct{})
		go func() { read(); close(done) }()
		for e.readers.TryLock() { // until the reader has it, and waits for the step
			e.readers.Unlock()
			runtime.Gosched()
		}
		e.mu.Unlock()
		<-done
	}
}

func TestConcurrentStandingsAreShared(t *testing.T) {
	a := askable(someRoles)
	known, at := a.Standings()
	a.claim(100)
	again, _ := a.Standings()
	require.Empty(t, a.take())
	require.Equal(t, known, again)

	a.w.pass(clock.LongestStep(a.n.set.T))
	again, now := a.Standings()
	require.Equal(t, inSlices(), a.take())
	require.NotEqual(t, known, again)
	require.Greater(t, now.Mono, at.Mono)

	a = askable(100)
	a.Standings()
	a.claim(0)
	few, _ := a.Standings()
	require.Equal(t, "x", few[0].Holder.Session.Process, "few roles are looked at each time")
}

// The changes that a Watch reports agree with a look at all roles.
func TestWatchAgreesWithStandings(t *testing.T) {
	for _, shards := range []int{1, 2} {
		w := newWorld(shards)
		o := w.start("o", 20, func(s *Settings) { s.Observer = true })
		told, watch := map[int]string{}, observe.NewWatcher()
		w.start("a", 20, nil)
		w.start("b", 20, nil)
		for i := range 60 {
			switch i {
			case 10:
				w.actor("a").cut = true
			case 30:
				w.actor("a").cut = false
			case 40:
				w.actor("b").dead = true
			}
			w.pass(400 * 1e6)
			for _, s := range o.Changes(watch, w.instant()) {
				for _, role := range s.Roles {
					told[role] = fmt.Sprint(s.Status, s.Holder.Session, s.Holder.Token)
				}
			}
			for _, s := range o.Standings(w.instant()) {
				for _, role := range s.Roles {
					if s.Status != observe.Unknown || told[role] != "" {
						require.Equal(t, fmt.Sprint(s.Status, s.Holder.Session, s.Holder.Token), told[role], "step %d", i)
					}
				}
			}
		}
	}
}

// BenchmarkAsking shows the cost of one hold of the lock, and of all together, by the number of roles.
func BenchmarkAsking(b *testing.B) {
	for _, roles := range []int{100_000, 1_000_000} {
		n, w, _ := crowded(roles)
		now := w.instant()
		b.Run(fmt.Sprintf("hold/roles=%d", roles), func(b *testing.B) {
			for b.Loop() {
				(&observe.Survey{}).Next(n.observed, roles, now)
			}
		})
		b.Run(fmt.Sprintf("standings/roles=%d", roles), func(b *testing.B) {
			for b.Loop() {
				n.Standings(now)
			}
		})
		b.Run(fmt.Sprintf("stats/roles=%d", roles), func(b *testing.B) {
			for b.Loop() {
				n.Stats(now)
			}
		})
		b.Run(fmt.Sprintf("watch-first/roles=%d", roles), func(b *testing.B) {
			for b.Loop() {
				n.Changes(observe.NewWatcher(), now)
			}
		})
		watch := observe.NewWatcher()
		n.Changes(watch, now)
		b.Run(fmt.Sprintf("watch-unchanged/roles=%d", roles), func(b *testing.B) {
			for b.Loop() {
				n.Changes(watch, now)
			}
		})
	}
}
