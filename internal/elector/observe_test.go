package elector

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/observe"
	"github.com/goneli/neli/internal/elector/request"
	"github.com/goneli/neli/internal/lease"
	"github.com/stretchr/testify/require"
)

// These methods ask the Node for its holders and counters without an Elector.

func (n *Node) Holder(role int, now clock.Instant) (lease.Grantee, bool) {
	return n.observed.Holder(role, now)
}

func (n *Node) Standings(now clock.Instant) []observe.Standing {
	return n.observed.Standings(n.desired.Roles, now)
}

func (n *Node) Changes(w *observe.Watcher, now clock.Instant) []observe.Standing {
	return n.observed.Changes(w, n.desired.Roles, now)
}

func (n *Node) Stats(now clock.Instant) Stats {
	var c observe.Headcount
	for c.Next(n.observed, n.desired.Roles, now) {
	}
	return n.stats(&c, now)
}

// told writes what a watcher is told as words.
func (a *actor) told(wt *observe.Watcher) (out []string) {
	for _, s := range a.Changes(wt, a.w.instant()) {
		who := [...]string{"unknown", "vacant", s.Holder.Name}[s.Status]
		out = append(out, fmt.Sprintf("%s: %s", list(s.Roles), who))
	}
	slices.Sort(out)
	return out
}

func stays(s *Settings) { s.Rebalance = false }

// A watcher is told of roles with the same holder and token together, of roles that are vacant or
// not known any more, and of nothing twice.
func TestWatcherIsToldOfEachChangeOnce(t *testing.T) {
	w := newWorld(1)
	o := w.start("o", 6, func(s *Settings) { s.Observer = true })
	wt := observe.NewWatcher()
	require.Empty(t, o.told(wt), "nothing is known")
	a := w.start("a", 6, stays)
	w.pass(6 * time.Second)
	require.Equal(t, []string{"0-5: a"}, o.told(wt))
	w.pass(3 * time.Second)
	require.Empty(t, o.told(wt), "beats are no news")
	w.start("b", 6, stays)
	w.pass(6 * time.Second)
	for _, role := range []int{1, 4} {
		a.do(func(now clock.Instant) { _, err := a.Transfer(role, "b", now); require.NoError(t, err) })
	}
	w.pass(50 * time.Millisecond)
	got := o.told(wt)
	require.True(t, slices.Equal(got, []string{"1,4: b"}) || slices.Equal(got, []string{"1: b", "4: b"}), "one for each token: %v", got)
	require.Equal(t, 1, min(1, len(a.told(observe.NewWatcher()))), "everybody knows")

	d := o.desired
	d.Roles = 3
	o.want(d)
	require.Empty(t, o.told(wt))
	d.Roles = 6
	o.want(d)
	require.Equal(t, []string{"3,5: a", "4: b"}, o.told(wt), "anew, as they were gone")

	a.dead = true
	w.actor("b").dead = true
	w.pass(4 * time.Second)
	require.Empty(t, o.told(wt))
	w.pass(2 * time.Second)
	require.Equal(t, []string{"0-5: vacant"}, o.told(wt), "their leases are over by any clock")
	_, held := o.Holder(0, w.instant())
	require.False(t, held)

	o.do(func(now clock.Instant) { o.Read(Entry{Reset: true, Offset: 500, End: 500}, nil, nil, now) })
	require.Equal(t, []string{"0-5: unknown"}, o.told(wt))
	require.Empty(t, o.told(wt))
}

// A watcher may look just when a lease is over, before the Node has noticed. If it was told that the
// role is vacant, it is also told if the holder is heard again.
func TestWatcherIsToldThatAHolderIsHeardAgain(t *testing.T) {
	w := newWorld(1)
	o := w.start("o", 1, func(s *Settings) { s.Observer = true })
	w.start("a", 1, nil)
	w.pass(6 * time.Second)
	wt := observe.NewWatcher()
	require.Equal(t, []string{"0: a"}, o.told(wt))

	g, _ := o.channels[0].Log.Holder(0)
	now := w.instant()
	now = now.Add(g.FreeAt.Sub(now.Raw))
	s := o.Changes(wt, now)
	require.Len(t, s, 1)
	require.Equal(t, observe.Vacant, s[0].Status)
	o.Ready(now) // nothing else has changed
	last := o.channels[0].Log.Offset()
	o.Read(Entry{Offset: last + 1}, &lease.Record{Kind: lease.Beat, Session: g.Session, Read: last, Seq: 1 << 20}, nil, now)
	require.True(t, o.Ready(now).Changed)
	require.Equal(t, observe.Held, o.Changes(wt, now)[0].Status)
}

