package lease

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/judge"
	"github.com/goneli/neli/internal/mutation"
	"github.com/goneli/neli/internal/seeded"
)

const (
	traceRoleCount = 2
	traceEvents    = 500 // of a trace
	traceBatch     = 20  // traces that TLC reads at a time
	traceRho       = 0.05
)

// traceProfile has what the specification has: no wall clock that is set, and no member of a newer
// version, though records of newer versions.
func traceProfile(r *rand.Rand) simProfile {
	p := of(r, plainProfile, huntProfile, originProfile)(r)
	u := clock.Tmax / 5
	p.unit, p.roles, p.procs, p.ts = u, traceRoleCount, 3, of(r, []time.Duration{u}, []time.Duration{u / 4, u, clock.Tmax})
	p.rho, p.step, p.newer = traceRho, 0, 0
	p.opaque = p.noise > 0                                        // records of newer versions, not gaps
	p.chatter, p.eager, p.wish, p.noise = 0.05, 1, u/2, 2*p.noise // few records that mean nothing
	return p
}

// TestTracesAreAllowed lets TLC decide whether the specification allows what the Lease does and
// believes in simulations. make spec runs it.
func TestTracesAreAllowed(t *testing.T) {
	judge.Jar(t)
	seeds := seeded.Seeds(traceBatch)
	for first := 1; first <= seeds; first += traceBatch {
		t.Run(fmt.Sprintf("from %d", first), func(t *testing.T) {
			t.Parallel()
			events := 0
			leases := map[string]time.Duration{}
			var traces []string
			for seed := first; seed < min(first+traceBatch, seeds+1); seed++ {
				w := newSimWorld(uint64(seed), traceProfile)
				w.tracer = newTracer()
				w.Run(w.pr.horizon, func() bool { return len(w.tracer.lines) >= traceEvents })
				events += len(w.tracer.lines)
				maps.Copy(leases, w.tracer.leases)
				traces = append(traces, w.tracer.trace())
			}
			judge.Traces(t, "TraceLease", traceRho, leases, traces)
			t.Logf("%d traces, %d events", len(traces), events)
		})
	}
}

// bySpecification are rules whose lack the specification must notice in traces.
var bySpecification = []string{
	"beats restart the wait",
	"silence is counted from when the record was received, not from the poll",
	"a stamp is taken before the send, not at receipt",
	"no evidence moves V after a lapse",
	"a Snapshot must reach the kept records",
	"evidence restarts the wait before a fresh Claim",
	"a record of a newer version is not skipped",
	"a process without the fold waits for the longest T allowed",
	"a role is forgotten before its Release is sent",
}

// TestTracesOfMutantsAreRefused removes rules from the code. The specification must not allow what the
// code then does.
func TestTracesOfMutantsAreRefused(t *testing.T) {
	judge.Jar(t)
	table := []mutation.Mutant{ // without these, nothing is unsafe
		{Rule: "nobody waits longer than W(T)", File: "../clock/clock.go", Old: "float64(t)*(1+rho)/(1-rho)", New: "float64(t)*(1+2*rho)/(1-rho)"},
		{Rule: "the stated longest lease is never too long", File: "make.go", Old: "r.Longest = l.fold.longest()", New: "r.Longest = max(l.rules.T, l.fold.longest())"},
	}
	for _, rule := range bySpecification {
		i := slices.IndexFunc(rules, func(m mutation.Mutant) bool { return m.Rule == rule })
		require.GreaterOrEqual(t, i, 0, rule)
		table = append(table, rules[i])
	}
	for i := range table {
		table[i].Guard, table[i].Want, table[i].Seeds = "TestTracesAreAllowed", `does not allow this.*\n\s*<<`, traceBatch
	}
	mutation.Run(t, table)
}
