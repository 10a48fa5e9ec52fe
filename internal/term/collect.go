package term

import (
	"cmp"
	"slices"

	"github.com/goneli/neli/internal/clock"
)

// Kind is the kind of a Change.
type Kind int

// The kinds, in Collect's order; Gone and Lost come together.
const (
	Gone     Kind = iota + 1 // the term ended after the application was asked to give it up
	Lost                     // the term ended without that request
	Revoked                  // the application has to give up the term
	Acquired                 // a new term has begun
)

// Change is one change to tell the application, for all units that share it.
type Change struct {
	Kind      Kind
	Vector    int // the partition of the units
	ID, Token int64
	Reason    Reason
	Graceful  bool          // Lost: this process was about to give the term up anyway
	Deadline  clock.Instant // Revoked
	Units     []int         // ascending
}

// Fresh reports whether Collect may have changes that neither time nor Renew has brought.
func (t *Table) Fresh() bool { return t.stale.Load() }

// News receives an element whenever Fresh may have become true.
func (t *Table) News() <-chan struct{} { return t.news }

// Ring puts an element into News, even if Fresh is false.
func (t *Table) Ring() {
	select {
	case t.news <- struct{}{}:
	default:
	}
}

// mostUnits limits the units whose changes one call of Collect returns. The arbiter's lock is held
// meanwhile, and the changes of a million units take too long for that.
const mostUnits = 1 << 15

// Collect returns the changes to tell the application at time now, and counts them as told: the
// losses, or if there are none the revocations, or if there are none the acquisitions, of at most
// mostUnits units. The caller must tell them, and call Collect again until it returns nothing,
// since the next changes depend on the time. Collect includes lapses that the arbiter has not seen
// yet.
//
// Changes are in the order of Reason, Graceful, Vector and ID. The cost grows with the number of
// changes and partitions, not with the number of terms.
func (t *Table) Collect(now clock.Instant) []Change {
	t.stale.Store(false)
	due, kind := t.due(now)
	if kind == 0 {
		t.settle()
		return nil
	}
	t.stale.Store(true)
	var out batch
	left := mostUnits
	for i, e := range t.changed {
		if left == 0 {
			break
		}
		if due[i] != 0 && (due[i] == kind || kind <= Lost && due[i] <= Lost) {
			left--
			out.add(e, due[i], t.partition(e.unit))
			t.deliver(e, due[i])
		}
	}
	return out.changes()
}

// Peek returns the losses and revocations that Collect would return, now or after the losses were
// told. It counts nothing as told.
func (t *Table) Peek(now clock.Instant) []Change {
	due, _ := t.due(now)
	var out batch
	for i, e := range t.changed {
		if due[i] != 0 && due[i] != Acquired {
			out.add(e, due[i], t.partition(e.unit))
		}
	}
	return out.changes()
}

// due finds the kind of change to tell for each unit in changed, 0 for none, and the lowest of these kinds.
func (t *Table) due(now clock.Instant) (of []Kind, first Kind) {
	t.listLapsed(now)
	of = make([]Kind, len(t.changed))
	for i, e := range t.changed {
		if of[i] = t.dueOf(e, now); of[i] != 0 && (first == 0 || of[i] < first) {
			first = of[i]
		}
	}
	return of, first
}

// listLapsed lists the units whose terms have lapsed by the clock.
func (t *Table) listLapsed(now clock.Instant) {
	lines := t.lines.Load()
	if lines == nil {
		return
	}
	for p := range *lines {
		if l := &(*lines)[p]; len(l.units) > 0 && !t.fresh(l, now) {
			for _, e := range l.units {
				t.list(e)
			}
		}
	}
}

func (t *Table) fresh(l *line, now clock.Instant) bool {
	v := l.v.Load()
	return v != nil && t.young(now, *v)
}

func (t *Table) dueOf(e *entry, now clock.Instant) Kind {
	current := e.held != nil && t.fresh(e.held.line, now)
	switch {
	case e.delivered != nil && (!current || e.held != e.delivered):
		if e.asked {
			return Gone
		}
		return Lost
	case !current:
		return 0
	case e.delivered != nil && e.request != nil && !e.asked:
		return Revoked
	case e.delivered == nil && e.request == nil && !e.over:
		return Acquired
	}
	return 0
}

// deliver counts a change as told.
func (t *Table) deliver(e *entry, kind Kind) {
	switch kind {
	case Gone, Lost:
		e.over = e.held == e.delivered // the arbiter has not seen the lapse
		t.withdraw(e)
		e.delivered, e.ending, e.asked = nil, nil, false
	case Revoked:
		e.asked = true
	case Acquired:
		t.counts.Told++
		e.delivered = e.held
		t.publish(e)
	}
}

// settle is called when there is nothing to tell now. It keeps in changed the units that time or
// Renew may change: held ones that were not told because V is not young, and those whose work is
// done but whose term goes on. It deletes units that have no state.
func (t *Table) settle() {
	kept := t.changed[:0]
	for _, e := range t.changed {
		waits := e.held != nil && e.delivered == nil && e.request == nil && !e.over
		done := e.delivered != nil && e.position < 0
		switch {
		case waits || done:
			kept = append(kept, e)
			continue
		case e.held == nil && e.delivered == nil:
			t.index.remove(e.unit)
		}
		e.listed = false
	}
	clear(t.changed[len(kept):])
	if t.changed = kept; len(kept) == 0 {
		t.changed = nil
	}
}

// batch collects units into Changes.
type batch struct {
	groups map[group]*Change
	last   group
	of     *Change // the Change of last, which the next unit usually shares
}

// group is the properties that all units of a Change share.
type group struct {
	kind     Kind
	vector   int
	id       int64
	reason   Reason
	graceful bool
	deadline clock.Instant
}

func (b *batch) add(e *entry, kind Kind, vector int) {
	g := group{kind: kind, vector: vector}
	of := e.delivered
	switch kind {
	case Gone, Lost:
		g.reason = Lapsed // unless the arbiter gives another reason
		if e.ending != nil {
			g.reason, g.graceful = e.ending.why, e.ending.graceful
		}
	case Revoked:
		g.reason, g.deadline = e.request.why, e.request.deadline
	case Acquired:
		of, g.reason = e.held, Elected
	}
	g.id = of.id
	if b.of == nil || g != b.last {
		if b.groups == nil {
			b.groups = map[group]*Change{}
		}
		if b.groups[g] == nil {
			b.groups[g] = &Change{Kind: kind, Vector: vector, ID: of.id, Token: of.token, Reason: g.reason,
				Graceful: g.graceful, Deadline: g.deadline}
		}
		b.last, b.of = g, b.groups[g]
	}
	b.of.Units = append(b.of.Units, e.unit)
}

func (b *batch) changes() []Change {
	out := make([]Change, 0, len(b.groups))
	for _, c := range b.groups {
		slices.Sort(c.Units)
		out = append(out, *c)
	}
	slices.SortFunc(out, func(a, b Change) int {
		return cmp.Or(cmp.Compare(a.Reason, b.Reason), compareBool(a.Graceful, b.Graceful), cmp.Compare(a.Vector, b.Vector),
			cmp.Compare(a.ID, b.ID), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Deadline.Mono, b.Deadline.Mono))
	})
	return out
}

// compareBool orders false before true.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
