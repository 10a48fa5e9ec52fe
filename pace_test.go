package neli

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPace(t *testing.T) {
	p := newPace(5 * time.Second)
	for range leastClaims {
		require.False(t, p.full())
		p.under++
	}
	require.True(t, p.full(), "before anybody else is known")
	for _, c := range []struct{ partitions, candidates, limit int }{
		{1000, 1, 1000}, {1000, 10, 100}, {1001, 10, 101}, {1000, 100, leastClaims}, {1, 3, leastClaims}, {50, 0, 50},
	} {
		p.share(c.partitions, c.candidates)
		p.under = c.limit - 1
		require.False(t, p.full())
		p.under++
		require.True(t, p.full(), "%+v", c)
	}
}

// A claim that does not come back holds others up for a second, or a tenth of T.
func TestPaceIsPatientForAMoment(t *testing.T) {
	begin := instant{mono: time.Hour, wall: time.Hour}
	for timeout, patience := range map[time.Duration]time.Duration{time.Second: time.Second, 5 * time.Second: time.Second, time.Minute: 6 * time.Second} {
		p := newPace(timeout)
		require.True(t, p.counts(begin, begin.add(patience-1)))
		require.False(t, p.counts(begin, begin.add(patience)))
	}
}
