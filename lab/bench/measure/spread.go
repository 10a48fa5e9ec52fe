package measure

import (
	"math"
	"slices"
	"time"
)

// Spread is a table's summary of some measurements.
type Spread struct {
	N                          int
	Min, Median, P95, P99, Max float64
}

// SpreadOf returns the spread of measurements, which it sorts. The median of an even number is the mean of the middle two.
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
