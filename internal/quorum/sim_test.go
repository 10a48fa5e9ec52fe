package quorum

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
)

// TestSimulation runs the Lease that ships under an adversary, seed by seed, one subtest
// for each kind of trouble. A failure names the seed:
//
//	NELI_QUORUM_SEED=123 go test -v -run TestSimulation/hunt ./internal/quorum
//
// tells all that happened there; NELI_SEEDS=100000 runs as many seeds. What the adversary
// does is in sim_profile_test.go, what must never be in sim_oracle_test.go.
func TestSimulation(t *testing.T) {
	for _, p := range simProfiles {
		t.Run(p.name, func(t *testing.T) {
			one := func(seed uint64, trace bool) *simWorld {
				w := newSimWorld(seed, p.draw)
				if trace {
					w.narrate()
				}
				w.run(w.pr.horizon, nil)
				return w
			}
			if seed, err := strconv.ParseUint(os.Getenv("NELI_QUORUM_SEED"), 10, 64); err == nil {
				if w := one(seed, true); w.oracle.fault != "" {
					t.Fatalf("seed %d: %s", seed, w.oracle.fault)
				}
				return
			}
			simulate(t, seedsOf(p.seeds), func(seed uint64) *simWorld { return one(seed, false) })
		})
	}
}

// narrate tells everything that happens.
func (w *simWorld) narrate() {
	fmt.Printf("%+v\n", w.pr)
	w.trace = func(format string, args ...any) {
		fmt.Printf("%10.4f  %s\n", float64(w.now)/float64(simT), fmt.Sprintf(format, args...))
	}
}

func seedsOf(seeds int) int {
	if raceEnabled || testing.Short() {
		seeds = max(5, seeds/20)
	}
	if n, err := strconv.Atoi(os.Getenv("NELI_SEEDS")); err == nil && n > 0 {
		seeds = n
	}
	return seeds
}

// simulate runs seeds from 1 on, on all cores, until one goes wrong.
func simulate(t *testing.T, seeds int, one func(seed uint64) *simWorld) {
	t.Helper()
	var (
		next  atomic.Int64
		mu    sync.Mutex
		total simCount
		wg    sync.WaitGroup
		worst uint64
		fault string
	)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for {
				seed := uint64(next.Add(1))
				if seed > uint64(seeds) {
					return
				}
				w := one(seed)
				mu.Lock()
				total.add(w.count)
				if w.oracle.fault != "" && (fault == "" || seed < worst) {
					worst, fault = seed, fmt.Sprintf("%s, at %.4f T", w.oracle.fault, float64(w.now)/float64(simT))
					next.Store(int64(seeds))
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if fault != "" {
		t.Fatalf("seed %d: %s\nrerun: NELI_QUORUM_SEED=%d go test -v -run '%s$' ./internal/quorum", worst, fault, worst, t.Name())
	}
	t.Logf("%d seeds: %s", seeds, total)
}
