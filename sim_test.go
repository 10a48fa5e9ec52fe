package neli_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/internal/seeded"
	"github.com/goneli/neli/internal/sentinel"
	"github.com/goneli/neli/internal/sim"
)

// simulated lets internal/sim start processes with simulated clocks.
var simulated = sim.Options{New: func(m sim.Machine, cfg neli.Config, barrier neli.Barrier) (*neli.Neli, error) {
	return neli.NewOn(neli.Machine{Clock: m.Clock, Random: m.Random, NewID: func() string { return m.ID }}, cfg, barrier)
}}

// withSentinels is simulated with sentinels beside the members.
func withSentinels() sim.Options {
	opts := simulated
	opts.Hub = func(ctx context.Context, m sim.Machine, cfg neli.Config) *sentinel.Hub {
		return neli.SentinelHubOn(ctx, neli.Machine{Clock: m.Clock, Random: m.Random, NewID: func() string { return m.ID }}, cfg)
	}
	return opts
}

// The race detector makes everything several times slower.
var (
	// simSeeds is the default number of seeds of TestSimulation, and smallSeeds that of TestSmallSimulation.
	simSeeds, smallSeeds uint64 = 2000, 250
	// watchedSeeds is the default number of seeds of both simulations with sentinels.
	watchedSeeds uint64 = 100
	// crowdSize is the default size of TestOutage, TestScale and TestGather.
	crowdSize = sim.Size{Members: 60, Partitions: 1, Roles: 12_000}
	// restartSize is the default size of TestRestart.
	restartSize = sim.Size{Members: 50, Partitions: 1, Roles: 2_500}
)

func init() {
	if seeded.Race {
		simSeeds, smallSeeds, watchedSeeds = 20, 5, 5
		crowdSize = sim.Size{Members: 12, Partitions: 1, Roles: 1_000}
		restartSize = sim.Size{Members: 12, Partitions: 1, Roles: 1_000}
	}
}

// TestSimulation runs whole processes under an adversary: see internal/sim.
func TestSimulation(t *testing.T) { sim.Suite(t, simSeeds, simulated) }

// TestSmallSimulation does the same on a majority of small logs: see internal/sim.
func TestSmallSimulation(t *testing.T) { sim.SuiteSmall(t, smallSeeds, simulated) }

// TestSentinelSimulation and TestSmallSentinelSimulation do the same with sentinels beside the
// members: see internal/sim.
func TestSentinelSimulation(t *testing.T) { sim.Suite(t, watchedSeeds, withSentinels()) }

func TestSmallSentinelSimulation(t *testing.T) { sim.SuiteSmall(t, watchedSeeds, withSentinels()) }

// TestSimulationRepeats runs seeds twice, because a seed that fails is of use only if it fails
// again. Timers that coincide fire in any order, which keeps some runs from being the same to the
// microsecond. The race detector schedules at random on purpose, so nothing is compared with it.
func TestSimulationRepeats(t *testing.T) {
	if seeded.Race {
		return
	}
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

// sizeOf returns the size that NELI_SCALE=members,partitions,roles sets, or else the given one.
func sizeOf(t *testing.T, size sim.Size) sim.Size {
	if v := os.Getenv("NELI_SCALE"); v != "" {
		_, err := fmt.Sscanf(v, "%d,%d,%d", &size.Members, &size.Partitions, &size.Roles)
		require.NoError(t, err, "NELI_SCALE=members,partitions,roles")
	}
	return size
}

// TestOutage checks that a busy broker that stops for 3 T leaves no role without a leader for long.
// The full size is NELI_SCALE=200,1,100000.
func TestOutage(t *testing.T) {
	for _, load := range []float64{0.16, 0.32, 0.64} {
		t.Run(fmt.Sprintf("load %v", load), func(t *testing.T) { sim.Outage(t, sizeOf(t, crowdSize), load) })
	}
}

// TestScale checks that roles of dead members are led again soon. The full size is NELI_SCALE=1000,1,100000.
func TestScale(t *testing.T) { sim.Scale(t, sizeOf(t, crowdSize)) }

// TestGather checks that a late member has its share soon. The full size is NELI_SCALE=100,1,100000.
func TestGather(t *testing.T) { sim.Gather(t, sizeOf(t, crowdSize)) }

// TestRestart checks that members that start after all others have closed in an orderly way wait
// for nobody. The full size is NELI_SCALE=100,1,100000.
func TestRestart(t *testing.T) {
	for _, apart := range []time.Duration{0, 5 * time.Millisecond} {
		t.Run(fmt.Sprintf("%v apart", apart), func(t *testing.T) { sim.Restart(t, sizeOf(t, restartSize), apart) })
	}
}
