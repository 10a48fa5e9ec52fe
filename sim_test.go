package neli_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/internal/sim"
)

// simulated lets internal/sim make processes with clocks of its own.
var simulated = sim.Options{New: func(m sim.Machine, cfg neli.Config, barrier neli.Barrier) (*neli.Neli, error) {
	return neli.NewOn(neli.Machine{Clock: m.Clock, Random: m.Random, NewID: func() string { return m.ID }}, cfg, barrier)
}}

// TestSimulation runs whole processes under an adversary: see internal/sim.
func TestSimulation(t *testing.T) { sim.Suite(t, simSeeds, simulated) }

// TestSmallSimulation does the same on a majority of small logs: see internal/sim.
func TestSmallSimulation(t *testing.T) { sim.SuiteSmall(t, smallSeeds, simulated) }

// TestSimulationRepeats: a seed that fails is worth little if it does not fail
// again. What the runtime orders as it likes, timers that coincide, keeps some runs
// from being the same to the microsecond.
func TestSimulationRepeats(t *testing.T) {
	const seeds = 20
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
	require.GreaterOrEqual(t, same, simRepeats)
}
