package shards

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/goneli/neli"
)

// Causes with which contexts end (see context.Cause), and reasons for Abandon. errors.Is also finds the cause from
// package neli, if there is one: ErrRevoked, ErrFenced, ErrNotLed, or the cause of Run's context.
var (
	// ErrMoved: another process serves the shard next: for balance, by Transfer, StepDown or SetRoles, or because this
	// process is unhealthy. Finish and return: the lease is kept until then, for neli.Config.DrainTimeout at most.
	ErrMoved = errors.New("shards: the shard moves to another process")
	// ErrClosing: Close was called, Run's context is done, or a Serve has returned an error. Finish and return, as
	// with ErrMoved.
	ErrClosing = errors.New("shards: this process is closing")
	// ErrLost: the term is over, and another process may serve the shard already. Stop at once.
	ErrLost = errors.New("shards: the shard is lost")
)

// Functions are what a Set calls, from several goroutines at once, but never at once for the same shard.
type Functions struct {
	// Prepare gets this process ready to serve a shard, while another process serves it or nobody does. ctx ends when
	// what it has prepared is to be given up, or after Serve has returned; so a goroutine that Prepare starts
	// may keep the shard up to date until then.
	//
	// If Prepare returns an error, panics or ends its goroutine, the shard is not ready, and Prepare must have cleaned
	// up. neli.Config.Prepare says what another process that leads the shard does then. If this process leads it, a
	// warning is logged, and Prepare is called again after 1 s, doubling to 30 s.
	//
	// At most neli.Config.MaxPrepares calls run at once for shards that others lead, and as many for shards that
	// this process leads; the latter have no PrepareTimeout. A call that goes on after the end of ctx keeps its place
	// until it returns. Default: nothing to prepare.
	Prepare func(ctx context.Context, shard int) error

	// Serve serves shard l.Role until ctx ends, by ErrMoved, ErrClosing or ErrLost. As in neli.Lead, ctx.Err asks
	// the clock: check it after each wait and before each action. If Serve returns nil before ctx ends, this
	// process keeps the shard, and calls Serve again only in its next term. If it returns an error before that, Run
	// ends. A panic ends the process. Required.
	Serve func(ctx context.Context, l neli.Leadership) error

	// Abandon gives up what Prepare has prepared, if Serve will not be called for it. why wraps ErrMoved, ErrClosing or
	// ErrLost. Each call has a goroutine of its own; a panic ends the process. Default: nothing to give up.
	Abandon func(shard int, why error)

	// Rest is Lead's function for roles beyond the shards, from the number of shards on. Default: there are none.
	Rest func(ctx context.Context, l neli.Leadership) error
}

// Set is the shards of a service in one process. Its methods may be called concurrently.
type Set struct {
	f        Functions
	count    int
	prepares bool

	mu     sync.Mutex // guards the fields below, and the stays; never held during calls of other code
	stays  map[int]*stay
	run    *run          // nil: Run is not at work
	begins chan struct{} // closed when the first Run begins; then nil
}

// New returns a Set of shards 0 to count−1. count must be the same at all processes and never change, or keys would
// get other shards. New fails if count is below 1, or Serve is missing.
func New(count int, f Functions) (*Set, error) {
	switch {
	case count < 1:
		return nil, fmt.Errorf("shards: New: count is %d: must be at least 1", count)
	case f.Serve == nil:
		return nil, errors.New("shards: New: Functions.Serve is nil: set it to what serves a shard")
	}
	s := &Set{f: f, count: count, prepares: f.Prepare != nil, stays: map[int]*stay{}, begins: make(chan struct{})}
	if f.Prepare == nil {
		s.f.Prepare = func(context.Context, int) error { return nil }
	}
	if f.Abandon == nil {
		s.f.Abandon = func(int, error) {}
	}
	return s, nil
}

// State returns what this process does for a shard. Serving is no check of the lease: ask the Leadership. State
// fails if there is no such shard.
func (s *Set) State(shard int) (State, error) {
	if err := s.check(shard); err != nil {
		return Idle, fmt.Errorf("shards: State: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.stays[shard]; st != nil {
		return st.state, nil
	}
	return Idle, nil
}

func (s *Set) check(shard int) error {
	if shard < 0 || shard >= s.count {
		return fmt.Errorf("shard %d: must be between 0 and %d, as neli.Slot(key, %d) is", shard, s.count-1, s.count)
	}
	return nil
}

// Prepare is the function for neli.Config.Prepare. It calls Functions.Prepare when earlier calls for the shard have
// returned, and does nothing for roles of Rest. It waits until the first Run begins, so that a shard that is offered
// between neli.New and Run is not left unprepared. It returns the error of Functions.Prepare or the cause of ctx, and
// fails if there is no such shard, or Run has ended.
func (s *Set) Prepare(ctx context.Context, role int) error {
	if role >= s.count && s.f.Rest != nil {
		return nil
	}
	if err := s.check(role); err != nil {
		return fmt.Errorf("shards: Prepare: %w", err)
	}
	for ctx.Err() == nil {
		st, do, changed := s.ask(role, offered)
		switch {
		case st == nil && changed == nil:
			return errNoRun
		case do == prepare:
			st.follow(ctx)
			return st.prepare()
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	return context.Cause(ctx)
}

// Run serves the shards that n leads, until ctx is done. It calls n.Lead, and returns what that returns. n needs Mode
// Exclusive, as many Roles as there are shards (more with Rest), and the Set's Prepare as Config.Prepare; the error says
// what is wrong. The end of ctx ends each Serve at once, and gives the shards up unprepared. To hand them over prepared, call
// n.Close while Run is at work. Run waits, without limit, until all functions have returned. One Run of a Set works at a time.
func (s *Set) Run(ctx context.Context, n *neli.Neli) error {
	if err := s.checkRun(ctx, n); err != nil {
		return fmt.Errorf("shards: Run: %w", err)
	}
	r := newRun(ctx, s, n)
	s.mu.Lock()
	busy := s.run != nil
	if !busy {
		s.run = r
		if s.begins != nil {
			close(s.begins)
			s.begins = nil
		}
	}
	s.mu.Unlock()
	if busy {
		return errors.New("shards: Run: another Run of this Set is at work")
	}
	defer r.end()
	return n.Lead(ctx, r.lead)
}

func (s *Set) checkRun(ctx context.Context, n *neli.Neli) error {
	if ctx == nil {
		return errors.New("ctx is nil")
	}
	if n == nil {
		return errors.New("n is nil")
	}
	cfg, roles := n.Config(), n.Stats().Roles
	switch {
	case cfg.Mode != neli.Exclusive:
		return errors.New("Config.Mode is NonExclusive: must be Exclusive, so that a shard has one leader")
	case roles < s.count, roles > s.count && s.f.Rest == nil:
		return fmt.Errorf("Config.Roles is %d: must be %d, the number of shards; or greater, with Functions.Rest", roles, s.count)
	case cfg.Prepare == nil && s.prepares && cfg.Nomination == neli.NominationOpen:
		return errors.New("Config.Prepare is nil: set it to the Set's Prepare, or no shard arrives prepared")
	}
	return nil
}
