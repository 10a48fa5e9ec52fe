package shards

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/internal/inside"
)

// Pauses after a Prepare that failed for a shard that this process leads.
const firstPause, longestPause = time.Second, 30 * time.Second

var errNoRun = errors.New("shards: Prepare: Run has ended")

// run is one call of Run.
type run struct {
	s      *Set
	n      *neli.Neli
	ctx    context.Context
	places chan struct{}  // taken by Prepares of shards that this process leads
	failed atomic.Bool    // a Serve has returned an error
	calls  sync.WaitGroup // of Prepare and Abandon
	over   bool           // under Set.mu: nothing begins any more
}

func newRun(ctx context.Context, s *Set, n *neli.Neli) *run {
	return &run{s: s, n: n, ctx: ctx, places: make(chan struct{}, max(n.Config().MaxPrepares, 1))}
}

// end gives up what is prepared, and waits for the functions.
func (r *run) end() {
	r.s.mu.Lock()
	r.over = true
	stays := slices.Collect(maps.Values(r.s.stays))
	r.s.mu.Unlock()
	for _, st := range stays {
		st.tell(calledOff, ErrClosing)
	}
	r.calls.Wait()
	r.s.mu.Lock()
	r.s.run = nil
	r.s.mu.Unlock()
}

// why returns the error for an end with a cause of package neli.
func (r *run) why(cause error) error {
	of := ErrMoved
	switch {
	case errors.Is(cause, neli.ErrFenced):
		of = ErrLost
	case r.n.State() != neli.StateLive || r.ctx.Err() != nil || r.failed.Load():
		of = ErrClosing
	}
	return fmt.Errorf("%w: %w", of, cause)
}

// lead is one term of one role.
func (r *run) lead(ctx context.Context, l neli.Leadership) error {
	err := r.serve(ctx, l)
	if err != nil && ctx.Err() == nil {
		r.failed.Store(true) // so Lead ends all functions
	}
	return err
}

func (r *run) serve(ctx context.Context, l neli.Leadership) error {
	if l.Role >= r.s.count {
		if r.s.f.Rest == nil {
			return fmt.Errorf("shards: SetRoles: %w", r.s.check(l.Role))
		}
		return r.s.f.Rest(ctx, l)
	}
	var mine *stay // prepared for this term
	for pause := firstPause; ctx.Err() == nil; {
		st, do, changed := r.s.ask(l.Role, led)
		if st == nil {
			return nil // Lead panicked
		}
		switch do {
		case serve:
			return st.serve(ctx, l)
		case prepare:
			mine = st
			go st.prepareLed()
		case adopt:
			mine = st
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
		if err := st.failure(); err != nil && st == mine && ctx.Err() == nil {
			inside.Warn(r.n, "nobody serves a shard: its Prepare failed, trying again", "role", l.Role, "error", err, "after", pause)
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			}
			pause = min(2*pause, longestPause)
		}
	}
	if mine != nil {
		mine.tell(over, r.why(context.Cause(ctx)))
	}
	return nil
}
