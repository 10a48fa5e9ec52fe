package offer

import (
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
)

const (
	testT    = 5 * time.Second
	testWait = time.Second
	testFor  = 10 * time.Second
)

// at is an instant after the beginning of a test.
func at(d time.Duration) clock.Instant {
	return clock.Alike(time.Hour + d)
}

func prepares(most int) lease.Prepares { return lease.Prepares{Most: most, For: testFor} }
