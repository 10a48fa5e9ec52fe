package link

import (
	"testing"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
	"github.com/stretchr/testify/require"
)

var at = clock.HourAnd // an instant after the beginning of a test

func TestBehind(t *testing.T) {
	const T = 20 * time.Second
	var l Link
	require.False(t, l.Behind(at(0), T), "nothing is on its way")
	l.Sent(lease.Hello, 1, at(0))
	require.False(t, l.Behind(at(time.Second-1), T))
	require.True(t, l.Behind(at(time.Second), T), "one is on its way for T/20")
	require.True(t, l.Behind(at(T-1), T))
	require.False(t, l.Behind(at(T), T), "it is given up: it may be lost")
	l.Back(1, at(0), at(3*time.Second), T)
	require.True(t, l.Behind(at(6*time.Second-1), T), "it took 3 s, less than 3 s ago")
	require.False(t, l.Behind(at(6*time.Second), T))
	l.Sent(lease.Beat, 2, at(4*time.Second))
	l.Back(2, at(4*time.Second), at(4*time.Second+1), T)
	require.False(t, l.Behind(at(5*time.Second), T), "another one took no time")
	l.Back(3, clock.Instant{}, at(100*time.Second), T)
	require.True(t, l.Behind(at(120*time.Second-1), T), "one took longer than T")
	require.False(t, l.Behind(at(120*time.Second), T))
}
