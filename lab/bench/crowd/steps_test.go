package crowd

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/goneli/neli/internal/tally"
)

func TestSteps(t *testing.T) {
	of := func(count uint64, buckets ...uint64) (t tally.Timing) {
		t.Count = count
		copy(t.Buckets[:], buckets)
		return t
	}
	for name, c := range map[string]struct {
		of      tally.Timing
		over    uint64
		longest time.Duration
	}{
		"none":                  {of(0), 0, 5 * time.Millisecond},
		"a bound is not over":   {of(6, 1, 0, 0, 0, 5), 0, 100 * time.Millisecond},
		"in the next bucket":    {of(9, 1, 0, 0, 0, 5, 3), 3, 250 * time.Millisecond},
		"longer than any bound": {of(7, 4, 1), 2, 0},
	} {
		s := Steps{Timing: c.of}
		assert.Equal(t, c.over, over(c.of, 100*time.Millisecond), name)
		assert.Equal(t, c.longest, s.Longest(), name)
	}
	assert.Equal(t, "9 steps, 0.00 s in all, ≤ 5ms: 1, ≤ 100ms: 5, ≤ 250ms: 3", Steps{Timing: of(9, 1, 0, 0, 0, 5, 3)}.String())
}
