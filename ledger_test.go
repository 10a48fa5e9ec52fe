package neli

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

const bookTerm = time.Second

// bookkeeper drives a ledger and knows what the application was told.
type bookkeeper struct {
	ledger
	clock instant
	next  int64
	apps  []appBook
}

// appBook is one partition as the application sees it.
type appBook struct {
	id      int64 // the term that it was told it has
	leads   bool
	revoked bool
	last    int64         // newest term that it was told of
	ends    map[int64]end // how terms ended
	why     map[int64]Reason
}

type end struct {
	why      Reason
	graceful bool
}

func newBookkeeper(m int) *bookkeeper {
	b := &bookkeeper{clock: instant{mono: time.Hour, wall: 2 * time.Hour}, apps: make([]appBook, m)}
	b.ledger = newLedger(threshold{t: bookTerm, exclusive: true}, func() instant { return b.clock })
	b.open(m)
	for p := range b.apps {
		b.apps[p] = appBook{last: noToken, ends: map[int64]end{}, why: map[int64]Reason{}}
	}
	return b
}

func (b *bookkeeper) begin(p int) {
	b.next++
	b.publish(p, term{id: b.next, token: 100 + b.next, v: b.clock})
}

func (b *bookkeeper) finish(p int, why Reason, graceful bool) {
	if t := b.held(p); t != nil {
		b.apps[p].ends[t.id] = end{why, graceful}
		b.end(p, why, graceful)
	}
}

// tell collects, and checks that the application is told a story that it can
// follow: acquired, at most once revoked, lost; then the next term.
func (b *bookkeeper) tell(t require.TestingT) []change {
	changes := b.collectAll(b.now())
	kinds := map[changeKind]bool{}
	for i, c := range changes {
		kinds[c.kind] = true
		if i > 0 {
			require.Greater(t, c.partition, changes[i-1].partition, "not ascending by partition")
		}
		a := &b.apps[c.partition]
		require.Equal(t, 100+c.id, c.token)
		switch c.kind {
		case changeAcquired:
			require.False(t, a.leads, "acquired twice")
			require.Greater(t, c.id, a.last, "terms go back")
			require.NotNil(t, b.current(c.partition, b.clock), "acquired what is over")
			require.Equal(t, ReasonElected, c.reason)
			a.id, a.leads, a.revoked, a.last = c.id, true, false, c.id
		case changeRevoke:
			require.True(t, a.leads && !a.revoked && a.id == c.id, "revoked what it does not have, or again")
			require.Equal(t, a.why[c.id], c.reason)
			require.False(t, c.deadline.IsZero())
			a.revoked = true
		case changeLost, changeGone:
			require.True(t, a.leads && a.id == c.id, "lost what it does not have")
			require.Equal(t, a.revoked, c.kind == changeGone, "revoked and fenced, or neither")
			if e, ok := a.ends[c.id]; ok {
				require.Equal(t, e, end{c.reason, c.graceful})
			} else {
				require.Equal(t, end{ReasonLapsed, false}, end{c.reason, c.graceful})
			}
			a.leads = false
		}
	}
	lost := kinds[changeLost] || kinds[changeGone]
	require.False(t, lost && (kinds[changeRevoke] || kinds[changeAcquired]) || kinds[changeRevoke] && kinds[changeAcquired],
		"told together what may be out of date by then")
	for p := range b.apps {
		a := &b.apps[p]
		_, _, leads := b.cell[p].leads(b.h, b.now)
		if leads {
			require.True(t, a.leads && a.id == b.held(p).id, "leads what it was not told of")
		}
	}
	return changes
}

func (b *bookkeeper) tellAll(t require.TestingT) {
	for range 10 {
		if len(b.tell(t)) == 0 {
			return
		}
	}
	require.Fail(t, "there is always more to tell")
}

