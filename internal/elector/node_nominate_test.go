package elector

import (
	"testing"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/nominate"
	"github.com/goneli/neli/internal/lease"
	"github.com/stretchr/testify/require"
)

func nominated(s *Settings) { s.Nominated = true }

func (a *actor) nominate(lost bool, partitions ...int) {
	a.do(func(now clock.Instant) { a.Nominate(partitions, lost, now) })
}

// When the group's session is lost, held roles are kept. Once they are lost, too, nothing is claimed
// before the group nominates again.
func TestNothingNewIsClaimedAfterTheSessionIsLost(t *testing.T) {
	w := newWorld(1)
	a := w.start("a", 1, nominated)
	a.nominate(false, 0)
	w.pass(8 * time.Second)
	require.Equal(t, []int{0}, a.leads(1))
	a.nominate(true)
	a.nominate(true) // told twice
	w.pass(10 * time.Second)
	require.Equal(t, []int{0}, a.leads(1), "what is held is kept")
	require.Empty(t, a.shards[0].handovers.InProgress())

	a.cut = true
	w.pass(6 * time.Second)
	require.Empty(t, a.leads(1))
	a.cut = false
	claims := len(w.sent(0, "a", lease.Claim))
	w.pass(time.Minute)
	require.Len(t, w.sent(0, "a", lease.Claim), claims, "claimed without a nomination")
	a.nominate(true)
	w.pass(time.Minute)
	require.Len(t, w.sent(0, "a", lease.Claim), claims)
	a.nominate(false, 0)
	w.pass(10 * time.Second)
	require.Equal(t, []int{0}, a.leads(1))
}

// A nominee that cannot claim because its log is dead stays away from the group for a while. Then it
// stays in the group for a while, whether its absence helped or not.
func TestNomineeThatCannotClaimStaysAway(t *testing.T) {
	w := newWorld(2)
	a := w.start("a", 2, nominated)
	a.nominate(false, 0, 1)
	w.pass(8 * time.Second)
	require.Equal(t, []int{0, 1}, a.leads(2))
	a.cut = true
	joined := func() bool { a.do(a.Tick); return a.last.Join }
	w.pass(5006*time.Millisecond + 13*time.Second) // its own former lease, and not yet 15 s
	require.True(t, joined())
	w.pass(5 * time.Second)
	require.False(t, joined(), "it leaves the group after 15 s")
	w.pass(nominate.Absence)
	require.True(t, joined(), "absence is bounded")
	w.pass(nominate.Presence - 10*time.Second)
	require.True(t, joined(), "and it stays: the other log may be in order")
	w.pass(15 * time.Second)
	require.False(t, joined())

	d := a.desired
	d.Unhealthy = true
	b := w.start("b", 2, nominated)
	b.do(b.Tick)
	require.True(t, b.last.Join)
	b.want(d)
	require.False(t, b.last.Join, "who would not lead")
	d.Unhealthy = false
	b.want(d)
	b.alive = false
	b.do(b.Tick)
	require.False(t, b.last.Join, "whose application hangs")
}
