package oracle

import (
	"fmt"
	"slices"
	"time"

	"github.com/goneli/neli/lab/chaos/history"
	"github.com/goneli/neli/lab/witness"
)

// Recovery has the longest times that a role may be without a leader, by kind of fault. Most are bounds of the whole gap, even if
// the fault outlasts it, since the processes that it does not strike are well. A fault without such a bound has one after its
// repair.
type Recovery struct {
	// Exclusive mode, brokers undisturbed: the leader is gone, or hands over.
	Takeover, Handover time.Duration
	// Exclusive mode: one broker is killed, suspended or cut off from all; two of them do not reach each other.
	BrokerLost, Parted time.Duration
	// Exclusive mode, with sentinels: a leader's process ended after a term of at least Elder. Zero without sentinels.
	Died, Elder time.Duration
	// Exclusive mode, after the repair of anything that disturbed brokers.
	Repaired time.Duration
	// Non-exclusive mode, after the repair of a fault that spared the brokers, and of one that disturbed them.
	// CoverFaults checks what is promised before the repair.
	Presuming, PresumingRepaired time.Duration
}

// Constants of docs/tuning.md.
const (
	drift      = 0.0005           // ρ, MaxClockDrift
	brokerLost = 13 * time.Second // the longest stall of a log after a broker has crashed or stopped answering, with stock settings
	lag        = 45 * time.Second // 1.5 replica.lag.time.max.ms: the longest that acks=all waits for a live follower
)

// Promised returns what docs/tuning.md and docs/design.md promise for exclusive mode with Open nomination. A silent leader is
// replaced after W(T). By rule O4 others claim after at most 3 T/4 more if the one that should claim does not, and a process
// claims only while its own records come back within T/4. A stall of the log comes on top.
func Promised(t time.Duration) Recovery {
	wait := time.Duration(float64(t)*(1+drift)/(1-drift)) + time.Millisecond
	takeover := wait + t
	return Recovery{Takeover: takeover, Handover: t, BrokerLost: brokerLost + takeover, Parted: lag + takeover, Repaired: takeover}
}

// unbounded is the bound of a gap for which nothing is promised while a fault lasts.
const unbounded = witness.Never

// bounds returns how long a gap of a mode may be as a whole, and how long the rest of it may be after the repair.
func (b Recovery) bounds(mode int, f history.Fault) (whole, after time.Duration) {
	if mode == history.NonExclusive {
		if f.Cluster {
			return unbounded, b.PresumingRepaired
		}
		return unbounded, b.Presuming
	}
	switch whole = unbounded; {
	case !f.Calm: // the groups were not whole, or not all was led
	case f.Pair:
		whole = b.Parted
	case f.Cluster && (f.Sort == "killed" || f.Sort == "stopped" || f.Sort == "cut off"):
		whole = b.BrokerLost
	case f.Cluster:
	case f.Gone:
		whole = b.Takeover
	case f.Sort == "restarted":
		whole = b.Handover
	}
	if f.Cluster && f.Sort != "begun anew" {
		return whole, b.Repaired
	}
	return whole, b.Takeover
}

// Recovered checks every gap against the longest bound of the faults behind it: those of its step, and those that began
// while it lasted.
func Recovered(r history.Record, gaps []Gap, b Recovery) []string {
	var disturbed []witness.Span
	for _, f := range r.Faults {
		disturbed = append(disturbed, f.Span)
	}
	quiet := witness.Without(witness.Span{From: r.Start, To: r.End}, disturbed)
	var faults []string
	for _, g := range gaps {
		whole, after := b.of(r, g)
		what := fmt.Sprintf("%s role %d: no leader for %v (from %.3f), after %q",
			history.ModeName(g.Mode), g.Role, g.Length().Round(time.Millisecond), g.From.Seconds(), g.Kind)
		if g.Length() > whole {
			faults = append(faults, fmt.Sprintf("%s, longer than %v", what, whole))
			continue
		}
		for _, s := range witness.Intersect([]witness.Span{g.Span}, quiet) {
			if s.Length() > after {
				faults = append(faults, fmt.Sprintf("%s: %v of it while nothing was disturbed, longer than %v",
					what, s.Length().Round(time.Millisecond), after))
			}
		}
	}
	return faults
}

func (b Recovery) of(r history.Record, g Gap) (whole, after time.Duration) {
	whole, after = b.bounds(g.Mode, history.Fault{Calm: true, Sort: "restarted"}) // before any fault there are only handovers
	for _, f := range r.Faults {
		if f.Step >= g.Step && f.Span.From <= g.To {
			w, a := b.bounds(g.Mode, f)
			if f.Crash && w == b.Takeover && b.Died > 0 && b.elder(r, g) {
				w = b.Died
			}
			whole, after = max(whole, w), max(after, a)
		}
	}
	return whole, after
}

// elder reports whether the term before a gap had lasted so long that a sentinel may release it.
func (b Recovery) elder(r history.Record, g Gap) bool {
	return slices.ContainsFunc(Terms(r.Lives, g.Role), func(t witness.Term) bool {
		return t.Proven().To == g.From && t.Proven().Length() >= b.Elder
	})
}
