package quorum

import (
	"testing"

	"github.com/goneli/neli/internal/seeded"
)

// TestSimulation runs the Lease that ships against an adversary, seed by seed, with a subtest for
// each kind of trouble. A failure names the seed. The following prints everything that happened
// with it; NELI_SEEDS=100000 runs as many seeds:
//
//	NELI_SEED=123 go test -v -run TestSimulation/hunt ./internal/quorum
//
// sim_profile_test.go has what the adversary does, and sim_oracle_test.go what must never happen.
func TestSimulation(t *testing.T) {
	for _, p := range simProfiles {
		t.Run(p.name, func(t *testing.T) {
			simulate(t, p.seeds, func(seed uint64) *simWorld {
				w := newSimWorld(seed, p.draw)
				w.Trace("%+v", w.pr)
				w.Run(w.pr.horizon, nil)
				return w
			})
		})
	}
}

// simulate runs that many seeds, unless the environment says otherwise (seeded.Seeds).
func simulate(t *testing.T, seeds int, run func(seed uint64) *simWorld) {
	t.Helper()
	var total simCount
	n := seeded.Seeds(seeds)
	seeded.Run(t, n, run, func(w *simWorld) { total.add(w.count) })
	t.Logf("%d seeds: %s", n, total)
}
