package neli

import (
	"context"
	"sync/atomic"
	"time"
)

// arbiter decides, partition by partition, whether this process leads. The
// curator knows no more of the outside world than this; the lease in a log and
// the non-exclusive vector are its two implementations.
type arbiter interface {
	// run works until ctx is done, until it is to close and holds nothing any more,
	// or returns the error that ended it for good. When it returns, no goroutine of
	// the arbiter's is left.
	run(ctx context.Context) error
	// intend says what the curator wants from now on. It does not block.
	intend(posture)
	// cells returns the partitions' published terms; nil until M is known.
	cells() []cell
	// fresh reports whether collect may have something to say.
	fresh() bool
	// news has an element whenever fresh may have become true.
	news() <-chan struct{}
	// collect returns what the application must be told now and counts it as told.
	collect() []change
	// drained says that the application has finished the work of a term that it
	// was told to give up.
	drained(p int, id int64)
	stats() Stats
}

// posture is what the curator wants of an arbiter.
type posture struct {
	roles   int    // R: partitions at or beyond it are not wanted
	contend bool   // somebody drives this Neli: Pulse, Background or Lead
	closing bool   // leave; finish in order
	why     Reason // of contend == false

	unhealthy bool          // the application says that it should not lead
	away      time.Duration // monotonic time until which it has stepped down
}

// wants reports whether what this process has of a partition is to be kept.
func (p posture) wants(partition int) bool {
	return p.contend && !p.closing && partition < p.roles
}

// willing reports whether this process would lead anything at time now.
func (p posture) willing(now instant) bool {
	return p.contend && !p.closing && !p.unhealthy && now.mono >= p.away
}

// reason tells why a partition is not wanted at time now.
func (p posture) reason(partition int, now instant) Reason {
	switch {
	case p.closing:
		return ReasonClosing
	case !p.contend:
		return p.why
	case p.unhealthy:
		return ReasonUnhealthy
	case now.mono < p.away:
		return ReasonSteppedDown
	case partition >= p.roles:
		return ReasonRoles
	}
	return ReasonUnassigned
}

type changeKind int

const (
	changeGone     changeKind = iota // over, and the application was told before
	changeLost                       // over already
	changeRevoke                     // to be given up; drained is expected
	changeAcquired                   // a new term
)

// change is one partition's news for the application.
type change struct {
	kind      changeKind
	partition int
	id        int64
	token     int64
	reason    Reason
	graceful  bool      // changeLost: withdrawn first, so Revoked and not Fenced
	deadline  time.Time // changeRevoke
}

// ledger keeps, for each partition, the term that this process has and what the
// application was told of it, so that every Acquired is followed by exactly one
// Revoked or Fenced however seldom the application asks. Its methods need the
// arbiter's lock, but for those of the cells.
type ledger struct {
	h     threshold
	now   func() instant
	cell  []cell
	shown atomic.Pointer[[]cell] // cell, once M is known
	books []book
	stale atomic.Bool
	bell  chan struct{}
}

type book struct {
	told       int64 // id+1 of the term told, 0: none
	token      int64 // its token
	revokeTold bool
	ended      Reason // why the term told ended, once it has
	graceful   bool   // and whether it had been withdrawn first
	finished   int64  // id+1 of the newest term that the application was told is over

	revoke   bool // the current term is to be given up, by deadline, because of why
	deadline instant
	why      Reason
}

func newLedger(h threshold, now func() instant) ledger {
	return ledger{h: h, now: now, bell: make(chan struct{}, 1)}
}

// open sizes the ledger.
func (l *ledger) open(m int) {
	l.cell, l.books = make([]cell, m), make([]book, m)
	l.shown.Store(&l.cell)
}

func (l *ledger) cells() []cell {
	if c := l.shown.Load(); c != nil {
		return *c
	}
	return nil
}

func (l *ledger) fresh() bool           { return l.stale.Load() }
func (l *ledger) news() <-chan struct{} { return l.bell }

func (l *ledger) touch() {
	l.stale.Store(true)
	l.ring()
}

