package nelitest

import (
	"math"
	"time"
)

// poller is the waiting side of a Poll.
type poller struct {
	c        *client
	ready    func() bool   // there is something to return
	wakeup   chan struct{} // has room for one
	waiting  bool
	deadline time.Duration
	ev       event // the next look at whether the wait is over
}

func (p *poller) init(c *client, ready func() bool) {
	*p = poller{c: c, ready: ready, wakeup: make(chan struct{}, 1)}
	p.ev = c.event(p)
}

// until returns when a timeout that begins now ends.
func (p *poller) until(timeout time.Duration) time.Duration {
	now := p.c.b.now()
	if timeout > math.MaxInt64-now {
		return math.MaxInt64
	}
	return now + max(timeout, 0)
}

// wait returns when there is something to return, the deadline has passed, or the
// client is over; never while the member is suspended. The lock is held when it
// is called and when it returns, not in between.
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

// notify ends the wait if there is reason to.
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
