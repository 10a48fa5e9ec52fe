// Package tally has what durations are counted in: a Timing, which costs an addition or
// two, whoever looks at it and however seldom. It registers, names and exports nothing;
// that is for those who read it.
package tally

import "time"

// Bounds are the upper bounds of the buckets of a Timing, ascending: from less than a
// round trip to a broker nearby up to the longest lease that there can be.
var Bounds = [...]time.Duration{5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2500 * time.Millisecond,
	5 * time.Second, 15 * time.Second, time.Minute}

// Timing counts durations. The zero value has counted none. It is not safe for
// concurrent use.
type Timing struct {
	Count   uint64
	Sum     float64             // seconds: those of a million roles soon exceed a time.Duration
	Buckets [len(Bounds)]uint64 // those of at most Bounds[i] and more than the bound before; longer ones are in Count only
}

// Add counts a duration n times.
func (t *Timing) Add(d time.Duration, n int) {
	t.Count += uint64(n)
	t.Sum += d.Seconds() * float64(n)
	for i, bound := range Bounds {
		if d <= bound {
			t.Buckets[i] += uint64(n)
			return
		}
	}
}
