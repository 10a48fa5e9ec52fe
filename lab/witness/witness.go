// Package witness records what a member sees of its own leadership, and works out what this proves. The integration
// tests and the chaos tests watch their members with it.
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

// Idle returns the times at which a member certainly did not lead. All runs must be of one role. These times are
// between two consecutive samples that say so, before the member's birth, and after its death. Between two such
// samples it cannot have become leader and stopped again, since a term lasts at least T, and samples further apart than
// that are in different runs. So nothing is certain about a time in which it was suspended.
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
