package clientgo

import (
	"context"
	"time"
)

var _ = before // needs a cluster: it is compiled only

// wait waits for d, or until ctx is done.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
