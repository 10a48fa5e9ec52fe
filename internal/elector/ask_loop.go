package elector

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
)

// Ask sends a request to the process that holds the role, once it is known who does, and waits
// for the outcome until ctx is done, whose end does not call it off.
func (e *Elector) Ask(ctx context.Context, r Request) error {
	done := make(chan error, 1)
	id, err := e.send(ctx, r, done)
	if err != nil {
		return err
	}
	select {
	case err = <-done:
		return err
	case <-e.done:
		return ErrEnded
	case <-ctx.Done():
		e.mu.Lock()
		delete(e.waiting, id)
		how := e.node.GiveUpAsk(id)
		e.mu.Unlock()
		return fmt.Errorf("%w: %s", context.Cause(ctx), how)
	}
}

// send begins a request as soon as it is known who holds the role.
func (e *Elector) send(ctx context.Context, r Request, done chan error) (id int, err error) {
	news, stop := e.Notify()
	defer stop()
	look := time.NewTicker(lookEvery) // some of it time alone makes known
	defer look.Stop()
	for {
		if err = ErrUnknown; e.opened() {
			e.do(func(n *Node, now clock.Instant) {
				if id, err = n.Ask(r, now); err == nil {
					e.waiting[id] = done
				}
			})
		}
		if !errors.Is(err, ErrUnknown) {
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

// opened reports whether the logs were found.
func (e *Elector) opened() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.node.logs) > 0
}

// NextRequest waits for a request that the application is to decide on, which then has to be
// answered. It returns false when ctx is done or Run has returned.
func (e *Elector) NextRequest(ctx context.Context) (Request, bool) {
	for {
		select {
		case <-e.done:
			return Request{}, false
		default:
		}
		e.mu.Lock()
		r, ok := e.node.NextRequest()
		e.mu.Unlock()
		if ok {
			return r, true
		}
		select {
		case <-e.asked:
		case <-e.done:
			return Request{}, false
		case <-ctx.Done():
			return Request{}, false
		}
	}
}

// Accept says that the application accepts a request, and reports whether it may be carried
// out.
func (e *Elector) Accept(r Request) (ok bool) {
	select {
	case <-e.done:
		return false
	default:
	}
	e.do(func(n *Node, now clock.Instant) { ok = n.Accept(r, now) })
	return ok
}

// Answer says what has become of a request, unless Run has returned.
func (e *Elector) Answer(r Request, s lease.Stage, text string) {
	select {
	case <-e.done:
		return
	default:
	}
	e.do(func(n *Node, now clock.Instant) { n.Answer(r, s, text, now) })
}
