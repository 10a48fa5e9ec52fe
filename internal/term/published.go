package term

import (
	"container/heap"
	"iter"
	"math"
	"runtime"
	"sync/atomic"

	"github.com/goneli/neli/internal/clock"
)

// noUnit is the lowest published unit of a line that has none.
const noUnit = math.MaxInt64

// line is one element of V, with the units over which it decides.
type line struct {
	v      atomic.Pointer[clock.Instant]
	lowest atomic.Int64 // of the published units
	units  units        // those that are published; the arbiter's lock guards it
}

// units is a heap of published units, the lowest first.
type units []*entry

func (u units) Len() int           { return len(u) }
func (u units) Less(i, j int) bool { return u[i].unit < u[j].unit }
func (u units) Swap(i, j int) {
	u[i], u[j] = u[j], u[i]
	u[i].position, u[j].position = int32(i), int32(j)
}
func (u *units) Push(x any) {
	e := x.(*entry)
	e.position = int32(len(*u))
	*u = append(*u, e)
}
func (u *units) Pop() any {
	last := len(*u) - 1
	e := (*u)[last]
	(*u)[last] = nil
	*u = (*u)[:last]
	e.position = -1
	return e
}

func (l *line) settle() {
	lowest := int64(noUnit)
	if len(l.units) > 0 {
		lowest = int64(l.units[0].unit)
	}
	l.lowest.Store(lowest)
}

// publish lets the check find the unit led. The line names the unit as its lowest
// only once that is so, and withdraw names another one before it ceases to be so:
// in between LeadsAny would miss a line that is led all the time.
func (t *Table) publish(e *entry) {
	t.published.Add(1)
	t.index.slot(e.unit).published.Store(e.held)
	heap.Push(&e.held.line.units, e)
	e.held.line.settle()
}

// move lets a published unit follow another line, with the same term.
func (t *Table) move(e *entry, to *term) {
	t.shifts.Add(1)
	l := e.delivered.line
	heap.Remove(&l.units, int(e.position))
	l.settle()
	t.index.slot(e.unit).published.Store(to)
	heap.Push(&to.line.units, e)
	to.line.settle()
	t.shifts.Add(1)
}

func (t *Table) withdraw(e *entry) {
	if e.position < 0 {
		return
	}
	l := e.delivered.line
	heap.Remove(&l.units, int(e.position))
	l.settle()
	t.index.slot(e.unit).published.Store(nil)
	t.published.Add(-1)
}

// Leads decides whether the application leads the unit at this instant: it was told
// of the unit's term, has not finished it, and 0 ≤ now − V < T. at is the reading of
// the clock by which that was decided.
//
// V is loaded before the clock is read: the other way round, V could be younger than
// now. And the term is looked at on both sides. Before, because V alone says nothing:
// it may be of a new session that holds other units of the partition. Afterwards,
// because neither an end nor a Release waits for a lapse: the reading proves nothing
// to a goroutine that was stopped in between. That is also why the V that was loaded
// is not of a session after the term's: the old session's terms are withdrawn before
// its successor's V is published, so the second look does not find the term any more. If
// the term goes on and follows another V since, that one is asked.
func (t *Table) Leads(unit int) (id, token int64, at clock.Instant, ok bool) {
	of, _, at := t.look(unit)
	if of == nil {
		return 0, 0, at, false
	}
	return of.id, of.token, at, true
}

// Evidence decides as Leads does, and returns the V by which it was decided: whichever
// line the term follows, and whatever was published since.
func (t *Table) Evidence(unit int) (id int64, v, at clock.Instant, ok bool) {
	of, by, at := t.look(unit)
	if of == nil {
		return 0, clock.Instant{}, at, false
	}
	return of.id, *by, at, true
}

// look returns the term that the application leads, with the V and the reading of the clock
// by which that was decided; nil if it leads none.
func (t *Table) look(unit int) (of *term, v *clock.Instant, at clock.Instant) {
	s := t.index.slot(unit)
	if s == nil {
		return nil, nil, clock.Instant{}
	}
	for of = s.published.Load(); of != nil; {
		v = of.line.v.Load()
		at = t.now()
		young := v != nil && t.young(at, *v)
		again := s.published.Load()
		switch {
		case again == of && young:
			return of, v, at
		case again == nil || again == of || again.id != of.id:
			return nil, nil, clock.Instant{}
		}
		of = again
	}
	return nil, nil, clock.Instant{}
}

// LeadsAny reports whether Leads holds for any unit below a bound. It looks at one
// unit of each partition at most, and at first where it found one last. If a unit went from
// one line to another meanwhile, it may have been missed on both.
func (t *Table) LeadsAny(below int) (at clock.Instant, ok bool) {
	for {
		before := t.shifts.Load()
		if at, ok = t.leadsAny(below); ok || before%2 == 0 && t.shifts.Load() == before {
			return at, ok
		}
		runtime.Gosched()
	}
}

func (t *Table) leadsAny(below int) (at clock.Instant, ok bool) {
	if t.published.Load() == 0 {
		return clock.Instant{}, false
	}
	lines := *t.lines.Load()
	first := int(t.hint.Load())
	for i := range lines {
		p := first + i
		if p >= len(lines) {
			p -= len(lines)
		}
		if at, ok = t.leadsOn(&lines[p], below); ok {
			if p != first {
				t.hint.Store(int64(p))
			}
			return at, true
		}
	}
	return clock.Instant{}, false
}

func (t *Table) leadsOn(l *line, below int) (clock.Instant, bool) {
	for {
		lowest := l.lowest.Load()
		if lowest >= int64(below) {
			return clock.Instant{}, false
		}
		if _, _, at, ok := t.Leads(int(lowest)); ok {
			return at, true
		}
		if l.lowest.Load() == lowest {
			return clock.Instant{}, false // lapsed, and with it the whole line
		}
	}
}

// Published yields, ascending, the units below a bound of whose terms the application
// was told and that are not over as far as the arbiter knows; Leads is to be asked
// about each. Anybody may call it.
func (t *Table) Published(below int) iter.Seq[int] {
	return func(yield func(int) bool) {
		d := t.index.directory.Load()
		if d == nil || t.published.Load() == 0 {
			return
		}
		for n := range *d {
			if n*pageSize >= below {
				return
			}
			p := (*d)[n].Load()
			if p == nil {
				continue
			}
			for i := range p {
				unit := n*pageSize + i
				if unit >= below {
					return
				}
				if p[i].published.Load() != nil && !yield(unit) {
					return
				}
			}
		}
	}
}

// V returns the newest evidence on a partition, or false if there was none yet.
// Anybody may call it; it is of the unit's term if Leads holds afterwards.
func (t *Table) V(partition int) (clock.Instant, bool) {
	lines := t.lines.Load()
	if lines == nil || partition < 0 || partition >= len(*lines) {
		return clock.Instant{}, false
	}
	if v := (*lines)[partition].v.Load(); v != nil {
		return *v, true
	}
	return clock.Instant{}, false
}