func (l *ledger) ring() {
	select {
	case l.bell <- struct{}{}:
	default:
	}
}

// held returns the term of partition p, or nil.
func (l *ledger) held(p int) *term { return l.cell[p].term.Load() }

// publish sets the term of p: a new one, or the same one with a newer V.
func (l *ledger) publish(p int, t term) {
	old := l.held(p)
	l.cell[p].term.Store(&t)
	if old == nil || old.id != t.id {
		l.books[p].revoke = false
		l.touch()
	}
}

// end forgets the term of p.
func (l *ledger) end(p int, why Reason, graceful bool) {
	b, t := &l.books[p], l.held(p)
	if t == nil {
		return
	}
	if b.told == t.id+1 {
		b.ended, b.graceful = why, graceful
	}
	l.cell[p].term.Store(nil)
	b.revoke = false
	l.touch()
}

// done withdraws the term of p from the application, which has finished its work:
// nothing more is to be begun, though the lease lasts until it is released.
func (l *ledger) done(p int) { l.cell[p].told.Store(0) }

// giveUp asks the application to finish the term of p by deadline.
func (l *ledger) giveUp(p int, why Reason, deadline instant) {
	b := &l.books[p]
	b.revoke, b.why, b.deadline = true, why, deadline
	l.touch()
}

// wasTold reports whether the application knows of the term of p.
func (l *ledger) wasTold(p int) bool {
	t := l.held(p)
	return t != nil && l.books[p].told == t.id+1
}

// over reports whether the application was told that the term of p is over: it
// must not be renewed, whatever the clock says now.
func (l *ledger) over(p int) bool {
	t := l.held(p)
	return t != nil && l.books[p].finished == t.id+1
}

// collectAll returns losses, or else revocations, or else acquisitions: those
// that follow may be out of date by the time that these are told.
func (l *ledger) collectAll(now instant) []change {
	l.stale.Store(false)
	for _, look := range []func(int, instant) (change, bool){l.loss, l.revocation, l.acquisition} {
		var out []change
		for p := range l.books {
			if c, ok := look(p, now); ok {
				out = append(out, c)
			}
		}
		if len(out) > 0 {
			l.stale.Store(true)
			return out
		}
	}
	return nil
}

// current returns the term of p if it has not lapsed.
func (l *ledger) current(p int, now instant) *term {
	if t := l.held(p); t != nil && l.h.young(now, t.v) {
		return t
	}
	return nil
}

func (l *ledger) loss(p int, now instant) (change, bool) {
	b, t := &l.books[p], l.current(p, now)
	if b.told == 0 || t != nil && t.id+1 == b.told {
		return change{}, false
	}
	c := change{kind: changeLost, partition: p, id: b.told - 1, token: b.token, reason: b.ended, graceful: b.graceful}
	if c.reason == 0 {
		c.reason = ReasonLapsed // seen here before the arbiter has
	}
	if b.revokeTold {
		c.kind = changeGone
	}
	b.finished, b.told, b.revokeTold, b.ended, b.graceful = b.told, 0, false, 0, false
	l.cell[p].told.Store(0)
	return c, true
}

func (l *ledger) revocation(p int, now instant) (change, bool) {
	b, t := &l.books[p], l.current(p, now)
	if t == nil || b.told != t.id+1 || !b.revoke || b.revokeTold {
		return change{}, false
	}
	b.revokeTold = true
	return change{kind: changeRevoke, partition: p, id: t.id, token: t.token, reason: b.why,
		deadline: b.deadline.time()}, true
}

func (l *ledger) acquisition(p int, now instant) (change, bool) {
	b, t := &l.books[p], l.current(p, now)
	if t == nil || b.told != 0 || b.revoke || b.finished == t.id+1 {
		return change{}, false
	}
	b.told, b.token = t.id+1, t.token
	l.cell[p].told.Store(b.told)
	return change{kind: changeAcquired, partition: p, id: t.id, token: t.token, reason: ReasonElected}, true
}
