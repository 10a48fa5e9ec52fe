package oracle

import (
	"fmt"
	"slices"
	"time"

	"github.com/goneli/neli/lab/chaos/history"
	"github.com/goneli/neli/lab/witness"
)

// Will has the times of exclusive mode that concern orders and health.
type Will struct {
	Timeout time.Duration // T
	Drain   time.Duration // DrainTimeout
	Wait    time.Duration // the longest wait for a successor
	Away    time.Duration // for which a member stays away after StepDown, if that is longer than 3 T
	Check   time.Duration // between two checks of health
	Hang    time.Duration // how long one may take
	Slack   time.Duration // what a busy machine may add
}

// stamp is how far the time of a claim may be off, since it is measured by another clock, and in
// milliseconds.
const stamp = 100 * time.Millisecond

// ClaimFaults checks that the member that leads with a token wrote the claim at that offset of the
// log. Records that were deleted are left out.
func ClaimFaults(log history.ElectionLog, terms []witness.Term) []string {
	type place struct {
		role   int
		offset int64
	}
	claims := map[place]string{}
	for _, c := range log.Claims {
		claims[place{c.Role, c.Offset}] = c.Member
	}
	var faults []string
	for _, t := range terms {
		by, is := claims[place{t.Role, t.Token}]
		switch {
		case t.Role < len(log.From) && t.Token < log.From[t.Role]:
		case !is:
			faults = append(faults, fmt.Sprintf("role %d: %v, and there is no such claim in the log", t.Role, t))
		case by != t.Member:
			faults = append(faults, fmt.Sprintf("role %d: %v, and in the log that is a claim of %s", t.Role, t, by))
		}
	}
	return faults
}

// OrderFaults lists the calls of Transfer and StepDown whose results were wrong, and those that took too long.
func OrderFaults(r history.Record, terms []witness.Term, w Will) []string {
	var faults []string
	for _, o := range r.Orders {
		what := fmt.Sprintf("%s: %s (from %.3f)", o.Member, o.Kind, o.Invoked.Seconds())
		if o.Kind == history.Transfer {
			what = fmt.Sprintf("%s: %s of role %d to %s after token %d (from %.3f)", o.Member, o.Kind, o.Role, o.To, o.Token, o.Invoked.Seconds())
		}
		switch o.Outcome {
		case history.Done:
			if o.Kind == history.Transfer {
				faults = append(faults, transferred(r, terms, o, what)...)
			} else {
				faults = append(faults, steppedDown(r, terms, o, what, w)...)
			}
		case history.NotLeader, history.NoMember, history.NoAnswer, history.NotTransferred, history.GaveUp, history.Closed, history.Unheard:
		default:
			faults = append(faults, fmt.Sprintf("%s returned %s", what, o.Outcome))
		}
		bound := w.Drain + w.Wait + w.Slack
		if o.Kind == history.Transfer {
			bound = w.Wait + w.Drain + 2*w.Timeout + w.Slack
		}
		until := min(o.Returned, death(r.Lives, o.Member))
		if until-o.Invoked > bound && !disturbed(r, o.Member, witness.Span{From: o.Invoked, To: o.Invoked + bound}) {
			faults = append(faults, fmt.Sprintf("%s took more than %v", what, bound))
		}
	}
	return faults
}

// transferred checks that the member claimed the role later in the log and, if nothing kept it from
// doing so, that it led.
func transferred(r history.Record, terms []witness.Term, o history.Order, what string) []string {
	if !slices.ContainsFunc(r.Log.Claims, func(c history.Claim) bool {
		return c.Member == o.To && c.Role == o.Role && c.Offset > o.Token
	}) {
		return []string{what + " succeeded, and the log has no such claim"}
	}
	led := slices.ContainsFunc(terms, func(t witness.Term) bool { return t.Member == o.To && t.Role == o.Role && t.Token > o.Token })
	const read = time.Second // within which it also reads its claim
	if !led && !disturbed(r, o.To, witness.Span{From: o.Invoked, To: o.Returned + read}) {
		return []string{what + " succeeded, and the member did not lead"}
	}
	return nil
}

