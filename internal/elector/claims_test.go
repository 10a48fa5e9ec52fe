package elector

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
	"github.com/stretchr/testify/require"
)

// sent returns the records of a kind that a process has in a log.
func (w *world) sent(p int, process string, k lease.Kind) (out []lease.Record) {
	for _, r := range w.logs[p] {
		if r.Session.Process == process && r.Kind == k {
			out = append(out, r)
		}
	}
	return out
}

// The pause after a Claim that did not come back in time doubles each time, up to 8 T.
func TestBackoff(t *testing.T) {
	for _, fraction := range []int{0, 1} { // of what is random: the least, and nearly the most
		set := &Settings{T: 8 * time.Second, Random: func(d time.Duration) time.Duration { return time.Duration(fraction) * (d - 1) }}
		var p pacing
		for k := 1; k <= maxTries+3; k++ {
			p.late(set, at(0))
			whole := time.Second << min(k, 6)
			require.InDelta(t, whole/2+time.Duration(fraction)*whole, p.notBefore.Sub(at(0).Mono), 1, "k = %d", k)
		}
		require.LessOrEqual(t, p.notBefore.Sub(at(0).Mono), 12*8*time.Second)
		p.returned(true, 0, set, at(time.Minute))
		require.Zero(t, p.notBefore, "one has come back in time")
		p.returned(false, 0, set, at(time.Minute))
		require.Equal(t, 1, p.tries)
	}
}

// Nothing is claimed while a Claim is under way, nor before a probe has shown that the log
// works; and a Claim that does not come back is given up.
func TestOneClaimAtATime(t *testing.T) {
	w := newWorld(1)
	a := w.start("a", 2, nil)
	w.pass(5 * time.Second)
	a.cut = true // its probe has come back: it claims
	w.pass(100 * time.Millisecond)
	under, _ := a.shards[0].lease.Claiming()
	require.Equal(t, 1, under)
	w.take()
	w.pass(9 * time.Second)
	require.NotContains(t, w.take(), "claim", "it waits for what became of it")
	w.pass(2 * time.Second)
	under, _ = a.shards[0].lease.Claiming()
	require.Zero(t, under, "it was given up")
	a.cut = false
	w.pass(time.Minute)
	require.Equal(t, []int{0, 1}, a.leads(2))
	require.Len(t, w.sent(0, "a", lease.Claim), 1)
}

