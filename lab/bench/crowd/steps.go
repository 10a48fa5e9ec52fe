package crowd

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/internal/tally"
)

// Steps is how long members' electors held their locks, in the buckets of tally.Bounds.
type Steps struct {
	tally.Timing
	Over uint64 // steps longer than a fiftieth of T, or than the next lower bound if that is not a bound
}

// stepsOf adds up the steps of some members.
func stepsOf(members []*neli.Neli, t time.Duration) (s Steps) {
	for _, n := range members {
		steps := n.Stats().Steps
		s.Count, s.Sum = s.Count+steps.Count, s.Sum+steps.Sum
		before := uint64(0)
		for i, b := range steps.Buckets {
			s.Buckets[i] += b.Count - before
			before = b.Count
		}
	}
	s.Over = over(s.Timing, t/50)
	return s
}

func (s *Steps) add(more Steps) {
	s.Count, s.Sum, s.Over = s.Count+more.Count, s.Sum+more.Sum, s.Over+more.Over
	for i, n := range more.Buckets {
		s.Buckets[i] += n
	}
}

// over is the number of steps that took longer than a limit.
func over(t tally.Timing, limit time.Duration) uint64 {
	n := t.Count
	for i, bound := range tally.Bounds {
		if bound <= limit {
			n -= t.Buckets[i]
		}
	}
	return n
}

// Longest is the lowest bound that no step exceeded, 0 if there is none.
func (s Steps) Longest() time.Duration {
	for i, bound := range slices.Backward(tally.Bounds[:]) {
		if over(s.Timing, bound) > 0 {
			if i+1 < len(tally.Bounds) {
				return tally.Bounds[i+1]
			}
			return 0
		}
	}
	return tally.Bounds[0]
}

// String lists the buckets that are not empty.
func (s Steps) String() string {
	parts := []string{fmt.Sprintf("%d steps, %.2f s in all", s.Count, s.Sum)}
	for i, bound := range tally.Bounds {
		if n := s.Buckets[i]; n > 0 {
			parts = append(parts, fmt.Sprintf("≤ %v: %d", bound, n))
		}
	}
	return strings.Join(parts, ", ")
}