// steppedDown checks that after StepDown returned, the member led and claimed nothing for the time
// that it has to stay away.
func steppedDown(r history.Record, terms []witness.Term, o history.Order, what string, w Will) []string {
	away := witness.Span{From: o.Returned, To: awaySince(r.Lives, o, w) + max(w.Away, 3*w.Timeout)}
	var faults []string
	for _, t := range terms {
		if t.Member == o.Member && (away.Meets(t.Proven()) || away.Contains(t.First) || away.Contains(t.Last)) {
			faults = append(faults, fmt.Sprintf("%s succeeded at %.3f, and role %d was led: %v", what, o.Returned.Seconds(), t.Role, t))
		}
	}
	return append(faults, claims(r.Log, o.Member, away, what+" succeeded")...)
}

// awaySince returns the earliest time from which a member that stepped down may count its absence. The member does so
// just before StepDown returns, but may be suspended before it notes the return.
func awaySince(lives []history.Life, o history.Order, w Will) time.Duration {
	for _, l := range lives {
		if l.Member == o.Member && slices.ContainsFunc(l.Stops, witness.Span{From: o.Invoked, To: o.Returned}.Meets) {
			return o.Invoked
		}
	}
	return max(o.Invoked, o.Returned-w.Slack)
}

// claims lists a member's claims within a time.
func claims(log history.ElectionLog, member string, s witness.Span, what string) []string {
	var faults []string
	for _, c := range log.Claims {
		if c.Member == member && s.From+stamp <= c.At && c.At <= s.To-stamp {
			faults = append(faults, fmt.Sprintf("%s, and role %d was claimed at %.3f (offset %d)", what, c.Role, c.At.Seconds(), c.Offset))
		}
	}
	return faults
}

func death(lives []history.Life, member string) time.Duration {
	for _, l := range lives {
		if l.Member == member {
			return l.Died
		}
	}
	return witness.Never
}

// disturbed reports whether anything kept a member from its work within a time: it ended or was
// suspended, another fault than an order struck it, or brokers were disturbed.
func disturbed(r history.Record, member string, s witness.Span) bool {
	for _, l := range r.Lives {
		if l.Member != member {
			continue
		}
		if l.Died <= s.To || slices.ContainsFunc(l.Stops, func(stop witness.Span) bool { return stop.Meets(s) }) ||
			slices.ContainsFunc(r.Faults, func(f history.Fault) bool {
				return f.Span.Meets(s) && !f.Order && (f.Cluster || slices.Contains(f.Targets, l.Host))
			}) {
			return true
		}
	}
	return false
}

// HealthFaults lists the members that led or claimed although they must have known for long enough that they were
// unhealthy. After a suspension this time begins again, since the process may first carry out what it decided before.
func HealthFaults(r history.Record, terms []witness.Term, w Will) []string {
	var faults []string
	for _, l := range r.Lives {
		for _, ail := range l.Ails {
			known := w.Check + w.Slack
			if ail.Hangs {
				known += w.Hang
			}
			for _, s := range witness.Without(ail.Span, l.Stops) {
				what := fmt.Sprintf("%s has been unwell since %.3f", l.Member, s.From.Seconds())
				faults = append(faults, claims(r.Log, l.Member, witness.Span{From: s.From + known, To: s.To}, what)...)
				over := witness.Span{From: s.From + known + w.Wait + w.Drain + w.Timeout, To: s.To}
				for _, t := range terms {
					if t.Member == l.Member && over.Meets(t.Proven()) {
						faults = append(faults, fmt.Sprintf("%s, and led role %d at %.3f: %v", what, t.Role, max(over.From, t.First.After).Seconds(), t))
					}
				}
			}
		}
	}
	return faults
}
