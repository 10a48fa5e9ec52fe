package neli

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestYoung(t *testing.T) {
	const T = 5 * time.Second
	v := instant{mono: time.Hour, wall: 9 * time.Hour}
	for _, c := range []struct {
		name               string
		mono, wall         time.Duration // since v
		exclusive, another bool          // whether it leads, by mode
	}{
		{"at once", 0, 0, true, true},
		{"just in time", T - 1, T - 1, true, true},
		{"at T", T, T, false, false},
		{"long after", 1000 * T, 1000 * T, false, false},
		{"V lies ahead", -1, -1, false, false},
		{"the machine was suspended: its monotonic clock stood still", 1, T, false, true},
		{"the wall clock was set forward", 1, time.Hour, false, true},
		{"the wall clock was set back", T - 1, -time.Hour, true, true},
		{"the wall clock was set back, and T is over", T, -time.Hour, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := instant{mono: v.mono + c.mono, wall: v.wall + c.wall}
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
		v := instant{mono: some("mono"), wall: some("wall")}
		now := instant{mono: v.mono + some("mono passed"), wall: v.wall + some("wall passed")}
		later := instant{mono: now.mono + some("mono more"), wall: now.wall + some("wall more")}
		if h.young(later, v) && !h.young(now, v) {
			t.Fatalf("leads at %v, did not at %v", later, now)
		}
		if h.young(now, v) && !(threshold{h.t, false}).young(now, v) {
			t.Fatal("the exclusive reading is the more generous one")
		}
	})
}

func TestClock(t *testing.T) {
	a := clock()
	b := clock()
	require.Positive(t, a.mono)
	require.GreaterOrEqual(t, b.mono, a.mono)
	require.InDelta(t, time.Now().UnixNano(), a.wall, float64(time.Minute))

	synctest.Test(t, func(t *testing.T) {
		a := clock()
		time.Sleep(3 * time.Second)
		b := clock()
		require.Positive(t, a.mono, "beats are counted from here")
		require.Equal(t, 3*time.Second, b.age(a))
		require.Equal(t, 3*time.Second, b.ageAtMost(a))
		require.Equal(t, b, a.add(3*time.Second))
	})
}

func TestLeft(t *testing.T) {
	const T = 5 * time.Second
	v := instant{mono: time.Hour, wall: 9 * time.Hour}
	for _, h := range []threshold{{T, true}, {T, false}} {
		require.Equal(t, T, h.left(v, v))
		require.Equal(t, 2*time.Second, h.left(v.add(3*time.Second), v))
		require.Zero(t, h.left(v.add(T), v))
		require.Zero(t, h.left(v.add(-1), v), "V lies ahead")
	}
	suspended := instant{mono: v.mono + time.Second, wall: v.wall + 4*time.Second}
	require.Equal(t, time.Second, threshold{T, true}.left(suspended, v))
	require.Equal(t, 4*time.Second, threshold{T, false}.left(suspended, v))
}
