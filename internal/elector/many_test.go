package elector

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"testing"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/observe"
	"github.com/goneli/neli/internal/elector/roster"
	"github.com/goneli/neli/internal/elector/watch"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/term"
	"github.com/stretchr/testify/require"
)

func TestMemoryForVacantRolesIsFreed(t *testing.T) {
	const roles = 100
	w := newWorld(1)
	a, b := w.start("a", roles, nil), w.start("b", roles, nil)
	freed := func(of *actor) {
		t.Helper()
		require.Zero(t, reflect.ValueOf(of.shards[0].vacancyStats).FieldByName("spans").FieldByName("in").Len())
	}
	w.pass(20 * time.Second)
	require.Len(t, append(a.leads(roles), b.leads(roles)...), roles)
	freed(a)
	freed(b)

	a.dead = true
	won := b.Stats(w.instant()).Vacancies.Count
	w.pass(20 * time.Second)
	require.Len(t, b.leads(roles), roles, "it is allocated again when it is needed")
	require.Greater(t, b.Stats(w.instant()).Vacancies.Count, won)
	freed(b)
}

// discard is a log that takes everything and returns nothing.
type discard struct{ Log }

func (discard) Append(Address, []byte, func(error)) error { return nil }

// Work on many roles that ends together keeps nobody waiting for the lock.
func TestManyRolesAreDrainedInSlices(t *testing.T) {
	const roles = 2*observe.SurveyRoles + 1
	w := newWorld(1)
	w.mute = true
	a := w.start("a", roles, nil)
	a.work = time.Hour
	w.pass(8 * time.Second)
	a.want(Desired{Roles: roles, Closing: true})
	w.pass(4 * time.Second)
	units := a.leads(roles)
	require.Len(t, units, roles)
	id, _ := a.table.Held(0)

	var left []int
	e := &Elector{bell: watch.NewBell(), node: a.Node, terms: a.table, log: discard{}, logger: slog.New(slog.DiscardHandler), wakeup: make(chan struct{}, 1),
		now: func() clock.Instant { // it is read once in each hold
			left = append(left, a.table.Led(w.instant(), roles))
			return w.instant()
		}}
	e.Drained(units, id)
	require.Equal(t, []int{roles, roles - observe.SurveyRoles, 1}, left)
	require.Empty(t, a.leads(roles))
	require.Zero(t, a.shards[0].own.Len(), "all are released together, after the last slice")
	require.EqualValues(t, roles, e.node.terms.Counts().Ended[term.Closing])
}

// crowd lets a number of unknown processes say Hello, one each gap, and returns how many Snapshots answer them.
func (w *world) crowd(n int, gap time.Duration, leave bool) (snapshots int) {
	before := 0
	for _, a := range w.actors {
		before += len(w.sent(0, a.set.Process, lease.Snapshot))
	}
	for i := range n {
		name := fmt.Sprintf("stranger%05d", i)
		w.put(lease.Record{Kind: lease.Hello, Session: lease.Session{Process: name}, Name: name, Longest: lease.Unsaid,
			Hello: &lease.Announcement{Roles: 1, Period: time.Minute}})
		w.pass(gap)
		if leave {
			w.put(lease.Record{Kind: lease.Hello, Session: lease.Session{Process: name}, Name: name, Longest: lease.Unsaid,
				Hello: &lease.Announcement{Roles: 1, Period: time.Minute, Leaving: true}})
		}
	}
	w.pass(10 * time.Second)
	for _, a := range w.actors {
		snapshots += len(w.sent(0, a.set.Process, lease.Snapshot))
	}
	return snapshots - before
}

// Very many processes start at once, or somebody fills the topic with Hellos. Each Hello costs the same work, however
// many members are known.
func TestStrangersCostLinearWork(t *testing.T) {
	for _, leave := range []bool{false, true} {
		w := newWorld(1)
		w.mute = true
		a := w.start("a", 1, nil)
		w.pass(8 * time.Second)
		require.Len(t, a.leads(1), 1)
		before := a.members.Looks()
		w.crowd(1000, 0, leave)
		require.Less(t, a.members.Looks()-before, 50, "it looked at all members again and again")
	}
	h := roster.NewMembers()
	for i := range 2 * roster.MaxMembers {
		h.Announced(fmt.Sprint(i), "", &lease.Announcement{Roles: 9, Period: roster.HelloEvery}, true, at(time.Duration(i)))
	}
	require.LessOrEqual(t, h.Looks(), 100, "it looked for the one that was silent longest again and again")
}

// Processes that start one soon after another, or that only come and go, are answered by few Snapshots.
func TestACrowdIsAnsweredByFewSnapshots(t *testing.T) {
	for _, gap := range []time.Duration{0, 2 * time.Millisecond, 10 * time.Millisecond} {
		for _, leave := range []bool{false, true} {
			w := newWorld(1)
			w.mute = true
			w.start("a", 1, nil)
			w.pass(8 * time.Second)
			require.Less(t, w.crowd(500, gap, leave), 25, "500 of them, one each %v, that leave at once: %v", gap, leave)
		}
	}
}

// lastWord is a Nominator that keeps what it was told last.
type lastWord struct{ joins bool }

func (l *lastWord) Run(context.Context, func([]int, bool)) error { return nil }
func (l *lastWord) Join(yes bool)                                { l.joins = yes }
func (l *lastWord) Close()                                       {}

// onFirstLine is a log handler that calls a function when the first line is logged.
type onFirstLine struct {
	slog.Handler
	call func()
}

func (*onFirstLine) Enabled(context.Context, slog.Level) bool { return true }

func (h *onFirstLine) Handle(context.Context, slog.Record) error {
	if call := h.call; call != nil {
		h.call = nil
		call()
	}
	return nil
}

// While one goroutine carries out what a step has decided, others may take further steps. The last
// call of Join has the newest decision, whichever goroutine is done last.
func TestTheNominatorHearsTheNewestDecisionLast(t *testing.T) {
	now := clock.Alike(time.Hour)
	set := &Settings{Process: "a", Name: "a", Group: "g", T: time.Second, Nominated: true, Alive: func(clock.Instant) bool { return true }}
	terms := term.New(func(now, v clock.Instant) bool { return lease.Young(now, v, set.T) }, func() clock.Instant { return now })
	var nominator lastWord
	log := &onFirstLine{Handler: slog.DiscardHandler}
	e := NewElector(set, nil, &nominator, terms, func() clock.Instant { return now }, slog.New(log))
	log.call = func() {
		e.Set(Desired{Roles: 1, Contend: true})
		e.do(func(n *Node, now clock.Instant) { n.Tick(now) })
		require.True(t, nominator.joins)
	}
	e.do(func(n *Node, _ clock.Instant) { n.ready.note(slog.LevelInfo, "still idle") })
	require.True(t, nominator.joins, "the step that found this process idle is the older one")
}
