// Package oracle judges the record of a run: from what all members saw of their
// own leadership and did to the store, by one clock, to what must not have been.
// Pure functions; the tests feed them forged records that they must reject.
//
// A sample is three things in this order: the clock read, the question asked, the
// clock read again. The answer was true at one instant between the two readings.
// A term is one uninterrupted time of leading, so between two true samples of the
// same term it was led throughout: it is proven from the second reading of its
// first true sample to the first reading of its last, whether or not the process
// was suspended in between.
package oracle

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/goneli/neli/chaos/history"
)

// Term is one member's leadership of one role under one token, in exclusive mode.
type Term struct {
	Host, Member string
	Role         int
	Token        int64
	First, Last  history.Window
}

// Proven is when it was led for certain.
func (t Term) Proven() history.Span { return history.Span{From: t.First.After, To: t.Last.Before} }

func (t Term) String() string {
	return fmt.Sprintf("%s token %d [%.6f, %.6f]", t.Member, t.Token, t.First.After.Seconds(), t.Last.Before.Seconds())
}

// Terms joins each member's runs of one role that have the same token: a gap in
// sampling, or even a false answer in between, does not make it two terms. They
// are sorted by their beginning.
func Terms(lives []history.Life, role int) []Term {
	var terms []Term
	for _, l := range lives {
		byToken := map[int64]*Term{}
		for _, r := range l.Runs {
			if r.Mode != history.Exclusive || r.Role != role || r.Answer < 0 {
				continue
			}
			t := byToken[r.Answer]
			if t == nil {
				t = &Term{Host: l.Host, Member: l.Member, Role: role, Token: r.Answer, First: r.First, Last: r.Last}
				byToken[r.Answer] = t
			}
			if r.First.Before < t.First.Before {
				t.First = r.First
			}
			if r.Last.After > t.Last.After {
				t.Last = r.Last
			}
		}
		for _, t := range byToken {
			terms = append(terms, *t)
		}
	}
	slices.SortFunc(terms, func(a, b Term) int {
		return cmp.Or(cmp.Compare(a.First.After, b.First.After), cmp.Compare(a.Token, b.Token), cmp.Compare(a.Member, b.Member))
	})
	return terms
}

// TermFaults names everything in the terms of one role that exclusive mode rules
// out: two leaders at one instant, one token of two members, tokens that do not
// increase.
func TermFaults(terms []Term) []string {
	var faults []string
	report := func(what string, a, b Term) {
		faults = append(faults, fmt.Sprintf("role %d: %s: %v and %v", a.Role, what, a, b))
	}
	for i, a := range terms {
		for _, b := range terms[i+1:] {
			if a.First.Before > b.First.Before {
				a, b = b, a
			}
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

// together reports whether there is an instant at which both certainly led:
// proven times that meet, or a sample of one that lies within the proven time of
// the other, wherever in its window it was taken.
func together(a, b Term) bool {
	if meet(a.Proven(), b.Proven()) {
		return true
	}
	for _, pair := range [][2]Term{{a, b}, {b, a}} {
		for _, w := range []history.Window{pair[0].First, pair[0].Last} {
			if p := pair[1].Proven(); p.From <= w.Before && w.After <= p.To {
				return true
			}
		}
	}
	return false
}

func meet(a, b history.Span) bool {
	return a.From <= a.To && b.From <= b.To && max(a.From, b.From) <= min(a.To, b.To)
}

// union returns the spans sorted and merged, without the empty ones.
func union(spans []history.Span) []history.Span {
	spans = slices.DeleteFunc(slices.Clone(spans), func(s history.Span) bool { return s.To < s.From })
	slices.SortFunc(spans, func(a, b history.Span) int { return cmp.Compare(a.From, b.From) })
	var out []history.Span
	for _, s := range spans {
		if n := len(out); n > 0 && s.From <= out[n-1].To {
			out[n-1].To = max(out[n-1].To, s.To)
		} else {
			out = append(out, s)
		}
	}
	return out
}

// intersect returns what two sorted lists of disjoint spans have in common and is
// longer than nothing.
func intersect(a, b []history.Span) []history.Span {
	var out []history.Span
	for i, j := 0, 0; i < len(a) && j < len(b); {
		if s := (history.Span{From: max(a[i].From, b[j].From), To: min(a[i].To, b[j].To)}); s.From < s.To {
			out = append(out, s)
		}
		if a[i].To < b[j].To {
			i++
		} else {
			j++
		}
	}
	return out
}

// without returns the parts of a span that the others leave.
func without(s history.Span, others []history.Span) []history.Span {
	var out []history.Span
	at := s.From
	for _, o := range union(others) {
		if gap := (history.Span{From: at, To: min(o.From, s.To)}); gap.Length() > 0 {
			out = append(out, gap)
		}
		at = max(at, o.To)
	}
	if gap := (history.Span{From: at, To: s.To}); gap.Length() > 0 {
		out = append(out, gap)
	}
	return out
}

func longest(spans []history.Span) time.Duration {
	var most time.Duration
	for _, s := range spans {
		most = max(most, s.Length())
	}
	return most
}
