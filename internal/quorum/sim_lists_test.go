package quorum

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/seeded"
)

// The list of logs changes while processes live, by two rolling restarts: from the old list to both,
// and from both to the new one. Processes and logs restart in any order within each, with every
// other kind of trouble meanwhile. A log that restarts is empty, whatever it served before.

// known is which lists a process uses, or the host of a log serves.
type known int

const (
	theOld known = iota
	both
	theNew
)

// upset is how a change departs from the procedure.
type upset int

const (
	noUpset   upset = iota
	straggles       // a process with the old list alone lives on
	skips           // no process and no host ever has both lists
	unites          // while both lists count, a term needs one majority of all logs
)

// simMove is a change of the list.
type simMove struct {
	old, new []int
	upset    upset
	kinds    map[string]known // by process
}

const (
	firstRoll, firstDone   = 2 * simT, 7 * simT
	secondRoll, secondDone = 8 * simT, 13 * simT
)

// hostState is what the host of an incarnation knows of a change.
type hostState struct {
	lists   known
	left    bool  // it serves no process with the old list alone any more
	opening bool  // it has asked the old hosts
	open    bool  // it serves processes with the new list alone
	top     int64 // the largest ballot that the old hosts have told
}

func listProfile(r *rand.Rand) simProfile {
	p := plainProfile(r)
	if r.IntN(4) == 0 {
		p = huntProfile(r)
	}
	p.horizon, p.procs = 17*simT, 3+r.IntN(2)
	p.move = &simMove{kinds: map[string]known{}}
	p.move.old, p.move.new = []int{0, 1, 2}, []int{3, 4, 5}
	switch r.IntN(6) {
	case 0:
		p.move.new = []int{0, 1, 2, 3, 4}
	case 1:
		p.move.old, p.move.new = []int{0, 1, 2, 3, 4}, []int{1, 2, 3}
	case 2:
		p.move.new = []int{1, 2, 3}
	case 3:
		p.move.old, p.move.new = []int{0}, []int{1}
	case 4:
		p.move.old, p.move.new = []int{0}, []int{0, 1, 2}
	}
	p.logs = max(slices.Max(p.move.old), slices.Max(p.move.new)) + 1
	if r.IntN(4) == 0 {
		p.move.upset = straggles
	}
	return p
}

// upsetProfile has a kind of upset, and little other trouble.
func upsetProfile(u upset) func(*rand.Rand) simProfile {
	return func(r *rand.Rand) simProfile {
		p := listProfile(r)
		p.move.upset = u
		p.Heavy, p.Drop, p.rogue, p.cut, p.down, p.forget, p.forgetAll = 0, 0, false, 0, 0, 0, 0
		return p
	}
}

// lists returns the lists of logs that a process uses, as in Rules.Lists.
func (m *simMove) lists(k known) [][]int {
	switch {
	case k == theOld:
		return [][]int{m.old}
	case k == theNew:
		return [][]int{m.new}
	case m.upset == unites:
		all := slices.Concat(m.old, m.new)
		slices.Sort(all)
		return [][]int{slices.Compact(all)}
	}
	return [][]int{m.old, m.new}
}

// serves reports whether the host of a log serves a process.
func (w *simWorld) serves(g *simLog, process string) bool {
	m, x := w.pr.move, g.now()
	if m == nil {
		return true
	}
	k := m.kinds[process]
	if k == theOld && !slices.Contains(m.old, g.index) || k == theNew && !slices.Contains(m.new, g.index) {
		return false
	}
	switch {
	case x.host.lists == both && k == theOld:
		return !x.host.left
	case x.host.lists == both && k == theNew:
		w.open(g)
		return x.host.open
	}
	return x.host.lists == both || k == both || x.host.lists == k
}

