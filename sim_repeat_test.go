//go:build !race

package neli_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/sim"
)

// TestSimulationRepeats: a seed that fails is worth little if it does not fail
// again. What the runtime orders as it likes, timers that coincide, keeps some runs
// from being the same to the microsecond; the race detector's scheduler draws lots on purpose.
func TestSimulationRepeats(t *testing.T) {
	const seeds, atLeast = 20, 10
	same := 0
	for seed := uint64(1); seed <= seeds; seed++ {
		var runs [2]string
		for i := range runs {
			opts := simulated
			opts.Seed, opts.Transcript = seed, func(s string) { runs[i] = s }
			sim.Run(t, opts)
		}
		if runs[0] == runs[1] {
			same++
		}
	}
	t.Logf("%d of %d seeds gave the same transcript twice", same, seeds)
	require.GreaterOrEqual(t, same, atLeast)
}
