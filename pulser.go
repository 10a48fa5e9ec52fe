package neli

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Pulse says that the application is alive, delivers what has happened to the
// barrier on this goroutine, and reports whether this process leads at least one
// role. A leader gets true at once; anyone else waits for up to timeout to become
// one. It touches no network. True holds for that instant: whoever waits, or works for long,
// asks IsLeader again before the deed.
//
// Call it again before MaxPulseInterval has passed. The error is not nil only
// when this Neli is closed (ErrClosed) or has failed for good.
//
// While another goroutine is in Pulse, Background or Lead, Pulse waits for its
// turn, for no longer than timeout; it is that goroutine that is heard of then, so
// that a task of Background that hangs is replaced whoever else pulses.
//
// Let one goroutine pulse and work. When leadership is to be given up, the barrier runs
// on one of those that pulse, and the work that others have in hand is not waited for:
// with several of them, let the barrier wait for the others' work.
func (n *Neli) Pulse(timeout time.Duration) (bool, error) {
	if n.glance() {
		return true, nil
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	return n.pulse(timer.C, nil)
}

// PulseCtx is Pulse with the end of ctx in place of a timeout. The end of ctx is
// no error.
func (n *Neli) PulseCtx(ctx context.Context) (bool, error) {
	if ctx == nil {
		return false, errors.New("neli: PulseCtx: ctx is nil")
	}
	if n.glance() {
		return true, nil
	}
	return n.pulse(nil, ctx.Done())
}

// glance is the leader's short cut: nothing to tell, and still leading.
func (n *Neli) glance() bool {
	if n.core.terms.Fresh() || n.owed.Load() || !n.contends.Load() {
		return false
	}
	at, ok := n.leadsAny()
	if ok && len(n.driver) == 0 { // or another one drives, and may hang: this pulse says nothing of it
		n.lastPulse.Store(int64(at.Mono))
	}
	return ok
}

func (n *Neli) pulse(timeout <-chan time.Time, stop <-chan struct{}) (bool, error) {
	if n.set.observer {
		return false, ErrObserver
	}
	if !n.takeTurn(timeout, stop) {
		return n.IsLeader(), n.ended()
	}
	defer func() { <-n.driver }()
	n.heard()
	n.contend()
	return n.turn(timeout, stop)
}

// takeTurn makes the caller the driver. A driver that is free is taken even if
// time is up already: Pulse(0) delivers what there is.
func (n *Neli) takeTurn(timeout <-chan time.Time, stop <-chan struct{}) bool {
	select {
	case n.driver <- struct{}{}:
		return true
	default:
	}
	select {
	case n.driver <- struct{}{}:
		return true
	case <-timeout:
	case <-stop:
	}
	return false
}

// turn delivers and waits, as the driver, until this process leads or the wait
// is over.
func (n *Neli) turn(timeout <-chan time.Time, stop <-chan struct{}) (bool, error) {
	for {
		// Asked before delivery: what ended it is then among what is delivered.
		err := n.ended()
		if n.core.terms.Fresh() || n.owed.Load() || n.told > 0 { // a lapse may show by the clock alone
			n.deliver()
		}
		n.heard()
		switch {
		case err != nil:
			return false, err
		case n.IsLeader():
			return true, nil
		case n.State() == StateClosing && n.told == 0:
			return false, ErrClosed
		}
		if !n.wait(timeout, stop) {
			return n.IsLeader(), nil
		}
	}
}

// wait waits for news, as the driver. It reports false when time is up.
func (n *Neli) wait(timeout <-chan time.Time, stop <-chan struct{}) bool {
	closing := n.closing
	if n.State() != StateLive {
		closing = nil // known already
	}
	n.waiting.Add(1)
	defer n.waiting.Add(-1)
	defer n.heard()
	select {
	case <-n.core.terms.News():
		return true
	case <-n.done:
		return true
	case <-closing:
		return true
	case <-timeout:
		return false
	case <-stop:
		return false
	}
}

// Pulser is a pulse loop in the background.
type Pulser interface {
	// Await blocks until the loop has ended. It returns nil after Close of this
	// Pulser, ErrClosed after Close of its Neli, or the error that ended that for
	// good.
	Await() error
	// Close ends the loop, gives up leadership and waits until the task and the
	// barrier have returned. In non-exclusive mode this process leaves the group at
	// once and leads on for as long as Neli.Close says, so that another member leads
	// by then; the task is called until it is over, so that somebody works. Close
	// must not be called from the task or the barrier. It is idempotent and returns
	// nil.
	Close() error
}

type pulser struct {
	stop func()
	done chan struct{}
	err  error
}

func (p *pulser) Await() error {
	<-p.done
	return p.err
}

func (p *pulser) Close() error {
	p.stop()
	<-p.done
	return nil
}

// Background pulses on a goroutine of its own and calls task there, again and
// again, for as long as this process leads at least one role. The task should do
// a small piece of work and return: it is called only after a check of
// leadership, and while it runs nothing is delivered to the barrier. A task that
// does not return for MaxPulseInterval costs the leadership.
//
// The check holds for the instant at which the task is called. If the task waits before it
// does something, the process may have been suspended meanwhile, and another one may lead:
// let it ask IsLeader, or IsLeaderOf, after each wait.
//
// The goroutine ends with Close of the Pulser or of this Neli, or when that fails
// for good. If the task ends it (runtime.Goexit), leadership is given up in order and
// Await returns an error. The error is ErrClosed or what ended this Neli, if it has ended.
func (n *Neli) Background(task func()) (Pulser, error) {
	if task == nil {
		return nil, errors.New("neli: Background: task is nil")
	}
	if n.set.observer {
		return nil, ErrObserver
	}
	if err := n.ended(); err != nil {
		return nil, err
	}
	if n.State() != StateLive {
		return nil, ErrClosed
	}
	stop := make(chan struct{})
	p := &pulser{done: make(chan struct{}), stop: sync.OnceFunc(func() { close(stop) }), err: errTaskGoexit}
	go func() {
		defer close(p.done)
		p.err = n.background(task, stop)
	}()
	return p, nil
}

func (n *Neli) background(task func(), stop <-chan struct{}) error {
	select {
	case n.driver <- struct{}{}:
	case <-stop:
		return nil
	case <-n.done:
		return n.ended()
	}
	defer func() { <-n.driver }()
	ended := true // by a panic, or by runtime.Goexit
	defer func() {
		if !ended {
			return
		}
		if r := recover(); r != nil {
			panic(r) // it ends the process: at once
		}
		n.stepDown(nil)
	}()
	err := n.work(task, stop)
	ended = false
	return err
}

var errTaskGoexit = errors.New("neli: Background: the task ended its goroutine")

// work drives until stop is closed or this Neli has ended.
func (n *Neli) work(task func(), stop <-chan struct{}) error {
	n.contend()
	for {
		select {
		case <-stop:
			n.stepDown(task)
			return nil
		default:
		}
		leads, err := n.turn(nil, stop)
		if err != nil {
			return err
		}
		if leads {
			task()
		}
	}
}

// stepDown gives up everything in order, as the driver, and returns when nothing
// is led any more. The arbiter bounds it by the deadlines that it sets. In
// non-exclusive mode others take over meanwhile, and until they have this process
// works, if there is a task still.
func (n *Neli) stepDown(task func()) {
	n.resign()
	for n.ended() == nil {
		n.deliver()
		switch {
		case n.told == 0:
			return
		case task != nil && n.set.mode == NonExclusive && n.IsLeader():
			n.heard()
			task()
		default:
			n.wait(nil, nil)
		}
	}
	n.deliver()
}
