// Package term keeps the terms that this process holds and what the application was told of
// them. It decides without a lock whether the application leads at this instant.
//
// A term is one uninterrupted time of holding a unit. In exclusive mode a unit is a role; in
// non-exclusive mode it is a partition, all of whose roles are led together. All units held on
// partition i share one element of V, the newest evidence V[i]. So a renewal is one store,
// however many units there are.
//
// Guarantees, whatever the arbiter does and however rarely the application asks:
//
//   - after each acquisition, the application is told of exactly one end;
//   - a term whose end it was told of is neither announced nor led again;
//   - once End or Done has returned, the check no longer finds the units led.
//
// The table does not decide when a term begins or ends, and has no timer for lapses: that is the
// arbiter's task.
package term

import (
	"slices"
	"sync/atomic"

	"github.com/goneli/neli/internal/clock"
)

// Table is the term table of one process. One arbiter calls the methods of this file, Collect and
// Peek, and holds its own lock meanwhile. Any goroutine may call Leads, LeadsAny, Evidence, Published,
// V, Partitions, Fresh, News and Ring at any time.
type Table struct {
	young func(now, v clock.Instant) bool
	now   func() clock.Instant

	index     index
	lines     atomic.Pointer[[]line] // the elements of V
	m         atomic.Int64           // number of partitions; 0 until it is known
	published atomic.Int64           // units that the check can find led
	hint      atomic.Int64           // the line on which LeadsAny last found a unit
	shifts    atomic.Uint64          // odd while a unit moves from one line to another

	counts Counts
	top    int // one more than the highest unit that was ever held

	changed []*entry // entries that the application may have to be told of
	stale   atomic.Bool
	news    chan struct{}
}

// term is one uninterrupted time of holding units that began together on one partition. It
// is immutable, and each Start makes a new one: equal pointers mean the same term.
type term struct {
	id, token int64
	line      *line
}

// entry is the state of one unit: the term held, and what the application was told. One with neither loses its entry.
type entry struct {
	unit      int
	held      *term    // nil: none
	delivered *term    // the term that the application was told of; nil: none
	request   *request // the request to give up held; nil: none
	ending    *ending  // how delivered ended; nil: it has not
	position  int32    // in the heap of published units; −1: it is not published
	asked     bool     // the application was asked to give up delivered
	over      bool     // the application was told that held is over
	listed    bool     // in Table.changed
}

type request struct {
	why      Reason
	deadline clock.Instant
}

type ending struct {
	why      Reason
	graceful bool
}

// New returns an empty table. young is the mode's rule for the age of V. now reads the clock.
func New(young func(now, v clock.Instant) bool, now func() clock.Instant) *Table {
	return &Table{young: young, now: now, news: make(chan struct{}, 1)}
}

// Open sets the number of elements of V and the number of partitions. Call it once, before the
// first Start. A unit's term begins on element unit mod partitions. Shift may move it to any other.
// Small logs count as one partition, with an element for each set of logs.
func (t *Table) Open(elements, partitions int) {
	lines := make([]line, elements)
	for i := range lines {
		lines[i].lowest.Store(noUnit)
	}
	t.lines.Store(&lines)
	t.m.Store(int64(partitions))
}

// Partitions returns the number of partitions, 0 before Open.
func (t *Table) Partitions() int { return int(t.m.Load()) }

func (t *Table) partition(unit int) int { return unit % t.Partitions() }

// Start begins a term of each of the units. The ids of one unit never repeat. If a unit is
// held under the same id, its term goes on; under another id, that term has lapsed.
func (t *Table) Start(units []int, id, token int64) {
	lines := *t.lines.Load()
	var (
		of     *term
		lapsed = &ending{why: Lapsed}
		begun  bool
	)
	for _, unit := range units {
		e := t.index.add(unit)
		if e.held != nil {
			if e.held.id == id {
				continue
			}
			t.end(e, lapsed)
		}
		if l := &lines[t.partition(unit)]; of == nil || of.line != l {
			of = &term{id: id, token: token, line: l}
		}
		e.held, e.over, begun = of, false, true
		t.counts.Started++
		t.top = max(t.top, unit+1)
		t.list(e)
	}
	if begun {
		t.touch()
	}
}

