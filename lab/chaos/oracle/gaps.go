package oracle

import (
	"time"

	"github.com/goneli/neli/lab/chaos/history"
	"github.com/goneli/neli/lab/witness"
)

// NoFault is the kind of gaps that began before any fault.
const NoFault = "none yet"

// Pace is how non-exclusive mode was configured.
type Pace struct {
	Timeout time.Duration // T
	Beat    time.Duration // B
}

// Presumption returns how long a member certainly still leads after its evidence has stopped: the last evidence may have been a
// beat old, and two beats are subtracted.
func (p Pace) Presumption() time.Duration { return p.Timeout - 2*p.Beat }

// Gap is a time in which no member is proven to have led a role.
type Gap struct {
	witness.Span
	Mode, Role int
	Kind       string // the kind of the fault that had begun last
	Step       int    // the fault's step
	// Aside says that the fault struck members, but not the one that led the role. The role moved, and the gap is the
	// cost of that.
	Aside bool
}

// Led returns the times at which each life certainly led a role. In exclusive mode these are its terms. In the other mode they
// are the samples that said yes. The time between two of these counts if no sample between them said no and it is shorter than
// the presumption: for that long, the records received before prove leadership.
func Led(lives []history.Life, mode, role int, presumption time.Duration) []witness.Span {
	var led []witness.Span
	if mode == history.Exclusive {
		for _, t := range Terms(lives, role) {
			led = append(led, t.Proven())
		}
		return witness.Union(led)
	}
	for _, l := range lives {
		led = append(led, presumed(l, role, presumption)...)
	}
	return witness.Union(led)
}

// presumed is Led of one life in non-exclusive mode.
func presumed(l history.Life, role int, presumption time.Duration) []witness.Span {
	return l.Runs.Of(history.NonExclusive, role).Led(presumption)
}

// Gaps returns the times within the record at which no member is proven to have led, without those shorter than ignore. The time
// that was really without a leader is shorter, by two samples and by pauses in sampling.
func Gaps(r history.Record, mode, role int, p Pace, ignore time.Duration) []Gap {
	var gaps []Gap
	for _, s := range witness.Without(witness.Span{From: r.Start, To: r.End}, Led(r.Lives, mode, role, p.Presumption())) {
		if s.Length() >= ignore {
			f := cause(r, mode, role, s.From, p)
			gaps = append(gaps, Gap{Span: s, Mode: mode, Role: role, Kind: f.Kind, Step: f.Step, Aside: aside(r, f, mode, role, s.From, p)})
		}
	}
	return gaps
}

// sampling is the longest time between the last sample of a leader and the moment when it is
// killed, on a busy machine. Two steps are at least a second apart.
const sampling = 100 * time.Millisecond

// cause returns the fault behind a gap: the one that had begun last when the gap began. If a member of non-exclusive mode lapsed
// and lived on, its evidence had stopped T earlier, and that time counts.
func cause(r history.Record, mode, role int, from time.Duration, p Pace) history.Fault {
	at := from
	if mode == history.NonExclusive && lapsed(r.Lives, role, from, p.Presumption()) {
		const notice = time.Second // until the evidence shows the effect of a fault
		at = from - p.Timeout + p.Beat + notice
	}
	found := history.Fault{Step: -1, Kind: NoFault, Span: witness.Span{From: -1}}
	for _, f := range r.Faults {
		if f.Span.From <= at+sampling && f.Span.From > found.Span.From {
			found = f
		}
	}
	return found
}

// aside reports whether the faults of a step struck members, but not the one that had led the role until then.
func aside(r history.Record, step history.Fault, mode, role int, at time.Duration, p Pace) bool {
	leader, known := ledUntil(r.Lives, mode, role, at, p.Presumption())
	if !known {
		return false
	}
	members := map[string]bool{}
	for _, l := range r.Lives {
		members[l.Host] = true
	}
	struck := false
	for _, f := range r.Faults {
		for _, host := range f.Targets {
			switch {
			case f.Step != step.Step:
			case !members[host], host == leader:
				return false
			default:
				struck = true
			}
		}
	}
	return struck
}

// ledUntil returns the host of the member that had led a role until then.
func ledUntil(lives []history.Life, mode, role int, at, presumption time.Duration) (host string, known bool) {
	for _, l := range lives {
		for _, s := range Led([]history.Life{l}, mode, role, presumption) {
			if s.To == at {
				return l.Host, true
			}
		}
	}
	return "", false
}

// lapsed reports whether the member that led until then lived on without leading. A member that is closing ends soon after.
func lapsed(lives []history.Life, role int, at, presumption time.Duration) bool {
	const soon = time.Second
	for _, l := range lives {
		for _, s := range presumed(l, role, presumption) {
			if s.To >= at-sampling && s.To <= at+sampling {
				return l.Died > at+soon
			}
		}
	}
	return false
}
