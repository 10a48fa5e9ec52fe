package report

import (
	"time"

	"github.com/goneli/neli/internal/clock"
)

// at is an instant after the beginning of a test.
func at(d time.Duration) clock.Instant {
	return clock.Alike(time.Hour + d)
}
