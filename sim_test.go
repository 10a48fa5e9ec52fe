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

// simulated lets internal/sim make processes with clocks of its own.
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

// The race detector makes everything several times as slow.
var (
	// simSeeds is how many seeds TestSimulation runs unless told otherwise, and smallSeeds how
	// many TestSmallSimulation does.
	simSeeds, smallSeeds uint64 = 2000, 250
	// watchedSeeds is how many both simulations with sentinels run.
	watchedSeeds uint64 = 100
	// crowdSize is how many TestOutage, TestScale and TestGather count.
	crowdSize = sim.Size{Members: 60, Partitions: 1, Roles: 12_000}
	// restartSize is how many TestRestart counts.
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

// TestSimulationRepeats: a seed that fails is worth little if it does not fail
// again. What the runtime orders as it likes, timers that coincide, keeps some runs
// from being the same to the microsecond. The race detector's scheduler draws lots on purpose,
// so with it nothing is compared.
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

// sizeOf is the size that NELI_SCALE=members,partitions,roles wants, or else the given one.
func sizeOf(t *testing.T, size sim.Size) sim.Size {
	if v := os.Getenv("NELI_SCALE"); v != "" {
		_, err := fmt.Sscanf(v, "%d,%d,%d", &size.Members, &size.Partitions, &size.Roles)
		require.NoError(t, err, "NELI_SCALE=members,partitions,roles")
	}
	return size
}

// TestOutage: a broker that was busy, and stood still for 3 T, brings nobody down for long.
// The full size is NELI_SCALE=200,1,100000.
func TestOutage(t *testing.T) {
	for _, load := range []float64{0.16, 0.32, 0.64} {
		t.Run(fmt.Sprintf("load %v", load), func(t *testing.T) { sim.Outage(t, sizeOf(t, crowdSize), load) })
	}
}

// TestScale: what dead members led is led soon. The full size is NELI_SCALE=1000,1,100000.
func TestScale(t *testing.T) { sim.Scale(t, sizeOf(t, crowdSize)) }

// TestGather: who comes late has its share soon. The full size is NELI_SCALE=100,1,100000.
func TestGather(t *testing.T) { sim.Gather(t, sizeOf(t, crowdSize)) }

// TestRestart: who comes after all have closed in good order waits for nobody. The full size
// is NELI_SCALE=100,1,100000.
func TestRestart(t *testing.T) {
	for _, apart := range []time.Duration{0, 5 * time.Millisecond} {
		t.Run(fmt.Sprintf("%v apart", apart), func(t *testing.T) { sim.Restart(t, sizeOf(t, restartSize), apart) })
	}
}
