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

func TestCellLeads(t *testing.T) {
	const T = time.Second
	h := threshold{T, true}
	v := instant{mono: time.Hour, wall: time.Hour}
	at := func(d time.Duration) func() instant { return func() instant { return v.add(d) } }
	var c cell
	leads := func(d time.Duration) bool {
		_, _, ok := c.leads(h, at(d))
		return ok
	}
	require.False(t, leads(0), "nothing is held")

	c.term.Store(&term{id: 7, token: 7, v: v})
	require.False(t, leads(0), "the application was not told")
	c.told.Store(7)
	require.False(t, leads(0), "it was told of another term")
	c.told.Store(7 + 1)
	require.True(t, leads(0))
	require.True(t, leads(T-1))
	require.False(t, leads(T))

	got, now, ok := c.leads(h, at(T/2))
	require.True(t, ok)
	require.Equal(t, term{id: 7, token: 7, v: v}, *got)
	require.Equal(t, v.add(T/2), now)

	c.term.Store(&term{id: 8, token: 8, v: v})
	require.False(t, leads(0), "the next term, of which it was not told")
	c.term.Store(nil)
	require.False(t, leads(0))

	c = cell{}
	c.term.Store(&term{id: 0, token: 0, v: v})
	require.False(t, leads(0), "a token of 0 is one of which it has to be told")
	c.told.Store(1)
	require.True(t, leads(0))
}

// The clock is read after the term: a renewal between the two must not make V
// lie ahead of now.
func TestCellReadsTheTermFirst(t *testing.T) {
	var c cell
	v := instant{mono: time.Hour, wall: time.Hour}
	c.told.Store(1)
	c.term.Store(&term{v: v})
	_, _, ok := c.leads(threshold{time.Second, true}, func() instant {
		c.term.Store(&term{v: v.add(2 * time.Millisecond)})
		return v.add(time.Millisecond)
	})
	require.True(t, ok)
}

// A Release does not wait for a lapse: one between the look at the term and the
// reading of the clock lets a successor lead at that very reading.
func TestCellLooksAgainAfterTheClock(t *testing.T) {
	v := instant{mono: time.Hour, wall: time.Hour}
	for name, c := range map[string]struct {
		meanwhile func(*cell)
		leads     bool
	}{
		"nothing":           {func(*cell) {}, true},
		"renewed":           {func(c *cell) { c.term.Store(&term{v: v.add(2 * time.Millisecond)}) }, true},
		"released":          {func(c *cell) { c.term.Store(nil) }, false},
		"the work is done":  {func(c *cell) { c.told.Store(0) }, false},
		"another term":      {func(c *cell) { c.term.Store(&term{id: 5, token: 5, v: v}) }, false},
		"another, and told": {func(c *cell) { c.term.Store(&term{id: 5, token: 5, v: v}); c.told.Store(6) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			var held cell
			held.told.Store(1)
			held.term.Store(&term{v: v})
			_, _, ok := held.leads(threshold{time.Second, true}, func() instant {
				c.meanwhile(&held)
				return v.add(time.Millisecond)
			})
			require.Equal(t, c.leads, ok)
		})
	}
}
