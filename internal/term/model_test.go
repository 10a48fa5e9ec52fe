package term

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

const testT = time.Second

func young(now, v clock.Instant) bool {
	age := now.Age(v)
	return 0 <= age && age < testT
}

// bench is a table, a clock that is set by hand, and a naive model of both: each unit has plain
// fields of its own, and every question is answered from scratch.
type bench struct {
	*Table
	clock clock.Instant
	v     []clock.Instant // by partition
	units []naive
	ids   int64
}

// naive is one unit in the model.
type naive struct {
	held, told   int64 // ids; 0: none
	done         bool  // the application has finished the term told
	asked        bool  // the application was asked to finish it
	over         bool  // the application was told that held is over
	revoke       bool
	why          Reason
	deadline     clock.Instant
	ended        Reason // of the term told
	graceful     bool
	newest       int64 // the newest term that the application was told of
	acquisitions int
	ends         int
}

func newBench(partitions, units int) *bench {
	b := &bench{clock: clock.Instant{Mono: 1 << 40, Wall: 1 << 50}, v: make([]clock.Instant, partitions), units: make([]naive, units)}
	b.Table = New(young, func() clock.Instant { return b.clock })
	b.Open(partitions, partitions)
	return b
}

func (b *bench) line(unit int) int        { return unit % len(b.v) }
func (b *bench) current(unit int) bool    { return b.units[unit].held != 0 && b.fresh(b.line(unit)) }
func (b *bench) fresh(partition int) bool { return young(b.clock, b.v[partition]) }

func (b *bench) renew(partition int) {
	b.v[partition] = b.clock
	b.Renew(partition, b.clock)
}

func (b *bench) start(units ...int) int64 {
	b.ids++
	b.Start(units, b.ids, 100+b.ids)
	for _, u := range units {
		b.ended(u, Lapsed, false)
		n := &b.units[u]
		n.held, n.over, n.revoke = b.ids, false, false
	}
	return b.ids
}

func (b *bench) end(why Reason, graceful bool, units ...int) {
	b.End(units, why, graceful)
	for _, u := range units {
		b.ended(u, why, graceful)
	}
}

func (b *bench) ended(u int, why Reason, graceful bool) {
	n := &b.units[u]
	if n.held != 0 && n.held == n.told {
		n.ended, n.graceful = why, graceful
	}
	n.held, n.over, n.revoke = 0, false, false
}

func (b *bench) revoke(why Reason, deadline clock.Instant, units ...int) {
	b.Revoke(units, why, deadline)
	for _, u := range units {
		if n := &b.units[u]; n.held != 0 {
			n.revoke, n.why, n.deadline = true, why, deadline
		}
	}
}

func (b *bench) finish(units ...int) {
	b.Done(units)
	for _, u := range units {
		if n := &b.units[u]; n.held != 0 && n.held == n.told {
			n.done = true
		}
	}
}

// want returns the Change that the model expects for one unit; kind 0: none.
func (b *bench) want(u int) Change {
	n := &b.units[u]
	c := Change{Vector: b.line(u), ID: n.told, Token: 100 + n.told, Units: []int{u}}
	switch {
	case n.told != 0 && (n.held != n.told || !b.current(u)):
		c.Kind, c.Reason, c.Graceful = Lost, n.ended, n.graceful
		if n.ended == None {
			c.Reason = Lapsed
		}
		if n.asked {
			c.Kind = Gone
		}
	case n.told != 0 && n.revoke && !n.asked:
		c.Kind, c.Reason, c.Deadline = Revoked, n.why, n.deadline
	case n.told == 0 && b.current(u) && !n.revoke && !n.over:
		c.Kind, c.Reason, c.ID, c.Token = Acquired, Elected, n.held, 100+n.held
	}
	return c
}

func (b *bench) wants(kinds ...Kind) (out []Change) {
	for u := range b.units {
		if c := b.want(u); slices.Contains(kinds, c.Kind) {
			out = append(out, c)
		}
	}
	return out
}

func (b *bench) tell(t require.TestingT, c Change) {
	n := &b.units[c.Units[0]]
	switch c.Kind {
	case Gone, Lost:
		n.over = n.held == n.told
		n.told, n.asked, n.done, n.ended, n.graceful = 0, false, false, None, false
		n.ends++
	case Revoked:
		n.asked = true
	case Acquired:
		require.Greater(t, n.held, n.newest, "unit %v is told of an old term", c.Units)
		n.told, n.newest = n.held, n.held
		n.acquisitions++
	}
	require.Contains(t, []int{n.ends, n.ends + 1}, n.acquisitions)
}

// single splits changes into one for each unit.
func single(cs []Change) (out []Change) {
	for _, c := range cs {
		for _, u := range c.Units {
			one := c
			one.Units = []int{u}
			out = append(out, one)
		}
	}
	slices.SortFunc(out, func(a, b Change) int { return cmp.Compare(a.Units[0], b.Units[0]) })
	return out
}

