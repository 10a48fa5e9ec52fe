// Package measure turns what members saw of their own leadership into figures. It is pure: all times are readings of the
// machine's monotonic clock, taken elsewhere. Package witness says what samples prove.
package measure

import (
	"math"
	"slices"
	"time"

	"github.com/goneli/neli/lab/witness"
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

// Track is the leadership of one member: a run for each time in which its answer stayed the same.
type Track witness.Runs

// Add adds the next sample. A gap ends a run even if the answer is the same after it, since a stopped process did not
// lead meanwhile.
func (t *Track) Add(s Sample) {
	answer, now := witness.No, witness.Window{Before: s.Asked, After: s.At}
	if s.Leads {
		answer = witness.NoToken
	}
	if n := len(*t); n > 0 {
		last := &(*t)[n-1]
		if last.Answer == answer && !s.Gap {
			last.Last = now
			return
		}
		last.Last = witness.Window{Before: s.Prev, After: s.Asked} // the samples between were not reported
	}
	*t = append(*t, witness.Run{Answer: answer, First: now, Last: now})
}

// Leads returns what the newest sample said.
func (t Track) Leads() bool { return len(t) > 0 && t[len(t)-1].Answer != witness.No }

// Led returns the times in which the member led, as if sampling had never paused: for a process that was not stopped, but
// could not sample on a busy machine.
func (t Track) Led() []witness.Span { return witness.Runs(t).Led(witness.Never) }

// Since returns the runs of leadership that begin at or after a time.
func (t Track) Since(at time.Duration) (runs witness.Runs) {
	for _, r := range t {
		if r.Answer != witness.No && r.First.After >= at {
			runs = append(runs, r)
		}
	}
	return runs
}

// All returns all runs of leadership.
func (t Track) All() witness.Runs { return t.Since(0) }

// Fresh returns the runs of leadership without those that only go on after a gap.
func (t Track) Fresh() (runs witness.Runs) {
	for i, r := range t {
		if r.Answer != witness.No && (i == 0 || t[i-1].Answer == witness.No) {
			runs = append(runs, r)
		}
	}
	return runs
}

// Last returns the newest run of leadership, if there is one.
func (t Track) Last() (witness.Run, bool) {
	all := t.All()
	if len(all) == 0 {
		return witness.Run{}, false
	}
	return all[len(all)-1], true
}

// Spread is a table's summary of some measurements.
type Spread struct {
	N                          int
	Min, Median, P95, P99, Max float64
}

// SpreadOf returns the spread of measurements in any order. The median of an even number is the mean of the middle two.
// Percentiles are the nearest rank: the 99th of fewer than a hundred is the maximum.
func SpreadOf(values []float64) Spread {
	v := slices.Sorted(slices.Values(values))
	n := len(v)
	if n == 0 {
		return Spread{}
	}
	rank := func(part float64) float64 { return v[int(math.Ceil(part*float64(n)))-1] }
	return Spread{N: n, Min: v[0], Max: v[n-1], Median: (v[(n-1)/2] + v[n/2]) / 2, P95: rank(0.95), P99: rank(0.99)}
}

// Milliseconds returns a duration in the form of the results.
func Milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
