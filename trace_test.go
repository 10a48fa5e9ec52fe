package neli_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/goneli/neli/internal/judge"
	"github.com/goneli/neli/internal/seeded"
	"github.com/goneli/neli/internal/sim"
)

// TestTracesAreAllowed lets TLC decide whether the specification allows what whole processes do. make spec runs it.
func TestTracesAreAllowed(t *testing.T) {
	judge.Jar(t)
	const batch = 6
	seeds := seeded.Seeds(batch)
	for first := 1; first <= seeds; first += batch {
		t.Run(fmt.Sprintf("from %d", first), func(t *testing.T) {
			leases := map[string]time.Duration{}
			var traces []string
			for seed := first; seed < min(first+batch, seeds+1); seed++ {
				opts := simulated
				opts.Seed = uint64(seed)
				trace, of := sim.Trace(t, opts)
				maps.Copy(leases, of)
				traces = append(traces, trace)
			}
			judge.Traces(t, "TraceLease", sim.TraceRho, leases, traces)
		})
	}
}
