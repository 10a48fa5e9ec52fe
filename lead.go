package neli

import (
	"context"
	"errors"
)

// Leadership is what a function run by Lead is told of its role.
type Leadership struct {
	Role      int
	Partition int
	// Token is the fencing token of this term; −1 in non-exclusive mode.
	Token int64

	n  *Neli
	id int64
}

// Valid reports whether this very term lasts at this instant: a check of the
// clock, as IsLeader is. When the context ends with ErrFenced it is false
// already; with ErrRevoked it stays true for as long as the lease is kept.
func (l Leadership) Valid() bool {
	t, ok := l.n.term(l.Role)
	return ok && t.id == l.id
}

// Lead runs fn once for each term of each role that this process leads, each on a
// goroutine of its own, until ctx is done. It needs no pulses.
//
// The context given to fn ends when that role is lost, or with ctx; context.Cause
// tells how. ErrFenced: leadership is over already, stop at once. Anything else —
// ErrRevoked, or the cause of ctx —: finish and return, the lease is kept until
// then, for DrainTimeout at most. For one role fn is
// never run twice at the same time: a new term waits for the function of the
// former one to return. When fn returns nil before its term is over, the role
// stays with this process and fn runs again in its next term.
//
// When fn returns an error while its context is alive, or one that does not
// stem from the end of its context, Lead ends and returns it. Otherwise Lead
// returns nil once ctx is done, ErrClosed after Close, or the error that ended
// this Neli. Before it returns, all functions have returned and all roles are
// given up; this process contends again when it is driven again.
//
// The barrier, if there is one, runs on the goroutine that calls Lead: after a
// LeaderAcquired returns the functions start, and before LeaderRevoked and
// LeaderFenced are delivered their contexts have ended. Only one of Pulse,
// Background and Lead is at work at a time; Lead waits for its turn.
func (n *Neli) Lead(ctx context.Context, fn func(context.Context, Leadership) error) error {
	if fn == nil {
		return errors.New("neli: Lead: fn is nil")
	}
	if n.set.observer {
		return ErrObserver
	}
	select {
	case n.driver <- struct{}{}:
	case <-ctx.Done():
		return nil
	case <-n.done:
		return n.ended()
	}
	defer func() { <-n.driver }()
	l := &lead{n: n, fn: fn, ctx: ctx, roles: int(n.roles.Load()), results: make(chan leadResult),
		terms: map[int]change{}, runs: map[int]*leadRun{}, active: map[int]int{}}
	return l.run()
}

var errGoexit = errors.New("neli: Lead: the function ended its goroutine")

// lead is one call of Lead. All but the functions run on one goroutine.
type lead struct {
	n       *Neli
	fn      func(context.Context, Leadership) error
	ctx     context.Context
	terms   map[int]change   // led partitions
	runs    map[int]*leadRun // by role
	active  map[int]int      // functions at work, by partition
	total   int              // and in all
	roles   int              // R when it was last looked at
	results chan leadResult
	err     error // what fn returned, which ends this Lead
	ending  bool
}

// leadRun is fn at work, or done, for one term of one role.
type leadRun struct {
	id       int64
	cancel   context.CancelCauseFunc
	returned bool
}

type leadResult struct {
	role int
	err  error
}

func (l *lead) run() error {
	l.n.contend()
	for {
		ended := l.n.ended()
		l.deliver()
		l.follow()
		switch {
		case l.total > 0:
		case ended != nil:
			return errors.Join(l.err, ended)
		case l.ending && len(l.n.told) == 0:
			return l.err
		case l.n.State() == StateClosing && len(l.n.told) == 0:
			return errors.Join(l.err, ErrClosed)
		}
		l.wait(ended)
	}
}

