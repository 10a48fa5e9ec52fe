package witness

import (
	"cmp"
	"fmt"
	"slices"
)

// Term is one member's leadership of one role under one token, in exclusive mode.
type Term struct {
	Member      string
	Role        int
	Token       int64
	First, Last Window
}

// Proven returns the time in which the member certainly led.
func (t Term) Proven() Span { return t.run().Proven() }

func (t Term) run() Run { return Run{First: t.First, Last: t.Last} }

// Vacancies returns the times between terms of one role: from the last proof of a leader to the first proof of the next
// one. Each is longer than the real vacancy, by at most two samples.
func Vacancies(terms []Term) []Span {
	var led []Span
	for _, t := range terms {
		led = append(led, Span{t.First.After, max(t.First.After, t.Last.Before)})
	}
	if led = Union(led); len(led) == 0 {
		return nil
	}
	return Without(Span{led[0].From, led[len(led)-1].To}, led)
}

func (t Term) String() string {
	return fmt.Sprintf("%s token %d %v", t.Member, t.Token, t.Proven())
}

// Terms joins a member's runs of one role that have the same token: a gap in
// sampling, or even a false answer in between, does not make it two terms.
func Terms(member string, runs Runs) []Term {
	var terms []Term
	for _, r := range runs {
		if r.Answer < 0 {
			continue
		}
		i := slices.IndexFunc(terms, func(t Term) bool { return t.Token == r.Answer })
		if i < 0 {
			terms = append(terms, Term{Member: member, Role: r.Role, Token: r.Answer, First: r.First, Last: r.Last})
			continue
		}
		t := &terms[i]
		if r.First.Before < t.First.Before {
			t.First = r.First
		}
		if r.Last.After > t.Last.After {
			t.Last = r.Last
		}
	}
	return terms
}

// TermFaults lists everything in all members' terms of one role that exclusive mode rules out: two leaders at one
// instant, one token for two members, tokens that do not increase.
func TermFaults(terms []Term) []string {
	var faults []string
	report := func(what string, a, b Term) {
		faults = append(faults, fmt.Sprintf("role %d: %s: %v and %v", a.Role, what, a, b))
	}
	terms = slices.SortedFunc(slices.Values(terms), func(a, b Term) int { return cmp.Compare(a.First.Before, b.First.Before) })
	for i, a := range terms {
		for _, b := range terms[i+1:] {
			switch {
			case a.Token == b.Token && a.Member != b.Member:
				report("one token, two members", a, b)
			case a.Last.After < b.First.Before && a.Token >= b.Token:
				report("the later term has no greater token", a, b)
			}
			if a.Member != b.Member && a.run().Meets(b.run()) {
				report("two leaders at one instant", a, b)
			}
		}
	}
	return faults
}
