package link

import (
	"testing"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
	"github.com/stretchr/testify/require"
)

func TestLink(t *testing.T) {
	const T = 8 * time.Second
	var l Link
	require.False(t, l.Check(at(0), T), "nothing has come back yet")
	l.Sent(lease.Hello, 1, at(0))
	require.True(t, l.Probing(at(T-1), T))
	require.False(t, l.Probing(at(T), T), "it is given up")
	l.Back(1, at(0), at(time.Second), T)
	require.False(t, l.Probing(at(time.Second), T))
	require.True(t, l.Check(at(time.Second), T))
	require.True(t, l.Check(at(time.Second+T/2-1), T))
	require.False(t, l.Check(at(time.Second+T/2), T), "too long ago")
	require.False(t, l.stalled, "that proves nothing")

	l.Sent(lease.Beat, 2, at(10*time.Second))
	require.True(t, l.Beating(at(10*time.Second), T))
	l.Check(at(10*time.Second+T/4-1), T)
	require.False(t, l.stalled)
	l.Check(at(10*time.Second+T/4), T)
	require.True(t, l.stalled, "it is overdue")
	require.True(t, l.Doubtful(at(12*time.Second)), "whoever was silent meanwhile")

	l.Back(2, at(10*time.Second), at(13*time.Second), T)
	require.True(t, l.stalled, "it took more than T/4")
	l.Sent(lease.Claim, 3, at(14*time.Second))
	l.Back(3, clock.Instant{}, at(30*time.Second), T)
	require.True(t, l.stalled, "it took more than T")
	l.Sent(lease.Hello, 4, at(31*time.Second))
	l.Back(4, at(31*time.Second), at(31*time.Second+T/4-1), T)
	require.False(t, l.stalled)
	require.True(t, l.Doubtful(at(20*time.Second)), "heard before the log was back")
	require.False(t, l.Doubtful(at(34*time.Second)))

	l.Sent(lease.Beat, 5, at(40*time.Second))
	l.Failed(5)
	require.True(t, l.stalled)
	require.False(t, l.Beating(at(40*time.Second), T), "another one may be sent")
	l.Sent(lease.Snapshot, 6, at(41*time.Second))
	require.Zero(t, l.beat.seq, "nobody waits for that")
}

// Every own record that comes back counts for the round trip. Shorter times have more weight.
func TestRoundTripIsMeasured(t *testing.T) {
	for _, T := range []time.Duration{400 * time.Millisecond, 5 * time.Second} {
		tm := NewRoundTrip(T)
		require.Equal(t, MaxRoundTrip, tm.Takes())
		for range 100 {
			tm.Back(at(0), at(3*time.Millisecond))
		}
		require.InDelta(t, 3*time.Millisecond, tm.Takes(), float64(10*time.Microsecond))
		tm.Back(at(0), at(11*time.Millisecond))
		require.InDelta(t, 4*time.Millisecond, tm.Takes(), float64(10*time.Microsecond), "an eighth of the difference")
		tm.Back(at(0), at(time.Minute))
		require.InDelta(t, 4*time.Millisecond, tm.smoothed, float64(10*time.Microsecond), "a record that was held up is no round trip")
		tm.Back(clock.Instant{}, at(2*time.Minute))
		require.Equal(t, at(2*time.Minute), tm.lastBack)
	}
}

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