// Renew sets an element of V, the newest evidence for all units that follow it. If v is of a new
// session, or if the old V has lapsed, the caller must have ended all terms that follow it before.
func (t *Table) Renew(partition int, v clock.Instant) {
	(*t.lines.Load())[partition].v.Store(&v)
}

// Shift makes the units follow another element of V, and their terms go on. It is for a majority
// of logs, when another set of logs now sustains a term. The check finds the units led throughout
// if both V are young. Units that are not held are skipped.
func (t *Table) Shift(units []int, partition int) {
	l := &(*t.lines.Load())[partition]
	var from, to *term
	for _, unit := range units {
		e := t.index.entry(unit)
		if e == nil || e.held == nil || e.held.line == l {
			continue
		}
		if e.held != from {
			from, to = e.held, &term{id: e.held.id, token: e.held.token, line: l}
		}
		if e.position >= 0 {
			t.move(e, to)
		}
		if e.delivered == e.held {
			e.delivered = to
		}
		e.held = to
		t.list(e)
	}
	if to != nil {
		t.touch()
	}
}

// End ends the terms of the units now. graceful says that this process was about to give them up,
// so that the application is told of a revocation. Units that are not held are skipped.
func (t *Table) End(units []int, why Reason, graceful bool) {
	how, ended := &ending{why, graceful}, false
	for _, unit := range slices.Backward(units) { // the last element of a heap is the cheapest to remove
		if e := t.index.entry(unit); e != nil && e.held != nil {
			t.end(e, how)
			ended = true
		}
	}
	if ended {
		t.touch()
	}
}

func (t *Table) end(e *entry, how *ending) {
	t.withdraw(e)
	if e.delivered == e.held {
		e.ending = how
	}
	e.held, e.request, e.over = nil, nil, false
	if how.why >= 0 && int(how.why) < len(t.counts.Ended) {
		t.counts.Ended[how.why]++
	}
	t.list(e)
}

// Revoke asks the application to finish the work of the held units by deadline. If it was not told of
// a term yet, it never will be.
func (t *Table) Revoke(units []int, why Reason, deadline clock.Instant) {
	r, asked := &request{why, deadline}, false
	for _, unit := range units {
		if e := t.index.entry(unit); e != nil && e.held != nil {
			e.request, asked = r, true
			t.list(e)
		}
	}
	if asked {
		t.touch()
	}
}

// Done withdraws the units: the application has finished their work. The check no longer finds
// them led, but their terms last until they are released.
func (t *Table) Done(units []int) {
	for _, unit := range slices.Backward(units) { // as in End
		if e := t.index.entry(unit); e != nil && e.position >= 0 {
			t.withdraw(e)
			t.list(e) // the line no longer finds its lapse
		}
	}
}

// Told reports whether the application was told of the unit's present term.
func (t *Table) Told(unit int) bool {
	e := t.index.entry(unit)
	return e != nil && e.held != nil && e.delivered == e.held
}

// Held returns the id of the unit's term, even if it has lapsed.
func (t *Table) Held(unit int) (id int64, ok bool) {
	if e := t.index.entry(unit); e != nil && e.held != nil {
		return e.held.id, true
	}
	return 0, false
}

// Over reports whether the application was told that the unit's term is over. Such a term
// must not be renewed.
func (t *Table) Over(unit int) bool {
	e := t.index.entry(unit)
	return e != nil && e.held != nil && e.over
}

// list adds e to the entries that the application may have to be told of.
func (t *Table) list(e *entry) {
	if !e.listed {
		e.listed = true
		t.changed = append(t.changed, e)
	}
}

func (t *Table) touch() {
	t.stale.Store(true)
	t.Ring()
}