func (b *bench) collect(t require.TestingT) []Change {
	want := b.wants(Gone, Lost)
	if len(want) == 0 {
		want = b.wants(Revoked)
	}
	if len(want) == 0 {
		want = b.wants(Acquired)
	}
	require.Equal(t, b.wants(Gone, Lost, Revoked), single(b.Peek(b.clock)), "peek")
	got := b.Collect(b.clock)
	require.Equal(t, want, single(got))
	require.Equal(t, len(want) > 0, b.Fresh())
	groups := map[group]bool{}
	for _, c := range got {
		g := group{c.Kind, c.Vector, c.ID, c.Reason, c.Graceful, c.Deadline}
		require.False(t, groups[g], "two changes of one group: %+v", c)
		groups[g] = true
		require.True(t, slices.IsSorted(c.Units))
	}
	require.True(t, slices.IsSortedFunc(got, func(a, b Change) int {
		return cmp.Or(cmp.Compare(a.Reason, b.Reason), compareBool(a.Graceful, b.Graceful), cmp.Compare(a.Vector, b.Vector), cmp.Compare(a.ID, b.ID))
	}))
	for _, c := range want {
		b.tell(t, c)
	}
	return got
}

// check compares every answer of the table with the model's.
func (b *bench) check(t require.TestingT) {
	var led, published []int
	for u := range b.units {
		n := &b.units[u]
		leads := b.current(u) && n.held == n.told && !n.done
		id, token, at, ok := b.Leads(u)
		require.Equal(t, leads, ok, "unit %d: %+v", u, *n)
		if ok {
			require.Equal(t, []any{n.held, 100 + n.held, b.clock}, []any{id, token, at})
			led = append(led, u)
		}
		if n.held != 0 && n.held == n.told && !n.done {
			published = append(published, u)
		}
		require.Equal(t, n.held != 0 && n.held == n.told, b.Told(u))
		require.Equal(t, n.held != 0 && n.over, b.Over(u))
		id, ok = b.Held(u)
		require.Equal(t, n.held != 0, ok)
		require.Equal(t, n.held, id)
	}
	for below := range len(b.units) + 1 {
		at, ok := b.LeadsAny(below)
		require.Equal(t, len(led) > 0 && led[0] < below, ok, "below %d of %v", below, led)
		if ok {
			require.Equal(t, b.clock, at)
		}
		n, _ := slices.BinarySearch(published, below)
		require.True(t, slices.Equal(published[:n], slices.Collect(b.Published(below))), "below %d of %v", below, published)
	}
}

// The table does what the model does, in whatever order terms begin, are renewed, are to be given
// up, end and lapse, and however seldom the application asks.
func TestTableAgreesWithTheModel(t *testing.T) {
	reasons := []Reason{Superseded, LogReset, Overdue, Unassigned}
	rapid.Check(t, func(t *rapid.T) {
		partitions := rapid.IntRange(1, 3).Draw(t, "partitions")
		n := rapid.IntRange(1, 8).Draw(t, "units")
		b := newBench(partitions, n)
		some := func(t *rapid.T) []int {
			return rapid.SliceOfNDistinct(rapid.IntRange(0, n-1), 1, n, rapid.ID[int]).Draw(t, "of")
		}
		why := func(t *rapid.T) Reason { return rapid.SampledFrom(reasons).Draw(t, "why") }
		t.Repeat(map[string]func(*rapid.T){
			"start": func(t *rapid.T) {
				if us := some(t); rapid.Bool().Draw(t, "evidence") {
					for _, u := range us {
						b.renew(b.line(u))
					}
					b.start(us...)
				} else {
					b.start(us...)
				}
				require.True(t, b.Fresh())
			},
			"renew": func(t *rapid.T) { b.renew(rapid.IntRange(0, partitions-1).Draw(t, "partition")) },
			"end":   func(t *rapid.T) { b.end(why(t), rapid.Bool().Draw(t, "graceful"), some(t)...) },
			"revoke": func(t *rapid.T) {
				b.revoke(why(t), b.clock.Add(time.Duration(rapid.IntRange(1, 3).Draw(t, "by"))), some(t)...)
			},
			"done": func(t *rapid.T) { b.finish(some(t)...) },
			"time passes": func(t *rapid.T) {
				b.clock = b.clock.Add(time.Duration(rapid.Int64Range(0, int64(testT)).Draw(t, "for")))
			},
			"the wall clock is set": func(t *rapid.T) {
				b.clock.Wall = b.clock.Wall.Add(time.Duration(rapid.Int64Range(-int64(2*testT), int64(2*testT)).Draw(t, "by")))
			},
			"collect": func(t *rapid.T) { b.collect(t) },
			"": func(t *rapid.T) {
				b.check(t)
			},
		})
		all := make([]int, n)
		for u := range all {
			all[u] = u
		}
		b.end(Fatal, false, all...)
		for range 2 {
			b.collect(t)
		}
		for u, n := range b.units {
			require.Equal(t, n.acquisitions, n.ends, "unit %d", u)
		}
		require.Empty(t, b.Collect(b.clock))
		for u := range b.units {
			require.Nil(t, b.index.entry(u), "keeps an entry that is neither held nor told")
		}
		require.Empty(t, b.changed)
	})
}
