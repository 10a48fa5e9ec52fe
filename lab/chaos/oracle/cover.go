package oracle

import (
	"fmt"
	"time"

	"github.com/goneli/neli/lab/chaos/history"
	"github.com/goneli/neli/lab/witness"
)

// uncovered returns the times at which certainly no member led: all members are proven idle.
func uncovered(r history.Record, role int) []witness.Span {
	var idle [][]witness.Span
	for _, l := range r.Lives {
		idle = append(idle, l.Runs.Of(history.NonExclusive, role).Idle(l.Born, l.Died))
	}
	return witness.Common(witness.Span{From: r.Start, To: r.End}, idle...)
}

// Promise is what non-exclusive mode promises under a fault.
type Promise int

const (
	// Covered promises a leader at every instant, since the old one lives.
	Covered Promise = iota
	// Crashed bounds the time without a leader, since the old one is dead.
	Crashed
	// None promises nothing: brokers are disturbed, or an earlier fault was still being recovered from.
	None
)

// PromiseUnder returns the promise for a gap: the weakest under any fault that began before the gap ended, in its
// cause's step or a later one.
func PromiseUnder(faults []history.Fault, cause history.Fault, until time.Duration) Promise {
	p := Covered
	for _, f := range faults {
		switch {
		case f.Step < cause.Step || f.Span.From > until:
		case f.Cluster || !f.Calm:
			p = max(p, None)
		case f.Crash:
			p = max(p, Crashed)
		}
	}
	return p
}

// CoverFaults lists the times at which a role of non-exclusive mode certainly had no leader although one is promised. The bound
// is for roles whose leader died: S + J + B and what a busy machine adds.
func CoverFaults(r history.Record, role int, p Pace, bound time.Duration) []string {
	var faults []string
	gaps := Gaps(r, history.NonExclusive, role, p, 0)
	for _, s := range uncovered(r, role) {
		// The certain time may begin later than the gap around it, and end sooner. The cause is that of the gap.
		gap := witness.Span{From: s.From, To: s.To}
		for _, g := range gaps {
			if g.Span.Meets(s) {
				gap = witness.Span{From: min(gap.From, g.From), To: max(gap.To, g.To)}
			}
		}
		f := cause(r, history.NonExclusive, role, gap.From, p)
		what := fmt.Sprintf("non-exclusive role %d: certainly no leader for %v (from %.3f) after %q (%s)",
			role, s.Length().Round(10*time.Microsecond), s.From.Seconds(), f.Kind, f.Label)
		switch PromiseUnder(r.Faults, f, gap.To) {
		case Covered:
			faults = append(faults, what+", though its leader lived and the brokers were well")
		case Crashed:
			if s.Length() > bound {
				faults = append(faults, fmt.Sprintf("%s, longer than S + J + B = %v", what, bound))
			}
		case None:
		}
	}
	return faults
}
