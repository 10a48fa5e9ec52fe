package member

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/goneli/neli/lab/bench/measure"
)

// fake is a Contender whose answer the test gives.
type fake struct{ leads atomic.Bool }

func (f *fake) Leads() bool  { return f.leads.Load() }
func (f *fake) Ready() bool  { return true }
func (f *fake) Close() error { return nil }

func TestSampler(t *testing.T) {
	lines := make(chan measure.Sample, 100)
	f := &fake{}
	s := startSampler(f, time.Millisecond, func(l Line) { lines <- *l.Sample })

	first := <-lines
	assert.False(t, first.Leads, "the first answer is told, whatever it is")
	f.leads.Store(true)
	won := <-lines
	assert.True(t, won.Leads)
	assert.LessOrEqual(t, first.Asked, won.Prev, "of all questions in between the last")
	assert.LessOrEqual(t, won.Prev, won.Asked)
	assert.LessOrEqual(t, won.Asked, won.At)

	again := <-lines
	assert.True(t, again.Leads, "a leader says now and then that it still leads")
	assert.GreaterOrEqual(t, again.Asked-won.Asked, still)

	f.leads.Store(false)
	s.pass()
	var last measure.Sample
	for len(lines) > 0 {
		last = <-lines
	}
	assert.False(t, last.Leads, "after pass the last answer is out")

	s.set(0)
	f.leads.Store(true)
	assert.Empty(t, lines, "nobody asks")
	s.set(time.Millisecond)
	resumed := <-lines
	assert.True(t, resumed.Leads)
	assert.False(t, resumed.Gap, "a pause that was asked for is no gap")
}
