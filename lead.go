package neli

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/goneli/neli/internal/term"
)

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
// The context asks the clock, as Leadership.Valid does. From the first instant at which
// Valid is false, Err is not nil: also when the process wakes from a suspension and fn runs
// before anything else does. A loop that asks ctx.Err() before each thing it does, after
// each wait, does nothing as a stale leader; what must be safe even between the question
// and the deed carries the Token.
//
// Done closes when the context is asked anything, or else as soon as this package's
// goroutines run again, which may be a moment after fn. A select that waits for Done and
// something else may find both ready and take either: ask Err after it. A derived context
// (context.WithTimeout, errgroup) ends when Done closes. Its own Err does not ask the
// clock: derive it just before the work, for that does, or ask the context that fn was
// given.
//
// If the clock said for a moment that the term was over, and nobody else knows of an end,
// the term goes on: when fn has returned, it runs again with the same Token. A wall clock
// that was set forward and back does that.
//
// When fn returns an error while its context is alive, or one that does not
// stem from the end of its context, Lead ends and returns it. Otherwise Lead
// returns nil once ctx is done, ErrClosed after Close, or the error that ended
// this Neli. Before it returns, all functions have returned and all roles are
// given up; this process contends again when it is driven again. In non-exclusive
// mode it leaves the group at once and leads on for as long as Close says, while no
// function runs: whoever wants somebody at work throughout calls Close while Lead
// runs, which ends the functions after that time.
//
// The barrier, if there is one, runs on the goroutine that calls Lead: after a
// LeaderAcquired returns the functions start, and before LeaderRevoked and
// LeaderFenced are delivered their contexts have ended. Only one of Pulse,
// Background and Lead is at work at a time; Lead waits for its turn.
func (n *Neli) Lead(ctx context.Context, fn func(context.Context, Leadership) error) error {
	if fn == nil {
		return errors.New("neli: Lead: fn is nil")
	}
	if ctx == nil {
		return errors.New("neli: Lead: ctx is nil")
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
		units: map[int]*leadUnit{}, idle: map[int64][]int{}}
	defer l.abandon()
	return l.run()
}

var errGoexit = errors.New("neli: Lead: the function ended its goroutine")

// lead is one call of Lead. All but the functions run on one goroutine; while that is
// in the barrier, another one ends the contexts of what is lost.
type lead struct {
	n       *Neli
	fn      func(context.Context, Leadership) error
	ctx     context.Context
	units   map[int]*leadUnit // those that are led, and those with functions at work
	total   int               // functions at work
	idle    map[int64][]int   // by id: units to be given up on which nothing is at work any more
	fenced  []leadResult      // of functions that stopped because their term was over, as the clock said
	roles   int               // R when it was last looked at
	results chan leadResult
	err     error // what fn returned, which ends this Lead
	ending  bool
	over    bool // run has returned
}

// leadUnit is what Lead has of one unit.
type leadUnit struct {
	held      bool // the application has a term of it, with this id and token
	revoked   bool // which is to be given up, as the barrier knows
	id, token int64
	runs      map[int]*leadRun // by role
	active    int              // functions at work, of this term or a former one
}

// leadRun is fn at work, or done, for one term of one role.
type leadRun struct {
	id       int64
	cancel   context.CancelCauseFunc
	returned bool
	// gone: should the term go on, it needs a new function. R has left the role out since, or
	// the function has stopped because the clock said that the term was over.
	gone bool
}

type leadResult struct {
	unit, role int
	run        *leadRun
	fenced     bool // its context said that the term was over
	err        error
}

func (l *lead) run() error {
	l.n.contend()
	l.adopt()
	for {
		ended := l.n.ended()
		l.n.deliverTo(l)
		l.follow()
		l.resume()
		switch {
		case l.total > 0:
		case ended != nil:
			return l.end(errors.Join(l.err, ended))
		case l.ending && l.n.told == 0:
			return l.end(l.err)
		case l.n.State() == StateClosing && l.n.told == 0:
			return l.end(errors.Join(l.err, ErrClosed))
		}
		l.wait(ended)
	}
}

