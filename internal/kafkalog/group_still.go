package kafkalog

import (
	"context"
	"time"
)

// A client in a group may also stand still for ever: it reaches no broker although brokers are up.
// The group then gives its partitions to other members. A healthy group may deliver nothing for
// hours, so the client is asked whether it reaches a broker.

const (
	// reachEvery is the longest interval between these questions. The interval is a quarter of T,
	// but not less than reachAgain.
	reachEvery = 5 * time.Second
	// reachAgain is the interval while the client reaches no broker. It does not grow with T: a
	// process that is not in the group leads nothing, however long the others wait for it.
	reachAgain = stillAfter / reachVain
	reachVain  = 4 // failures in a row after which a client is first replaced
)

// reachability decides when a client stands still: it has repeatedly reached no broker while
// another client has. It counts questions, not time, because a process may be suspended between
// them.
type reachability struct {
	calm  time.Duration // the interval while the client reaches a broker
	doubt bool          // the client did not reach a broker last time
	vain  int           // failures in a row while another client reached a broker
	most  int           // failures that lead to a replacement; doubled by each until a broker is reached
}

func newReachability(t time.Duration) *reachability {
	return &reachability{calm: min(max(t/4, reachAgain), reachEvery), most: reachVain}
}

// bound is how long one question may take.
func (r *reachability) bound() time.Duration { return r.calm / 2 }

// every returns the interval until the next question.
func (r *reachability) every() time.Duration {
	if r.doubt {
		return reachAgain
	}
	return r.calm
}

// reached notes that the client has reached a broker.
func (r *reachability) reached() { r.doubt, r.vain, r.most = false, 0, reachVain }

// nobody notes that no client has reached a broker.
func (r *reachability) nobody() { r.doubt, r.vain = true, 0 }

// alone notes that another client has reached a broker and this one has not, and returns true if
// this one is to be replaced.
func (r *reachability) alone() bool {
	r.doubt = true
	if r.vain++; r.vain < r.most {
		return false
	}
	// A client that stands still lets each question take its bound.
	r.vain, r.most = 0, min(2*r.most, int(stillMost/max(reachAgain, r.bound())))
	return true
}

// watch returns when the consumer stands still, or ctx is done.
func (g *GroupMember) watch(ctx context.Context, reach *reachability) {
	bound := reach.bound()
	for asked := time.Now(); pause(ctx, reach.every()-time.Since(asked)); {
		asked = time.Now()
		if !g.wanted.Load() && reach.vain == 0 {
			continue // this process needs no group, and the client has not failed
		}
		err := within(ctx, bound, func(ctx context.Context) error { return g.consumer.Reach(ctx, g.topic) })
		if err == nil {
			reach.reached()
			continue
		}
		// This takes two round trips, Reach takes one.
		err = within(ctx, 2*bound, func(ctx context.Context) error {
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

// within cancels a call after d. An expired deadline would count as a failure of the producer's
// client (lastingAdmin), but brokers may take longer than d.
func within(ctx context.Context, d time.Duration, do func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer time.AfterFunc(d, cancel).Stop()
	return do(ctx)
}

// replace makes another consumer, which has not joined the group yet. It retries until ctx is done.
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
