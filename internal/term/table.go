// Package term keeps what this process holds and what the application was told of
// it, and decides without a lock whether the application leads at this instant.
//
// A term is one uninterrupted time of holding a unit. In exclusive mode a unit is a
// role; in non-exclusive mode it is a partition, all of whose roles lead together.
// Many units share one vector element V[i], the newest evidence for whatever is
// held on partition i, so that a renewal is one store however many units there are.
//
// Guarantees, whatever the arbiter does and however seldom the application asks:
//   - each acquisition told is followed by the telling of exactly one end;
//   - a term that the application was told is over is neither told nor led again;
//   - once End or Done has returned, the check finds the units led no more.
//
// The table knows nothing of why a term begins or ends, and wakes nobody when a
// term lapses by the clock: the arbiter does.
package term

import (
	"sync/atomic"

	"github.com/goneli/neli/internal/clock"
)

// Table is the term table of one process. One arbiter writes it, with its own lock
// held (the methods of this file and Collect, Peek); anybody may call Leads,
// LeadsAny, Published, V, Fresh, News and Ring at any time.
type Table struct {
	young  func(now, v clock.Instant) bool
	now    func() clock.Instant
	vector func(unit int) int

	index     index
	lines     atomic.Pointer[[]line] // by partition
	published atomic.Int64           // units that the check can find led
	hint      atomic.Int64           // the line on which LeadsAny was lucky last
	shifts    atomic.Uint64          // odd while a unit is on its way from one line to another

	changed []*entry // those that there may be something to tell of
	stale   atomic.Bool
	news    chan struct{}
}

// term is one uninterrupted time of holding units that began together on one
// partition. It is immutable, and of one Start: that two pointers are equal says
// that it is the same term.
type term struct {
	id, token int64
	line      *line
}

// entry is the book of one unit: what is held, and what the application was told.
// A unit of which neither is anything has none.
type entry struct {
	unit      int
	held      *term    // nil: nothing
	delivered *term    // the term of which the application was told; nil: none
	request   *request // held is to be given up; nil: it is not
	ending    *ending  // how delivered ended, once it has
	position  int32    // in the heap of published units, −1: it is not published
	asked     bool     // the application was told to give up delivered
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

// New returns an empty table. young is the rule 0 ≤ now − v < T of the mode, now
// reads the clock; vector tells which element of V decides over a unit, and is
// asked about no unit before Open.
func New(young func(now, v clock.Instant) bool, now func() clock.Instant, vector func(unit int) int) *Table {
	return &Table{young: young, now: now, vector: vector, news: make(chan struct{}, 1)}
}

// Open says how many partitions there are. It is called once, before the first
// Start.
func (t *Table) Open(partitions int) {
	lines := make([]line, partitions)
	for p := range lines {
		lines[p].lowest.Store(noUnit)
	}
	t.lines.Store(&lines)
}

// Start begins a term of each of the units. The ids of one unit never repeat. A unit
// that is held with another id has lapsed, and with the same one goes on.
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
		if l := &lines[t.vector(unit)]; of == nil || of.line != l {
			of = &term{id: id, token: token, line: l}
		}
		e.held, e.over, begun = of, false, true
		t.list(e)
	}
	if begun {
		t.touch()
	}
}

// Renew sets V of a partition: the newest evidence for all that is held there. It
// looks at nothing else: before V becomes evidence of another session, or after it has
// lapsed, all terms of the partition must have been ended.
func (t *Table) Renew(partition int, v clock.Instant) {
	(*t.lines.Load())[partition].v.Store(&v)
}

// Shift lets another element of V decide over the units, whose terms go on: on a majority
// of logs, when another set of them sustains a term. The check finds them led all the
// while, if either V is young. Units that are not held are skipped.
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

// End ends the terms of the units, now. graceful tells that this process was to give
// them up, so that the application is told of a revocation. Units that are not held
// are skipped.
func (t *Table) End(units []int, why Reason, graceful bool) {
	how, ended := &ending{why, graceful}, false
	for _, unit := range units {
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
	t.list(e)
}

// Revoke asks the application to finish the work of the units that are held, by
// deadline. Whoever was not told of its term before is not told of it any more.
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

// Done withdraws the units from the application, which has finished its work:
// nothing more is to be begun, though what is held lasts until it is released.
func (t *Table) Done(units []int) {
	for _, unit := range units {
		if e := t.index.entry(unit); e != nil && e.position >= 0 {
			t.withdraw(e)
			t.list(e) // a lapse is not found by the line any more
		}
	}
}

// Told reports whether the application knows of the term that the unit has.
func (t *Table) Told(unit int) bool {
	e := t.index.entry(unit)
	return e != nil && e.held != nil && e.delivered == e.held
}

// Held returns the id of the unit's term, lapsed or not.
func (t *Table) Held(unit int) (id int64, ok bool) {
	if e := t.index.entry(unit); e != nil && e.held != nil {
		return e.held.id, true
	}
	return 0, false
}

// Over reports whether the application was told that the unit's term is over: it
// must not be renewed, whatever the clock says now.
func (t *Table) Over(unit int) bool {
	e := t.index.entry(unit)
	return e != nil && e.held != nil && e.over
}

// list takes note that there may be something to tell of e.
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
