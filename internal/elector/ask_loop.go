package elector

import (
	"context"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
)

// Ask sends a request to the process that holds the role, once it is known who does, and waits
// for the outcome until ctx is done, whose end does not call it off.
func (e *Elector) Ask(ctx context.Context, r Request) error {
	done := make(chan error, 1)
	id, err := e.begin(ctx, done, func(n *Node, now clock.Instant) (int, error) { return n.Ask(r, now) })
	if err != nil {
		return err
	}
	return e.outcome(ctx, id, done, (*Node).GiveUpAsk)
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