// open is what a host with both lists does when a process with the new one alone comes: it asks the
// old hosts to leave the old list. When a majority has left it, and every lease from before is over,
// the host serves that process.
func (w *simWorld) open(g *simLog) {
	m, x := w.pr.move, g.now()
	if x.host.opening {
		return
	}
	left, top := 0, int64(0)
	for _, i := range m.old {
		o := w.logs[i]
		if y := o.now(); !o.down && y.host.lists != theOld {
			y.host.left = true
			left++
			top = max(top, y.host.top, y.largest())
		}
	}
	if left < len(m.old)/2+1 {
		return
	}
	x.host.opening = true
	w.After(time.Duration(float64(clock.Wait(simT, w.pr.rho))/(1+w.pr.rho)), func() {
		x.host.open, x.host.top = true, top
		w.tellAll(g)
	})
}

func (x *incarnation) largest() int64 {
	top := int64(0)
	for _, e := range x.records {
		top = max(top, e.r.Ballot)
	}
	return top
}

// moveLists schedules both rolling restarts.
func (w *simWorld) moveLists() {
	m := w.pr.move
	if m == nil {
		return
	}
	within := func(from, to time.Duration, do func()) { w.After(from+w.Span(to-from), do) }
	for _, p := range w.procs {
		turn := func(k known) func() { return func() { p.crash(); p.lists = k; p.boot() } }
		if m.upset != skips && (m.upset != straggles || p.i > 0) {
			within(firstRoll, firstDone, turn(both))
		}
		if m.upset != straggles && m.upset != skips || p.i > 0 {
			within(secondRoll, secondDone, turn(theNew))
		}
	}
	for _, g := range w.logs {
		turn := func(k known) func() { return func() { g.lists = k; w.forget(g) } }
		isOld, isNew := slices.Contains(m.old, g.index), slices.Contains(m.new, g.index)
		first, last := both, theNew
		if m.upset == skips {
			first, last = theNew, theNew
		}
		if !isOld {
			g.lists = first
			g.now().host.lists = first
		} else if m.upset != skips {
			within(firstRoll, firstDone, turn(first))
		}
		switch {
		case m.upset == straggles: // the hosts stay, since one that forgets would serve the straggler again
		case isNew:
			within(secondRoll, secondDone, turn(last))
		case m.upset != skips:
			w.After(secondDone+simT, func() { w.stop(g); g.gone = true })
		}
	}
}

// remembers reports whether no log may forget now: hosts that have left the old list must not
// forget that they have while a straggler lives.
func (w *simWorld) remembers() bool {
	return w.pr.move != nil && w.pr.move.upset == straggles && w.Now > firstDone
}

// TestListsChange lets the list change. There is at most one leader, and tokens increase.
func TestListsChange(t *testing.T) {
	for _, u := range []struct {
		name string
		draw func(*rand.Rand) simProfile
	}{{"any trouble", listProfile}, {"a straggler", upsetProfile(straggles)}, {"little trouble", upsetProfile(noUpset)}} {
		t.Run(u.name, func(t *testing.T) {
			simulate(t, 100, func(seed uint64) *simWorld {
				w := newSimWorld(seed, u.draw)
				w.Trace("%+v %+v", w.pr, w.pr.move)
				w.Run(w.pr.horizon, nil)
				return w
			})
		})
	}
}

// Without the step in which both lists count, or with one majority of all logs in that step, there
// are two leaders, and this simulation notices.
func TestAWrongChangeOfListsIsNoticed(t *testing.T) {
	if seeded.Race {
		t.Skip("one goroutine, in which there is no race to detect: make sim runs it")
	}
	for name, u := range map[string]upset{"the step is skipped": skips, "a majority of the union": unites} {
		t.Run(name, func(t *testing.T) {
			for seed := uint64(1); seed < 3000; seed++ {
				w := newSimWorld(seed, upsetProfile(u))
				w.Run(w.pr.horizon, nil)
				if w.Fault != "" {
					t.Logf("seed %d: %s", seed, w.Complaint())
					return
				}
			}
			t.Fatal("no seed shows two leaders")
		})
	}
}
