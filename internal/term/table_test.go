package term

import (
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/stretchr/testify/require"
)

func rang(t *Table) bool {
	select {
	case <-t.News():
		return true
	default:
		return false
	}
}

// all collects changes until there are no more.
func (b *bench) all(t *testing.T) (out []Change) {
	for range 10 {
		cs := b.collect(t)
		if len(cs) == 0 {
			return out
		}
		out = append(out, cs...)
	}
	require.Fail(t, "Collect never ends")
	return nil
}

func TestOnlyNewsRingsTheBell(t *testing.T) {
	b := newBench(1, 2)
	require.False(t, rang(b.Table))
	b.renew(0)
	b.start(0)
	require.True(t, rang(b.Table), "a new term")
	b.all(t)
	b.renew(0)
	require.False(t, rang(b.Table) || b.Fresh(), "rings for a renewal")
	b.revoke(Closing, b.clock, 0)
	require.True(t, rang(b.Table), "to be given up")
	b.all(t)
	b.finish(0)
	require.False(t, rang(b.Table) || b.Fresh(), "rings for what the application itself did")
	b.end(Closing, true, 0)
	require.True(t, rang(b.Table), "the end")
	b.all(t)
	b.end(Closing, true, 0, 1)
	b.revoke(Closing, b.clock, 1)
	require.False(t, rang(b.Table) || b.Fresh(), "rings for the end of a unit that is not held")
	b.Ring()
	b.Ring()
	require.True(t, rang(b.Table))
	require.False(t, rang(b.Table))
}

// A term whose end the application was told of must not come back, even if the clock is set back, or
// evidence comes late.
func TestEndedTermDoesNotComeBack(t *testing.T) {
	b := newBench(1, 1)
	b.renew(0)
	b.start(0)
	b.all(t)
	require.False(t, b.Over(0))
	b.clock.Wall = b.clock.Wall.Add(2 * testT)
	require.Equal(t, Lapsed, b.collect(t)[0].Reason)
	b.clock.Wall = b.clock.Wall.Add(-2 * testT)
	b.renew(0)
	require.True(t, b.Over(0))
	require.Empty(t, b.all(t))
	_, _, _, ok := b.Leads(0)
	require.False(t, ok)
	b.end(Lapsed, false, 0)
	b.start(0)
	require.Equal(t, Acquired, b.all(t)[0].Kind)
	_, _, _, ok = b.Leads(0)
	require.True(t, ok)
}

func TestTableBeforeOpen(t *testing.T) {
	table := New(young, clock.Glance)
	require.Empty(t, table.Collect(clock.Glance()))
	require.False(t, table.Fresh())
	_, ok := table.LeadsAny(10)
	require.False(t, ok)
	_, _, _, ok = table.Leads(0)
	require.False(t, ok)
	_, ok = table.V(0)
	require.False(t, ok)
	require.Empty(t, slices.Collect(table.Published(10)))
	table.End([]int{0, 7}, Fatal, false)
	require.False(t, table.Told(3) || table.Over(-1))
}

// The term changes between Leads' first look at it and the reading of the clock. An end does not wait
// for a lapse, so a successor may already lead at that reading.
func TestLeadsLooksAgainAfterTheClock(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(*bench)
		leads     bool
	}{
		"nothing":               {func(*bench) {}, true},
		"renewed":               {func(b *bench) { b.Renew(0, b.clock.Add(2)) }, true},
		"ended":                 {func(b *bench) { b.End([]int{0}, Superseded, false) }, false},
		"the work is done":      {func(b *bench) { b.Done([]int{0}) }, false},
		"another term":          {func(b *bench) { b.Start([]int{0}, 5, 5) }, false},
		"another unit ended":    {func(b *bench) { b.End([]int{1}, Superseded, false) }, true},
		"told of a new session": {func(b *bench) { b.Start([]int{0}, 5, 5); b.Collect(b.clock); b.Collect(b.clock) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(1, 2)
			b.renew(0)
			b.start(0, 1)
			b.all(t)
			b.now = func() clock.Instant {
				at := b.clock.Add(1)
				c.meanwhile(b)
				return at
			}
			_, _, _, ok := b.Leads(0)
			require.Equal(t, c.leads, ok)
		})
	}
}

