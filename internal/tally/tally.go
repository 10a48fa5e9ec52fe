// Package tally counts durations. Counting one costs a few additions, however many readers
// there are. The package does not register, name or export anything; that is up to the readers.
package tally

import "time"

// Bounds are the upper bounds of a Timing's buckets, ascending: from less than a round trip to a
// nearby broker up to the longest lease allowed.
var Bounds = [...]time.Duration{5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2500 * time.Millisecond,
	5 * time.Second, 15 * time.Second, time.Minute}

// Timing counts durations. The zero value is ready to use. It is not safe for concurrent use.
type Timing struct {
	Count   uint64
	Sum     float64             // in seconds: the sum for a million roles soon exceeds a time.Duration
	Buckets [len(Bounds)]uint64 // by bucket: durations of at most Bounds[i] and more than the bound before; longer ones are only in Count
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
