package neli

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/goneli/neli/internal/clock"
)

// shifted is v by a monotonic clock that shows mono more and a wall clock that shows
// wall more.
func shifted(v clock.Instant, mono, wall time.Duration) clock.Instant {
	return clock.Instant{Mono: v.Mono.Add(mono), Wall: v.Wall.Add(wall)}
}

var someInstant = clock.Instant{Mono: clock.Mono(time.Hour), Wall: clock.Wall(9 * time.Hour)}

// Exclusive leadership ends at 0.9 T: a holder's clock may be slewed by a tenth.
func TestYoung(t *testing.T) {
	const T = 5 * time.Second
	const Th = 4500 * time.Millisecond
	for _, c := range []struct {
		name               string
		mono, wall         time.Duration // since v
		exclusive, another bool          // whether it leads, by mode
	}{
		{"at once", 0, 0, true, true},
		{"just in time", Th - 1, Th - 1, true, true},
		{"at 0.9 T", Th, Th, false, true},
		{"just before T", T - 1, T - 1, false, true},
		{"at T", T, T, false, false},
		{"long after", 1000 * T, 1000 * T, false, false},
		{"V lies ahead", -1, -1, false, false},
		{"the machine was suspended: its monotonic clock stood still", 1, Th, false, true},
		{"the wall clock was set forward", 1, time.Hour, false, true},
		{"the wall clock was set back", Th - 1, -time.Hour, true, true},
		{"the wall clock was set back, and T is over", T, -time.Hour, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := someInstant
			now := shifted(v, c.mono, c.wall)
			require.Equal(t, c.exclusive, threshold{T, true}.young(now, v), "exclusive")
			require.Equal(t, c.another, threshold{T, false}.young(now, v), "non-exclusive")
		})
	}
}

// What is true of leadership is true of an older clock reading too: once over it
// stays over for as long as neither clock is set back.
func TestYoungEndsForGood(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		some := func(name string) time.Duration {
			return time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, name))
		}
		h := threshold{1 + some("T"), rapid.Bool().Draw(t, "exclusive")}
		v := shifted(someInstant, some("mono"), some("wall"))
		now := shifted(v, some("mono passed"), some("wall passed"))
		later := shifted(now, some("mono more"), some("wall more"))
		if h.young(later, v) && !h.young(now, v) {
			t.Fatalf("leads at %v, did not at %v", later, now)
		}
		if h.young(now, v) && !(threshold{h.t, false}).young(now, v) {
			t.Fatal("the exclusive reading is the more generous one")
		}
	})
}

func TestLeft(t *testing.T) {
	const T = 5 * time.Second
	v := someInstant
	for whole, h := range map[time.Duration]threshold{4500 * time.Millisecond: {T, true}, T: {T, false}} {
		require.Equal(t, whole, h.left(v, v))
		require.Equal(t, whole-3*time.Second, h.left(v.Add(3*time.Second), v))
		require.Zero(t, h.left(v.Add(T), v))
		require.Zero(t, h.left(v.Add(-1), v), "V lies ahead")
	}
	suspended := shifted(v, time.Second, 4*time.Second)
	require.Equal(t, 500*time.Millisecond, threshold{T, true}.left(suspended, v))
	require.Equal(t, 4*time.Second, threshold{T, false}.left(suspended, v))
}
