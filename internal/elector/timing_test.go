package elector

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/clock"
)

// The first claims of a process wait for others that start with it: a while longer for each
// that comes meanwhile, but not for ever.
func TestClaimsWaitForOthersThatStart(t *testing.T) {
	const T = 20 * time.Second // StartupWait is longer than settleFor
	at := func(d time.Duration) clock.Instant { return clock.Alike(time.Hour + d) }
	for _, c := range []struct {
		name  string
		at    []time.Duration // when newcomers come
		until time.Duration
	}{
		{"one newcomer", []time.Duration{0}, settleFor},
		{"another one meanwhile", []time.Duration{0, 60 * time.Millisecond}, 60*time.Millisecond + settleFor},
		{"the fourth is not waited for", []time.Duration{0, 10 * time.Millisecond, 20 * time.Millisecond, 30 * time.Millisecond}, 20*time.Millisecond + settleFor},
		{"one that comes when the wait is over", []time.Duration{0, 150 * time.Millisecond}, settleFor},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newTiming(T)
			for _, d := range c.at {
				x.newcomer(at(d))
			}
			require.True(t, x.settling)
			require.Equal(t, at(c.until).Mono, x.settled(2, false))
			require.Zero(t, x.settled(1, false), "one role cannot be shared out")
			require.Zero(t, x.settled(2, true), "the nominator shares them out")
			x.given(at(5 * time.Millisecond))
			require.Equal(t, at(5*time.Millisecond).Mono, x.settled(2, false), "a holder that hands something over knows who is there")
		})
	}
	x := newTiming(time.Second)
	x.newcomer(at(0))
	require.Equal(t, at(clock.StartupWait(time.Second)).Mono, x.settled(2, false), "with a short T the wait is short")
}

// Roles that were won are put together by token, in the order in which the tokens come.
func TestWinsAreByToken(t *testing.T) {
	var w wins
	for role, token := range []int64{7, 7, 9, 7, 9} {
		w.add(token, int32(role))
	}
	require.Equal(t, wins{{7, []int32{0, 1, 3}}, {9, []int32{2, 4}}}, w)
}
