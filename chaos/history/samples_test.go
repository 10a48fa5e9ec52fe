package history

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSamplesAreShared(t *testing.T) {
	writer, f, err := NewSamples("test")
	require.NoError(t, err)
	defer writer.Close()
	reader, err := OpenSamples(f)
	require.NoError(t, err)
	defer reader.Close()
	require.NoError(t, f.Close(), "the mappings live on")
	assert.Empty(t, reader.Runs())

	w := func(at time.Duration) Window { return Window{at, at + 1} }
	first := writer.Begin(NonExclusive, 2, NoToken, w(10))
	writer.Begin(Exclusive, 0, 7, w(12))
	writer.Extend(first, w(20))
	writer.Extend(first, w(50))

	assert.Equal(t, Run{Mode: NonExclusive, Role: 2, Answer: NoToken, First: w(10), Last: w(50), Samples: 3, Gap: 29}, reader.Run(first))
	assert.Equal(t, Span{11, 50}, reader.Run(first).Proven())
	latest, ok := reader.Latest(Exclusive, 0)
	assert.True(t, ok)
	assert.EqualValues(t, 7, latest.Answer)
	_, ok = reader.Latest(Exclusive, 1)
	assert.False(t, ok)
	assert.Len(t, reader.Runs(), 2)
	writer.Read(NonExclusive, 60)
	assert.EqualValues(t, 60, reader.LastRead(NonExclusive))
	assert.Zero(t, reader.LastRead(Exclusive))
}

func TestClock(t *testing.T) {
	before := Now()
	began := time.Now()
	require.Eventually(t, func() bool { return time.Since(began) > 20*time.Millisecond }, time.Second, time.Millisecond)
	assert.InDelta(t, float64(time.Since(began)), float64(Now()-before), float64(20*time.Millisecond), "the one that Go's time package reads")
}