// Every Acquired is followed by exactly one Revoked or Fenced, in whatever order
// terms begin and end and however seldom the application asks.
func TestLedgerPairsEvents(t *testing.T) {
	reasons := []Reason{ReasonSuperseded, ReasonLogReset, ReasonOverdue, ReasonUnassigned}
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.IntRange(1, 3).Draw(t, "partitions")
		b := newBookkeeper(m)
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			p := rapid.IntRange(0, m-1).Draw(t, "partition")
			why := rapid.SampledFrom(reasons).Draw(t, "why")
			switch rapid.IntRange(0, 6).Draw(t, "what") {
			case 0: // a new term, perhaps straight after another
				if old := b.held(p); old != nil {
					b.finish(p, why, false)
				}
				b.begin(p)
				require.True(t, b.fresh())
			case 1: // evidence, unless it comes too late
				if old := b.current(p, b.clock); old != nil && !b.over(p) {
					b.publish(p, term{id: old.id, token: old.token, v: b.clock})
				}
			case 2:
				b.finish(p, why, rapid.Bool().Draw(t, "graceful"))
			case 3:
				if b.wasTold(p) {
					id := b.held(p).id
					if !b.books[p].revokeTold {
						b.apps[p].why[id] = why
					}
					b.giveUp(p, why, b.clock.add(bookTerm))
					require.True(t, b.fresh())
				}
			case 4:
				b.clock = b.clock.add(time.Duration(rapid.Int64Range(0, int64(2*bookTerm)).Draw(t, "passes")))
			case 5:
				if len(b.tell(t)) > 0 {
					require.True(t, b.fresh(), "there may be more")
				}
			default:
				b.tellAll(t)
				require.False(t, b.fresh())
			}
		}
		for p := range m {
			b.finish(p, ReasonFatal, false)
		}
		b.tellAll(t)
		for p := range b.apps {
			require.False(t, b.apps[p].leads, "never told that partition %d is over", p)
		}
	})
}

func TestLedgerRings(t *testing.T) {
	rang := func(b *bookkeeper) bool {
		select {
		case <-b.news():
			return true
		default:
			return false
		}
	}
	b := newBookkeeper(1)
	require.False(t, rang(b))
	b.begin(0)
	require.True(t, rang(b), "a new term")
	b.tellAll(t)
	b.publish(0, term{id: 1, token: 101, v: b.clock.add(time.Millisecond)})
	require.False(t, rang(b) || b.fresh(), "a renewal is no news")
	b.giveUp(0, ReasonClosing, b.clock)
	require.True(t, rang(b), "to be given up")
	b.tellAll(t)
	b.finish(0, ReasonClosing, true)
	require.True(t, rang(b), "the end")
	b.tellAll(t)
	b.finish(0, ReasonClosing, true)
	require.False(t, rang(b) || b.fresh(), "the end of nothing")
}

// A term that the application was told has ended must not come back, even if
// the clock by which it lapsed is set back.
func TestLedgerOver(t *testing.T) {
	b := newBookkeeper(1)
	b.begin(0)
	b.tellAll(t)
	require.True(t, b.wasTold(0))
	require.False(t, b.over(0))
	b.clock.wall += 2 * bookTerm
	b.tellAll(t)
	require.False(t, b.apps[0].leads)
	b.clock.wall -= 2 * bookTerm
	require.True(t, b.over(0))
	require.False(t, b.wasTold(0))
	b.tellAll(t)
	require.False(t, b.apps[0].leads, "acquired what it was told is over")
	b.finish(0, ReasonLapsed, false)
	b.begin(0)
	require.False(t, b.over(0))
	b.tellAll(t)
	require.True(t, b.apps[0].leads)
}

func TestLedgerBeforeItIsOpen(t *testing.T) {
	l := newLedger(threshold{t: bookTerm}, clock)
	require.Empty(t, l.cells())
	require.Empty(t, l.collectAll(l.now()))
	require.False(t, l.fresh())
	l.open(3)
	require.Len(t, l.cells(), 3)
}