// V is read before the clock. If it is renewed in between, V must not be newer than the clock reading.
func TestLeadsReadsVFirst(t *testing.T) {
	b := newBench(1, 1)
	b.renew(0)
	b.start(0)
	b.all(t)
	b.now = func() clock.Instant {
		b.Renew(0, b.clock.Add(2*time.Millisecond))
		return b.clock.Add(time.Millisecond)
	}
	_, _, _, ok := b.Leads(0)
	require.True(t, ok, "takes a newer V for a lapse")
}

// While any unit is led, LeadsAny reports it, even if the lowest unit ends meanwhile.
func TestLeadsAnyMissesNoLedUnit(t *testing.T) {
	b := newBench(1, 3)
	b.renew(0)
	b.start(0, 1, 2)
	b.all(t)
	next := 0
	b.now = func() clock.Instant {
		if next < 2 {
			b.End([]int{next}, Superseded, false)
			next++
		}
		return b.clock
	}
	_, ok := b.LeadsAny(3)
	require.True(t, ok, "misses the highest unit, which is led throughout")
	require.Equal(t, 2, next)
}

func TestUnitsThatChangeAlikeShareAChange(t *testing.T) {
	const n = 1000
	b := newBench(4, n)
	var of [4][]int
	for u := range n {
		of[u%4] = append(of[u%4], u)
	}
	for p := range of {
		b.renew(p)
		slices.Reverse(of[p])
		b.start(of[p]...)
	}
	cs := b.all(t)
	require.Len(t, cs, 4)
	for p, c := range cs {
		require.Equal(t, p, c.Vector)
		require.Len(t, c.Units, n/4)
	}
	b.clock = b.clock.Add(testT)
	require.Len(t, b.all(t), 4, "a lapse")
}

// Readers beside a writer: a term that ended before the question is never led, whatever V is by
// then. The race detector checks the memory accesses.
func TestLeadsNeverShowsAnEndedTerm(t *testing.T) {
	const units, partitions, rounds = 600, 3, 3000
	table := New(func(now, v clock.Instant) bool { return now.Age(v) < time.Hour }, clock.Glance)
	table.Open(partitions, partitions)
	var (
		over    atomic.Int64 // all terms up to this id are over
		stop    = make(chan struct{})
		readers sync.WaitGroup
		seen    atomic.Int64
	)
	for range 3 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				asked := over.Load()
				if id, token, at, ok := table.Leads(rand.IntN(units)); ok {
					seen.Add(1)
					if id <= asked || token != 2*id || at == (clock.Instant{}) {
						t.Errorf("led term %d, token %d, and %d was over", id, token, asked)
						return
					}
				}
				if _, ok := table.LeadsAny(units); ok {
					for u := range table.Published(units) {
						table.Leads(u)
						break
					}
				}
				table.V(0)
				table.Fresh()
			}
		})
	}
	for id := int64(1); id <= rounds; id++ {
		us := make([]int, 0, 40)
		for first := rand.IntN(units); len(us) < cap(us); first = (first + 7) % units {
			us = append(us, first)
		}
		for p := range partitions {
			table.Renew(p, clock.Glance()) // of this round's session
		}
		table.Start(us, id, 2*id)
		for len(table.Collect(clock.Glance())) > 0 {
		}
		switch id % 3 {
		case 0:
			table.Revoke(us, Closing, clock.Glance())
			table.Collect(clock.Glance())
			table.Done(us)
		case 1:
			table.Done(us[:20])
		}
		table.End(us, Superseded, id%2 == 0)
		over.Store(id)
	}
	close(stop)
	readers.Wait()
	require.Positive(t, seen.Load(), "no reader ever found a unit led")
}

// The arbiter's lock is held during Collect, so the changes of very many units come in parts.
func TestCollectReturnsManyUnitsInParts(t *testing.T) {
	const units = mostUnits + 3
	b := newBench(1, units)
	b.renew(0)
	all := make([]int, units)
	for unit := range all {
		all[unit] = unit
	}
	b.start(all...)
	for _, part := range [][]int{all[:mostUnits], all[mostUnits:]} {
		changes := b.Collect(b.clock)
		require.Len(t, changes, 1)
		require.Equal(t, part, changes[0].Units)
		require.True(t, b.Fresh(), "there may be more")
	}
	require.Empty(t, b.Collect(b.clock))
	require.False(t, b.Fresh())
}
