package witness

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Span is a closed interval of the monotonic clock; empty if To < From.
type Span struct{ From, To time.Duration }

// Length returns the length, which is 0 for an empty span.
func (s Span) Length() time.Duration { return max(0, s.To-s.From) }

// Meets reports whether two spans have an instant in common.
func (s Span) Meets(o Span) bool {
	return s.From <= s.To && o.From <= o.To && max(s.From, o.From) <= min(s.To, o.To)
}

// Contains reports whether a sample was certainly taken within the span, wherever in its window.
func (s Span) Contains(w Window) bool { return s.From <= w.Before && w.After <= s.To }

func (s Span) String() string {
	return fmt.Sprintf("[%.6f, %.6f] (%v)", s.From.Seconds(), s.To.Seconds(), s.Length().Round(10*time.Microsecond))
}

// Union returns the spans sorted and merged, without the empty ones.
func Union(spans []Span) []Span {
	spans = slices.DeleteFunc(slices.Clone(spans), func(s Span) bool { return s.To < s.From })
	slices.SortFunc(spans, func(a, b Span) int { return cmp.Compare(a.From, b.From) })
	var out []Span
	for _, s := range spans {
		if n := len(out); n > 0 && s.From <= out[n-1].To {
			out[n-1].To = max(out[n-1].To, s.To)
		} else {
			out = append(out, s)
		}
	}
	return out
}

// Intersect returns the common parts of two sorted lists of disjoint spans, without those of length 0.
func Intersect(a, b []Span) []Span {
	var out []Span
	for i, j := 0, 0; i < len(a) && j < len(b); {
		if s := (Span{max(a[i].From, b[j].From), min(a[i].To, b[j].To)}); s.From < s.To {
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

// Common returns the parts of a span that lie in every one of the lists.
func Common(s Span, lists ...[]Span) []Span {
	common := []Span{s}
	for _, list := range lists {
		common = Intersect(common, Union(list))
	}
	return common
}

// Without returns the parts of a span that the others do not cover.
func Without(s Span, others []Span) []Span {
	var out []Span
	at := s.From
	for _, o := range Union(others) {
		if gap := (Span{at, min(o.From, s.To)}); gap.Length() > 0 {
			out = append(out, gap)
		}
		at = max(at, o.To)
	}
	if gap := (Span{at, s.To}); gap.Length() > 0 {
		out = append(out, gap)
	}
	return out
}

// Total returns the sum of the lengths.
func Total(spans []Span) time.Duration {
	var sum time.Duration
	for _, s := range spans {
		sum += s.Length()
	}
	return sum
}

// Longest returns the length of the longest span; 0 if there is none.
func Longest(spans []Span) time.Duration {
	var most time.Duration
	for _, s := range spans {
		most = max(most, s.Length())
	}
	return most
}

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
