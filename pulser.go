package neli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"
)

// Pulse tells the library that the application is alive, delivers pending events to the barrier on
// this goroutine, and reports whether this process leads at least one role. A leader gets true at
// once. Any other process waits for up to timeout to become leader. Pulse uses no network. True
// holds for that instant: after a wait or long work, check IsLeader again before you act.
//
// Call Pulse again before MaxPulseInterval has passed; at two thirds of it a warning is logged. The
// time that the barrier takes in Pulse does not count. The error is not nil only when this Neli is
// closed (ErrClosed), has failed permanently, or is an observer (ErrObserver).
//
// While another goroutine is in Pulse, Background or Lead, Pulse waits for its turn, but no longer
// than timeout. Only the goroutine whose turn it is counts as a sign of life, so a hanging task of
// Background is noticed even if other goroutines pulse.
//
// Let one goroutine pulse and do the work. When leadership is revoked, the barrier runs on one
// goroutine that pulses, and does not wait for work on others: if there are several, make the
// barrier wait for it.
func (n *Neli) Pulse(timeout time.Duration) (bool, error) {
	if n.glance() {
		return true, nil
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	return n.pulse(timer.C, nil)
}

// PulseCtx is Pulse that waits until ctx ends instead of for a timeout. The end of ctx is not an
// error; a nil ctx is one.
func (n *Neli) PulseCtx(ctx context.Context) (bool, error) {
	if ctx == nil {
		return false, errors.New("neli: PulseCtx: ctx is nil")
	}
	if n.glance() {
		return true, nil
	}
	return n.pulse(nil, ctx.Done())
}

// glance is the short cut for a leader with no pending events.
func (n *Neli) glance() bool {
	if n.core.terms.Fresh() || n.owed.Load() || !n.contends.Load() {
		return false
	}
	at, ok := n.leadsAny()
	if ok && len(n.driver) == 0 { // if there is another driver, it may hang, and this pulse must not hide that
		n.lastPulse.Store(int64(at.Mono))
	}
	return ok
}

func (n *Neli) pulse(timeout <-chan time.Time, stop <-chan struct{}) (bool, error) {
	if n.set.Observer {
		return false, ErrObserver
	}
	if !n.takeTurn(pulsing, timeout, stop, nil) {
		n.awake()
		return n.IsLeader(), n.ended()
	}
	defer func() { <-n.driver }()
	n.heard()
	n.contend()
	return n.turn(timeout, stop)
}

// takeTurn makes the caller the driver. It takes a free turn even when time is up: Pulse(0) must
// deliver pending events, and a Lead or Pulser that ends before it had a turn must give up all
// roles. With a nil done, the caller waits for its turn even when this Neli has ended.
func (n *Neli) takeTurn(call string, timeout <-chan time.Time, stop, done <-chan struct{}) bool {
	select {
	case n.driver <- struct{}{}:
		n.turnOf.Store(&call)
		return true
	default:
	}
	defer n.waitsForTurn(call)()
	select {
	case n.driver <- struct{}{}:
		n.turnOf.Store(&call)
		return true
	case <-timeout:
	case <-stop:
	case <-done:
	}
	return false
}

// waitsForTurn logs a line if the caller waits long for its turn. A Pulse that waits for another
// Pulse is not reported, since goroutines may pulse in turn. The returned function ends the wait.
func (n *Neli) waitsForTurn(call string) (over func()) {
	timer := time.AfterFunc(longTurn, func() {
		of := n.turnOf.Load()
		if of == nil || call == pulsing && (*of == pulsing || n.pulseWaits.Swap(true)) {
			return
		}
		n.set.logger.Warn("a call waits for another one to end: only one of Lead, Background and Pulse works at a time",
			"call", call, "waits_for", *of)
	})
	return func() { timer.Stop() }
}

// pulsing is the name of a call of Pulse or PulseCtx.
const pulsing = "Pulse"

// calledAt appends to a method's name the place where the application called that method. Only the
// method itself may call calledAt. If a go statement called the method, that place is not known.
func calledAt(method string) string {
	if _, file, line, ok := runtime.Caller(2); ok && !strings.HasSuffix(file, ".s") {
		return fmt.Sprintf("%s (%s:%d)", method, filepath.Base(file), line)
	}
	return method
}

// longTurn is how long a call waits for its turn before that is logged.
const longTurn = time.Second

// turn delivers events and waits, as the driver, until this process leads or the wait is over.
func (n *Neli) turn(timeout <-chan time.Time, stop <-chan struct{}) (bool, error) {
	for {
		// Read the end before delivering, so that the events that belong to it are delivered first.
		err := n.ended()
		if n.core.terms.Fresh() || n.owed.Load() || n.told > 0 { // Fresh is not enough: a lapse may show only when the clock is read
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

// wait waits for news, as the driver. It returns false when time is up.
func (n *Neli) wait(timeout <-chan time.Time, stop <-chan struct{}) bool {
	closing := n.closing
	if n.State() != StateLive {
		closing = nil // the end is known already
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
	// Await blocks until the loop has ended. It returns nil after Close of this Pulser,
	// ErrClosed after Close of its Neli, or the error that ended the Neli.
	Await() error
	// Close ends the loop, gives up leadership and waits until the task and the barrier have
	// returned. In non-exclusive mode this process leaves the group at once and leads on for the
	// time that Neli.Close documents, so that another member leads by then; the task is called
	// until that time is over. Close must not be called from the task or the barrier. It is
	// idempotent and returns nil.
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

// Background pulses on a goroutine of its own, and calls task there again and again while this
// process leads at least one role. The task should do a small piece of work and return: leadership
// is checked before each call, and no event is delivered while it runs. A task that does not
// return for MaxPulseInterval costs the leadership (ReasonNotPulsed), after a warning in the log at
// two thirds of that time: for longer work take Lead.
//
// The check holds for the instant of the call. If the task waits before it acts, the process may
// have been suspended meanwhile and another one may lead: check IsLeader or IsLeaderOf after each
// wait.
//
// The goroutine ends with Close of the Pulser or of this Neli, or when this Neli fails. If the
// task ends the goroutine (runtime.Goexit), leadership is given up in an orderly way and Await
// returns an error. Background returns ErrClosed, or the error that ended this Neli, if it has
// ended, and ErrObserver for an observer. While another Pulser or Lead is at work, the goroutine waits
// for its turn, and logs after a second which call it waits for.
func (n *Neli) Background(task func()) (Pulser, error) {
	if task == nil {
		return nil, errors.New("neli: Background: task is nil")
	}
	if n.set.Observer {
		return nil, ErrObserver
	}
	if err := n.ended(); err != nil {
		return nil, err
	}
	if n.State() != StateLive {
		return nil, ErrClosed
	}
	stop, call := make(chan struct{}), calledAt("Background")
	p := &pulser{done: make(chan struct{}), stop: sync.OnceFunc(func() { close(stop) }), err: errTaskGoexit}
	go func() {
		defer close(p.done)
		p.err = n.background(call, task, stop)
	}()
	return p, nil
}

func (n *Neli) background(call string, task func(), stop <-chan struct{}) error {
	if !n.takeTurn(call, nil, stop, n.done) {
		return n.ended()
	}
	defer func() { <-n.driver }()
	ended := true // by a panic, or by runtime.Goexit
	defer func() {
		if !ended {
			return
		}
		if r := recover(); r != nil {
			panic(r) // this ends the process at once
		}
		n.stepDown(nil)
	}()
	err := n.work(task, stop)
	ended = false
	return err
}

var errTaskGoexit = errors.New("neli: Background: the task ended its goroutine")

// work drives this Neli until stop is closed or the Neli has ended.
func (n *Neli) work(task func(), stop <-chan struct{}) error {
	for {
		select {
		case <-stop:
			n.stepDown(task)
			return nil
		default:
		}
		n.contend()
		leads, err := n.turn(nil, stop)
		if err != nil {
			return err
		}
		if leads {
			n.task(task)
		}
	}
}

// task calls the task of Background.
func (n *Neli) task(task func()) {
	n.inTask.Store(true)
	defer n.inTask.Store(false)
	task()
}

// stepDown gives up all roles, as the driver, and returns when none is left. The arbiter limits
// the time by its deadlines. In non-exclusive mode the process leads on until others have taken
// over, and task, if not nil, works until then.
func (n *Neli) stepDown(task func()) {
	n.resign()
	for n.ended() == nil {
		n.deliver()
		switch {
		case n.told == 0:
			return
		case task != nil && n.set.Mode == NonExclusive && n.IsLeader():
			n.heard()
			n.task(task)
		default:
			n.wait(nil, nil)
		}
	}
	n.deliver()
}
