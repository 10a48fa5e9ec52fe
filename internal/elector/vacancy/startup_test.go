package vacancy

import (
	"testing"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
	"github.com/stretchr/testify/require"
)

// The first claims of a process wait for others that start with it: a while longer for each newcomer
// meanwhile, but at most three times.
func TestClaimsWaitForOthersThatStart(t *testing.T) {
	const T = 20 * time.Second // clock.StartupWait is longer than StartupWaitMax
	at := func(d time.Duration) clock.Instant { return clock.Alike(time.Hour + d) }
	for _, c := range []struct {
		name  string
		at    []time.Duration // when newcomers come
		until time.Duration
	}{
		{"one newcomer", []time.Duration{0}, StartupWaitMax},
		{"another one meanwhile", []time.Duration{0, 60 * time.Millisecond}, 60*time.Millisecond + StartupWaitMax},
		{"the fourth is not waited for", []time.Duration{0, 10 * time.Millisecond, 20 * time.Millisecond, 30 * time.Millisecond}, 20*time.Millisecond + StartupWaitMax},
		{"one that comes when the wait is over", []time.Duration{0, 150 * time.Millisecond}, StartupWaitMax},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := NewStartup(T)
			for _, d := range c.at {
				x.Newcomer(at(d))
			}
			require.True(t, x.waiting)
			require.Equal(t, at(c.until).Mono, x.End(2, false))
			require.Zero(t, x.End(1, false), "one role cannot be assigned")
			require.Zero(t, x.End(2, true), "the nominator assigns them")
			x.Given(at(5 * time.Millisecond))
			require.Equal(t, at(5*time.Millisecond).Mono, x.End(2, false), "a holder that hands something over knows who is there")
		})
	}
	x := NewStartup(time.Second)
	x.Newcomer(at(0))
	require.Equal(t, at(clock.StartupWait(time.Second)).Mono, x.End(2, false), "with a short T the wait is short")
}

var at = clock.HourAnd // an instant after the beginning of a test

func session(process string) lease.Session { return lease.Session{Process: process, N: 1} }

func holder(process string, heard, free time.Duration) lease.HolderState {
	return lease.HolderState{Session: session(process), Heard: at(heard), FreeAt: at(free).Raw}
}

func TestAssignTimeFollowsTheNumberOfRoles(t *testing.T) {
	const lease = 10 * time.Second
	require.Equal(t, 300*time.Millisecond, AssignTime(100_000, 100_000, 20, lease))
	require.Equal(t, lease/2, AssignTime(100_000, 100_000, 1000, lease))
	require.Equal(t, lease/20, AssignTime(10_000, 100_000, 1000, lease), "a tenth of all")
}

// Where assigning takes long, the pauses are long, but short at first: processes that die together
// are found silent within less than the whole pause.
func TestSharingOutIsLessAndLessFrequent(t *testing.T) {
	const whole = 800 * time.Millisecond
	var s assignPauses
	now := clock.Mono(time.Hour)
	share := func() time.Duration {
		pause := s.pause(now, whole)
		s.add(now, pause)
		require.Equal(t, now.Add(pause), s.next)
		return pause
	}
	for i, eighths := range []time.Duration{1, 2, 4, 8, 8} {
		require.Equal(t, eighths*whole/8, share(), "pause %d of a row", i+1)
		now = s.next
	}
	now = now.Add(whole)
	require.Equal(t, whole, share(), "soon after the pause")
	now = s.next.Add(whole + 1)
	require.Equal(t, whole/8, share(), "a new row")
}