// wait waits for anything that may change what is to be done.
func (l *lead) wait(ended error) {
	done, closing, stop := l.n.done, l.n.closing, l.ctx.Done()
	if ended != nil {
		done = nil // only functions are waited for
	}
	if l.n.State() != StateLive {
		closing = nil
	}
	if l.ending {
		stop = nil
	}
	l.n.waiting.Add(1)
	defer l.n.waiting.Add(-1)
	defer l.n.heard()
	select {
	case <-l.n.arb.news():
	case r := <-l.results:
		l.finished(r)
	case <-done:
	case <-closing:
	case <-stop:
		// Their contexts are about to end with this cause, or have already.
		l.end(context.Cause(l.ctx))
	}
}

// end gives everything up; the functions are told by their contexts.
func (l *lead) end(why error) {
	if l.ending {
		return
	}
	l.ending = true
	for _, r := range l.runs {
		r.cancel(why)
	}
	l.n.resign()
}

// deliver tells the barrier what has changed; contexts end before, functions
// start after.
func (l *lead) deliver() {
	for {
		changes := l.n.arb.collect()
		if len(changes) == 0 {
			return
		}
		for _, c := range changes {
			switch c.kind {
			case changeRevoke:
				l.cancel(c, ErrRevoked)
			case changeLost, changeGone:
				l.cancel(c, ErrFenced)
				delete(l.terms, c.partition)
			case changeAcquired:
			}
		}
		l.n.tell(changes, func(c change) {
			l.terms[c.partition] = c
			l.drained(c.partition)
		})
		for _, c := range changes {
			if c.kind == changeAcquired {
				l.terms[c.partition] = c
				l.startOn(c)
			}
		}
	}
}

// follow starts and ends functions when R has changed.
func (l *lead) follow() {
	roles := int(l.n.roles.Load())
	if roles == l.roles {
		return
	}
	l.roles = roles
	for role, r := range l.runs {
		if role >= roles {
			r.cancel(ErrRevoked)
			r.id = -1 // should the role come back, it needs a new function
		}
	}
	for _, c := range l.terms {
		l.startOn(c)
	}
}

// startOn starts a function for every role of a led partition that has none. One
// that is still at work from a former term is waited for.
func (l *lead) startOn(c change) {
	if l.ending || c.kind != changeAcquired {
		return
	}
	for role := range rolesOn(c.partition, len(l.n.arb.cells()), l.roles) {
		if r := l.runs[role]; r == nil || r.returned && r.id != c.id {
			l.start(role, c)
		}
	}
}

func (l *lead) start(role int, c change) {
	ctx, cancel := context.WithCancelCause(l.ctx)
	l.runs[role] = &leadRun{id: c.id, cancel: cancel}
	l.active[c.partition]++
	l.total++
	arg := Leadership{Role: role, Partition: c.partition, Token: l.n.set.outward(c.token), n: l.n, id: c.id}
	// run does not return before it has heard of every one of these.
	go func() {
		err := errGoexit
		defer func() {
			cancel(nil)
			l.results <- leadResult{role, err}
		}()
		err = l.fn(ctx, arg)
		if ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx))) {
			err = nil // the end of the context, reported back
		}
	}()
}

func (l *lead) finished(r leadResult) {
	l.runs[r.role].returned = true
	p := partitionOf(r.role, len(l.n.arb.cells()))
	l.active[p]--
	l.total--
	if r.err != nil {
		l.err = errors.Join(l.err, r.err)
		l.end(ErrRevoked)
	}
	l.drained(p)
	if c, ok := l.terms[p]; ok && c.id != l.runs[r.role].id {
		l.startOn(c)
	}
}

// drained lets a partition go that is to be given up and where nothing is at
// work any more.
func (l *lead) drained(p int) {
	if c, ok := l.terms[p]; ok && c.kind == changeRevoke && l.active[p] == 0 {
		l.n.arb.drained(p, c.id)
	}
}

func (l *lead) cancel(c change, why error) {
	for role := range rolesOn(c.partition, len(l.n.arb.cells()), l.roles) {
		if r := l.runs[role]; r != nil && r.id == c.id {
			r.cancel(why)
		}
	}
}
