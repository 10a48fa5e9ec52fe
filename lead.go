package neli

import (
	"context"
	"errors"
	"sync"

	"github.com/goneli/neli/internal/term"
)

var errGoexit = errors.New("neli: Lead: the function ended its goroutine")

// lead is one call of Lead. Everything except fn runs on one goroutine. While that goroutine is in
// the barrier, a second one ends the contexts of lost and revoked roles.
type lead struct {
	n       *Neli
	fn      func(context.Context, Leadership) error
	ctx     context.Context
	units   map[int]*leadUnit // units that are led, or have running functions
	total   int               // running functions
	idle    map[int64][]int   // by id of the term: revoked units whose functions have all returned
	fenced  []leadResult      // functions that returned after the clock had ended their term
	roles   int               // R when last read
	results chan leadResult
	err     error // returned by fn; ends this Lead
	ending  bool
	over    bool // run has returned
}

// leadUnit is Lead's state of one unit of the term table.
type leadUnit struct {
	held      bool // the application was told of the term with this id and token
	revoked   bool // and was told to give it up
	id, token int64
	runs      map[int]*leadRun // by role
	active    int              // running functions, of this term or a former one
}

// leadRun is one run of fn: for one role, in one term.
type leadRun struct {
	id       int64
	cancel   context.CancelCauseFunc
	returned bool
	// gone reports that the term needs a new run if it continues: SetRoles excluded the role
	// meanwhile, or the function stopped because the clock said that the term was over.
	gone bool
}

type leadResult struct {
	unit, role int
	run        *leadRun
	fenced     bool // its context had ended with ErrFenced
	err        error
}

func (l *lead) run() error {
	if l.ctx.Err() != nil {
		l.finish(context.Cause(l.ctx)) // before any function starts
	} else {
		l.n.contend()
	}
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

// leave ends the turn. After a panic of the barrier no caller waits for the functions, so leave
// ends them and receives their results in the background. The turn lasts until then: the next Lead
// must not run functions beside them, and Close must wait for them.
func (l *lead) leave() {
	if l.over {
		<-l.n.driver
		return
	}
	l.finish(ErrRevoked)
	go func() {
		for ; l.total > 0; l.total-- {
			<-l.results
		}
		<-l.n.driver
	}()
}

// wait blocks until something happens that Lead must act on.
func (l *lead) wait(ended error) {
	done, closing, stop := l.n.done, l.n.closing, l.ctx.Done()
	if ended != nil {
		done = nil // ended already: only the functions are still awaited
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
		// The functions' contexts end with the same cause by themselves.
		l.finish(context.Cause(l.ctx))
	}
}

// finish cancels all functions and gives up all roles.
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

// adopt starts functions for roles that this process leads already, and of which this Lead was never told.
func (l *lead) adopt() {
	table := l.n.core.terms
	for unit := range table.Published(l.roles) {
		if id, token, _, ok := table.Leads(unit); ok && l.units[unit] == nil {
			l.begin(unit, id, token)
		}
	}
}

// collected ends the contexts of roles that are lost or revoked, before the barrier is called.
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

// meanwhile starts a goroutine that ends the contexts of lost and revoked roles while the barrier
// runs. The returned function stops it. Nothing else uses l.units in between.
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
		table.Ring() // the goroutine took the news: pass it on to the driver
	}
}

// delivered starts functions for an acquired unit, and releases a revoked one without running
// functions, after the barrier was called.
func (l *lead) delivered(c term.Change) {
	for _, unit := range c.Units {
		switch c.Kind {
		case term.Acquired:
			l.begin(unit, c.ID, c.Token)
		case term.Revoked:
			u := l.units[unit]
			if u == nil { // acquired before Lead began, and lapsed just when adopt looked at it
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

// begin records a new term of a unit and starts its functions.
func (l *lead) begin(unit int, id, token int64) {
	u := l.units[unit]
	if u == nil {
		u = &leadUnit{runs: map[int]*leadRun{}}
		l.units[unit] = u
	}
	u.held, u.revoked, u.id, u.token = true, false, id, token
	l.startOn(unit, u)
}

// follow starts and ends functions after a change of R.
func (l *lead) follow() {
	roles := int(l.n.roles.Load())
	if roles == l.roles {
		return
	}
	l.roles = roles
	l.adopt() // terms told before Lead began, of roles that R excluded then
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

// start runs fn for a role of a held unit, once in a term, or again if the run is gone. While a
// function still runs, start does nothing; returned calls it again.
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
	arg := Leadership{Role: role, Token: u.token, n: l.n, id: u.id}
	ctx := &leadContext{inner, arg, cancel}
	// Lead does not return before it has received the result of each of these goroutines.
	go func() {
		err := errGoexit
		defer func() {
			if r := recover(); r != nil {
				panic(r) // this ends the process at once; sending r instead would wait for the barrier
			}
			fenced := errors.Is(context.Cause(inner), ErrFenced)
			cancel(nil)
			l.results <- leadResult{unit, role, run, fenced, err}
		}()
		err = l.fn(ctx, arg)
		if err != nil && ctx.Err() != nil {
			l.afterTheEnd(ctx, arg, err)
			err = nil
		}
	}()
}

// afterTheEnd logs an error that fn returned after its context had ended. Most such errors only
// report that end, in words of another library: "signal: killed", "rpc error: code = Canceled", "i/o
// timeout". The error does not show whether it is one of these, so Lead goes on in any case.
func (l *lead) afterTheEnd(ctx context.Context, of Leadership, err error) {
	why := context.Cause(ctx)
	if errors.Is(err, ctx.Err()) || errors.Is(err, why) {
		return
	}
	l.n.set.logger.Info("a function returned an error after its context had ended", "role", of.Role, "error", err, "cause", why)
}

// returned handles the result of a function and all further results that are ready. Units that
// become idle together are then released together.
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

// resume restarts functions in terms that continue although the clock had ended them: the wall
// clock was set forward and back, or evidence arrived late. It runs after delivery, when terms that
// are really over have been removed.
func (l *lead) resume() {
	for _, r := range l.fenced {
		if u := l.units[r.unit]; u != nil && u.runs[r.role] == r.run {
			r.run.gone = true
			l.start(r.unit, u, r.role)
		}
	}
	l.fenced = nil
}

// forget drops a unit that is not held and has no running functions.
func (l *lead) forget(unit int, u *leadUnit) {
	if !u.held && u.active == 0 {
		delete(l.units, unit)
	}
}

// drained notes a revoked unit whose functions have all returned.
func (l *lead) drained(unit int, u *leadUnit) {
	if u.held && u.revoked && u.active == 0 {
		l.idle[u.id] = append(l.idle[u.id], unit)
	}
}

// release tells the arbiter which units are drained.
func (l *lead) release() {
	for id, units := range l.idle {
		l.n.core.Drained(units, id)
	}
	clear(l.idle)
}

// cancel ends the contexts of the functions that a change concerns.
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
