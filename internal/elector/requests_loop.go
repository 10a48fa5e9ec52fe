package elector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
)

// Ask sends a request to the holder of the role, once that is known, and waits for the outcome
// until ctx is done. The end of ctx does not withdraw the request.
func (e *Elector) Ask(ctx context.Context, r Request) error {
	ctx, end := context.WithCancelCause(ctx)
	var call sync.WaitGroup
	defer call.Wait()
	defer end(nil)
	unknown := sync.OnceFunc(func() {
		// The holder may never become known. A call shows whether the log accepts letters.
		call.Go(func() {
			if err := e.Call(ctx); errors.Is(err, ErrDenied) {
				end(err)
			}
		})
	})
	done := make(chan error, 1)
	id, err := e.begin(ctx, done, func(n *Node, now clock.Instant) (int, error) {
		id, err := n.Ask(r, now)
		if errors.Is(err, ErrUnknown) {
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
func (e *Elector) NextRequest(ctx context.Context) (Request, bool) {
	for {
		select {
		case <-e.done:
			return Request{}, false
		default:
		}
		e.mu.Lock()
		r, ok := e.node.requests.next()
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

// Accept notes that the application accepts a request, and reports whether it may be carried out.
func (e *Elector) Accept(r Request) (ok bool) {
	select {
	case <-e.done:
		return false
	default:
	}
	e.do(func(n *Node, _ clock.Instant) { ok = n.Accept(r) })
	return ok
}

// Answer reports the result of a request, unless Run has returned.
func (e *Elector) Answer(r Request, s lease.Stage, text string) {
	select {
	case <-e.done:
		return
	default:
	}
	e.do(func(n *Node, _ clock.Instant) { n.requests.answer(r, s, text) })
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

// begin starts something with an Outcome as soon as that is possible.
func (e *Elector) begin(ctx context.Context, done chan error, start func(*Node, clock.Instant) (int, error)) (id int, err error) {
	news, stop := e.Notify()
	defer stop()
	look := time.NewTicker(lookEvery) // time alone may make it possible
	defer look.Stop()
	for {
		if err = ErrUnknown; e.opened() {
			e.do(func(n *Node, now clock.Instant) {
				if id, err = start(n, now); err == nil {
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

// outcome waits for an Outcome until ctx is done, and then gives up with an error that says how
// far it had come.
func (e *Elector) outcome(ctx context.Context, id int, done chan error) error {
	select {
	case err := <-done:
		return err
	case <-e.done:
		return ErrEnded
	case <-ctx.Done():
		e.mu.Lock()
		delete(e.waiting, id)
		how := e.node.requests.giveUp(id)
		e.mu.Unlock()
		return fmt.Errorf("%w: %s", context.Cause(ctx), how)
	}
}

// Ask sends a request to the holder of the role, and returns the number of its Outcome. The error
// is ErrUnknown, ErrVacant or ErrLeadsAlready, or says what is wrong with the request.
func (n *Node) Ask(r Request, now clock.Instant) (id int, err error) {
	if len(n.shards) == 0 {
		return 0, ErrUnknown
	}
	p, u := n.local(r.Role)
	switch token, g := p.standing(u, now); {
	case token == unknownToken:
		return 0, ErrUnknown
	case token == vacantToken:
		return 0, ErrVacant
	case g.Session.Process == n.set.Process:
		return 0, errOwnRole
	case r.Verb == lease.Transfer && n.members.means(r.To, g.Session.Process, g.Name):
		return 0, ErrLeadsAlready
	default:
		return n.requests.ask(r, g.Session.Process, n.route, now)
	}
}

// Call asks all members to announce themselves, and returns the number of its Outcome.
func (n *Node) Call(now clock.Instant) (id int, err error) {
	if len(n.shards) == 0 {
		return 0, ErrUnknown
	}
	return n.requests.call(n.route, now)
}

// Accept notes that the application accepts a request, and reports whether it may be carried out.
func (n *Node) Accept(r Request) bool {
	p, u := n.local(r.Role)
	return n.requests.accept(r, p.holds.tokenOf(u))
}

// route chooses the log for a letter: the log with the role or, if all logs have all roles, one
// after the other.
func (n *Node) route(role, tries int) int {
	logs := n.channels
	if role != anyRole {
		p, _ := n.local(role)
		logs = p.logs
	}
	return logs[(n.reachable()+tries)%len(logs)].index
}

// requested handles a request to this process.
func (n *Node) requested(log int, o int64, r *lease.Record, now clock.Instant) {
	if n.set.Observer {
		return
	}
	refused, why := n.requests.requested(log, o, r, func() tenure {
		t := tenure{takes: n.set.Requests, nominated: n.set.Nominated, known: r.Request.Role < n.desired.Roles, token: -1}
		if t.known {
			home, u := n.local(r.Request.Role)
			h := home.holds.at(u)
			_, leads := home.lease.Leads(u, now)
			t.leads = leads && h != nil && home.hands.of(u) == nil
			// A late request may concern an earlier term: its sender had not read the Claim of
			// this one.
			t.earlier = t.leads && home.lease.Earlier(log, r.Read, h.token)
			t.token = home.holds.tokenOf(u)
		}
		return t
	}, now)
	if refused != nil {
		n.note(slog.LevelInfo, "request refused", append(refused.Describe(), "error", why)...)
	}
	n.correspond(now)
	n.ready.Requested = n.ready.Requested || len(n.requests.inbox.waiting) > 0
}

// correspond sends the letters of requests and reports their outcomes. It cannot answer a request
// from a log that was read again since; its sender will repeat it.
func (n *Node) correspond(now clock.Instant) {
	letters, ended := n.requests.take()
	n.ready.Outcomes = append(n.ready.Outcomes, ended...)
	for _, l := range letters {
		p := n.channels[l.log]
		if !p.begun || l.kind == lease.Pong && p.log.Offset() < l.ping {
			continue
		}
		r := p.word(l.kind, now)
		r.To, r.Ping, r.Request, r.Answer = l.to, l.ping, l.request, l.answer
		if l.kind == lease.Pong {
			r.Hello = n.announcement(n.wants(now))
		}
		p.append(now, r)
	}
}