func (l *lead) end(err error) error {
	l.over = true
	return err
}

// abandon looks after the functions if a panic of the barrier ends Lead: they are told
// to finish, and heard, though nobody waits for them any more.
func (l *lead) abandon() {
	if l.over {
		return
	}
	l.finish(ErrRevoked)
	go func() {
		for ; l.total > 0; l.total-- {
			<-l.results
		}
	}()
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
	case <-l.n.core.terms.News():
	case r := <-l.results:
		l.returned(r)
		l.release()
	case <-done:
	case <-closing:
	case <-stop:
		// Their contexts are about to end with this cause, or have already.
		l.finish(context.Cause(l.ctx))
	}
}

// finish gives everything up; the functions are told by their contexts.
func (l *lead) finish(why error) {
	if l.ending {
		return
	}
	l.ending = true
	for _, u := range l.units {
		for _, r := range u.runs {
			r.cancel(why)
		}
	}
	l.n.resign()
}

// adopt starts functions for what this process leads already.
func (l *lead) adopt() {
	table := l.n.core.terms
	for unit := range table.Published(l.roles) {
		if id, token, _, ok := table.Leads(unit); ok {
			l.begin(unit, id, token)
		}
	}
}

// collected ends the contexts of what is lost or to be given up: before the barrier
// is told.
func (l *lead) collected(changes []term.Change) {
	for _, c := range changes {
		l.cancel(c)
		if c.Kind != term.Gone && c.Kind != term.Lost {
			continue
		}
		for _, unit := range c.Units {
			if u := l.units[unit]; u != nil && u.id == c.ID {
				u.held = false
				l.forget(unit, u)
			}
		}
	}
}

// meanwhile ends the contexts of what is lost while the barrier is at work: it may
// take its time, and does not run beside itself. Nothing else looks at l.units then.
func (l *lead) meanwhile() func() {
	if l.total == 0 {
		return func() {}
	}
	table, stop := l.n.core.terms, make(chan struct{})
	var work sync.WaitGroup
	work.Go(func() {
		for {
			l.n.set.frozen.Wait()
			for _, c := range l.n.core.Peek() {
				l.cancel(c)
			}
			select {
			case <-stop:
				return
			case <-table.News():
			}
		}
	})
	return func() {
		close(stop)
		work.Wait()
		table.Ring() // what it took is for the driver
	}
}

// delivered starts functions, and lets go what nothing is at work for, once the
// barrier has been told.
func (l *lead) delivered(c term.Change) {
	for _, unit := range c.Units {
		switch c.Kind {
		case term.Acquired:
			l.begin(unit, c.ID, c.Token)
		case term.Revoked:
			u := l.units[unit]
			if u == nil { // told before Lead began, and lapsed for a moment when that looked
				l.idle[c.ID] = append(l.idle[c.ID], unit)
				continue
			}
			u.revoked = true
			l.drained(unit, u)
		case term.Gone, term.Lost:
		}
	}
	l.release()
}

// begin takes note of a new term and starts its functions.
func (l *lead) begin(unit int, id, token int64) {
	u := l.units[unit]
	if u == nil {
		u = &leadUnit{runs: map[int]*leadRun{}}
		l.units[unit] = u
	}
	u.held, u.revoked, u.id, u.token = true, false, id, token
	l.startOn(unit, u)
}

// follow starts and ends functions when R has changed.
func (l *lead) follow() {
	roles := int(l.n.roles.Load())
	if roles == l.roles {
		return
	}
	l.roles = roles
	for unit, u := range l.units {
		for role, r := range u.runs {
			if role >= roles {
				r.cancel(ErrRevoked)
				r.gone = true
			}
		}
		l.startOn(unit, u)
	}
}

