// Package measure turns what members saw of their own leadership into figures. It
// is pure: all times are readings of the machine's one monotonic clock, which were
// taken elsewhere.
package measure

import (
	"slices"
	"time"
)

// Sample is one answer of a member to "do you lead?" that differs from the one
// before, or that comes after a pause in sampling.
type Sample struct {
	At    time.Duration // when the answer was there
	Prev  time.Duration // when the question before was asked
	Leads bool
	Gap   bool // nothing was asked for so long that the process may have been stopped
}

// Span is a time in which every sample said "I lead". Nothing is said of the time
// before From, when the first such answer was there, and after To, when the last
// one was asked for; so what is computed of spans errs towards longer vacancies and
// shorter overlaps, by one sampling interval at most.
type Span struct {
	From, To time.Duration
	Open     bool // it goes on; To means nothing
	Resumed  bool // a gap in the sampling parts it from the span before
}

// Track is the leadership of one member.
type Track struct {
	Spans []Span
	Lost  []time.Duration // when it was first seen not to lead any more
}

// Leads tells what the newest sample said.
func (t *Track) Leads() bool { return len(t.Spans) > 0 && t.Spans[len(t.Spans)-1].Open }

// Last is the newest span, if there is one.
func (t *Track) Last() (Span, bool) {
	if len(t.Spans) == 0 {
		return Span{}, false
	}
	return t.Spans[len(t.Spans)-1], true
}

// Add takes the next sample. A gap ends a span even if the member leads after it:
// who was stopped has not led meanwhile.
func (t *Track) Add(s Sample) {
	led := t.Leads()
	if led && (!s.Leads || s.Gap) {
		t.End(s.Prev)
		if !s.Leads {
			t.Lost = append(t.Lost, s.At)
		}
	}
	if s.Leads && !t.Leads() {
		t.Spans = append(t.Spans, Span{From: s.At, Open: true, Resumed: led})
	}
}

// Bridged returns the spans as if there had been no gaps: for a process that nobody
// stopped, and that was kept from its samples by a busy machine.
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

// End closes the span that is open, as when the process is killed.
func (t *Track) End(at time.Duration) {
	if !t.Leads() {
		return
	}
	last := &t.Spans[len(t.Spans)-1]
	// A single sample gives a span that ends before it begins.
	last.To, last.Open = max(at, last.From), false
}

// Since returns the spans that begin at or after a time.
func (t *Track) Since(at time.Duration) []Span {
	return slices.DeleteFunc(slices.Clone(t.Spans), func(s Span) bool { return s.From < at })
}

// end is when a span is over, seen at now.
func (s Span) end(now time.Duration) time.Duration {
	if s.Open {
		return now
	}
	return s.To
}

// Overlap returns for how long spans of a and b covered the same time, and whether
// they met at all: one answer in the middle of the other's span has no length.
func Overlap(a, b []Span, now time.Duration) (length time.Duration, met bool) {
	for _, x := range a {
		for _, y := range b {
			from, to := max(x.From, y.From), min(x.end(now), y.end(now))
			if from <= to {
				length, met = length+to-from, true
			}
		}
	}
	return length, met
}

// Vacant returns for how long nobody was seen to lead between two times.
func Vacant(spans []Span, from, to time.Duration) time.Duration {
	spans = slices.SortedFunc(slices.Values(spans), func(a, b Span) int { return int(a.From - b.From) })
	var vacant time.Duration
	for _, s := range spans {
		if s.end(to) <= from {
			continue
		}
		if s.From >= to {
			break
		}
		vacant += max(0, s.From-from)
		from = max(from, s.end(to))
	}
	return vacant + max(0, to-from)
}
