package neli

import (
	"context"
	"errors"
	"time"
)

// Lead runs fn once for each term of each role that this process leads, each on a goroutine of its
// own, until ctx is done. It needs no pulses.
//
// The context given to fn ends when the role is lost or revoked, or ctx ends; context.Cause says which.
// With ErrFenced leadership is over already: stop at once. With ErrRevoked, or with the cause of
// ctx, finish and return: the lease is kept until fn returns, for DrainTimeout at most. Lead never
// runs fn twice at the same time for one role; a new term waits until the function of the former
// one has returned. If fn returns nil before its term is over, this process keeps the role, and fn
// runs again in the next term.
//
// The context asks the clock, as Leadership.Valid does: Err is not nil from the first instant at
// which Valid is false, even if the process wakes from a suspension and fn runs before anything
// else does. A loop that checks ctx.Err() after each wait and before each action does nothing as a
// stale leader. A process may still be suspended between the check and the action: where that
// matters, pass on the Token.
//
// After that instant Done closes when any method is called, or as soon as this package's goroutines
// run, which may be a moment after fn does. A select on Done and something else may find
// both ready and take either: check Err afterwards. A derived context (context.WithTimeout,
// errgroup) ends when Done closes, but its own Err does not ask the clock. Deriving a context asks the
// clock once: derive it just before the work, or check the context that fn was given.
//
// A term that is over by the clock may go on after all if nothing else has ended it, for example if
// the wall clock is set forward and then back. Once fn has returned, it runs again with the same Token.
//
// If fn returns an error before its context has ended, Lead ends and returns that error. An error
// that fn returns afterwards is only logged, whatever it is, and Lead goes on: many libraries report
// the end of a context in words of their own. To end Lead from there, end ctx. Lead also ends with an
// error if fn ends its goroutine (runtime.Goexit). Otherwise it returns nil once ctx is done, ErrClosed
// after Close, or the error that ended this Neli; for an observer it returns ErrObserver at once.
// Before Lead returns, all functions have returned and all roles are given up. The process contends
// again at the next Pulse, Background or Lead.
//
// In non-exclusive mode Lead leaves the group at once when it ends, and the process leads on for
// the time that Close documents, but no function runs then. To keep somebody at work throughout,
// call Close while Lead runs; the functions then end after that time.
//
// The barrier, if there is one, runs on the goroutine that calls Lead. Functions start after the
// barrier has returned from LeaderAcquired, and their contexts end before LeaderRevoked and
// LeaderFenced are delivered. Only one of Pulse, Background and Lead works at a time; Lead waits
// for its turn, and logs after a second which call it waits for. One Lead runs fn for all roles: let
// fn switch on Leadership.Role.
func (n *Neli) Lead(ctx context.Context, fn func(context.Context, Leadership) error) error {
	if fn == nil {
		return errors.New("neli: Lead: fn is nil")
	}
	if ctx == nil {
		return errors.New("neli: Lead: ctx is nil")
	}
	if n.set.Observer {
		return ErrObserver
	}
	if !n.takeTurn(calledAt("Lead"), nil, ctx.Done(), n.done) {
		return n.ended()
	}
	l := &lead{n: n, fn: fn, ctx: ctx, roles: int(n.roles.Load()), results: make(chan leadResult),
		units: map[int]*leadUnit{}, idle: map[int64][]int{}}
	defer l.leave()
	return l.run()
}

// Leadership describes the term in which Lead runs a function.
type Leadership struct {
	Role int
	// Token is the fencing token of this term; −1 in non-exclusive mode.
	Token int64

	n  *Neli
	id int64
}

// Valid reports whether this term still lasts at this instant. It is a check of the clock, as
// IsLeader is. It is false by the time the context ends with ErrFenced. After ErrRevoked it stays
// true while the lease is kept, also for a role that SetRoles removed.
func (l Leadership) Valid() bool {
	if l.n == nil {
		return false
	}
	id, _, _, ok := l.n.core.terms.Leads(l.n.units().of(l.Role))
	return ok && id == l.id
}

// Remaining returns how long this term lasts from now on without new evidence, unless it is given
// up: 0 if it is over. Evidence keeps arriving and renews it. Finish an action within this time,
// or guard it by the Token.
func (l Leadership) Remaining() time.Duration {
	if l.n == nil {
		return 0
	}
	id, v, at, leads := l.n.core.terms.Evidence(l.n.units().of(l.Role))
	if !leads || id != l.id {
		return 0
	}
	return l.n.set.threshold().left(at, v)
}

// leadContext is the context that Lead gives to its function. The driver ends the embedded
// context, but that may be too late: after a suspension the function may run before any goroutine
// of this package. So each method checks the clock first, and ends the context for everybody if
// the term is over, including goroutines that wait for Done and derived contexts.
//
// Value checks too, because context.Cause calls it before Err in Go 1.25.
type leadContext struct {
	context.Context
	of     Leadership
	cancel context.CancelCauseFunc
}

func (c *leadContext) look() {
	if c.Context.Err() == nil && !c.of.Valid() {
		c.cancel(ErrFenced)
		c.of.n.core.terms.Ring() // the driver may not have noticed yet
	}
}

func (c *leadContext) Err() error {
	c.look()
	return c.Context.Err()
}

func (c *leadContext) Done() <-chan struct{} {
	c.look()
	return c.Context.Done()
}

func (c *leadContext) Value(key any) any {
	c.look()
	return c.Context.Value(key)
}
