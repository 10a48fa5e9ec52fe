package measure

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestTrack(t *testing.T) {
	var track Track
	for _, s := range []Sample{
		{At: 1, Leads: false},
		{At: 10, Prev: 9, Leads: true},
		{At: 21, Prev: 19, Leads: false},
		{At: 30, Prev: 29, Leads: true},
		{At: 95, Prev: 40, Leads: true, Gap: true},
		{At: 97, Prev: 94, Leads: false},
		{At: 200, Prev: 150, Gap: true},
		{At: 250, Prev: 210, Leads: true, Gap: true},
		{At: 261, Prev: 260},
	} {
		track.Add(s)
	}
	assert.Equal(t, []Span{{From: 10, To: 19}, {From: 30, To: 40}, {From: 95, To: 95, Resumed: true}, {From: 250, To: 260}}, track.Spans,
		"a gap parts spans; one answer is a span of no length")
	assert.Equal(t, []Span{{From: 10, To: 19}, {From: 30, To: 95}, {From: 250, To: 260}}, track.Bridged(), "unless nobody stopped the process")
	assert.Equal(t, []time.Duration{21, 97, 261}, track.Lost, "a gap alone is no loss")
	assert.False(t, track.Leads())

	track.Add(Sample{At: 300, Prev: 299, Leads: true})
	assert.True(t, track.Leads())
	track.End(350)
	track.End(400)
	last, ok := track.Last()
	assert.True(t, ok)
	assert.Equal(t, Span{From: 300, To: 350}, last, "what has ended does not end again")
	assert.Equal(t, []Span{{From: 95, To: 95, Resumed: true}, {From: 250, To: 260}, {From: 300, To: 350}}, track.Since(95))
}

func TestOverlap(t *testing.T) {
	a := []Span{{From: 0, To: 10}, {From: 50, To: 50}}
	for name, c := range map[string]struct {
		b      []Span
		length time.Duration
		met    bool
	}{
		"apart":               {[]Span{{From: 11, To: 20}}, 0, false},
		"shared":              {[]Span{{From: 5, To: 20}}, 5, true},
		"one answer inside":   {[]Span{{From: 40, Open: true}}, 0, true},
		"open before":         {[]Span{{From: 2, Open: true}}, 8, true},
		"nothing":             {nil, 0, false},
		"an open span begins": {[]Span{{From: 70, Open: true}}, 0, false},
	} {
		length, met := Overlap(a, c.b, 60)
		assert.Equal(t, c.length, length, name)
		assert.Equal(t, c.met, met, name)
	}
}

func TestVacant(t *testing.T) {
	spans := []Span{{From: 30, Open: true}, {From: 0, To: 10}, {From: 5, To: 20}}
	assert.EqualValues(t, 10, Vacant(spans, 5, 100), "between 20 and 30")
	assert.EqualValues(t, 5, Vacant(spans, 25, 40))
	assert.EqualValues(t, 7, Vacant(nil, 3, 10))
	assert.EqualValues(t, 0, Vacant(spans, 31, 40))
	assert.EqualValues(t, 2, Vacant(spans[1:2], 8, 12), "and after the last")
}

func TestSpread(t *testing.T) {
	assert.Equal(t, Spread{}, SpreadOf(nil))
	assert.Equal(t, Spread{N: 1, Min: 4, Median: 4, P99: 4, Max: 4}, SpreadOf([]float64{4}))
	values := []float64{3, 1, 2, 10}
	assert.Equal(t, Spread{N: 4, Min: 1, Median: 2.5, P99: 10, Max: 10}, SpreadOf(values))
	assert.Equal(t, []float64{3, 1, 2, 10}, values, "they are left as they are")
	var many []float64
	for i := range 200 {
		many = append(many, float64(i+1))
	}
	assert.Equal(t, Spread{N: 200, Min: 1, Median: 100.5, P99: 198, Max: 200}, SpreadOf(many))
}

func TestSilence(t *testing.T) {
	assert.Equal(t, "301.3ms", Silence(300*time.Millisecond).Round(10*time.Microsecond).String())
	assert.InDelta(t, 301.3, Milliseconds(Silence(300*time.Millisecond)), 0.01)
}
