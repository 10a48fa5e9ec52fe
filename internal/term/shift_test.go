package term

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/clock"
)

// shiftable returns a table with one unit on line 0 of two. The application was told of its term.
// Line 1 is as young as line 0.
func shiftable(t *testing.T) *bench {
	b := newBench(2, 2)
	b.renew(0)
	b.renew(1)
	b.start(0)
	b.all(t)
	return b
}

func TestAShiftedTermGoesOn(t *testing.T) {
	b := shiftable(t)
	id, token, _, ok := b.Leads(0)
	require.True(t, ok)
	b.Shift([]int{0, 7}, 1)
	again, same, _, ok := b.Leads(0)
	require.True(t, ok)
	require.Equal(t, []int64{id, token}, []int64{again, same})
	_, ok = b.LeadsAny(2)
	require.True(t, ok)
	require.Empty(t, b.all(t), "tells of a shift")
	require.True(t, b.Told(0))
	b.End([]int{0}, Superseded, false)
	require.Equal(t, Lost, b.Collect(b.clock)[0].Kind)
}

func TestAShiftedTermFollowsItsNewLine(t *testing.T) {
	b := newBench(2, 2)
	b.renew(0)
	b.start(0)
	b.all(t)
	b.Shift([]int{0}, 1) // a line without evidence
	_, _, _, ok := b.Leads(0)
	require.False(t, ok)
	require.Equal(t, Lost, b.Collect(b.clock)[0].Kind)
}

func TestUntoldTermMayBeShifted(t *testing.T) {
	b := newBench(2, 2)
	b.renew(1)
	b.start(0)
	require.Empty(t, b.Collect(b.clock), "tells of a term on a line without evidence")
	b.Shift([]int{0}, 1)
	require.Equal(t, Acquired, b.Collect(b.clock)[0].Kind)
	_, _, _, ok := b.Leads(0)
	require.True(t, ok)
}

// Leads looks at the term twice. A shift in between must not be taken for an end.
func TestLeadsFollowsAShift(t *testing.T) {
	b := shiftable(t)
	shifts := 0
	b.now = func() clock.Instant {
		if shifts++; shifts < 4 {
			b.Shift([]int{0}, shifts%2)
		}
		return b.clock
	}
	_, _, _, ok := b.Leads(0)
	require.True(t, ok, "takes a move to another line for an end")
	require.Equal(t, 4, shifts)
}

// LeadsAny finds nothing on one line. Before it looks at the next line, the unit moves from there to
// the line that it has seen. It must look again.
func TestLeadsAnyFollowsAShift(t *testing.T) {
	b := newBench(2, 2)
	b.renew(0)
	b.renew(1)
	b.start(0)
	b.start(1)
	b.all(t)
	b.clock.Mono += clock.Mono(time.Minute)
	b.renew(1) // line 0 is stale, and its unit is no longer led
	shifted := false
	b.now = func() clock.Instant {
		if !shifted {
			shifted = true
			b.Renew(0, b.clock)
			b.Shift([]int{1}, 0)
		}
		return b.clock
	}
	_, ok := b.LeadsAny(2)
	require.True(t, shifted)
	require.True(t, ok, "LeadsAny misses a unit that is shifted")
}

// A reader without a lock always finds a unit led while it moves from line to line.
func TestUnitIsLedThroughoutAShift(t *testing.T) {
	table := New(func(now, v clock.Instant) bool { return now.Age(v) < time.Hour }, clock.Glance)
	table.Open(3, 1)
	for line := range 3 {
		table.Renew(line, clock.Glance())
	}
	table.Start([]int{0}, 1, 1)
	require.Len(t, table.Collect(clock.Glance()), 1)
	const readers, asks = 2, 300_000
	var group sync.WaitGroup
	var left atomic.Int32
	left.Store(readers)
	for range readers {
		group.Go(func() {
			defer left.Add(-1)
			for range asks {
				if _, _, _, ok := table.Leads(0); !ok {
					t.Error("Leads misses a unit that is shifted")
					return
				}
				if _, ok := table.LeadsAny(1); !ok {
					t.Error("LeadsAny misses a unit that is shifted")
					return
				}
			}
		})
	}
	for i := 0; left.Load() > 0; i++ {
		table.Shift([]int{0}, i%3)
	}
	group.Wait()
}
