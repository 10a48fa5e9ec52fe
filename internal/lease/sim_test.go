package lease

import (
	"testing"
	"time"

	"github.com/goneli/neli/internal/seeded"
)

// TestSimulation runs the Lease that ships against an adversary, seed by seed, with a subtest for
// each kind of trouble. A failure names the seed. The following prints everything that happened
// with it; NELI_SEEDS=100000 runs as many seeds:
//
//	NELI_SEED=123 go test -v -run TestSimulation/hunt ./internal/lease
//
// sim_profile_test.go has what the adversary does, and sim_oracle_test.go what must never happen.
func TestSimulation(t *testing.T) {
	for _, p := range simProfiles {
		t.Run(p.name, func(t *testing.T) {
			simulate(t, p.seeds, func(seed uint64) *simWorld {
				w := newSimWorld(seed, p.draw)
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
	seeded.Run(t, n, run, func(w *simWorld) {
		w.count.records = len(w.log)
		total.add(w.count)
	})
	t.Logf("%d seeds: %s", n, total)
}

// SimRecord is a record of a simulation's log, for the test of package history.
type SimRecord struct {
	Offset int64
	At     time.Duration // true time
	Value  []byte
}

// SimLog runs a simulation, with one of the kinds of trouble of TestSimulation, and returns its log.
func SimLog(seed uint64, kind string) (records []SimRecord, deleted int64) {
	for _, p := range simProfiles {
		if p.name != kind {
			continue
		}
		w := newSimWorld(seed, p.draw)
		w.Run(w.pr.horizon, nil)
		for o, e := range w.log {
			if !e.gap {
				records = append(records, SimRecord{int64(o), e.at, e.value})
			}
		}
		return records, w.low
	}
	panic("no kind of trouble is called " + kind)
}
