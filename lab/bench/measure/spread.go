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

// InRow returns the sums of each n successive values.
func InRow(n int, values []float64) []float64 {
	var sums []float64
	for row := range slices.Chunk(values, n) {
		if len(row) < n {
			break
		}
		sum := 0.0
		for _, v := range row {
			sum += v
		}
		sums = append(sums, sum)
	}
	return sums
}

// Silence returns T′, how long a claimant of neli waits: T by the slowest clock that is allowed, measured by the fastest.
func Silence(t time.Duration) time.Duration {
	const drift = 0.0005
	return time.Duration(float64(t)*(1+drift)/(1-drift)) + time.Millisecond
}

// Milliseconds returns a duration in the form of the results.
func Milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
