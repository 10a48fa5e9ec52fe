package announce

import (
	"time"

	"github.com/goneli/neli/internal/clock"
)

// at is an instant after the beginning of a test.
func at(d time.Duration) clock.Instant {
	return clock.Alike(time.Hour + d)
}

func yes() bool { return true }

func no() bool { return false }

func after(d time.Duration) func() time.Duration { return func() time.Duration { return d } }
