package nelitest

import (
	"math"
	"time"
)

// poller is the waiting part of Poll.
type poller struct {
	c        *client
	ready    func() bool   // there is something to return
	wakeup   chan struct{} // buffered, for one element
	waiting  bool
	deadline time.Duration
	ev       event // the next check whether the wait is over
}

func (p *poller) init(c *client, ready func() bool) {
	*p = poller{c: c, ready: ready, wakeup: make(chan struct{}, 1)}
	p.ev = c.event(p)
}

// until returns the time at which a timeout that begins now ends.
func (p *poller) until(timeout time.Duration) time.Duration {
	now := p.c.b.now()
	if timeout > math.MaxInt64-now {
		return math.MaxInt64
	}
	return now + max(timeout, 0)
}

// wait returns when there is something to return, when the deadline has passed, or when the client has
// ended, but never while the member is suspended. The caller holds the lock; wait releases it meanwhile.
func (p *poller) wait(deadline time.Duration) {
	b := p.c.b
	for {
		p.c.gate()
		if p.c.over() || p.ready() || b.now() >= deadline {
			return
		}
		p.waiting, p.deadline = true, deadline
		b.sooner(&p.ev, deadline)
		b.mu.Unlock()
		<-p.wakeup
		b.mu.Lock()
	}
}

// notify ends the wait if one of these reasons holds.
func (p *poller) notify() {
	switch l := &p.c.b.line; {
	case !p.waiting:
	case l.running && !l.woke:
		p.fire()
	default:
		p.c.b.sooner(&p.ev, 0)
	}
}

func (p *poller) fire() {
	switch {
	case !p.waiting:
	case p.c.m.suspended && !p.c.dead:
		// The end of the suspension notifies.
	case p.c.over() || p.ready() || p.c.b.now() >= p.deadline:
		p.waiting = false
		p.wakeup <- struct{}{}
		p.c.b.line.woke = true
	default:
		p.c.b.sooner(&p.ev, p.deadline)
	}
}
