package elector

import (
	"testing"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/stretchr/testify/require"
)

// Who did not claim what it was given is left alone for five seconds, then for twice as
// long each time, up to a minute. A minute after that it is forgotten.
func TestCooling(t *testing.T) {
	c := cooldowns{}
	now := clock.Mono(time.Hour)
	for _, long := range []time.Duration{5, 10, 20, 40, 60, 60} {
		require.False(t, c.leaves("a", now))
		require.Equal(t, long*time.Second, c.failed("a", now))
		require.True(t, c.leaves("a", now.Add(long*time.Second-1)))
		require.False(t, c.leaves("b", now))
		now = now.Add(long * time.Second)
	}
	now = now.Add(time.Minute - 1)
	require.Equal(t, 5*time.Second, c.failed("b", now))
	require.Len(t, c, 2)
	require.Equal(t, 5*time.Second, c.failed("a", now.Add(1)), "long ago")
	require.Equal(t, 5*time.Second, c.failed("c", now.Add(time.Hour)))
	require.Len(t, c, 1)
}
