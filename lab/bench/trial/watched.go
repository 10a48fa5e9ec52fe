package trial

import (
	"context"
	"syscall"
	"time"

	"github.com/goneli/neli/lab/bench/measure"
	"github.com/goneli/neli/lab/bench/member"
	"github.com/goneli/neli/lab/bench/peers"
	"github.com/goneli/neli/lab/pause"
	"github.com/goneli/neli/lab/witness"
)

// Groups with a sentinel beside their members. The sentinel is a process of its own, too.

// guarded starts the group's sentinel if it does not run, and returns its socket.
func (g *Group) guarded(params member.Params) (socket string, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.sentinel == nil {
		s, err := peers.StartSentinel(g.place, params)
		if err != nil {
			return "", err
		}
		g.sentinel = &s
	}
	return g.sentinel.Socket, nil
}

// tenured waits until the leader's term is old enough for a sentinel to release it. Then it returns
// the leader, at a random moment of its beats.
func (g *Group) tenured(ctx context.Context) (*candidate, error) {
	for {
		c, err := g.anyMoment(ctx, g.system.Beat)
		if err != nil {
			return nil, err
		}
		var since time.Duration
		g.note(func() { run, _ := c.track.Last(); since = run.First.After })
		// The sentinel's count begins when it has read the Claim, which may be somewhat later.
		left := since + g.system.Lease*11/10 - witness.Now()
		if left <= 0 {
			return c, nil
		}
		if err := pause.For(ctx, left); err != nil {
			return nil, err
		}
	}
}

// killWatched kills a leader while its sentinel lives. No process is started meanwhile, since the
// fail-over takes milliseconds.
func (g *Group) killWatched(ctx context.Context, r *Results) error {
	old, err := g.tenured(ctx)
	if err != nil {
		return err
	}
	g.calm.Lock()
	defer g.calm.Unlock()
	if err := g.sample(ctx, fine(g.system)); err != nil {
		return err
	}
	if err := pause.For(ctx, restful); err != nil {
		return err
	}
	took, err := g.succeeded(ctx, old)
	if err != nil {
		return err
	}
	r.take(func() { r.Killed = append(r.Killed, took) })
	return g.sample(ctx, g.every)
}

// restful is the pause between a command to all members and a fault.
const restful = 50 * time.Millisecond

// strikeDead kills a candidate, and returns the time just before.
func (g *Group) strikeDead(c *candidate) (time.Duration, error) {
	g.note(func() { c.out = true })
	return c.signal(syscall.SIGKILL)
}

// succeeded kills a leader, and returns the milliseconds until another member leads.
func (g *Group) succeeded(ctx context.Context, old *candidate) (float64, error) {
	at, err := g.strikeDead(old)
	if err != nil {
		return 0, err
	}
	_, next, err := g.awaitLeader(ctx, at, old)
	g.remove(old)
	return measure.Milliseconds(next.First.After - at), err
}
