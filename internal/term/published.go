package term

import (
	"container/heap"
	"iter"
	"math"
	"runtime"
	"sync/atomic"

	"github.com/goneli/neli/internal/clock"
)

// noUnit is the lowest unit of a line without published units.
const noUnit = math.MaxInt64

// line is one element of V, and the published units led by it.
type line struct {
	v      atomic.Pointer[clock.Instant]
	lowest atomic.Int64 // of the published units
	units  units        // the published units; guarded by the arbiter's lock
}

// units is a heap of published units by number, the lowest first.
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

// publish lets the check find the unit led. It sets the line's lowest unit afterwards, and
// withdraw replaces the lowest unit before it withdraws the unit. Otherwise LeadsAny could miss a
// line that is led throughout.
func (t *Table) publish(e *entry) {
	t.published.Add(1)
	t.index.slot(e.unit).published.Store(e.held)
	heap.Push(&e.held.line.units, e)
	e.held.line.settle()
}

// move lets a published unit follow another line, in the same term.
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
// of the unit's term, has not finished it, and V is young. at is the clock reading used
// for that.
//
// V is loaded before the clock is read; otherwise V could be newer than now. The term is
// looked at before and after. Before, because V may belong to a new session that holds other
// units of the partition. After, because an end or a Release does not wait for a lapse: the
// goroutine may have been stopped in between. The second look also proves that V is not of a
// later session than the term, since the old session's terms are withdrawn before the new
// session's V is published. If the term follows another V by then, that V is checked.
func (t *Table) Leads(unit int) (id, token int64, at clock.Instant, ok bool) {
	of, _, at := t.look(unit)
	if of == nil {
		return 0, 0, at, false
	}
	return of.id, of.token, at, true
}

// Evidence decides like Leads and returns the V that it used, even if the term follows another
// line or a newer V was published since.
func (t *Table) Evidence(unit int) (id int64, v, at clock.Instant, ok bool) {
	of, by, at := t.look(unit)
	if of == nil {
		return 0, clock.Instant{}, at, false
	}
	return of.id, *by, at, true
}

// look returns the term that the application leads, or nil. It also returns the V and the clock reading that it used.
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

// LeadsAny reports whether Leads holds for any unit below a bound. It looks at the lowest published
// unit of each line, first on the line where it found one last time. If a unit moves between
// lines meanwhile, it looks again, since it may have missed the unit on both.
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
			return clock.Instant{}, false // the whole line has lapsed
		}
	}
}

// Published yields, ascending, the units below a bound whose terms the application was told of
// and that are neither ended nor Done. Leads says whether each is still led.
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

// V returns an element of V, or false if there was no evidence yet. It may be of an earlier session
// than a unit's term, unlike the V of Evidence.
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
