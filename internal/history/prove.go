package history

import (
	"fmt"
	"slices"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
)

// Rules that records can break.
const (
	Order    = "order"    // offsets grow, and nobody has read what is not written yet
	Evidence = "evidence" // a Claim that takes a role had read the newest evidence of its holder
	Wait     = "wait"     // and its sender had then waited for as long as the lease lasts
	Overlap  = "overlap"  // a term begins with its Claim, when the former one has ended
	Fold     = "fold"     // all members agree on who holds what
)

// Fault is a rule that two records show to be broken.
type Fault struct {
	Rule    string `json:"rule"`
	Text    string `json:"text"`
	Records [2]Ref `json:"records"`
}

func (r Ref) String() string {
	s := fmt.Sprintf("partition %d offset %d", r.Partition, r.Offset)
	if r.Kind != "" {
		s += fmt.Sprintf(": %s of %q (%q session %d), read %d", r.Kind, r.Name, r.Member, r.Session, r.Read)
	}
	if !r.Time.IsZero() {
		s += ", " + r.Time.UTC().Format(time.RFC3339Nano)
	}
	return s
}

func (f Fault) String() string {
	return fmt.Sprintf("%s: %s\n  %v\n  %v", f.Rule, f.Text, f.Records[0], f.Records[1])
}

const maxFaults = 100

func (h *History) fault(rule string, a, b Ref, text string) {
	if len(h.result.Faults) == maxFaults {
		h.result.More++
		return
	}
	h.result.Faults = append(h.result.Faults, Fault{rule, text, [2]Ref{a, b}})
}

// checkClaim checks a Claim that takes roles from a session.
func (p *part) checkClaim(r *lease.Record, ref Ref, from lease.Session) {
	h := p.held[from]
	if r.Read < h.last.Offset {
		p.h.fault(Evidence, ref, h.last, fmt.Sprintf("a Claim whose sender had read up to offset %d took roles of a session with evidence at %d", r.Read, h.last.Offset))
		return
	}
	if from != r.Session {
		p.checkWait(ref, h.last, h.t)
	}
}

// checkNewer checks a valid Claim while there is a record of a newer version, whose sender may hold anything.
func (p *part) checkNewer(r *lease.Record, ref Ref) {
	switch {
	case p.newer.Offset == none:
	case r.Read < p.newer.Offset:
		p.h.fault(Evidence, ref, p.newer, fmt.Sprintf("a Claim whose sender had read up to offset %d is valid though offset %d is of a newer version", r.Read, p.newer.Offset))
	case !r.Fresh:
		p.checkWait(ref, p.newer, clock.Tmax)
	}
}

// checkWait checks the wait between evidence and the Claim after it, by the claimant's own clock. The
// claimant made every record that lies before the evidence before it read the evidence. So the whole
// wait lies between such a record's timestamp and the Claim's. A wall clock may be slewed by σ.
func (p *part) checkWait(claim, evidence Ref, t time.Duration) {
	p.h.result.Waits++
	for _, r := range slices.Backward(p.recent) {
		if r.Offset >= evidence.Offset || r.Member != claim.Member || r.other {
			continue
		}
		if r.Time.IsZero() || claim.Time.IsZero() {
			return
		}
		p.h.result.Shown++
		const rounding = time.Millisecond // Kafka's timestamps are in milliseconds
		if waited := claim.Time.Sub(r.Time); waited < clock.Hold(t)-rounding {
			p.h.fault(Wait, claim, evidence, fmt.Sprintf("the Claim's sender wrote offset %d before that evidence, and the Claim %v later by the same clock; a lease of %v cannot have ended since",
				r.Offset, waited, t))
		}
		return
	}
}

// checkBegin checks that a role's new holder is the sender of a Claim of that role.
func (p *part) checkBegin(r *lease.Record, ref Ref, role int32, h lease.Holder, token int64) {
	if _, named := slices.BinarySearch(r.Roles, role); r.Kind != lease.Claim || !named || token != ref.Offset || h.Session != r.Session {
		p.h.fault(Overlap, ref, p.at(token), fmt.Sprintf("a term of role %d with token %d began without its Claim", p.role(role), token))
	}
}

// checkEnd checks that a term was ended by a Claim, or by a Release that names it.
func (p *part) checkEnd(r *lease.Record, ref Ref, t *Term) {
	if r.Kind == lease.Claim || r.Session == t.session && slices.ContainsFunc(r.Ended, func(g lease.Grant) bool {
		_, named := slices.BinarySearch(g.Roles, t.local)
		return named && g.Token == t.Token
	}) {
		return
	}
	p.h.fault(Overlap, ref, t.claim, fmt.Sprintf("the term of role %d with token %d ended without a Claim or Release that ends it", t.Role, t.Token))
}

// checkRelease checks that the sender of a Release had the same fold: it releases only what the session held there.
func (p *part) checkRelease(r *lease.Record, ref Ref) {
	if r.Read < p.knownAt || p.mixed { // a member of a newer version knows terms that this one does not
		return
	}
	for _, g := range r.Ended {
		for _, role := range g.Roles {
			i, ok := p.byToken[grant{role, g.Token}]
			if !ok || p.h.terms[i].session != r.Session {
				p.h.fault(Fold, ref, p.at(g.Token), fmt.Sprintf("a Release of role %d with token %d, under which that session never held it", p.role(role), g.Token))
				return
			}
			if t := p.h.terms[i]; t.EndedAt > 0 && t.EndedAt <= r.Read {
				p.h.fault(Fold, ref, p.at(t.EndedAt), fmt.Sprintf("a Release of role %d with token %d, whose end its sender had read", p.role(role), g.Token))
				return
			}
		}
	}
}

// checkFold checks whether a Snapshot or Beat shows another fold than this one.
func (p *part) checkFold(r *lease.Record, ref Ref) {
	since, yes := p.fold.Contradicts(r)
	if !yes {
		return
	}
	if claim, ok := p.refused[r.Session]; r.Kind == lease.Beat && ok {
		p.h.fault(Fold, ref, claim, "a member that leads by its own account, though its Claim was not valid")
		return
	}
	text := "a Snapshot that differs from the records up to the offset that its sender had read"
	if r.Kind == lease.Beat {
		text = "a Beat of a session that held nothing: its sender leads by its own account"
	}
	p.h.fault(Fold, ref, p.at(since), text)
}
