// Package pause waits for a time or for a condition, or until a context ends. It polls;
// callers that are told when something changes need it not.
package pause

import (
	"context"
	"time"
)

// every is how often Until asks.
const every = 100 * time.Millisecond

// For waits for d. It returns nil when d has passed, and the context's cause if the context
// ended before.
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

// Until reports whether cond was true at once or came true within that time. It asks ten
// times a second on the caller's goroutine, and never again once the context has ended.
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
