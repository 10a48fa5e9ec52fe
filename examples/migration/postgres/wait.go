package postgres

import (
	"context"
	"time"
)

// wait waits for d, and returns the error of ctx if that is done first.
func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
