package elector

import (
	"testing"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/balance"
	"github.com/goneli/neli/internal/elector/request"
	"github.com/goneli/neli/internal/elector/roster"
	"github.com/goneli/neli/internal/lease"
	"github.com/stretchr/testify/require"
)

// Nothing is claimed while a Claim is in flight, nor before a probe has shown that the log works.
// A Claim that does not come back is given up.
func TestOneClaimAtATime(t *testing.T) {
	w := newWorld(1)
	a := w.start("a", 2, nil)
	w.pass(5 * time.Second)
	a.cut = true // its probe has come back: it claims
	w.pass(100 * time.Millisecond)
	inFlight := func() int { n, _ := a.shards[0].main.Log.Claiming(); return n }
	require.Equal(t, 1, inFlight())
	w.take()
	w.pass(9 * time.Second)
	require.NotContains(t, w.take(), "claim", "it waits for what became of it")
	w.pass(2 * time.Second)
	require.Zero(t, inFlight(), "it was given up")
	a.cut = false
	w.pass(time.Minute)
	require.Equal(t, []int{0, 1}, a.leads(2))
	require.Len(t, w.sent(0, "a", lease.Claim), 1)
}

// stepsDownWhileItClaims is a world in which a has stepped down, and its Claim is held back.
func stepsDownWhileItClaims(t *testing.T) (w *world, a *actor, late []lease.Record) {
	t.Helper()
	w = newWorld(1)
	a = w.start("a", 1, nil)
	w.pass(5 * time.Second)
	kept := a.holdBack()
	w.pass(100 * time.Millisecond)
	require.Len(t, *kept, 1)
	d := a.desired
	d.Away = clock.Never
	a.want(d)
	return w, a, *kept
}

// holdBack keeps the Claims that a sends from the log.
func (a *actor) holdBack() *[]lease.Record {
	a.cut = true
	var kept []lease.Record
	a.caught = &kept
	return &kept
}

// release lets the kept Claims arrive.
func (a *actor) release(kept []lease.Record) {
	a.cut, a.caught = false, nil
	for _, r := range kept {
		o := int64(len(a.w.logs[0]))
		a.w.logs[0] = append(a.w.logs[0], r)
		for _, to := range a.w.actors {
			to.read(0, o)
		}
	}
}

// A role that was released in favour of a member that has gone may be claimed by any process.
func TestRoleOfADepartedSuccessorIsFree(t *testing.T) {
	w := newWorld(1)
	a := w.start("a", 1, func(s *Settings) { s.Rebalance = false })
	w.pass(6 * time.Second)
	b := w.start("b", 1, func(s *Settings) { s.Rebalance = false })
	c := w.start("c", 1, func(s *Settings) { s.Rebalance = false })
	w.pass(6 * time.Second)
	a.work = 50 * time.Millisecond
	a.do(func(now clock.Instant) { _, err := a.Transfer(0, "b", now); require.NoError(t, err) })
	w.pass(20 * time.Millisecond)
	b.dead = true
	w.pass(500 * time.Millisecond)
	require.Equal(t, 1, len(a.leads(1))+len(c.leads(1)), "after a head start")
	require.Equal(t, []request.Outcome{{ID: 1, Err: balance.ErrNotTransferred}}, a.ends)
}

// A process that was suspended finds the leases of others over before it has read their records. Once it has read
// them, it takes the others for alive before they say Hello: it leaves a role to its successor for a while.
func TestSuspicionEndsOnceRecordsAreRead(t *testing.T) {
	w := newWorld(1)
	quick := func(s *Settings) { stays(s); s.T, s.HeartbeatInterval = 2*time.Second, 400*time.Millisecond }
	a, b := w.start("a", 3, quick), w.start("b", 3, quick)
	c := w.start("c", 3, quick)
	w.pass(12100 * time.Millisecond) // just after Hellos
	from := int64(len(w.logs[0]))
	a.dead = true
	w.pass(2 * a.set.T)
	a.dead = false
	a.do(a.Tick)
	require.True(t, a.members.Suspected("c"))
	for o := from; o < int64(len(w.logs[0])); o++ {
		a.read(0, o)
	}
	require.Empty(t, a.leads(3))
	role := b.leads(3)[0]
	b.do(func(now clock.Instant) { _, err := b.Transfer(role, "c", now); require.NoError(t, err) })
	w.pass(100 * time.Millisecond)
	require.Equal(t, []request.Outcome{{ID: 1}}, b.ends, "a has claimed it")
	require.Contains(t, c.leads(3), role)
}

// The wait in a Release is only what another process says: members leave a role to a lost successor for T/2 at most.
func TestAnExcessiveWaitIsLimited(t *testing.T) {
	w := newWorld(1)
	a := w.start("a", 1, stays)
	w.pass(6 * time.Second)
	w.start("b", 1, stays)
	c := w.start("c", 1, stays)
	w.pass(6 * time.Second)
	w.drop = func(r *lease.Record) bool {
		r.Wait = map[lease.Kind]time.Duration{lease.Release: clock.Tmax}[r.Kind]
		return r.Kind == lease.Claim && r.Session.Process == "b"
	}
	a.do(func(now clock.Instant) { _, err := a.Transfer(0, "b", now); require.NoError(t, err) })
	w.pass(a.set.T/2 - 100*time.Millisecond)
	require.Empty(t, append(a.leads(1), c.leads(1)...), "before T/2")
	w.pass(200 * time.Millisecond)
	require.Equal(t, 1, len(a.leads(1))+len(c.leads(1)), "after T/2")
}

