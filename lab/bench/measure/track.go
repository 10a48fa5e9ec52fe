// Package measure turns what members saw of their own leadership into figures. It is pure: all times are readings of the
// machine's monotonic clock, taken elsewhere.
package measure

import (
	"cmp"
	"slices"
	"time"
)

// Sample is an answer of a member to "do you lead?" that is reported. An answer is reported if it differs from the one
// before, if it comes after a pause in sampling, or, once in a while, if the member still leads.
type Sample struct {
	Asked time.Duration // the answer holds for some instant between this
	At    time.Duration // and this
	Prev  time.Duration // when the question before was asked
	Leads bool
	Gap   bool // there was no sample for so long that the process may have been stopped
}

// Span is a time in which every sample said "I lead". The member certainly leads from From, when the first such answer had
// come, to To, when the last known one was asked for. A single answer has From after To, and is from some instant between
// First and From.
type Span struct {
	First, From, To time.Duration
	Open            bool // as far as is known, it continues
	Resumed         bool // only a gap in sampling separates it from the span before
}

// Track is the leadership of one member.
type Track struct {
	Spans []Span
	Lost  []time.Duration // the times at which it was first seen not to lead any more
}

// Leads returns what the newest sample said.
func (t *Track) Leads() bool { return len(t.Spans) > 0 && t.Spans[len(t.Spans)-1].Open }

// Last returns the newest span, if there is one.
func (t *Track) Last() (Span, bool) {
	if len(t.Spans) == 0 {
		return Span{}, false
	}
	return t.Spans[len(t.Spans)-1], true
}

// Add adds the next sample. A gap ends a span even if the member leads after it, since a stopped process did not lead
// meanwhile.
func (t *Track) Add(s Sample) {
	led := t.Leads()
	if led {
		last := &t.Spans[len(t.Spans)-1]
		last.To = s.Prev
		if s.Leads && !s.Gap {
			last.To = s.Asked
			return
		}
		last.Open = false
		if !s.Leads {
			t.Lost = append(t.Lost, s.At)
		}
	}
	if s.Leads {
		t.Spans = append(t.Spans, Span{First: s.Asked, From: s.At, To: s.Asked, Open: true, Resumed: led})
	}
}

// Cut closes the open span, for example when the process is killed.
func (t *Track) Cut() {
	if t.Leads() {
		t.Spans[len(t.Spans)-1].Open = false
	}
}

// Bridged returns the spans as if there had been no gaps. It is for a process that was not stopped, but could not sample on
// a busy machine.
func (t *Track) Bridged() []Span {
	var spans []Span
	for _, s := range t.Spans {
		if s.Resumed && len(spans) > 0 {
			last := &spans[len(spans)-1]
			last.To, last.Open = s.To, s.Open
			continue
		}
		spans = append(spans, s)
	}
	return spans
}

// Since returns the spans that begin at or after a time.
func (t *Track) Since(at time.Duration) []Span {
	return slices.DeleteFunc(slices.Clone(t.Spans), func(s Span) bool { return s.From < at })
}

// Clip returns the parts of spans after a time.
func Clip(spans []Span, since time.Duration) []Span {
	var clipped []Span
	for _, s := range spans {
		if s.Open || max(s.From, s.To) >= since {
			s.First, s.From = max(s.First, since), max(s.From, since)
			clipped = append(clipped, s)
		}
	}
	return clipped
}

// Overlap returns how long spans of a and b certainly covered the same time, and whether they met at all: a single answer
// inside the other's span has no length.
func Overlap(a, b []Span) (length time.Duration, met bool) {
	for _, x := range a {
		for _, y := range b {
			from, to := max(x.From, y.From), min(x.To, y.To)
			if from <= to {
				length, met = length+to-from, true
			}
			met = met || x.within(y) || y.within(x)
		}
	}
	return length, met
}

// within reports whether a single answer was given while o lasted.
func (s Span) within(o Span) bool { return s.From > s.To && o.From <= s.First && s.From <= o.To }

// Vacant returns for how long no member was seen to lead between two times, and the longest such period. An open span
// continues.
func Vacant(spans []Span, from, to time.Duration) (vacant, longest time.Duration) {
	spans = slices.SortedFunc(slices.Values(spans), func(a, b Span) int { return cmp.Compare(a.From, b.From) })
	miss := func(d time.Duration) { vacant, longest = vacant+max(0, d), max(longest, d) }
	for _, s := range spans {
		end := max(s.From, s.To)
		if s.Open {
			end = to
		}
		if end <= from {
			continue
		}
		if s.From >= to {
			break
		}
		miss(s.From - from)
		from = max(from, end)
	}
	miss(to - from)
	return vacant, longest
}
