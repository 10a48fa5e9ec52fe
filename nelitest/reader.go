package nelitest

import (
	"errors"
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
