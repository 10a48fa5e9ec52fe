package elector

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
)

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
		"by one who leaves":           {release("a", false, false), map[int32]successor{1: {process: "a", cause: claimed}, 2: {process: "z", cause: claimed}}},
		"for balance":                 {release("c", true, false), map[int32]successor{1: {process: "c", cause: rebalanced}, 2: {process: "z", cause: claimed}}},
		"for good":                    {release("c", true, true), map[int32]successor{1: {process: "c", cause: transferred}, 2: {process: "z", cause: claimed}}},
		"with a wait":                 {&lease.Record{Kind: lease.Release, To: "a", Wait: 7, Session: session("b")}, map[int32]successor{1: {"a", claimed, 7}, 2: {process: "z", cause: claimed}}},
		"for nobody":                  {release("", false, false), map[int32]successor{2: {process: "z", cause: claimed}}},
		"and then claimed":            {&lease.Record{Kind: lease.Claim, Session: session("b")}, map[int32]successor{2: {process: "z", cause: claimed}}},
		"until it has taken its role": {&lease.Record{Kind: lease.Claim, Session: session("a")}, map[int32]successor{1: {process: "y", cause: rebalanced}, 2: {process: "z", cause: claimed}}},
		"what no record says":         {nil, map[int32]successor{1: {process: "y", cause: rebalanced}, 2: {process: "z", cause: claimed}}},
		"a Beat":                      {&lease.Record{Kind: lease.Beat, Session: session("b")}, map[int32]successor{1: {process: "y", cause: rebalanced}, 2: {process: "z", cause: claimed}}},
	} {
		t.Run(name, func(t *testing.T) {
			cl := newClaims()
			cl.successors = released(map[int32]successor{1: {process: "y", cause: rebalanced}, 2: {process: "z", cause: claimed}})
			cl.designate([]int32{1}, c.r, "a")
			require.Equal(t, released(c.want), cl.successors)
		})
	}
}

func TestClaimsKnowHowLongARoleIsLeftToItsSuccessor(t *testing.T) {
	c := newClaims()
	c.successors = released(map[int32]successor{1: {"a", claimed, 7}, 2: {"a", rebalanced, 90}, 3: {"b", claimed, 7}, 4: {"b", claimed, 0}})
	require.Equal(t, map[time.Duration][]int32{0: {4}, 7: {1, 3}, 50: {2}}, c.waits([]int32{1, 2, 3, 4}, 50), "50 at most")

	const T = 2 * time.Second
	const ms = time.Millisecond
	for _, c := range []struct{ took, ago, want time.Duration }{
		{-time.Second, 0, 0}, {0, 0, 0}, {2 * ms, 0, 18 * ms}, {30 * ms, 0, 130 * ms}, {80 * ms, 0, 190 * ms}, {200 * ms, 0, 410 * ms}, {time.Second, 0, T / 2},
		{80 * ms, T/4 - 1, 190 * ms}, {80 * ms, T / 4, 330 * ms}, // it may say Hello first
	} {
		require.Equal(t, c.want, answeredIn(c.took, c.ago, T), "answered in %v, %v ago", c.took, c.ago)
	}
}

func TestClaimsKnowHowARoleWasWon(t *testing.T) {
	c := newClaims()
	c.successors = released(map[int32]successor{1: {process: "a", cause: transferred}, 2: {process: "b", cause: rebalanced}})
	require.Equal(t, transferred, c.causeOf(1, "a"))
	require.Equal(t, claimed, c.causeOf(2, "a"), "it was meant for another")
	require.Equal(t, claimed, c.causeOf(3, "a"), "it was vacant")
	require.Zero(t, c.successors.len(), "what is won was taken")
}

func TestClaimsComeAfterTheSuccessor(t *testing.T) {
	c := newClaims()
	c.successors = released(map[int32]successor{1: {process: "a", cause: claimed}, 2: {process: "b", cause: claimed}, 3: {process: "gone", cause: claimed}})
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

// Once somebody holds a role it is not vacant any more. A claim that was put off is not made later,
// even if the role is free again at that moment: it may be meant for another process.
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

// A vacancy that is over leaves its number to the next one. Roles that an older vacancy still has in
// its list, but lost to the one that is over, are not that older one's again.
func TestANumberIsUsedAgain(t *testing.T) {
	var c claims
	c.init()
	c.add(at(3*time.Second).Mono, []int32{1, 2})
	c.add(at(1*time.Second).Mono, []int32{2})
	require.Equal(t, []int32{2}, c.take(at(time.Second), 10))
	c.add(at(4*time.Second).Mono, []int32{2, 3})
	c.add(at(5*time.Second).Mono, []int32{4})
	require.Len(t, c.numbered, 4, "three numbers and none")
	require.Equal(t, []int32{1}, c.take(at(3*time.Second), 10))
	c.add(at(6*time.Second).Mono, []int32{1})
	require.Len(t, c.numbered, 4)
	c.drop([]int32{3})
	require.Equal(t, []int32{2}, c.take(at(4*time.Second), 10))
	require.Equal(t, []int32{4}, c.take(at(5*time.Second), 10))
	require.Equal(t, []int32{1}, c.take(at(6*time.Second), 10))
	require.Empty(t, c.vacant)
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
