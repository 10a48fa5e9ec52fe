package neli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
)

// Moved is what Rebalance has handed over to one member.
type Moved struct {
	Name  string `json:"name"`  // the member's Config.Name
	ID    string `json:"id"`    // its Member.ID
	Roles int    `json:"roles"` // how many roles it leads now that this process led
}

// Rebalance hands over at once those roles of this process that exceed its share, or for which another
// member is preferred. It returns what was handed over, once nothing is left to move. Balance does the
// same by itself, but only after two looks, and tolerates a difference of a tenth; DisableRebalance turns
// that off. If all leaders call Rebalance, one after the other, members that are preferred alike then
// differ by one role at most; the command neli rebalance asks all of them.
//
// Roles move as for balance: in batches of at most 10,000, to a member with Config.Prepare at most its
// MaxPrepares, the next batch when the last is decided; each role after the application has finished
// (LeaderRevoked, ReasonRebalanced); only to members that have been present for 15 s and answer. A role
// that was transferred by hand, or has moved in the last 30 s, stays. While
// this process's own records take too long to come back, it waits for up to a minute.
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