// A process that wants nothing any more waits for a Claim for no longer than a closing
// one does; should it arrive later, nothing is led by it.
func TestClaimOfOneThatSteppedDown(t *testing.T) {
	w, a, late := stepsDownWhileItClaims(t)
	require.True(t, a.Busy(w.instant()))
	w.pass(closeTail + lookEvery)
	require.False(t, a.Busy(w.instant()))
	a.release(late)
	w.pass(10 * time.Millisecond)
	require.Empty(t, a.leads(1))
	w.pass(5 * time.Second)
	require.NotEmpty(t, w.sent(0, "a", lease.Release), "it gives back what the Claim has brought")
	require.True(t, a.channels[0].log.Vacant())
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

// release lets them arrive.
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

// A Claim that the log reports as failed is made again, after a pause.
func TestFailedClaimIsMadeAgain(t *testing.T) {
	w := newWorld(1)
	a := w.start("a", 1, nil)
	w.pass(5 * time.Second)
	kept := a.holdBack()
	w.pass(50 * time.Millisecond)
	require.Len(t, *kept, 1)
	a.do(func(now clock.Instant) {
		a.Acked(Append{Partition: 0, Record: (*kept)[0]}, errors.New("timed out"), now)
	})
	a.cut, a.caught = false, nil
	w.pass(a.set.T/8 - time.Millisecond) // the least pause
	require.Empty(t, w.sent(0, "a", lease.Claim))
	w.pass(10 * time.Second)
	require.Equal(t, []int{0}, a.leads(1))
}

// What somebody holds is not vacant any more: a claim that was put off is not made when
// the role happens to be free at that moment, for another one to take.
func TestVacancyEndsWithAClaim(t *testing.T) {
	var c claims
	c.init()
	c.add(at(time.Second).Mono, []int32{1, 2, 3})
	c.add(at(2*time.Second).Mono, []int32{3, 4})
	c.drop([]int32{4, 3})
	require.Equal(t, []int32{1, 2}, c.take(at(time.Hour), 10))
	require.Empty(t, c.vacant)
	c.add(at(0).Mono, []int32{5, 6, 5})
	c.add(at(time.Minute).Mono, []int32{7})
	require.Equal(t, []int32{5}, c.take(at(time.Second), 6), "each once, below R")
	require.Len(t, c.vacant, 1)
}

// Many things give reason to look at a role, and each Claim drops some: it is listed once,
// for the earliest time, until it is dropped.
func TestAVacancyIsListedOnce(t *testing.T) {
	var c claims
	c.init()
	c.add(at(2*time.Second).Mono, []int32{1, 2, 3})
	c.add(at(3*time.Second).Mono, []int32{2, 3, 4})
	require.Equal(t, 1, c.vacant[1].left)
	c.add(at(time.Second).Mono, []int32{3})
	require.Equal(t, []int32{3}, c.take(at(time.Second), 10))
	c.drop([]int32{1})
	c.add(at(4*time.Second).Mono, []int32{1})
	require.Equal(t, []int32{2}, c.take(at(2*time.Second), 10), "3 was taken, 1 was dropped")
	require.Equal(t, []int32{4}, c.take(at(3*time.Second), 10))
	require.Equal(t, []int32{1}, c.take(at(4*time.Second), 10))
	require.Empty(t, c.vacant)
}

// There may be fewer roles when it is time to think of a vacancy than when it was listed.
func TestVacanciesBeyondRAreForgotten(t *testing.T) {
	var c claims
	c.init()
	c.list(&vacancy{at: at(time.Second).Mono, roles: []int32{7, 8, 9}, what: toRank})
	require.Empty(t, c.due(toShare, at(time.Hour), 10))
	require.Equal(t, []int32{7}, c.due(toRank, at(time.Second), 8))
	require.Empty(t, c.vacant)
	require.False(t, c.isListed(9))
}

// A role that was released in favour of one that has gone is anybody's.
func TestSuccessorThatHasGone(t *testing.T) {
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
	require.Equal(t, []Outcome{{1, ErrNotTransferred}}, a.ends)
}

// A role can be transferred to a process that has just come: it does not wait for others
// that start with it.
func TestTransferToOneThatHasJustCome(t *testing.T) {
	w := newWorld(1)
	a := w.start("a", 10, nil)
	w.pass(6 * time.Second)
	b := w.start("b", 10, nil)
	w.pass(8 * time.Millisecond)
	a.do(func(now clock.Instant) { _, err := a.Transfer(4, "b", now); require.NoError(t, err) })
	w.pass(12 * time.Millisecond)
	require.Equal(t, []int{4}, b.leads(10), "within round trips")
	w.pass(time.Second)
	require.Equal(t, []Outcome{{1, nil}}, a.ends)
}

// Who came after the successor, and has heard little of it or nothing, leaves the role to it.
func TestSuccessorThatIsHardlyKnown(t *testing.T) {
	for name, unread := range map[string]bool{"of history": false, "of nothing": true} {
		t.Run(name, func(t *testing.T) {
			for role := range 10 {
				w := newWorld(1)
				short := func(s *Settings) { s.T, s.Every = time.Second, time.Second/5 }
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
				require.False(t, c.members.takes("b"), "it was there before")
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

// A holder that has died is no successor, though another process found its silence out, and
// claimed what it held, before this one would have.
func TestWhoHasDiedIsNoSuccessor(t *testing.T) {
	w := newWorld(1)
	priority := func(p int) func(*Settings) { return func(s *Settings) { s.Priority = p } }
	a := w.start("a", 10, priority(3))
	w.pass(6 * time.Second)
	b, c := w.start("b", 10, priority(2)), w.start("c", 10, priority(1))
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

// Candidates of equal rank without any jitter, who do not know each other and so claim at
// the same instant, still elect one, in T′ and two round trips: the log decides.
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
		g, ok := rest[0].shards[0].lease.Holder(0)
		require.True(t, ok)
		w.pass(g.FreeAt.Sub(w.instant().Raw) - time.Millisecond)
		for _, o := range rest {
			clear(o.members.by)
			o.planner.forget()
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

// newClaims are those of a process that knows nothing yet.
func newClaims() *claims {
	var c claims
	c.init()
	return &c
}

func TestClaimsRememberWhomARoleWasReleasedFor(t *testing.T) {
	release := func(to string, moved, pinned bool) *lease.Record {
		return &lease.Record{Kind: lease.Release, Session: session("b"), To: to, Moved: moved, Pinned: pinned}
	}
	for name, c := range map[string]struct {
		r    *lease.Record
		want map[int32]successor
	}{
		"by one who leaves":           {release("a", false, false), map[int32]successor{1: {"a", claimed}, 2: {"z", claimed}}},
		"for balance":                 {release("c", true, false), map[int32]successor{1: {"c", rebalanced}, 2: {"z", claimed}}},
		"for good":                    {release("c", true, true), map[int32]successor{1: {"c", transferred}, 2: {"z", claimed}}},
		"for nobody":                  {release("", false, false), map[int32]successor{2: {"z", claimed}}},
		"and then claimed":            {&lease.Record{Kind: lease.Claim, Session: session("b")}, map[int32]successor{2: {"z", claimed}}},
		"until it has taken its role": {&lease.Record{Kind: lease.Claim, Session: session("a")}, map[int32]successor{1: {"y", rebalanced}, 2: {"z", claimed}}},
		"what no record says":         {nil, map[int32]successor{1: {"y", rebalanced}, 2: {"z", claimed}}},
		"a Beat":                      {&lease.Record{Kind: lease.Beat, Session: session("b")}, map[int32]successor{1: {"y", rebalanced}, 2: {"z", claimed}}},
	} {
		t.Run(name, func(t *testing.T) {
			cl := newClaims()
			cl.successors = released(map[int32]successor{1: {"y", rebalanced}, 2: {"z", claimed}})
			cl.designate([]int32{1}, c.r, "a")
			require.Equal(t, released(c.want), cl.successors)
		})
	}
}

func TestClaimsKnowHowARoleWasWon(t *testing.T) {
	c := newClaims()
	c.successors = released(map[int32]successor{1: {"a", transferred}, 2: {"b", rebalanced}})
	require.Equal(t, transferred, c.causeOf(1, "a"))
	require.Equal(t, claimed, c.causeOf(2, "a"), "it was meant for another")
	require.Equal(t, claimed, c.causeOf(3, "a"), "it was vacant")
	require.Zero(t, c.successors.len(), "what is won was taken")
}

func TestClaimsComeAfterTheSuccessor(t *testing.T) {
	c := newClaims()
	c.successors = released(map[int32]successor{1: {"a", claimed}, 2: {"b", claimed}, 3: {"gone", claimed}})
	ours, theirs, open := c.bySuccessor([]int32{1, 2, 3, 4}, "a", func(process string) bool { return process == "b" })
	require.Equal(t, []int32{1}, ours)
	require.Equal(t, []int32{2}, theirs)
	require.Equal(t, []int32{3, 4}, open, "who is gone leaves it to all")
	require.True(t, c.promised(func(process string) bool { return process == "b" }))
	require.False(t, c.promised(func(string) bool { return false }))
}

// released is roles that were released in somebody's favour.
func released(to map[int32]successor) (by byRole[*successor]) {
	for role, s := range to {
		by.set(role, &s)
	}
	return by
}

func session(process string) lease.Session { return lease.Session{Process: process, N: 1} }

func holder(process string, heard, free time.Duration) lease.HolderState {
	return lease.HolderState{Session: session(process), Heard: at(heard), FreeAt: at(free).Raw}
}

func TestClaimsFindASilentHolderOnce(t *testing.T) {
	c := newClaims()
	c.silentAt = 0
	all := []lease.HolderState{holder("b", 0, time.Second), holder("c", 0, 2*time.Second), holder("a", 0, time.Second)}
	find := func(d time.Duration) (found []string) {
		own := func(id lease.Session) bool { return id == session("a") }
		for _, h := range c.findSilent(slices.Values(all), own, at(d)) {
			found = append(found, h.Session.Process)
		}
		return found
	}
	require.Empty(t, find(0))
	require.Equal(t, at(time.Second).Raw, c.silentAt, "the first lease is over then")
	all[0].FreeAt = 0
	require.Empty(t, find(time.Second-1), "nobody looks before")
	require.Equal(t, []string{"b"}, find(time.Second), "the own session is not found to be silent")
	require.Empty(t, find(time.Second), "b was found")
	require.Equal(t, []string{"c"}, find(2*time.Second))
	require.Equal(t, clock.Raw(clock.Never), c.silentAt)

	require.Equal(t, uint64(2), c.turns)
	require.True(t, c.revived(session("b")), "others were told that it is silent")
	require.False(t, c.revived(session("b")))
	require.Equal(t, uint64(3), c.turns, "what others were told is counted")
	all[0] = holder("b", 3*time.Second, 4*time.Second)
	require.Empty(t, find(3*time.Second))
	require.Equal(t, []string{"b"}, find(4*time.Second), "it is silent again")
}

func TestClaimsForgetTheSilentThatHoldNothing(t *testing.T) {
	c := newClaims()
	none := func(lease.Session) bool { return false }
	all := []lease.HolderState{holder("b", 0, 0), holder("c", 0, time.Minute)}
	require.Len(t, c.findSilent(slices.Values(all), none, at(time.Second)), 1)
	c.silentAt = 0
	require.Empty(t, c.findSilent(slices.Values(all[1:]), none, at(time.Second)))
	require.Empty(t, c.silent)
}

// Who was told that a role is vacant is told if its holder is heard again, though nothing has
// been done about its silence yet.
func TestClaimsRememberOfWhomItWasSaid(t *testing.T) {
	c := newClaims()
	c.saidSilent(lease.Session{})
	require.Empty(t, c.silent, "nobody held it")
	c.saidSilent(session("b"))
	found := c.findSilent(slices.Values([]lease.HolderState{holder("b", 0, 0)}), func(lease.Session) bool { return false }, at(time.Second))
	require.Len(t, found, 1, "it is still to be dealt with")
	c.saidSilent(session("b"))
	require.Equal(t, at(0).Raw, c.silent[session("b")])
	require.True(t, c.revived(session("b")))
}

// A new holder's lease may end before those of the others.
func TestClaimsLookWhenTheShortestLeaseIsOver(t *testing.T) {
	c := newClaims()
	c.given(at(time.Second).Raw)
	require.Equal(t, clock.Raw(clock.Never), c.silentAt, "nothing is known of the others: all are looked at")
	c.silentAt = at(time.Minute).Raw
	c.given(at(time.Second).Raw)
	require.Equal(t, at(time.Second).Raw, c.silentAt)
	c.given(at(2 * time.Minute).Raw)
	require.Equal(t, at(time.Second).Raw, c.silentAt)
}

func TestClaimsLookAgain(t *testing.T) {
	c := newClaims()
	require.False(t, c.lookAgain(at(0)), "nobody holds anything")
	c.silentAt = at(time.Second).Raw
	require.True(t, c.lookAgain(at(0)))
	require.Equal(t, at(0).Raw, c.silentAt)
}

func TestClaimsListARoleOnce(t *testing.T) {
	c := newClaims()
	c.list(&vacancy{at: at(2 * time.Second).Mono, roles: []int32{1, 2}, what: toShare})
	c.add(at(3*time.Second).Mono, []int32{1})
	require.True(t, c.isListed(1))
	require.False(t, c.isListed(3))
	require.Empty(t, c.take(at(3*time.Second), 10), "the earlier one counts")
	c.add(at(time.Second).Mono, []int32{1, 3})
	require.Equal(t, at(time.Second).Mono, c.next(0))
	require.Equal(t, []int32{1, 3}, c.take(at(time.Second), 10))
	require.Equal(t, []int32{2}, c.due(toShare, at(2*time.Second), 10))
	require.Empty(t, c.vacant)

	c.add(at(0).Mono, []int32{4, 9})
	c.drop([]int32{4})
	require.Equal(t, []int32(nil), c.take(at(0), 9), "somebody holds 4, and 9 is not wanted any more")
	require.Equal(t, clock.Mono(clock.Never), c.next(0))
}

func TestClaimsThinkLaterOfWhatIsNotClaimedYet(t *testing.T) {
	c := newClaims()
	c.list(&vacancy{at: at(0).Mono, roles: []int32{1}, what: toRank})
	require.Equal(t, at(time.Second).Mono, c.next(at(time.Second).Mono))
	require.True(t, c.overdue(at(0).Mono))
	c.add(at(0).Mono, []int32{2})
	require.Equal(t, at(0).Mono, c.next(at(time.Second).Mono), "a claim does not wait")
	c.clear()
	require.False(t, c.overdue(at(0).Mono))
	require.False(t, c.isListed(2))
}
