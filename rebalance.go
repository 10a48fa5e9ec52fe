package neli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/nonexclusive"
)

// Moved is what Rebalance has handed over to one member.
type Moved struct {
	Name  string `json:"name"`  // the member's Config.Name
	ID    string `json:"id"`    // its Member.ID
	Roles int    `json:"roles"` // how many roles it leads now that this process led
}

// Rebalance hands over at once those roles of this process that exceed its share, or for which another
// member is preferred. It returns what was handed over, once nothing is left to move. Balance does the
// same by itself, but waits for two seconds first, and tolerates a difference of a tenth; DisableRebalance
// turns that off. If all leaders call Rebalance, one after the other, members that are preferred alike then
// differ by one role at most; the command neli rebalance asks all of them.
//
// Roles move as for balance, only to members that answer and have been present for 15 s (sooner in a new
// group). A batch has at most 10,000 roles, or the member's MaxPrepares if it has Config.Prepare. The next
// batch begins when the outcome of the last is known. Each role moves after the application has finished
// (LeaderRevoked, ReasonRebalanced). A role that was transferred by hand, or has moved in the last 30 s, stays.
// While this process's own records take too long to come back, it waits for up to a minute.
//
// At the end of ctx no further batch begins. Rebalance then returns what has been handed over so far, and
// the cause of ctx. It also returns ErrClosed or the error that ended this Neli, and ErrObserver for an
// observer. It needs Mode Exclusive and Open nomination. It must not be called from a barrier or task, nor
// from a function of Lead, for which it would wait.
func (n *Neli) Rebalance(ctx context.Context) ([]Moved, error) {
	if ctx == nil {
		return nil, errors.New("neli: Rebalance: ctx is nil")
	}
	if n.set.Mode != Exclusive || n.set.Nomination != NominationOpen {
		return nil, errors.New("neli: Rebalance: needs Mode Exclusive and Nomination Open")
	}
	if n.set.Observer {
		return nil, ErrObserver
	}
	if err := n.ended(); err != nil {
		return nil, fmt.Errorf("neli: Rebalance: %w", err)
	}
	to, err := n.core.elector.Rebalance(ctx)
	var moved []Moved
	for id, roles := range to {
		moved = append(moved, Moved{Name: n.core.elector.Known(id).Name, ID: id, Roles: roles})
	}
	slices.SortFunc(moved, func(a, b Moved) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	if err = n.outcome(err); err != nil {
		return moved, fmt.Errorf("neli: Rebalance: %w", err)
	}
	return moved, nil
}

// V and T: the arithmetic that decides whether this process leads. All other code exists to keep V true.

// threshold is T, and which reading of V's age is compared with it.
type threshold struct {
	t         time.Duration
	exclusive bool
}

func (s *settings) threshold() threshold {
	return threshold{t: s.HeartbeatTimeout, exclusive: s.Mode == Exclusive}
}

// young is the rule of the paper: 0 ≤ now − v < T. Exclusive mode takes the longest reading of the
// age, and ends leadership somewhat before T (lease.Young). Non-exclusive mode, which prefers an
// overlap to a gap, takes the monotonic clock's.
func (h threshold) young(now, v clock.Instant) bool {
	if h.exclusive {
		return lease.Young(now, v, h.t)
	}
	return nonexclusive.Young(now, v, h.t)
}

// left returns how long leadership lasts from now on without newer evidence than v: 0 if it is over.
func (h threshold) left(now, v clock.Instant) time.Duration {
	switch {
	case !h.young(now, v):
		return 0
	case h.exclusive:
		return clock.Hold(h.t) - now.Age(v)
	}
	return h.t - now.Mono.Sub(v.Mono)
}

// noToken is the token of a term in non-exclusive mode.
const noToken = nonexclusive.NoToken
