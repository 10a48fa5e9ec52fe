package elector

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/observe"
	"github.com/goneli/neli/internal/elector/request"
	"github.com/goneli/neli/internal/elector/roster"
	"github.com/goneli/neli/internal/elector/watch"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/term"
)

// Set changes what the application wants. It does not block, because its caller may hold locks:
// the goroutine that calls Tick carries out the consequences. It wakes those who wait for the term
// table, since fewer roles may be wanted.
func (e *Elector) Set(d Desired) {
	release := e.hold()
	e.node.Set(d, e.now())
	release()
	watch.Ring(e.wakeup)
	e.terms.Ring()
}

// Collect returns the changes for the application and marks them as delivered.
func (e *Elector) Collect() []term.Change {
	defer e.hold()()
	changes := e.terms.Collect(e.now())
	for _, c := range changes {
		if c.Kind == term.Lost || c.Kind == term.Gone {
			e.node.Delivered(c.Units)
			watch.Ring(e.wakeup)
		}
	}
	return changes
}

// Peek returns the losses and revocations that Collect would return, and marks none.
func (e *Elector) Peek() []term.Change {
	defer e.hold()()
	return e.terms.Peek(e.now())
}

// Drained tells the Elector that the application has finished the work of the terms with this
// token on these units. It frees the lock after each SurveyRoles of them. When it returns, the check
// finds none of them led.
func (e *Elector) Drained(units []int, token int64) {
	for some := range slices.Chunk(units, observe.SurveyRoles) {
		e.do(func(n *Node, now clock.Instant) { n.Drained(some, token, now) })
	}
}

// Transfer hands a role over to a member, and waits for the outcome until ctx is done. The end of
// ctx does not stop the hand-over.
func (e *Elector) Transfer(ctx context.Context, role int, to string) error {
	done := make(chan error, 1)
	var err error
	id := 0
	e.do(func(n *Node, now clock.Instant) {
		if id, err = n.Transfer(role, to, now); err == nil {
			e.waiting[id] = done
		}
	})
	if err != nil {
		return err
	}
	return e.await(ctx, id, done)
}

// await waits for an Outcome until ctx is done.
func (e *Elector) await(ctx context.Context, id int, done <-chan error) error {
	select {
	case err := <-done:
		return err
	case <-e.done:
		return ErrEnded
	case <-ctx.Done():
		e.mu.Lock()
		delete(e.waiting, id)
		e.mu.Unlock()
		return context.Cause(ctx)
	}
}

// Rebalance shares the roles out until none is left to move or ctx is done. It returns how many each process has taken.
func (e *Elector) Rebalance(ctx context.Context) (moved map[string]int, err error) {
	done := make(chan error, 1)
	id := 0
	e.do(func(n *Node, now clock.Instant) {
		id = n.requests.Number()
		n.mover.Share(id, now)
		e.waiting[id] = done
	})
	err = e.await(ctx, id, done)
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.node.mover.Leave(id), err
}

// Idle reports whether this process holds, claims and releases nothing.
func (e *Elector) Idle() bool {
	defer e.look()()
	return !e.node.Busy(e.now())
}

// Stats returns the counters and the current state.
func (e *Elector) Stats() (s Stats) {
	var c observe.Headcount
	e.slices(func(n *Node, now clock.Instant) (more bool) {
		if more = c.Next(n.observed, n.desired.Roles, now); !more {
			s = n.stats(&c, now)
		}
		return more
	})
	return s
}

// slices calls look for one slice of the roles after the other, until look returns false. It frees
// the lock between two slices, so that this process's other work does not wait for all of them. It
// returns the time of the last look.
func (e *Elector) slices(look func(*Node, clock.Instant) (more bool)) (now clock.Instant) {
	for more := true; more; {
		func() {
			defer e.look()()
			now = e.now()
			more = look(e.node, now)
		}()
	}
	return now
}

// Holder returns the known holder of a role, and the time of the answer.
func (e *Elector) Holder(role int) (lease.Grantee, clock.Instant, bool) {
	defer e.look()()
	now := e.now()
	g, ok := e.node.observed.Holder(role, now)
	return g, now, ok
}

// Known returns what a process has said of itself; empty if nothing is known of it.
func (e *Elector) Known(process string) roster.Member {
	defer e.look()()
	if process == e.node.set.Process {
		return e.node.self(false, clock.Instant{})
	}
	return e.node.members.Known(process)
}

// Members returns the known members, and the time of the answer.
func (e *Elector) Members() ([]roster.Member, clock.Instant) {
	defer e.look()()
	now := e.now()
	return e.node.Members(now), now
}

// Standings returns what is known of all roles, and the time of the answer. An answer for which the
// lock was taken several times serves all calls for T/50, since it takes long and many may ask.
func (e *Elector) Standings() ([]observe.Standing, clock.Instant) {
	return e.album.Survey(clock.LongestStep(e.node.set.T), e.now, func(v *observe.Survey) (slices int, at clock.Instant) {
		at = e.slices(func(n *Node, now clock.Instant) bool { slices++; return v.Next(n.observed, n.desired.Roles, now) })
		return slices, at
	})
}