// A role can be transferred to a process that has just come: it does not wait for others that start with it.
func TestTransferToANewcomer(t *testing.T) {
	w := newWorld(1)
	a := w.start("a", 10, nil)
	w.pass(6 * time.Second)
	b := w.start("b", 10, nil)
	w.pass(8 * time.Millisecond)
	a.do(func(now clock.Instant) { _, err := a.Transfer(4, "b", now); require.NoError(t, err) })
	w.pass(12 * time.Millisecond)
	require.Equal(t, []int{4}, b.leads(10), "within round trips")
	w.pass(time.Second)
	require.Equal(t, []request.Outcome{{ID: 1}}, a.ends)
}

// A process that started after the successor leaves the role to it, even if it has heard little of the
// successor, or nothing.
func TestRoleIsLeftToAHardlyKnownSuccessor(t *testing.T) {
	for name, unread := range map[string]bool{"of history": false, "of nothing": true} {
		t.Run(name, func(t *testing.T) {
			for role := range 10 {
				w := newWorld(1)
				short := func(s *Settings) { s.T, s.HeartbeatInterval = time.Second, time.Second/5 }
				a := w.start("a", 10, short)
				w.pass(2 * time.Second)
				w.start("b", 10, short)
				w.pass(2 * time.Millisecond)
				w.drop = func(r *lease.Record) bool { return r.Session.Process == "b" && r.Kind != lease.Pong }
				if unread {
					w.head = int64(len(w.logs[0]))
				}
				c := w.start("c", 10, short)
				w.pass(20 * time.Millisecond)
				require.False(t, c.members.Takes("b"), "it was there before")
				a.do(func(now clock.Instant) { _, err := a.Transfer(role, "b", now); require.NoError(t, err) })
				w.pass(20 * time.Millisecond)
				require.NotContains(t, a.leads(10), role, "it was released")
				require.Empty(t, w.sent(0, "c", lease.Claim), "b comes first")
				w.pass(100 * time.Millisecond)
				require.Len(t, append(a.leads(10), c.leads(10)...), 10, "b did not come")
			}
		})
	}
}

// A dead holder is no successor, even if another process noticed its silence, and claimed its
// roles, before this process would have.
func TestDeadHolderIsNoSuccessor(t *testing.T) {
	w := newWorld(1)
	start := func(name string, priority int) *actor {
		w.priority = priority
		return w.start(name, 10, nil)
	}
	a := start("a", 3)
	w.pass(6 * time.Second)
	b, c := start("b", 2), start("c", 1)
	w.pass(10 * time.Second)
	require.Len(t, a.leads(10), 10)
	a.dead = true
	for range 6000 {
		c.tick++ // it is not woken
		w.pass(time.Millisecond)
	}
	require.Len(t, b.leads(10), 10)
	b.do(func(now clock.Instant) { _, err := b.Transfer(3, "c", now); require.NoError(t, err) })
	w.pass(100 * time.Millisecond)
	require.Equal(t, []int{3}, c.leads(10))
	d := c.desired
	d.Closing = true
	c.want(d)
	w.pass(100 * time.Millisecond)
	require.Len(t, b.leads(10), 10, "it does not wait for an answer of a's")
}

// Candidates of equal rank without any jitter do not know each other, and so claim at the same
// instant. They still elect one, in W(T) and two round trips: the log decides.
func TestEqualRanksElectInTime(t *testing.T) {
	for _, others := range []int{2, 5, 12} {
		w := newWorld(1)
		a := w.start("a", 1, nil)
		w.pass(6 * time.Second)
		var rest []*actor
		for i := range others {
			rest = append(rest, w.start(string(rune('b'+i)), 1, nil))
		}
		w.pass(8 * time.Second)
		a.dead = true
		w.pass(3 * time.Second)
		g, ok := rest[0].shards[0].leases.Holder(0)
		require.True(t, ok)
		w.pass(g.FreeAt.Sub(w.instant().Raw) - time.Millisecond)
		for _, o := range rest {
			o.members = roster.NewMembers()
			o.members.Open(1)
			o.planner.Forget()
		}
		before := len(w.sent(0, "b", lease.Claim))
		w.pass(time.Millisecond + 2*2*time.Millisecond)
		leaders, claims := 0, 0
		for _, o := range rest {
			leaders += len(o.leads(1))
			claims += len(w.sent(0, o.set.Name, lease.Claim))
		}
		require.Equal(t, 1, leaders)
		require.Equal(t, others, claims-before, "all did claim at the same instant")
		w.pass(2 * time.Second)
		leaders = 0
		for _, o := range rest {
			leaders += len(o.leads(1))
		}
		require.Equal(t, 1, leaders, "and it stays")
	}
}
