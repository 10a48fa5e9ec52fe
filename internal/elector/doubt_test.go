package elector

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/lease"
)

// One of three has misread a Claim. The holder's Beat shows it that folds differ. All write
// a Snapshot, the one that has misread is outvoted, and nobody else gives anything up.
func TestWhoHasMisreadARecordRejoinsAlone(t *testing.T) {
	w := newWorld(1)
	a := w.start("a", 1, nil)
	w.pass(10 * time.Second)
	b, c := w.start("b", 1, nil), w.start("c", 1, nil)
	w.pass(10 * time.Second)
	require.Equal(t, []int{0}, a.leads(1))
	c.misread = &lease.Record{Kind: lease.Claim, Name: "b"}
	a.want(Desired{Roles: 1})
	c.want(Desired{Roles: 1})
	w.pass(5 * time.Second)
	require.Nil(t, c.misread, "b has claimed")
	require.Equal(t, []int{0}, b.leads(1), "the healthy one lost its term")
	w.pass(15 * time.Second)

	require.True(t, c.channels[0].Log.Known())
	h, held := c.Holder(0, w.instant())
	require.True(t, held)
	require.Equal(t, "b", h.Name, "a wrong fold lives on")
	require.Equal(t, 1, c.noted("own state contradicts that of most others: rejoining"), "the wrong one is not told by two others")
	require.Equal(t, uint64(1), c.Stats(w.instant()).LogResets)
	for _, healthy := range []*actor{a, b} {
		s := healthy.Stats(w.instant())
		require.Zero(t, s.LogResets, "%s rejoins, too", healthy.set.Name)
		require.Equal(t, "c", s.Diverged)
		require.Equal(t, uint64(1), s.Contradictions)
		require.Equal(t, 1, healthy.noted("own state is confirmed by others: the process that contradicts it has to rejoin"))
	}
	require.Equal(t, []int{0}, b.leads(1), "the healthy one lost its term")
	require.Equal(t, uint64(1), b.Stats(w.instant()).Terms.Started)

	snapshots := 0
	for _, x := range []*actor{a, b, c} {
		for _, said := range x.said {
			if said.at > 20*time.Second && said.Kind == lease.Snapshot {
				snapshots++
			}
		}
	}
	require.LessOrEqual(t, snapshots, 5, "one of each, and one for who rejoins")
}

// noted is how often a line was logged.
func (a *actor) noted(text string) (n int) {
	for _, note := range a.notes {
		if note.Text == text {
			n++
		}
	}
	return n
}
