package peers

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/goneli/neli/peers/internal/wire"
	"github.com/goneli/neli/peers/smalllog"
)

// connection takes records to one incarnation of a log. They are queued, and then in flight until they are answered.
type connection struct {
	id       smalllog.ID
	patience time.Duration
	queue    chan *outgoing

	mu      sync.Mutex
	ended   bool
	seq     uint64
	pending []*outgoing // in the order of sending
}

// outgoing is a record to be appended.
type outgoing struct {
	value  []byte
	ballot int64
	at     time.Time // when enqueue was called
	seq    uint64
	report func(error)
}

// maxQueue is how many records may wait to be sent. A process usually has only a few in flight.
const maxQueue = 256

var (
	errDown = errors.New("no connection")
	errFull = errors.New("too many records are waiting to be sent")
	errLate = errors.New("waited too long to be sent: dropped")
)

func newConnection(b *wire.Begin, patience time.Duration) *connection {
	c := &connection{patience: patience, queue: make(chan *outgoing, maxQueue)}
	copy(c.id[:], b.GetIncarnation())
	return c
}

// enqueue takes a record to send. If it returns nil, the record is reported exactly once.
func (c *connection) enqueue(o *outgoing) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return errDown
	}
	select {
	case c.queue <- o:
		return nil
	default:
		return errFull
	}
}

// send sends records until ctx is done. It drops records that have waited longer than stale,
// since what they say about the log is too old.
func (c *connection) send(ctx context.Context, stream clientStream, stale time.Duration) {
	for {
		var o *outgoing
		select {
		case <-ctx.Done():
			return
		case o = <-c.queue:
		}
		if time.Since(o.at) > stale {
			o.report(errLate)
			continue
		}
		c.mu.Lock()
		c.seq++
		o.seq = c.seq
		c.pending = append(c.pending, o)
		c.mu.Unlock()
		m := &wire.Append{Seq: o.seq, Incarnation: c.id[:], Value: o.value, Ballot: o.ballot}
		if stream.Send(&wire.ToHost{Kind: &wire.ToHost_Append{Append: m}}) != nil {
			return // Recv returns the reason
		}
	}
}

// answered reports a record that the host has appended or refused.
func (c *connection) answered(seq uint64, err error) {
	c.mu.Lock()
	var found *outgoing
	for i, o := range c.pending {
		if o.seq == seq {
			found = o
			c.pending = append(c.pending[:i], c.pending[i+1:]...)
			break
		}
	}
	c.mu.Unlock()
	if found != nil {
		found.report(err)
	}
}

// overdue reports whether a record has waited too long for its answer. If so, the host is heard
// but does not get what is sent, as in a one-way cut.
func (c *connection) overdue(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.pending) > 0 && now.Sub(c.pending[0].at) > c.patience
}

// fail reports all records as possibly not in the log. From now on, enqueue refuses records.
func (c *connection) fail(err error) {
	c.mu.Lock()
	c.ended = true
	left := c.pending
	c.pending = nil
	c.mu.Unlock()
	for _, o := range left {
		o.report(err)
	}
	for {
		select {
		case o := <-c.queue:
			o.report(err)
		default:
			return
		}
	}
}
