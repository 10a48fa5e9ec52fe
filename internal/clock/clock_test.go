package clock

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestGlance(t *testing.T) {
	a := Glance()
	b := Glance()
	require.Positive(t, a.Mono)
	require.GreaterOrEqual(t, b.Mono, a.Mono)
	require.InDelta(t, time.Now().UnixNano(), int64(a.Wall), float64(time.Minute))

	synctest.Test(t, func(t *testing.T) {
		a := Glance()
		time.Sleep(3 * time.Second)
		b := Glance()
		require.Positive(t, a.Mono)
		require.Equal(t, 3*time.Second, b.Age(a))
		require.Equal(t, b, a.Add(3*time.Second))
	})
}

func TestAgeIsTheLongestReading(t *testing.T) {
	s := Instant{Mono: 1000, Wall: 2000, Boot: 500}
	for _, c := range []struct {
		now  Instant
		want time.Duration
	}{
		{Instant{Mono: 1007, Wall: 2003, Boot: 501}, 7},
		{Instant{Mono: 1001, Wall: 2009, Boot: 501}, 9},
		{Instant{Mono: 1001, Wall: 1000, Boot: 511}, 11},
		{Instant{Mono: 1001, Wall: 1000}, 1}, // the boot clock was not read
		{Instant{Mono: 999, Wall: 1999, Boot: 499}, -1},
	} {
		require.Equal(t, c.want, c.now.Age(s), "%+v", c.now)
	}
	require.Equal(t, Instant{Mono: 1001, Wall: 2001, Boot: 501}, s.Add(1), "what was not read stays so")
}