// A log's first records may be out of date. A process calls a role vacant only after it has read all
// records that were in the log when reading began. It accepts requests about the role only then.
func TestNothingIsVacantBeforeTheLogWasRead(t *testing.T) {
	w := newWorld(1)
	o := w.start("o", 2, func(s *Settings) { s.Observer = true })
	a := w.start("a", 1, nil)
	w.pass(6 * time.Second)
	a.want(Desired{Roles: 1, Closing: true})
	w.pass(time.Second)
	a = w.start("b", 1, nil)
	w.pass(6 * time.Second)
	require.Equal(t, []int{0}, a.leads(1))
	a.dead = true
	log := w.logs[0]
	begin := func(end int) {
		o.do(func(now clock.Instant) { o.Read(Entry{Reset: true, End: int64(end), Whole: true}, nil, nil, now) })
	}
	ask := func(role int) error {
		_, err := o.Ask(request.Request{Role: role, Verb: lease.StepDown}, w.instant())
		return err
	}
	counted := o.Stats(w.instant()).Vacancies.Count
	begin(len(log))
	wt := observe.NewWatcher()
	for i := range log {
		require.Empty(t, o.told(wt))
		require.ErrorIs(t, ask(0), request.ErrUnknown)
		require.ErrorIs(t, ask(1), request.ErrUnknown)
		s := o.Stats(w.instant())
		require.Equal(t, 2, s.Unknown)
		w.pass(time.Millisecond)
		o.read(0, int64(i))
		require.Equal(t, i == len(log)-1, ask(1) == request.ErrVacant, "after %d of %d records", i+1, len(log))
	}
	require.True(t, o.last.Changed, "who waits is told")
	require.Equal(t, []string{"1: vacant"}, o.told(wt))
	require.ErrorIs(t, ask(0), request.ErrUnknown, "for nobody knows how long it was held")
	require.ErrorIs(t, ask(1), request.ErrVacant)
	require.EqualValues(t, counted, o.Stats(w.instant()).Vacancies.Count, "role 0 was not vacant since this process came")

	begin(len(log) + 3) // a gap, of what others had written in a transaction
	for i := range log {
		o.read(0, int64(i))
	}
	w.pass(4 * time.Second)
	require.ErrorIs(t, ask(1), request.ErrUnknown, "the rest may be on its way")
	w.pass(time.Second)
	require.True(t, o.last.Changed, "a gap is waited for no longer than T")
	require.ErrorIs(t, ask(1), request.ErrVacant)
}

// A term that began between the newest Snapshot and the start of this process is known with its
// holder's next Beat. A watcher is told then.
func TestATermAfterTheSnapshotShowsWithTheNextBeat(t *testing.T) {
	w := newWorld(1)
	a := w.start("a", 1, stays)
	w.pass(6 * time.Second)
	w.start("b", 1, stays)
	w.pass(6 * time.Second)
	a.do(func(now clock.Instant) { _, err := a.Transfer(0, "b", now); require.NoError(t, err) })
	w.pass(50 * time.Millisecond)
	o, wt := w.start("o", 1, watches), observe.NewWatcher()
	require.Empty(t, o.told(wt), "the claim was in the log before")
	for range 2000 {
		w.pass(time.Millisecond)
		if got := o.told(wt); len(got) > 0 {
			require.Equal(t, []string{"0: b"}, got)
			require.True(t, o.last.Changed, "who waits is told")
			return
		}
	}
	require.Fail(t, "no beat was read")
}

// A member that joins a group on a single small log, which is for development, knows the holder once it hears it.
func TestHolderOnASingleSmallLogIsKnown(t *testing.T) {
	w := newWorld(1)
	w.small = true
	for _, name := range []string{"a", "b"} {
		w.start(name, 1, func(s *Settings) { s.Majority = true })
		w.pass(8 * time.Second)
	}
	g, held := w.actor("b").Holder(0, w.instant())
	require.True(t, held)
	require.Equal(t, "a", g.Name)
}
