package kafkalog

import (
	"context"
	"time"
)

// A client in a group may stand still for ever, too: it reaches no broker, though they are
// there. The group hears nothing of it, and gives its partitions to others. Nothing has to come
// from a group for hours, so the client is asked.

// reachEvery is how often a client in a group is asked whether it reaches a broker, at the most
// seldom. It is a quarter of T, or of stillAfter, if that is less.
const reachEvery = 5 * time.Second

// reachability decides whether a client stands still: again and again it has reached nobody,
// while another client has. Times do not count, as a process may be suspended between them.
type reachability struct {
	every time.Duration
	most  int // how often in a row it may reach nobody: one that was replaced in vain twice as often
	first int // what most is at first
	vain  int // how often in a row it did
}

func newReachability(t time.Duration) *reachability {
	patience := max(t, stillAfter)
	r := &reachability{every: min(patience/4, reachEvery)}
	r.first = int((patience + r.every - 1) / r.every)
	r.most = r.first
	return r
}

// reached takes note that the client has reached a broker.
func (r *reachability) reached() { r.vain, r.most = 0, r.first }

// nobody takes note that no client has reached one.
func (r *reachability) nobody() { r.vain = 0 }

// alone takes note that the client has reached nobody, unlike another one, and returns true if
// it is to be replaced.
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

// replace makes another consumer, which is in no group yet. It goes on trying until ctx is done.
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
	g.closing.Wait() // of the one before
	old := g.consumer
	g.consumer = next
	g.closing.Go(func() { _ = old.Close() }) // it may wait for a broker
}
