package tally

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestBoundsAscend(t *testing.T) {
	require.True(t, slices.IsSorted(Bounds[:]))
	require.Equal(t, time.Minute, Bounds[len(Bounds)-1])
}

func TestAdd(t *testing.T) {
	var s Timing
	s.Add(0, 1)
	s.Add(5*time.Millisecond, 2) // a bound belongs to its bucket
	s.Add(5*time.Millisecond+1, 1)
	s.Add(time.Minute, 4)
	s.Add(time.Hour, 3) // longer than any bound
	require.Equal(t, uint64(11), s.Count)
	require.InDelta(t, 0.010+0.005+240+3*3600, s.Sum, 1e-6)
	require.Equal(t, [len(Bounds)]uint64{0: 3, 1: 1, len(Bounds) - 1: 4}, s.Buckets)
	before := s
	s.Add(24*time.Hour, 1_000_000)
	require.InDelta(t, before.Sum+86400e6, s.Sum, 1, "no overflow")
}

func BenchmarkAdd(b *testing.B) {
	var s Timing
	for b.Loop() {
		s.Add(time.Second, 1)
	}
}
