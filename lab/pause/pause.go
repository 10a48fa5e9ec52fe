// Package pause waits for a time or for a condition, or until a context ends. It polls, so it is only for callers
// that nothing notifies of a change.
package pause

import (
	"context"
	"time"
)

// every is how often Until calls cond.
const every = 100 * time.Millisecond

// For waits for d. It returns nil when d has passed, or the context's cause if the context ends first.
func For(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Until reports whether cond is true at once or becomes true within that time. It calls cond at once, and then ten
// times a second until the context ends, on the caller's goroutine.
func Until(ctx context.Context, within time.Duration, cond func() bool) bool {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for !cond() {
		if For(ctx, every) != nil {
			return false
		}
	}
	return true
}
