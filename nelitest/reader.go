package nelitest

import (
	"errors"
	"math"
	"time"

	"github.com/goneli/neli/kafka"
)

// reader implements kafka.LogReader.
type reader struct {
	client
	poll  poller
	fetch fetcher
}

func newReader(c client) *reader {
	r := &reader{client: c}
	r.poll.init(&r.client, func() bool { return r.fetch.buffer.len() > 0 })
	r.fetch.init(&r.client, &r.poll, "error")
	return r
}

// Assign implements [kafka.LogReader].
func (r *reader) Assign(topic string, offsets []int64) error {
	r.b.mu.Lock()
	defer r.b.mu.Unlock()
	r.gate()
	if err := r.err(); err != nil {
		return err
	}
	for _, o := range offsets {
		if o < 0 && o != kafka.NotRead {
			return errors.New("nelitest: offsets are explicit, from 0")
		}
	}
	r.fetch.follow(r.b.topic(topic))
	for i, o := range offsets {
		if o != kafka.NotRead {
			r.fetch.start(i, o)
		}
	}
	return nil
}

// Poll implements [kafka.LogReader].
func (r *reader) Poll(timeout time.Duration) (kafka.Record, bool, error) {
	r.b.mu.Lock()
	defer r.b.mu.Unlock()
	r.gate()
	r.poll.wait(r.poll.until(timeout))
	if err := r.err(); err != nil {
		return kafka.Record{}, false, err
	}
	if r.fetch.buffer.len() == 0 {
		return kafka.Record{}, false, nil
	}
	it := r.fetch.take()
	return it.rec, it.err == nil, it.err
}

// Close implements [kafka.LogReader].
func (r *reader) Close() error {
	r.b.mu.Lock()
	defer r.b.mu.Unlock()
	r.gate()
	r.closed = true
	r.fetch.quit()
	r.poll.notify()
	r.dismiss(r)
	return nil
}

func (r *reader) recheck() {
	r.fetch.recheck()
	r.poll.notify()
}

func (r *reader) lose() {
	if r.fetch.topic != nil {
		r.fetch.fail(errDown)
	}
}

func (r *reader) kill() {
	r.dead = true
	r.fetch.quit()
	r.poll.notify()
}

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

// notify ends the wait if one of wait's reasons holds.
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
