package seeded

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func begin(seed uint64) *World {
	w := &World{}
	w.Begin(seed, 7)
	w.T, w.Limit = time.Second, 1000
	return w
}

// Events due at the same time happen in the order in which they were scheduled, and an event may schedule others.
func TestOrder(t *testing.T) {
	w := begin(1)
	var got []string
	say := func(s string) func() { return func() { got = append(got, fmt.Sprintf("%s at %v", s, w.Now)) } }
	w.After(2*time.Second, say("c"))
	w.After(time.Second, func() { say("a")(); w.After(0, say("d")); w.After(-time.Hour, say("e")) })
	w.After(time.Second, say("b"))
	w.After(time.Hour, say("never"))
	w.Run(time.Minute, nil)
	require.Equal(t, []string{"a at 1s", "b at 1s", "d at 1s", "e at 1s", "c at 2s"}, got)
	require.Equal(t, 5, w.Happened)
	require.Equal(t, 1, w.Pending())
	w.Soon(time.Second)
	w.Run(time.Minute, nil)
	require.Len(t, got, 6, "soon")
}

func TestRunEnds(t *testing.T) {
	n := 0
	ticking := func() *World {
		w := begin(1)
		n = 0
		var tick func()
		tick = func() { n++; w.After(time.Second, tick) }
		tick()
		return w
	}
	w := ticking()
	w.Run(10*time.Second, nil)
	require.Equal(t, 11, n)
	ticking().Run(time.Hour, func() bool { return n == 5 })
	require.Equal(t, 5, n)
	w = ticking()
	w.Limit = 7
	w.Run(time.Hour, nil)
	require.Equal(t, 8, n)
	w = ticking()
	w.After(2500*time.Millisecond, func() { w.Note("role %d", 3); w.Note("and more") })
	w.Run(time.Hour, nil)
	require.Equal(t, "role 3, at 2.5000 T", w.Complaint())
}

// The same seed gives the same world.
func TestRepeats(t *testing.T) {
	history := func(seed uint64) (all []time.Duration) {
		w := begin(seed)
		w.Heavy = 0.1
		w.Every(time.Second, func() {
			all = append(all, w.Now, w.Latency(0), w.Latency(1), w.Latency(2), w.Latency(3), w.Span(time.Minute), w.Spread(0.1, 10))
		})
		w.Run(time.Minute, nil)
		return all
	}
	require.NotEmpty(t, history(1))
	require.Equal(t, history(1), history(1))
	require.NotEqual(t, history(1), history(2))
}

// The adversary's faults end when the world is calm.
func TestCalm(t *testing.T) {
	w, n := begin(1), 0
	w.Every(time.Second, func() { n++ })
	w.Every(0, func() { t.Error("never") })
	w.Run(time.Minute, nil)
	before := n
	require.Positive(t, before)
	w.Calm = true
	w.Run(time.Hour, nil)
	require.Equal(t, before, n)
	require.Less(t, w.Latency(3), time.Second/20)
}

func TestRunLooksAtEachSeed(t *testing.T) {
	var mu sync.Mutex
	tried, looked := map[uint64]bool{}, 0
	Run(t, 50, func(seed uint64) *World {
		mu.Lock()
		defer mu.Unlock()
		tried[seed] = true
		return begin(seed)
	}, func(*World) { looked++ })
	require.Len(t, tried, 50)
	require.Equal(t, 50, looked)
}

func TestSeeds(t *testing.T) {
	t.Setenv("NELI_SEED", "12")
	seed, ok := one()
	require.True(t, ok)
	require.Equal(t, uint64(12), seed)
	t.Setenv("NELI_SEED", "")
	_, ok = one()
	require.False(t, ok)
	t.Setenv("NELI_SEEDS", "12345")
	require.Equal(t, 12345, Seeds(100))
}
