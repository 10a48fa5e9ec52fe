package neli

import (
	"context"
	"iter"
	"sync/atomic"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector"
	"github.com/goneli/neli/internal/term"
)

// arbiter decides, unit by unit, whether this process leads. A Neli knows no
// more of the outside world than this; the leases in a log and the non-exclusive
// vector are its two implementations.
type arbiter interface {
	// run works until ctx is done, until it is to close and holds nothing any more,
	// or returns the error that ended it for good. When it returns, no goroutine of
	// the arbiter's is left.
	run(ctx context.Context) error
	// intend says what the Neli wants from now on. It does not block.
	intend(elector.Desired)
	// units says what a term is of. It is the same from the moment M is known.
	units() units
	// table is what this process holds and what the application was told. The Neli
	// calls only what anybody may call: the rest needs the arbiter's lock.
	table() *term.Table
	// collect returns what the application must be told now and counts it as told.
	collect() []term.Change
	// peek returns the losses and revocations that collect would return, and counts
	// nothing as told.
	peek() []term.Change
	// drained says that the application has finished the work of the term with this id
	// of each of the units, which it was told to give up.
	drained(units []int, id int64)
	stats() Stats
}

// units maps roles to what one term is of, a unit of the term table: in exclusive
// mode the role itself, else the partition, whose roles all lead together.
type units struct {
	partitions int  // M; 0 until it is known
	perRole    bool // a unit is a role
}

// of returns the unit of a role.
func (u units) of(role int) int {
	if u.perRole {
		return role
	}
	return partitionOf(role, u.partitions)
}

// partition returns the partition on which a unit is contended.
func (u units) partition(unit int) int { return partitionOf(unit, u.partitions) }

// roles yields the roles of a unit below a bound, ascending.
func (u units) roles(unit, below int) iter.Seq[int] {
	if !u.perRole {
		return rolesOn(unit, u.partitions, below)
	}
	return func(yield func(int) bool) {
		if unit < below {
			yield(unit)
		}
	}
}

// partitionTerms is the term table of an arbiter whose units are partitions. Its
// methods need the arbiter's lock, but for table, units and what is Table's for
// anybody.
type partitionTerms struct {
	*term.Table
	h   threshold
	now func() clock.Instant
	m   atomic.Int64
}

// init readies an empty table. By looks the application asks, the arbiter by now.
func (t *partitionTerms) init(h threshold, now, looks func() clock.Instant) {
	t.h, t.now = h, now
	t.Table = term.New(h.young, looks, func(p int) int { return p })
}

func (t *partitionTerms) open(m int) {
	t.Open(m)
	t.m.Store(int64(m))
}

func (t *partitionTerms) table() *term.Table { return t.Table }
func (t *partitionTerms) units() units       { return units{partitions: int(t.m.Load())} }

// publish sets the term of p: a new one, or the same one with a newer V. A former
// term ends before that: the new V is no evidence for it.
func (t *partitionTerms) publish(p int, id, token int64, v clock.Instant) {
	held, ok := t.Held(p)
	if ok && held != id {
		t.end(p, ReasonLapsed, false)
	}
	if old, had := t.V(p); !had || old != v {
		t.Renew(p, v)
	}
	if !ok || held != id {
		t.Start([]int{p}, id, token)
	}
}

func (t *partitionTerms) end(p int, why Reason, graceful bool) {
	t.End([]int{p}, term.Reason(why), graceful)
}

// held reports whether there is a term of p, lapsed or not.
func (t *partitionTerms) held(p int) bool {
	_, ok := t.Held(p)
	return ok
}

// current reports whether there is a term of p that has not lapsed.
func (t *partitionTerms) current(p int, now clock.Instant) bool {
	v, ok := t.V(p)
	return ok && t.held(p) && t.h.young(now, v)
}