func (l *lead) startOn(unit int, u *leadUnit) {
	for role := range l.n.units().roles(unit, l.roles) {
		l.start(unit, u, role)
	}
}

// start starts a function for a role of a unit that is led, if it has none for this
// term. One that is still at work from a former term is waited for.
func (l *lead) start(unit int, u *leadUnit, role int) {
	r := u.runs[role]
	if l.ending || !u.held || u.revoked || role >= l.roles || r != nil && !(r.returned && (r.id != u.id || r.gone)) {
		return
	}
	inner, cancel := context.WithCancelCause(l.ctx)
	run := &leadRun{id: u.id, cancel: cancel}
	u.runs[role] = run
	u.active++
	l.total++
	arg := Leadership{Role: role, Partition: l.n.units().partition(unit), Token: u.token, n: l.n, id: u.id}
	ctx := &leadContext{inner, arg, cancel}
	// run does not return before it has heard of every one of these.
	go func() {
		err := errGoexit
		defer func() {
			fenced := errors.Is(context.Cause(inner), ErrFenced)
			cancel(nil)
			l.results <- leadResult{unit, role, run, fenced, err}
		}()
		err = l.fn(ctx, arg)
		if err != nil && ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx))) {
			err = nil // the end of the context, reported back
		}
	}()
}

// returned takes note of a function that has returned, and of all others that have by
// now: what they leave idle is let go together.
func (l *lead) returned(r leadResult) {
	for {
		u := l.units[r.unit]
		u.runs[r.role].returned = true
		u.active--
		l.total--
		if r.err != nil {
			l.err = errors.Join(l.err, r.err)
			l.finish(ErrRevoked)
		}
		if r.fenced {
			l.fenced = append(l.fenced, r)
		}
		l.drained(r.unit, u)
		l.start(r.unit, u, r.role)
		l.forget(r.unit, u)
		select {
		case r = <-l.results:
		default:
			return
		}
	}
}

// resume starts functions anew in terms that go on after all: a clock that was set forward
// and back, or evidence that came late, and nobody was told of an end. It comes after
// delivery, which tells of the terms that are over.
func (l *lead) resume() {
	for _, r := range l.fenced {
		if u := l.units[r.unit]; u != nil && u.runs[r.role] == r.run {
			r.run.gone = true
			l.start(r.unit, u, r.role)
		}
	}
	l.fenced = nil
}

// forget drops what is neither led nor worked for.
func (l *lead) forget(unit int, u *leadUnit) {
	if !u.held && u.active == 0 {
		delete(l.units, unit)
	}
}

// drained takes note of a unit that is to be given up and where nothing is at work any
// more.
func (l *lead) drained(unit int, u *leadUnit) {
	if u.held && u.revoked && u.active == 0 {
		l.idle[u.id] = append(l.idle[u.id], unit)
	}
}

// release lets go what is idle.
func (l *lead) release() {
	for id, units := range l.idle {
		l.n.core.Drained(units, id)
	}
	clear(l.idle)
}

// cancel ends the contexts of a change's functions.
func (l *lead) cancel(c term.Change) {
	why := ErrFenced
	switch c.Kind {
	case term.Acquired:
		return
	case term.Revoked:
		why = ErrRevoked
	case term.Gone, term.Lost:
	}
	for _, unit := range c.Units {
		if u := l.units[unit]; u != nil {
			for _, r := range u.runs {
				if r.id == c.ID {
					r.cancel(why)
				}
			}
		}
	}
}

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
// already; with ErrRevoked it stays true for as long as the lease is kept, also for
// a role that SetRoles has done away with.
func (l Leadership) Valid() bool {
	if l.n == nil {
		return false
	}
	id, _, _, ok := l.n.core.terms.Leads(l.n.units().of(l.Role))
	return ok && id == l.id
}

// Remaining is how long this very term is sure to last from now on, if it is not
// given up: T minus the age of the newest evidence, 0 if it is over. Evidence renews
// it all the time; what is begun must be finished by then, or guarded by the Token.
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
