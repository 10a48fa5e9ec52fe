package term

import (
	"testing"

	"github.com/goneli/neli/internal/clock"
	"github.com/stretchr/testify/require"
)

// Terms are counted per unit, whether or not the application was told of them. Led counts those
// that were told, are young, and lie below the bound.
func TestCounts(t *testing.T) {
	now := clock.Glance()
	x := New(func(now, v clock.Instant) bool { return now.Mono.Sub(v.Mono) < 10 }, clock.Glance)
	require.Zero(t, x.Led(now, 10), "not open")
	x.Open(2, 2)
	x.Renew(0, now)
	x.Renew(1, now)
	x.Start([]int{0, 2, 4, 6}, 1, 1)
	x.Start([]int{0, 2}, 1, 1) // the same term goes on
	x.Start([]int{1, 3}, 2, 2)
	require.Equal(t, uint64(6), x.Counts().Started)
	require.Zero(t, x.Led(now, 10), "not told")
	x.Collect(now)
	require.Equal(t, 6, x.Led(now, 7))
	require.Equal(t, 5, x.Led(now, 6), "unit 6 is beyond the bound")
	require.Equal(t, 2, x.Led(now, 2))

	x.Renew(1, now.Add(10))
	require.Equal(t, 2, x.Led(now.Add(10), 10), "the units on the other partition have lapsed")
	x.Start([]int{0}, 5, 5) // under another id, so the former term has lapsed
	x.End([]int{1, 1, 9}, Closing, true)
	x.Done([]int{3})
	require.Equal(t, 0, x.Led(now.Add(10), 10))
	c := x.Counts()
	require.Equal(t, uint64(7), c.Started)
	require.Equal(t, uint64(1), c.Ended[Lapsed])
	require.Equal(t, uint64(1), c.Ended[Closing])
}
