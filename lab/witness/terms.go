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
func (t Term) Proven() Span { return Span{t.First.After, t.Last.Before} }

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
			if a.Member != b.Member && together(a, b) {
				report("two leaders at one instant", a, b)
			}
		}
	}
	return faults
}

// together reports whether there is an instant at which both certainly led: either their proven times meet, or a
// sample of one certainly lies within the proven time of the other.
func together(a, b Term) bool {
	a1, b1 := a.Proven(), b.Proven()
	return a1.Meets(b1) || a1.Contains(b.First) || a1.Contains(b.Last) || b1.Contains(a.First) || b1.Contains(a.Last)
}
