package vacancy

import (
	"testing"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/stretchr/testify/require"
)

// Where assigning takes long it is rare, but not at once: who dies together is found to be
// silent within less than the pause.
func TestSharingOutIsMoreAndMoreSeldom(t *testing.T) {
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
