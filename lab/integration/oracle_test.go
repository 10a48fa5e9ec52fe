package integration

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goneli/neli/lab/witness"
)

// The oracle: from what all members saw of their own leadership, by one clock, it finds violations. These are pure
// functions; oracle_self_test.go feeds them forged samples that they must reject. Package witness says what samples prove,
// and has the code that this suite and the chaos tests share.

// vacancies returns the times between the leaders of one role: from the last proof of one to the first proof of the next.
// Each is longer than the real vacancy, by at most two samples.
func vacancies(terms []witness.Term) []vacancy {
	terms = slices.Clone(terms)
	slices.SortFunc(terms, func(a, b witness.Term) int { return cmp.Compare(a.First.After, b.First.After) })
	var out []vacancy
	for i := 1; i < len(terms); i++ {
		out = append(out, vacancy{
			Span: witness.Span{From: terms[i-1].Last.Before, To: terms[i].First.After},
			from: terms[i-1], to: terms[i],
		})
	}
	return out
}

type vacancy struct {
	witness.Span
	from, to witness.Term
}

// tooLong returns the vacancies that exceed the bound.
func tooLong(vs []vacancy, bound time.Duration) []string {
	var faults []string
	for _, v := range vs {
		if v.Length() > bound {
			faults = append(faults, fmt.Sprintf("vacant for %v, more than %v: from %v to %v",
				v.Length().Round(time.Millisecond), bound, v.from, v.to))
		}
	}
	return faults
}

// life is what is known of one member and one role: its runs, and the longest possible life of the process. Before and after
// that it led nothing.
type life struct {
	member     string
	born, died time.Duration // died: witness.Never if it lives
	runs       witness.Runs
}

// leading returns the times at which the member certainly led.
func (l life) leading() []witness.Span {
	var out []witness.Span
	for _, r := range l.runs {
		if r.Answer != witness.No {
			out = append(out, r.Proven())
		}
	}
	return out
}

// uncovered returns the times within s at which certainly no member led: every member is proven idle.
func uncovered(lives []life, s witness.Span) []witness.Span {
	common := []witness.Span{s}
	for _, l := range lives {
		common = witness.Intersect(common, witness.Union(l.runs.Idle(l.born, l.died)))
	}
	return common
}

// unproven returns the times within s at which no member is proven to have led. The time that was really uncovered is
// shorter, by two samples and by pauses in sampling.
func unproven(lives []life, s witness.Span) []witness.Span {
	var led []witness.Span
	for _, l := range lives {
		led = append(led, l.leading()...)
	}
	return witness.Without(s, led)
}

// told is one event that a member's application received.
type told struct {
	at    time.Duration
	what  string // acquired, revoked or fenced
	token int64
}

// eventFaults checks one member's events of one partition, in order, against its terms of a role there. It expects acquired,
// then exactly one of revoked and fenced, then acquired with a greater token; and no leading with a token before its
// acquired. In non-exclusive mode all tokens are −1, and only the order counts.
func eventFaults(events []told, terms []witness.Term) []string {
	var faults []string
	leads, token := false, int64(-1)
	acquired := map[int64]time.Duration{}
	for _, e := range events {
		switch {
		case e.what == "acquired" && leads:
			faults = append(faults, fmt.Sprintf("acquired token %d while token %d was neither revoked nor fenced", e.token, token))
		case e.what == "acquired" && e.token >= 0 && e.token <= token:
			faults = append(faults, fmt.Sprintf("acquired token %d after token %d", e.token, token))
		case e.what != "acquired" && !leads:
			faults = append(faults, fmt.Sprintf("%s, token %d, without having acquired", e.what, e.token))
		case e.what != "acquired" && e.token != token:
			faults = append(faults, fmt.Sprintf("%s of token %d in the term of token %d", e.what, e.token, token))
		}
		if leads = e.what == "acquired"; leads {
			token = e.token
			acquired[token] = e.at
		}
	}
	for _, t := range terms {
		// Leadership turns true when the event is delivered, shortly before the barrier can read the clock. That may take
		// long if the process is suspended or starved there, and never happens if it is killed.
		switch at, ok := acquired[t.Token]; {
		case !ok && t.Proven().Length() > tellingGrace:
			faults = append(faults, fmt.Sprintf("led without having been told: %v", t))
		case ok && t.First.Before < at-tellingGrace:
			faults = append(faults, fmt.Sprintf("led long before it was told of token %d: %v", t.Token, t))
		}
	}
	return faults
}

const tellingGrace = time.Second

func list(faults []string) string { return strings.Join(faults, "\n") }