// Changes returns what has changed since w's last call, and the time of the answer. It takes no lock
// if nothing has changed, nor if another Watch has looked since, less than T/50 ago.
func (e *Elector) Changes(w *observe.Watcher) ([]observe.Standing, clock.Instant) {
	if w.Knows(e.bell.Turn()) {
		return nil, e.now()
	}
	p := e.album.Picture(func(p *observe.Picture) bool { return p.IsOf(e.bell.Turn(), clock.LongestStep(e.node.set.T), e.now()) },
		func(last *observe.Picture) *observe.Picture {
			p := observe.NewPicture(e.bell.Turn())
			e.slices(func(n *Node, now clock.Instant) bool { return p.Next(n.observed, n.desired.Roles, last, now) })
			return p
		})
	return w.Compare(p), e.now()
}

// Notify returns a channel that gets an element whenever Holder, Members or Standings may have
// changed, and a function that ends that.
func (e *Elector) Notify() (<-chan struct{}, func()) { return e.bell.Notify() }

// Shares returns how many roles each process holds, the largest number first.
func (e *Elector) Shares() []observe.Share {
	defer e.look()()
	return e.node.observed.Shares(e.node.nameOf, e.now())
}

// Ask sends a request to the holder of the role, once that is known, and waits for the outcome
// until ctx is done. The end of ctx does not withdraw the request.
func (e *Elector) Ask(ctx context.Context, r request.Request) error {
	ctx, end := context.WithCancelCause(ctx)
	var call sync.WaitGroup
	defer call.Wait()
	defer end(nil)
	unknown := sync.OnceFunc(func() {
		// The holder may never become known. A call shows whether the log accepts letters.
		call.Go(func() {
			if err := e.Call(ctx); errors.Is(err, request.ErrDenied) {
				end(err)
			}
		})
	})
	done := make(chan error, 1)
	id, err := e.begin(ctx, done, func(n *Node, now clock.Instant) (int, error) {
		id, err := n.Ask(r, now)
		if errors.Is(err, request.ErrUnknown) {
			unknown()
		}
		return id, err
	})
	if err != nil {
		return err
	}
	return e.outcome(ctx, id, done)
}

// opened reports whether the logs were found.
func (e *Elector) opened() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.node.channels) > 0
}

// NextRequest waits for a request for the application, which must answer it. It returns false when
// ctx is done or Run has returned.
func (e *Elector) NextRequest(ctx context.Context) (request.Request, bool) {
	for {
		select {
		case <-e.done:
			return request.Request{}, false
		default:
		}
		e.mu.Lock()
		r, ok := e.node.requests.Next()
		e.mu.Unlock()
		if ok {
			return r, true
		}
		select {
		case <-e.asked:
		case <-e.done:
			return request.Request{}, false
		case <-ctx.Done():
			return request.Request{}, false
		}
	}
}

// Accept notes that the application accepts a request, and reports whether it may be carried out.
func (e *Elector) Accept(r request.Request) (ok bool) {
	select {
	case <-e.done:
		return false
	default:
	}
	e.do(func(n *Node, _ clock.Instant) { ok = n.Accept(r) })
	return ok
}

// Answer reports the result of a request, unless Run has returned.
func (e *Elector) Answer(r request.Request, s lease.Stage, text string) {
	select {
	case <-e.done:
		return
	default:
	}
	e.do(func(n *Node, _ clock.Instant) { n.requests.Answer(r, s, text) })
}

// Call asks all members to announce themselves, and returns once they can read the call.
func (e *Elector) Call(ctx context.Context) error {
	done := make(chan error, 1)
	id, err := e.begin(ctx, done, (*Node).Call)
	if err != nil {
		return err
	}
	return e.outcome(ctx, id, done)
}

// begin starts a request or call as soon as that is possible, and returns the number of its Outcome.
func (e *Elector) begin(ctx context.Context, done chan error, start func(*Node, clock.Instant) (int, error)) (id int, err error) {
	news, stop := e.Notify()
	defer stop()
	look := time.NewTicker(lookEvery) // time alone may make it possible
	defer look.Stop()
	for {
		if err = request.ErrUnknown; e.opened() {
			e.do(func(n *Node, now clock.Instant) {
				if id, err = start(n, now); err == nil {
					e.waiting[id] = done
				}
			})
		}
		if !errors.Is(err, request.ErrUnknown) {
			return id, err
		}
		select {
		case <-news:
		case <-look.C:
		case <-e.done:
			return 0, ErrEnded
		case <-ctx.Done():
			return 0, fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
}

// outcome waits for an Outcome until ctx is done. Then it gives up with an error that says how far
// the request or call had come.
func (e *Elector) outcome(ctx context.Context, id int, done chan error) error {
	select {
	case err := <-done:
		return err
	case <-e.done:
		return ErrEnded
	case <-ctx.Done():
		e.mu.Lock()
		delete(e.waiting, id)
		how := e.node.requests.GiveUp(id)
		e.mu.Unlock()
		return fmt.Errorf("%w: %s", context.Cause(ctx), how)
	}
}
