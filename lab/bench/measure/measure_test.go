package measure

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/goneli/neli/lab/witness"
)

func window(before, after time.Duration) witness.Window {
	return witness.Window{Before: before, After: after}
}

func led(first, last witness.Window) witness.Run {
	return witness.Run{Answer: witness.NoToken, First: first, Last: last}
}

func TestTrack(t *testing.T) {
	var track Track
	for _, s := range []Sample{
		{Asked: 0, At: 1},
		{Asked: 9, At: 10, Prev: 8, Leads: true},
		{Asked: 15, At: 16, Prev: 14, Leads: true},
		{Asked: 20, At: 21, Prev: 19},
		{Asked: 29, At: 30, Prev: 28, Leads: true},
		{Asked: 94, At: 95, Prev: 40, Leads: true, Gap: true},
		{Asked: 96, At: 97, Prev: 94},
		{Asked: 199, At: 200, Prev: 150, Gap: true},
		{Asked: 249, At: 250, Prev: 210, Leads: true, Gap: true},
	} {
		track.Add(s)
	}
	assert.True(t, track.Leads())
	track.Add(Sample{Asked: 261, At: 262, Prev: 260})
	assert.False(t, track.Leads())
	runs := witness.Runs{led(window(9, 10), window(19, 20)), led(window(29, 30), window(40, 94)),
		led(window(94, 95), window(94, 96)), led(window(249, 250), window(260, 261))}
	assert.Equal(t, runs, track.All(), "a gap parts runs")
	assert.Equal(t, witness.Runs{runs[0], runs[1], runs[3]}, track.Fresh())
	assert.Equal(t, []witness.Span{{From: 10, To: 19}, {From: 30, To: 94}, {From: 250, To: 260}}, track.Led(), "nobody stopped the process")
	assert.Equal(t, runs[2:], track.Since(95))
	last, ok := track.Last()
	assert.True(t, ok)
	assert.Equal(t, runs[3], last)
}

func TestSpread(t *testing.T) {
	assert.Equal(t, Spread{}, SpreadOf(nil))
	assert.Equal(t, Spread{N: 1, Min: 4, Median: 4, P95: 4, P99: 4, Max: 4}, SpreadOf([]float64{4}))
	values := []float64{3, 1, 2, 10}
	assert.Equal(t, Spread{N: 4, Min: 1, Median: 2.5, P95: 10, P99: 10, Max: 10}, SpreadOf(values))
	assert.Equal(t, []float64{3, 1, 2, 10}, values, "they are left as they are")
	var many []float64
	for i := range 200 {
		many = append(many, float64(i+1))
	}
	assert.Equal(t, Spread{N: 200, Min: 1, Median: 100.5, P95: 190, P99: 198, Max: 200}, SpreadOf(many))
}
