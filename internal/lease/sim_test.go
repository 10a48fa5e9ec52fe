package lease

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
//	NELI_LEASE_SEED=123 go test -v -run TestSimulation/hunt ./internal/lease
//
// tells all that happened there; NELI_SEEDS=100000 runs as many seeds. What the
// adversary does is in sim_profile_test.go, what must never be in sim_oracle_test.go.
func TestSimulation(t *testing.T) {
	for _, p := range simProfiles {
		t.Run(p.name, func(t *testing.T) {
			seeds := p.seeds
			if raceEnabled || testing.Short() {
				seeds = max(5, seeds/20)
			}
			if n, err := strconv.Atoi(os.Getenv("NELI_SEEDS")); err == nil && n > 0 {
				seeds = n
			}
			if seed, err := strconv.ParseUint(os.Getenv("NELI_LEASE_SEED"), 10, 64); err == nil {
				w := newSimWorld(seed, p.draw)
				w.trace = func(format string, args ...any) {
					fmt.Printf("%10.4f  %s\n", float64(w.now)/float64(w.pr.unit), fmt.Sprintf(format, args...))
				}
				w.run(w.pr.horizon, nil)
				if w.oracle.fault != "" {
					t.Fatalf("seed %d: %s", seed, w.oracle.fault)
				}
				return
			}
			simulate(t, seeds, func(seed uint64) *simWorld {
				w := newSimWorld(seed, p.draw)
				w.run(w.pr.horizon, nil)
				return w
			})
		})
	}
}

// simulate runs seeds from 1 on, on all cores, until one goes wrong.
func simulate(t *testing.T, seeds int, one func(seed uint64) *simWorld) {
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
					worst, fault = seed, fmt.Sprintf("%s, at %.4f units", w.oracle.fault, float64(w.now)/float64(w.pr.unit))
					next.Store(int64(seeds))
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if fault != "" {
		t.Fatalf("seed %d: %s\nrerun: NELI_LEASE_SEED=%d go test -v -run '%s$' ./internal/lease", worst, fault, worst, t.Name())
	}
	t.Logf("%d seeds: %s", seeds, total)
}
