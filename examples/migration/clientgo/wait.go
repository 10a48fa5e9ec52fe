package clientgo

import (
	"context"
	"time"
)

var _ = before // only compiled, since it needs a cluster

// wait waits for d, or until ctx is done.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
