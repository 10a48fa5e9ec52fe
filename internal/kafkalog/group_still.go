package kafkalog

import (
	"context"
	"time"
)

// A client in a group may also stand still for ever: it reaches no broker although brokers are up.
// The group then gives its partitions to other members. A healthy group may deliver nothing for
// hours, so the client is asked whether it reaches a broker.

// reachEvery is the longest interval between these questions. The interval is a quarter of T, or
// of stillAfter, if that is less.
const reachEvery = 5 * time.Second

// reachability decides when a client stands still: it has repeatedly reached no broker while
// another client has. It counts questions, not time, because a process may be suspended between
// them.
type reachability struct {
	every time.Duration
	most  int // failures in a row that are allowed; doubled after a replacement that did not help
	first int // the initial value of most
	vain  int // failures in a row
}

func newReachability(t time.Duration) *reachability {
	patience := max(t, stillAfter)
	r := &reachability{every: min(patience/4, reachEvery)}
	r.first = int((patience + r.every - 1) / r.every)
	r.most = r.first
	return r
}

// reached notes that the client has reached a broker.
func (r *reachability) reached() { r.vain, r.most = 0, r.first }

// nobody notes that no client has reached a broker.
func (r *reachability) nobody() { r.vain = 0 }

// alone notes that another client has reached a broker and this one has not, and returns true if
// this one is to be replaced.
func (r *reachability) alone() bool {
	if r.vain++; r.vain < r.most {
		return false
	}
	r.vain, r.most = 0, min(2*r.most, max(r.most, int(stillMost/r.every)))
	return true
}

// watch returns when the consumer stands still, or ctx is done.
func (g *GroupMember) watch(ctx context.Context, reach *reachability) {
	tick := time.NewTicker(reach.every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !g.wanted.Load() && reach.vain == 0 {
			continue // nothing is amiss, and nobody needs it
		}
		err := within(ctx, reach.every/2, func(ctx context.Context) error { return g.consumer.Reach(ctx, g.topic) })
		if err == nil {
			reach.reached()
			continue
		}
		err = within(ctx, reach.every/2, func(ctx context.Context) error {
			_, err := g.admin.Log(ctx, g.topic, 0)
			return err
		})
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			reach.nobody()
		case reach.alone():
			return
		}
	}
}

func within(ctx context.Context, d time.Duration, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return do(ctx)
}

// replace makes another consumer, which has not joined the group yet. It retries until ctx is
// done.
func (g *GroupMember) replace(ctx context.Context) {
	g.log.Warn("the client of the group stands still: it reaches no broker though others do; replacing it",
		"topic", g.topic)
	next, err := g.newConsumer()
	for ; err != nil; next, err = g.newConsumer() {
		if g.trouble.Due() {
			g.log.Warn("cannot replace the client of the group, retrying", "error", err)
		}
		if !pause(ctx, replaceEvery) {
			return
		}
	}
	if g.replaced != nil {
		g.replaced.Add(1)
	}
	g.closing.Wait() // for the consumer replaced before
	old := g.consumer
	g.consumer = next
	g.closing.Go(func() { _ = old.Close() }) // Close may wait for a broker
}
