package link

import (
	"testing"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
	"github.com/stretchr/testify/require"
)

func TestAProbeDelaysAClaim(t *testing.T) {
	const T = time.Second
	var l Link
	require.Equal(t, clock.Mono(7), l.ProbedUntil(7, at(0), T), "a probe is to be sent then")
	l.Sent(lease.Hello, 1, at(0))
	require.Equal(t, at(T).Mono, l.ProbedUntil(7, at(10*time.Millisecond), T))
	l.Back(1, at(0), at(20*time.Millisecond), T)
	require.Zero(t, l.ProbedUntil(7, at(30*time.Millisecond), T), "the log works")
	l = Link{trusted: true, stalled: true}
	require.Zero(t, l.ProbedUntil(7, at(0), T), "a small log says so itself")
}
