package neli

import (
	"context"
	"errors"
	"fmt"

	"github.com/goneli/neli/internal/inside"
)

func init() {
	inside.CallMembers = func(ctx context.Context, n any) error { return n.(*Neli).callMembers(ctx) }
	inside.Warn = func(n any, text string, args ...any) { n.(*Neli).set.logger.Warn(text, args...) }
	inside.Partitions = func(n any) int { return n.(*Neli).core.terms.Partitions() }
	inside.Roles = func(n any) int { return int(n.(*Neli).roles.Load()) }
}

// callMembers is inside.CallMembers.
func (n *Neli) callMembers(ctx context.Context) error {
	switch {
	case ctx == nil:
		return errors.New("neli: CallMembers: ctx is nil")
	case n.core.elector == nil:
		return errors.New("neli: CallMembers: needs Mode Exclusive")
	}
	err := n.ended()
	if err == nil {
		err = n.core.elector.Call(ctx)
	}
	if err = n.outcome(err); err != nil {
		return n.set.secrets.Err(fmt.Errorf("neli: CallMembers: %w", err))
	}
	return nil
}
