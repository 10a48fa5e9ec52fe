package sim

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/internal/clock"
)

// style is the way in which an application drives its Neli.
type style int

const (
	byBackground style = iota
	byPulse
	byLead
	styles
)

// app is the state of an application.
type app struct {
	lock      sync.Mutex    // guards the fields below
	stopped   chan struct{} // the process is suspended
	hungUntil time.Time
	inside    bool          // the barrier or the task runs
	busy      clock.Mono    // since when the task has run, by the process's monotonic clock; 0: none runs
	returned  clock.Mono    // when the user's code last returned
	since     clock.Mono    // since when the user's code has kept the library from delivering
	told      map[int]int64 // role → token that the application was told of
	work      map[int]*work // role → work in progress
	fns       map[int]bool  // roles whose function runs
	lapsed    map[int]bool  // roles whose last term in this process lapsed
}

// work is the work of an application for a role that it leads.
type work struct {
	token int64
	open  int        // functions in progress; without Lead 1
	due   clock.Mono // when it has to end, by the process's monotonic clock; 0: no deadline
}

func newApp() app {
	return app{told: map[int]int64{}, work: map[int]*work{}, fns: map[int]bool{}, lapsed: map[int]bool{}}
}

func (t *work) dueBy(mono clock.Mono) {
	if t.due == 0 || mono < t.due {
		t.due = mono
	}
}

// drive lets the application drive its Neli.
func (p *proc) drive() {
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	switch p.style {
	case byBackground:
		if _, err := p.Background(p.task); err != nil {
			p.w.Fatal(err)
		}
	case byLead:
		p.w.ending.Go(func() { _ = p.Lead(ctx, p.lead) })
	case byPulse:
		p.pulsing.Go(p.pulses)
	default:
		panic("no such style")
	}
}

// pulses is the application of goNELI's README. It stops pulsing before Close is called, as
// Close's documentation requires.
func (p *proc) pulses() {
	for !p.leaving.Load() {
		leads, err := p.Pulse(time.Second)
		if err != nil {
			return
		}
		if leads {
			p.task()
		}
	}
}

func (p *proc) task() {
	p.enter(false)
	defer p.leave()
	time.Sleep(100 * time.Millisecond)
	p.linger()
}

// lead is the application of a program that uses Lead.
func (p *proc) lead(ctx context.Context, l neli.Leadership) error {
	a := &p.app
	a.lock.Lock()
	if a.fns[l.Role] {
		p.w.violated("%s: the function of role %d runs twice", p.id, l.Role)
	}
	a.fns[l.Role] = true
	t := a.work[l.Role]
	if t == nil || t.token != l.Token {
		t = &work{token: l.Token}
		a.work[l.Role] = t
	}
	t.open++
	a.lock.Unlock()
	<-ctx.Done()
	a.lock.Lock()
	t.dueBy(p.clock.Now().Mono.Add(simDrain))
	a.lock.Unlock()
	time.Sleep(p.drain)
	a.lock.Lock()
	defer a.lock.Unlock()
	t.open--
	a.fns[l.Role] = false
	return ctx.Err()
}

// barrier receives the events.
func (p *proc) barrier(e neli.Event) {
	p.enter(true)
	defer p.leave()
	p.w.say(p.id, "%v", e)
	switch e := e.(type) {
	case neli.LeaderAcquired:
		for _, t := range e.Terms {
			p.acquired(t)
			p.w.look(t.Roles)
		}
	case neli.LeaderRevoked:
		p.ended(e.Change)
		p.revoked(e)
		p.linger()
		p.workEnds(e.Change)
	case neli.LeaderFenced:
		p.ended(e.Change)
		p.fenced(e.Change)
		p.linger()
	}
}

func (p *proc) acquired(t neli.Term) {
	a := &p.app
	again := 0
	a.lock.Lock()
	for _, role := range t.Roles {
		if token, ok := a.told[role]; ok {
			p.w.violated("%s acquired role %d with token %d while it had token %d", p.id, role, t.Token, token)
		}
		a.told[role] = t.Token
		if p.style != byLead {
			a.work[role] = &work{token: t.Token, open: 1}
		}
		if a.lapsed[role] {
			again++
		}
		delete(a.lapsed, role)
	}
	a.lock.Unlock()
	p.w.opts.Seen.add("a new term after a lapse", again)
	p.w.acquired(p, t)
}

