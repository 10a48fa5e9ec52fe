//go:build unix

package witness

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSamplesAreShared(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "samples"))
	require.NoError(t, err)
	written, err := Open(f)
	require.NoError(t, err)
	before := written.begin(0, 1, No, at(1))
	read, err := Open(f)
	require.NoError(t, err)
	require.NoError(t, f.Close(), "the mappings live on")
	assert.Equal(t, 1, read.count(), "who opens it second finds what there is")

	b := written.begin(2, 3, 77, at(2))
	written.extend(before, at(5))
	written.extend(before, at(7))
	assert.Equal(t, Run{Neli: 0, Role: 1, Answer: No, First: at(1), Last: at(7), Samples: 3, Gap: 3 * time.Millisecond}, read.run(before))
	assert.Equal(t, Runs{read.run(before), written.run(b)}, read.Runs())
	assert.Equal(t, read.Runs()[:1], read.Runs().Of(0, 1))
	latest, ok := read.Latest(2, 3)
	assert.True(t, ok)
	assert.Equal(t, written.run(b), latest)
	assert.EqualValues(t, 77, latest.Answer)
	for _, other := range [][2]int{{2, 1}, {0, 3}} {
		_, ok = read.Latest(other[0], other[1])
		assert.False(t, ok)
		assert.Empty(t, read.Runs().Of(other[0], other[1]))
	}

	written.Note(1, 60)
	assert.EqualValues(t, 60, read.Noted(1))
	assert.Zero(t, read.Noted(0))
	assert.Equal(t, 2, read.count())
	assert.Panics(t, func() { written.Note(headerWords-1, 1) }, "that is where runs begin")
	require.NoError(t, written.Close())
	require.NoError(t, read.Close())
}

func TestSamplesMakeRuns(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "samples"))
	require.NoError(t, err)
	defer f.Close()
	s, err := Open(f)
	require.NoError(t, err)
	defer s.Close()
	assert.Empty(t, s.Runs())
	i := s.Take(-1, 0, 0, No, at(0))
	assert.Equal(t, i, s.Take(i, 0, 0, No, at(51)), "a pause of BreakAfter")
	another := s.Take(i, 0, 0, No, at(103))
	assert.NotEqual(t, i, another, "a longer one")
	assert.NotEqual(t, another, s.Take(another, 0, 0, 7, at(104)), "another answer")
	assert.Len(t, s.Runs(), 3)
}

func TestNowRunsLikeGosClock(t *testing.T) {
	before, began, after := Now(), time.Now(), Now()
	require.Eventually(t, func() bool { return Now()-after > 20*time.Millisecond }, time.Minute, time.Millisecond)
	least := Now() - after
	took := time.Since(began)
	most := Now() - before
	assert.LessOrEqual(t, least, took, "it runs as the one that Go's time package reads")
	assert.LessOrEqual(t, took, most)
}
