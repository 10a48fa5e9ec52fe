// Package witness is what a member saw of its own leadership, and what is proven by
// it. The real-broker suite and the chaos machine watch their members with it.
//
// A sample is three things in this order: the clock read, the question asked, the
// clock read again. The answer was true at one instant between the two readings,
// which one is not known. So an answer proves little, and two answers prove more:
// a term is one uninterrupted time of leading, so between two true samples of the
// same term it was led throughout. A term is therefore proven from the second
// reading of its first true sample to the first reading of its last, whether or not
// the process was suspended in between.
//
// All but Samples is pure; the tests feed it forged samples that it must reject.
package witness

import "time"

// Never is later than everything.
const Never = time.Duration(1<<63 - 1)

// Window is where one sample lies: between two readings of the monotonic clock.
type Window struct{ Before, After time.Duration }

// Answers that are no token.
const (
	No      = int64(-2) // does not lead
	NoToken = int64(-1) // leads, in non-exclusive mode
)

// Run is what a member saw of one role for as long as the answer stayed the same
// and sampling did not pause.
type Run struct {
	Neli, Role  int // which of the member's Nelis, and which role there
	Answer      int64
	First, Last Window
	Samples     int64
	Gap         time.Duration // the longest time between two samples
}

// Proven is when the answer held for certain.
func (r Run) Proven() Span { return Span{r.First.After, r.Last.Before} }

// Runs are what a member saw, in order.
type Runs []Run

// Of returns those of one role.
func (rs Runs) Of(neli, role int) Runs {
	var out Runs
	for _, r := range rs {
		if r.Neli == neli && r.Role == role {
			out = append(out, r)
		}
	}
	return out
}

// Idle returns the times at which a member certainly did not lead the role that all
// runs are of: between two consecutive samples that say so, until the first one, and
// before its birth and after its death. That it did not turn leader and back again
// between two samples is certain as well, since a term lasts T at least: runs are cut
// where samples lie further apart than that. So of the time for which it was suspended
// nothing is certain.
func (rs Runs) Idle(born, died time.Duration) []Span {
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
