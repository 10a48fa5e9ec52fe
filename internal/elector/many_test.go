package elector

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/term"
)

func TestMemoryForVacantRolesIsFreed(t *testing.T) {
	const roles = 100
	w := newWorld(1)
	a, b := w.start("a", roles, nil), w.start("b", roles, nil)
	freed := func(of *actor) {
		t.Helper()
		s := of.shards[0]
		require.Empty(t, s.claims.listed)
		require.Empty(t, s.vacancies.in)
		require.Empty(t, of.planner.sharing.first)
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
func TestDrainedInSlices(t *testing.T) {
	const roles = 2*surveyRoles + 1
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
	e := &Elector{node: a.Node, terms: a.table, log: discard{}, logger: slog.New(slog.DiscardHandler), wakeup: make(chan struct{}, 1),
		now: func() clock.Instant { // it is read once in each hold
			left = append(left, a.table.Led(w.instant(), roles))
			return w.instant()
		}}
	e.Drained(units, id)
	require.Equal(t, []int{roles, roles - surveyRoles, 1}, left)
	require.Empty(t, a.leads(roles))
	require.Zero(t, a.shards[0].holds.len(), "all are released together, after the last slice")
	require.EqualValues(t, roles, e.node.terms.Counts().Ended[term.Closing])
}
