package kafkalog

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A client of a group is replaced when it has reached nobody for T, and five seconds at least,
// while another client has.
func TestReachability(t *testing.T) {
	for t0, want := range map[time.Duration]time.Duration{time.Second: stillAfter, 8 * time.Second: 8 * time.Second, time.Minute: time.Minute} {
		r := newReachability(t0)
		require.Equal(t, want, time.Duration(r.first)*r.every, "T = %v", t0)
	}
	r := newReachability(time.Second)
	require.Equal(t, 4, r.first)
	alone := func(n int) (out []bool) {
		for range n {
			out = append(out, r.alone())
		}
		return out
	}
	require.NotContains(t, alone(3), true)
	r.reached()
	require.NotContains(t, alone(3), true, "it has reached a broker")
	r.nobody()
	require.NotContains(t, alone(3), true, "nobody has")
	require.True(t, r.alone())
	require.NotContains(t, alone(7), true, "a replacement in vain doubles the time")
	require.True(t, r.alone())
	r.reached()
	require.NotContains(t, alone(3), true)
	require.True(t, r.alone(), "and an answer undoes that")
	for range 20 {
		for !r.alone() {
		}
	}
	require.Equal(t, stillMost, time.Duration(r.most)*r.every, "five minutes at most")
}
