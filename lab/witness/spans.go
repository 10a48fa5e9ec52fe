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
