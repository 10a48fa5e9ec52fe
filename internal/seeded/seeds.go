package seeded

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
)

// one returns the seed of NELI_SEED, if it is set. Such a seed runs alone, with a transcript.
func one() (uint64, bool) {
	seed, err := strconv.ParseUint(os.Getenv("NELI_SEED"), 10, 64)
	return seed, err == nil
}

// Seeds returns how many seeds to run: NELI_SEEDS if it is set, else n. With -short it is n/20, at least
// 5. With the race detector it is n/100, at least 2: simulations have no goroutines besides those of
// [Run], so the detector finds nothing more in further seeds.
func Seeds(n int) int {
	if more, err := strconv.Atoi(os.Getenv("NELI_SEEDS")); err == nil && more > 0 {
		return more
	}
	switch {
	case Race:
		return max(2, n/100)
	case testing.Short():
		return max(5, n/20)
	}
	return n
}

// Run runs seeds from 1 on, on all cores, until one has a complaint. It fails with the lowest
// such seed. If NELI_SEED is set, it runs only that one. look is called for each world, one at a
// time.
func Run[W interface{ Complaint() string }](t *testing.T, seeds int, run func(seed uint64) W, look func(W)) {
	t.Helper()
	if seed, ok := one(); ok {
		w := run(seed)
		look(w)
		if c := w.Complaint(); c != "" {
			t.Fatalf("seed %d: %s", seed, c)
		}
		return
	}
	var (
		next  atomic.Int64
		mu    sync.Mutex
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
				w := run(seed)
				mu.Lock()
				look(w)
				if c := w.Complaint(); c != "" && (fault == "" || seed < worst) {
					worst, fault = seed, c
					next.Store(int64(seeds))
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if fault != "" {
		dir, _ := os.Getwd()
		t.Fatalf("seed %d: %s\nrerun: NELI_SEED=%d go test -v -run '%s$' ./internal/%s", worst, fault, worst, t.Name(), filepath.Base(dir))
	}
}
