// Package witness records what a member sees of its own leadership, and works out what this proves: who led when, two
// leaders at once, times without a leader. The integration tests, chaos and bench watch their members with it.
//
// To take a sample, the member reads the clock, asks whether it leads, and reads the clock again. The answer was true
// at some instant between the two readings. So one answer proves little, but two prove more: a term is one
// uninterrupted period of leading, so the member led throughout between two true samples of the same term. A term is
// therefore proven from the second reading of its first true sample to the first reading of its last one, whether or
// not the process was suspended in between.
//
// Everything but Samples is pure. The tests feed it forged samples that it must reject.
package witness

import "time"

// Never is later than everything.
const Never = time.Duration(1<<63 - 1)

// Window is the time in which one sample was taken: between two readings of the monotonic clock.
type Window struct{ Before, After time.Duration }

// Answers that are not tokens.
const (
	No      = int64(-2) // does not lead
	NoToken = int64(-1) // leads, in non-exclusive mode
)

// Run is a period in which a member got the same answer for one role, and sampling did not pause.
type Run struct {
	Neli, Role  int // the number of the member's Neli, and the role there
	Answer      int64
	First, Last Window
	Samples     int64
	Gap         time.Duration // the longest time between two samples
}

// Proven returns the time in which the answer was certainly true.
func (r Run) Proven() Span { return Span{r.First.After, r.Last.Before} }

// Meets reports whether there is an instant at which both answers were certainly true: either their proven times meet, or
// a sample of one certainly lies within the proven time of the other.
func (r Run) Meets(o Run) bool {
	a, b := r.Proven(), o.Proven()
	return a.Meets(b) || a.Contains(o.First) || a.Contains(o.Last) || b.Contains(r.First) || b.Contains(r.Last)
}

// Runs are a member's runs, in order.
type Runs []Run

// Of returns the runs of one role.
func (rs Runs) Of(neli, role int) Runs {
	var out Runs
	for _, r := range rs {
		if r.Neli == neli && r.Role == role {
			out = append(out, r)
		}
	}
	return out
}

// Proven returns the times in which any answer of these runs was certainly true.
func (rs Runs) Proven() []Span {
	var spans []Span
	for _, r := range rs {
		spans = append(spans, r.Proven())
	}
	return Union(spans)
}

// Led returns the times at which a member certainly led. All runs must be of one role. The time between two true runs
// counts if no other answer is between them and if it is shorter than presumption: evidence received before proves
// leadership for that long.
func (rs Runs) Led(presumption time.Duration) []Span {
	var led []Span
	former := No
	var last Window
	for _, r := range rs {
		if r.Answer != No {
			s := r.Proven()
			if n := len(led); n > 0 && former != No && s.From-last.After < presumption {
				s.From = led[n-1].From
				led = led[:n-1]
			}
			led = append(led, s)
		}
		former, last = r.Answer, r.Last
	}
	return led
}

// Sampled returns when a member should have been sampled, from its first sample to its end without suspensions, and when it
// was not. All runs must be of one role.
func (rs Runs) Sampled(end time.Duration, stops []Span) (awake, missing []Span) {
	awake = Without(Span{rs[0].First.After, end}, stops)
	proven := rs.Proven()
	for _, a := range awake {
		missing = append(missing, Without(a, proven)...)
	}
	return awake, missing
}

// Together returns for how long two members certainly led one role at the same time, and whether they did at all: a single
// sample within the other's time has no length.
func Together(a, b Runs) (length time.Duration, met bool) {
	for _, x := range a {
		for _, y := range b {
			met = met || x.Meets(y)
		}
	}
	return Total(Intersect(a.Proven(), b.Proven())), met
}

// Idle returns the times at which a member certainly did not lead: between two consecutive samples that say so, before
// a first sample that says so, before its birth, and after its death. All runs must be of one role. Between two such
// samples the member cannot have begun and ended a term, since a term lasts at least T, and samples that far apart are
// in different runs. So nothing is certain while the member was suspended. A member without samples has ended before
// its sampler ran, and long before it could be elected.
func (rs Runs) Idle(born, died time.Duration) []Span {
	if len(rs) == 0 {
		return []Span{{-Never, Never}}
	}
	out := []Span{{-Never, born}, {died, Never}}
	for i, r := range rs {
		if r.Answer != No {
			continue
		}
		s := r.Proven()
		if i == 0 {
			s.From = -Never
		}
		out = append(out, s)
	}
	return out
}
