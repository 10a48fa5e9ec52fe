package elector

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
)

// A call is a Ping to everyone: each member answers with its next Hello, which it says earlier
// for that. An observer that has just started learns in this way who is there. The caller does
// not announce itself, so nobody takes it for a member.

// calling is a call of this process's that has not been read back.
type calling struct {
	id     int
	log    int        // where it was sent last
	sent   clock.Time // monotonic
	tries  int
	failed error // of the newest record, if it may not be in the log
}

// Call sends a call, and returns a number by which its Outcome is known.
func (n *Node) Call(now clock.Instant) (id int, err error) {
	switch {
	case len(n.parts) == 0:
		return 0, ErrUnknown
	case len(n.calls) >= maxAsks:
		return 0, errTooMany
	}
	n.moves.lastID++
	c := &calling{id: n.moves.lastID}
	n.calls = append(n.calls, c)
	n.sendCall(c, now)
	return c.id, nil
}

// sendCall sends a call in one log after the other: all members read all logs.
func (n *Node) sendCall(c *calling, now clock.Instant) {
	p := n.logs[(n.reachable()+c.tries)%len(n.logs)]
	c.tries++
	c.log, c.sent = p.index, now.Mono
	if !p.begun {
		return
	}
	r := n.word(p, lease.Ping, now)
	r.To = lease.Everyone
	n.append(p, now, r)
}

// called takes note that an own call was read: the members read it, too.
func (n *Node) called(p *partition) {
	n.calls = slices.DeleteFunc(n.calls, func(c *calling) bool {
		if c.log != p.index {
			return false
		}
		n.ready.Outcomes = append(n.ready.Outcomes, Outcome{c.id, nil})
		return true
	})
}

// callFailed takes note that an own call may not be in its log.
func (n *Node) callFailed(p int, err error) {
	for _, c := range n.calls {
		if c.log == p {
			c.failed = err
		}
	}
}

// repeatCalls sends again the calls that were not read back.
func (n *Node) repeatCalls(now clock.Instant) {
	for _, c := range n.calls {
		if now.Mono >= c.sent.Add(askEvery) {
			n.sendCall(c, now)
		}
	}
}

// repeatDue is when repeatCalls has something to do, if nothing changes.
func (n *Node) repeatDue() clock.Time {
	next := clock.Mono(clock.Never)
	for _, c := range n.calls {
		next = min(next, c.sent.Add(askEvery))
	}
	return next
}

// answerCall lets the next Hello come earlier, because a process asks who is there. A group of
// up to twenty answers at once. A larger one spreads its answers, so that all together say
// twenty a second, however many call and however often. A Hello that was put off on purpose
// waits.
func (n *Node) answerCall(o int64, live bool, now clock.Instant) {
	t, size := &n.timing, n.members.size()
	if !live || t.announceAt.Sub(t.saidAt) > helloPeriod(size) {
		return
	}
	at := t.saidAt.Add(helloGap(size))
	if size > 20 {
		at = max(at, now.Mono.Add(time.Duration(hash(n.set.Process, uint64(o))%uint64(helloGap(size)))))
	}
	t.announceAt = min(t.announceAt, max(at, now.Mono))
}

// giveUpCall forgets a call, and says how far it had come.
func (n *Node) giveUpCall(id int) string {
	i := slices.IndexFunc(n.calls, func(c *calling) bool { return c.id == id })
	if i < 0 {
		return "it has come back by now"
	}
	c := n.calls[i]
	n.calls = slices.Delete(n.calls, i, i+1)
	if c.failed != nil {
		return "the log does not take it: " + c.failed.Error()
	}
	return "it has not come back from the log"
}

// Call asks all members to announce themselves, and returns once that can be read by them.
func (e *Elector) Call(ctx context.Context) error {
	done := make(chan error, 1)
	id, err := e.begin(ctx, done, (*Node).Call)
	if err != nil {
		return err
	}
	return e.outcome(ctx, id, done, (*Node).giveUpCall)
}

// begin begins something that has an Outcome as soon as it is possible.
func (e *Elector) begin(ctx context.Context, done chan error, start func(*Node, clock.Instant) (int, error)) (id int, err error) {
	news, stop := e.Notify()
	defer stop()
	look := time.NewTicker(lookEvery) // some of it time alone makes known
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

// outcome waits for an Outcome until ctx is done, and then gives up with a word on how far it had
// come.
func (e *Elector) outcome(ctx context.Context, id int, done chan error, giveUp func(*Node, int) string) error {
	select {
	case err := <-done:
		return err
	case <-e.done:
		return ErrEnded
	case <-ctx.Done():
		e.mu.Lock()
		delete(e.waiting, id)
		how := giveUp(e.node, id)
		e.mu.Unlock()
		return fmt.Errorf("%w: %s", context.Cause(ctx), how)
	}
}
