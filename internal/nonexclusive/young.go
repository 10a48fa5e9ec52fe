package nonexclusive

import (
	"time"

	"github.com/goneli/neli/internal/clock"
)

// Young is the rule of the paper: 0 ≤ now − v < T. The monotonic clock measures the age.
// Exclusive mode takes the longest reading of all clocks; this mode prefers an overlap to a
// lapse, so it takes one clock's.
func Young(now, v clock.Instant, t time.Duration) bool {
	age := now.Mono.Sub(v.Mono)
	return 0 <= age && age < t
}
