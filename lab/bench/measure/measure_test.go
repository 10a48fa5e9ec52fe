package measure

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

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
	single := Span{First: 94, From: 95, To: 94, Resumed: true}
	spans := []Span{{First: 9, From: 10, To: 19}, {First: 29, From: 30, To: 40}, single, {First: 249, From: 250, To: 260}}
	assert.Equal(t, spans, track.Spans, "a gap parts spans; only who led goes on after one")
	assert.Equal(t, []Span{spans[0], {First: 29, From: 30, To: 94}, spans[3]}, track.Bridged(), "unless nobody stopped the process")
	assert.Equal(t, []time.Duration{21, 97, 262}, track.Lost, "a gap alone is no loss")
	assert.False(t, track.Leads())

	track.Add(Sample{Asked: 299, At: 300, Prev: 298, Leads: true})
	track.Add(Sample{Asked: 350, At: 351, Prev: 349, Leads: true})
	last, ok := track.Last()
	assert.True(t, ok)
	assert.Equal(t, Span{First: 299, From: 300, To: 350, Open: true}, last, "known up to the newest sample")
	track.Cut()
	track.Cut()
	last.Open = false
	assert.Equal(t, []Span{single, spans[3], last}, track.Since(95))
	assert.Len(t, track.Lost, 3, "the end of the process is no loss")
}

func TestOverlap(t *testing.T) {
	a := []Span{{First: -1, From: 0, To: 10}, {First: 45, From: 50, To: 45}}
	for name, c := range map[string]struct {
		b      []Span
		length time.Duration
		met    bool
	}{
		"apart":                         {[]Span{{From: 11, To: 20}}, 0, false},
		"shared":                        {[]Span{{From: 5, To: 20}}, 5, true},
		"one answer inside":             {[]Span{{From: 40, To: 60, Open: true}}, 0, true},
		"one answer, perhaps before":    {[]Span{{From: 46, To: 60}}, 0, false},
		"one answer, perhaps after":     {[]Span{{From: 40, To: 49, Open: true}}, 0, false},
		"two answers, who knows":        {[]Span{{First: 46, From: 49, To: 46}}, 0, false},
		"what is not known counts not":  {[]Span{{From: -9, To: -5, Open: true}}, 0, false},
		"a single answer of the others": {[]Span{{First: 3, From: 4, To: 3}}, 0, true},
		"nothing":                       {nil, 0, false},
	} {
		length, met := Overlap(a, c.b)
		assert.Equal(t, c.length, length, name)
		assert.Equal(t, c.met, met, name)
	}
}

func TestClip(t *testing.T) {
	spans := []Span{{From: 0, To: 10}, {From: 5, To: 20}, {First: 29, From: 30, To: 40}, {From: 3, To: 9, Open: true}}
	assert.Equal(t, []Span{{First: 15, From: 15, To: 20}, {First: 29, From: 30, To: 40}, {First: 15, From: 15, To: 9, Open: true}}, Clip(spans, 15))
}

func TestVacant(t *testing.T) {
	spans := []Span{{From: 30, Open: true}, {From: 0, To: 10}, {From: 5, To: 20}}
	for name, c := range map[string]struct {
		spans           []Span
		from, to        time.Duration
		vacant, longest time.Duration
	}{
		"between 20 and 30":  {spans, 5, 100, 10, 10},
		"from the beginning": {spans, 25, 40, 5, 5},
		"nobody ever led":    {nil, 3, 10, 7, 7},
		"somebody always":    {spans, 31, 40, 0, 0},
		"after the last":     {spans[1:2], 8, 12, 2, 2},
		"several times":      {[]Span{{From: 12, To: 20}, {From: 23, To: 40}}, 5, 41, 7 + 3 + 1, 7},
	} {
		vacant, longest := Vacant(c.spans, c.from, c.to)
		assert.Equal(t, c.vacant, vacant, name)
		assert.Equal(t, c.longest, longest, name)
	}
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

func TestInRow(t *testing.T) {
	assert.Equal(t, []float64{3, 30}, InRow(2, []float64{1, 2, 10, 20, 5}), "what has no other is left out")
	assert.Equal(t, []float64{6}, InRow(3, []float64{1, 2, 3, 4}))
	assert.Empty(t, InRow(2, []float64{7}))
}

func TestSilence(t *testing.T) {
	assert.Equal(t, "301.3ms", Silence(300*time.Millisecond).Round(10*time.Microsecond).String())
	assert.InDelta(t, 301.3, Milliseconds(Silence(300*time.Millisecond)), 0.01)
}