// ended asserts that each term that ends had begun, and that this run allows the reason.
func (p *proc) ended(c neli.Change) {
	a, w := &p.app, p.w
	a.lock.Lock()
	defer a.lock.Unlock()
	for _, t := range c.Terms {
		for _, role := range t.Roles {
			if token, ok := a.told[role]; !ok || token != t.Token {
				w.violated("%s was told of the end of role %d token %d, and had %d (%v)", p.id, role, t.Token, token, ok)
			}
			delete(a.told, role)
		}
	}
	w.opts.Seen.Count("ended: " + c.Reason.String())
	p.lets(c.Reason)
	if c.Reason == neli.ReasonRebalanced && (w.nomination != neli.NominationOpen || w.stays && !p.shares.Load()) {
		w.violated("%s was rebalanced, which is off", p.id)
	}
	if w.profile == calm && !p.leaving.Load() && c.Reason != neli.ReasonRebalanced && c.Reason != neli.ReasonUnassigned {
		w.violated("%s lost terms though nothing is wrong: %v", p.id, c.Reason)
	}
}

func (p *proc) revoked(e neli.LeaderRevoked) {
	p.app.lock.Lock()
	defer p.app.lock.Unlock()
	now := p.clock.Now()
	for _, t := range e.Terms {
		for _, role := range t.Roles {
			if w := p.app.work[role]; w != nil && w.token == t.Token && !e.Deadline.IsZero() {
				w.dueBy(now.Mono.Add(time.Until(e.Deadline)))
			}
		}
	}
}

func (p *proc) fenced(c neli.Change) {
	p.app.lock.Lock()
	for _, t := range c.Terms {
		for _, role := range t.Roles {
			p.app.lapsed[role] = c.Reason == neli.ReasonLapsed
			if p.IsLeaderOf(role) {
				p.w.violated("%s leads role %d, and was told that it is fenced", p.id, role)
			}
		}
	}
	p.app.lock.Unlock()
	p.workEnds(c)
}

func (p *proc) workEnds(c neli.Change) {
	if p.style == byLead {
		return
	}
	p.app.lock.Lock()
	defer p.app.lock.Unlock()
	for _, t := range c.Terms {
		for _, role := range t.Roles {
			delete(p.app.work, role)
		}
	}
}

// enter asserts that the barrier and the task never run at the same time. Events that are
// delivered together were all due when the first one was.
func (p *proc) enter(event bool) {
	a := &p.app
	a.lock.Lock()
	if a.inside && !p.crashed.Load() {
		p.w.violated("%s: barrier and task run side by side", p.id)
	}
	a.inside = true
	now := p.clock.Now().Mono
	if !event || now != a.returned {
		a.since = now
	}
	if !event { // time in the barrier counts as alive
		a.busy = now
	}
	stopped := a.stopped
	a.lock.Unlock()
	if stopped != nil {
		<-stopped
	}
}

func (p *proc) leave() {
	p.app.lock.Lock()
	defer p.app.lock.Unlock()
	p.app.inside = false
	p.app.returned = p.clock.Now().Mono
	p.app.busy = 0
}

// linger is the part of the user's code that may take a long time.
func (p *proc) linger() {
	a := &p.app
	a.lock.Lock()
	revoked := false
	for _, w := range a.work {
		revoked = revoked || w.due > 0
	}
	until, stopped := a.hungUntil, a.stopped
	a.lock.Unlock()
	if revoked {
		time.Sleep(p.drain)
	}
	time.Sleep(time.Until(until))
	if stopped != nil {
		<-stopped
	}
}

// hang makes the application hang from its next step on.
func (a *app) hang(d time.Duration) {
	a.lock.Lock()
	defer a.lock.Unlock()
	a.hungUntil = time.Now().Add(d)
}

func (a *app) stop() {
	a.lock.Lock()
	defer a.lock.Unlock()
	if a.stopped == nil {
		a.stopped = make(chan struct{})
	}
}

func (a *app) goOn() {
	a.lock.Lock()
	defer a.lock.Unlock()
	if a.stopped != nil {
		close(a.stopped)
		a.stopped = nil
	}
}

// stoppedUntil returns a channel that is closed when the suspension ends; nil: there is none.
func (a *app) stoppedUntil() chan struct{} {
	a.lock.Lock()
	defer a.lock.Unlock()
	return a.stopped
}

// left describes the terms that the application was told of, and was not told the end of.
func (a *app) left() string {
	a.lock.Lock()
	defer a.lock.Unlock()
	if len(a.told) == 0 || a.inside {
		return ""
	}
	var roles []int
	for role := range a.told {
		roles = append(roles, role)
	}
	slices.Sort(roles)
	return fmt.Sprint("roles ", roles[:min(10, len(roles))])
}

// has reports whether the application has a role, works for it, or is in a callback.
func (a *app) has(role int) bool {
	a.lock.Lock()
	defer a.lock.Unlock()
	_, told := a.told[role]
	w := a.work[role]
	return told || w != nil && w.open > 0 || a.inside
}

// hungFor returns for how long the task has run.
func (p *proc) hungFor() time.Duration {
	p.app.lock.Lock()
	defer p.app.lock.Unlock()
	if p.app.busy == 0 {
		return 0
	}
	return p.clock.Now().Mono.Sub(p.app.busy)
}
