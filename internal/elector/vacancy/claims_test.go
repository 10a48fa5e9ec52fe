package vacancy

import (
	"slices"
	"testing"
	"time"

	"github.com/goneli/neli/internal/byrole"
	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
	"github.com/stretchr/testify/require"
)

// newClaims returns the Claims of a process that knows nothing yet.
func newClaims() *Claims {
	var c Claims
	c.Init()
	return &c
}

func TestClaimsRememberSuccessors(t *testing.T) {
	release := func(to string, moved, pinned bool) *lease.Record {
		return &lease.Record{Kind: lease.Release, Session: session("b"), To: to, Moved: moved, Pinned: pinned}
	}
	for name, c := range map[string]struct {
		r    *lease.Record
		want map[int32]successor
	}{
		"by one who leaves":           {release("a", false, false), map[int32]successor{1: {process: "a", cause: Claimed}, 2: {process: "z", cause: Claimed}}},
		"for balance":                 {release("c", true, false), map[int32]successor{1: {process: "c", cause: Rebalanced}, 2: {process: "z", cause: Claimed}}},
		"for good":                    {release("c", true, true), map[int32]successor{1: {process: "c", cause: Transferred}, 2: {process: "z", cause: Claimed}}},
		"with a wait":                 {&lease.Record{Kind: lease.Release, To: "a", Wait: 7, Session: session("b")}, map[int32]successor{1: {"a", Claimed, 7}, 2: {process: "z", cause: Claimed}}},
		"for nobody":                  {release("", false, false), map[int32]successor{2: {process: "z", cause: Claimed}}},
		"and then claimed":            {&lease.Record{Kind: lease.Claim, Session: session("b")}, map[int32]successor{2: {process: "z", cause: Claimed}}},
		"until it has taken its role": {&lease.Record{Kind: lease.Claim, Session: session("a")}, map[int32]successor{1: {process: "y", cause: Rebalanced}, 2: {process: "z", cause: Claimed}}},
		"what no record says":         {nil, map[int32]successor{1: {process: "y", cause: Rebalanced}, 2: {process: "z", cause: Claimed}}},
		"a Beat":                      {&lease.Record{Kind: lease.Beat, Session: session("b")}, map[int32]successor{1: {process: "y", cause: Rebalanced}, 2: {process: "z", cause: Claimed}}},
	} {
		t.Run(name, func(t *testing.T) {
			cl := newClaims()
			cl.successors = released(map[int32]successor{1: {process: "y", cause: Rebalanced}, 2: {process: "z", cause: Claimed}})
			cl.Designate([]int32{1}, c.r, "a")
			require.Equal(t, released(c.want), cl.successors)
		})
	}
}

func TestClaimsKnowHowLongToWaitForASuccessor(t *testing.T) {
	c := newClaims()
	c.successors = released(map[int32]successor{1: {"a", Claimed, 7}, 2: {"a", Rebalanced, 90}, 3: {"b", Claimed, 7}, 4: {"b", Claimed, 0}})
	require.Equal(t, map[time.Duration][]int32{0: {4}, 7: {1, 3}, 50: {2}}, c.Waits([]int32{1, 2, 3, 4}, 50), "50 at most")

	const T = 2 * time.Second
	const ms = time.Millisecond
	for _, c := range []struct{ took, ago, want time.Duration }{
		{-time.Second, 0, 0}, {0, 0, 0}, {2 * ms, 0, 18 * ms}, {30 * ms, 0, 130 * ms}, {80 * ms, 0, 190 * ms}, {200 * ms, 0, 410 * ms}, {time.Second, 0, T / 2},
		{80 * ms, T/4 - 1, 190 * ms}, {80 * ms, T / 4, 330 * ms}, // it may say Hello first
	} {
		require.Equal(t, c.want, AnsweredIn(c.took, c.ago, T), "answered in %v, %v ago", c.took, c.ago)
	}
}

func TestClaimsComeAfterTheSuccessor(t *testing.T) {
	c := newClaims()
	c.successors = released(map[int32]successor{1: {process: "a", cause: Claimed}, 2: {process: "b", cause: Claimed}, 3: {process: "gone", cause: Claimed}})
	ours, theirs, open := c.BySuccessor([]int32{1, 2, 3, 4}, "a", func(process string) bool { return process == "b" })
	require.Equal(t, []int32{1}, ours)
	require.Equal(t, []int32{2}, theirs)
	require.Equal(t, []int32{3, 4}, open, "who is gone leaves it to all")
	require.True(t, c.Promised(func(process string) bool { return process == "b" }))
	require.False(t, c.Promised(func(string) bool { return false }))
}

// released is roles that were released in somebody's favour.
func released(to map[int32]successor) (by byrole.Map[*successor]) {
	for local, s := range to {
		by.Set(local, &s)
	}
	return by
}

func TestClaimsFindASilentHolderOnce(t *testing.T) {
	c := newClaims()
	c.silentAt = 0
	all := []lease.HolderState{holder("b", 0, time.Second), holder("c", 0, 2*time.Second), holder("a", 0, time.Second)}
	find := func(d time.Duration) (found []string) {
		own := func(id lease.Session) bool { return id == session("a") }
		for _, h := range c.FindSilent(slices.Values(all), own, at(d)) {
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
	require.True(t, c.Revived(session("b")), "others were told that it is silent")
	require.False(t, c.Revived(session("b")))
	require.Equal(t, uint64(3), c.turns, "what others were told is counted")
	all[0] = holder("b", 3*time.Second, 4*time.Second)
	require.Empty(t, find(3*time.Second))
	require.Equal(t, []string{"b"}, find(4*time.Second), "it is silent again")
}

func TestClaimsForgetSilentSessionsWithoutRoles(t *testing.T) {
	c := newClaims()
	none := func(lease.Session) bool { return false }
	all := []lease.HolderState{holder("b", 0, 0), holder("c", 0, time.Minute)}
	require.Len(t, c.FindSilent(slices.Values(all), none, at(time.Second)), 1)
	c.silentAt = 0
	require.Empty(t, c.FindSilent(slices.Values(all[1:]), none, at(time.Second)))
	require.Empty(t, c.silent)
}

// Observers that were told that a role is vacant are told if its holder is heard again, even if the
// process itself has not found the holder silent yet.
func TestClaimsRememberReportedSilence(t *testing.T) {
	c := newClaims()
	c.SaidSilent(lease.Session{})
	require.Empty(t, c.silent, "nobody held it")
	c.SaidSilent(session("b"))
	found := c.FindSilent(slices.Values([]lease.HolderState{holder("b", 0, 0)}), func(lease.Session) bool { return false }, at(time.Second))
	require.Len(t, found, 1, "it is still to be dealt with")
	c.SaidSilent(session("b"))
	require.Equal(t, at(0).Raw, c.silent[session("b")])
	require.True(t, c.Revived(session("b")))
}

// A new holder's lease may end before those of the others.
func TestClaimsLookWhenTheShortestLeaseIsOver(t *testing.T) {
	c := newClaims()
	c.Given(at(time.Second).Raw)
	require.Equal(t, clock.Raw(clock.Never), c.silentAt, "nothing is known of the others: all are looked at")
	c.silentAt = at(time.Minute).Raw
	c.Given(at(time.Second).Raw)
	require.Equal(t, at(time.Second).Raw, c.silentAt)
	c.Given(at(2 * time.Minute).Raw)
	require.Equal(t, at(time.Second).Raw, c.silentAt)
}

func TestClaimsRecheckNow(t *testing.T) {
	c := newClaims()
	require.False(t, c.LookAgain(at(0)), "nobody holds anything")
	c.silentAt = at(time.Second).Raw
	require.True(t, c.LookAgain(at(0)))
	require.Equal(t, at(0).Raw, c.silentAt)
}

func TestClaimsListARoleOnce(t *testing.T) {
	c := newClaims()
	c.AddFor(ToAssign, at(2*time.Second).Mono, []int32{1, 2})
	c.Add(at(3*time.Second).Mono, []int32{1})
	require.True(t, c.IsListed(1))
	require.False(t, c.IsListed(3))
	require.Empty(t, c.Take(at(3*time.Second), 10), "the earlier one counts")
	c.Add(at(time.Second).Mono, []int32{1, 3})
	require.Equal(t, at(time.Second).Mono, c.Next(0))
	require.Equal(t, []int32{1, 3}, c.Take(at(time.Second), 10))
	require.Equal(t, []int32{2}, c.Due(ToAssign, at(2*time.Second), 10))
	require.Empty(t, c.pending)

	c.Add(at(0).Mono, []int32{4, 9})
	c.Drop([]int32{4})
	require.Equal(t, []int32(nil), c.Take(at(0), 9), "somebody holds 4, and 9 is not wanted any more")
	require.Equal(t, clock.Mono(clock.Never), c.Next(0))
}

func TestClaimsPutOffRankingOnly(t *testing.T) {
	c := newClaims()
	c.AddFor(ToRank, at(0).Mono, []int32{1})
	require.Equal(t, at(time.Second).Mono, c.Next(at(time.Second).Mono))
	require.True(t, c.Overdue(at(0).Mono))
	c.Add(at(0).Mono, []int32{2})
	require.Equal(t, at(0).Mono, c.Next(at(time.Second).Mono), "a claim does not wait")
	c.Clear()
	require.False(t, c.Overdue(at(0).Mono))
	require.False(t, c.IsListed(2))
}

// The pause after a Claim that did not come back in time doubles each time, up to 8 T.
func TestBackoff(t *testing.T) {
	for _, fraction := range []int{0, 1} { // of the random part: the least, and nearly the most
		const T = 8 * time.Second
		random := func(d time.Duration) time.Duration { return time.Duration(fraction) * (d - 1) }
		var p Pacing
		for k := 1; k <= maxTries+3; k++ {
			p.Late(T, random, at(0))
			whole := time.Second << min(k, 6)
			require.InDelta(t, whole/2+time.Duration(fraction)*whole, p.notBefore.Sub(at(0).Mono), 1, "k = %d", k)
		}
		require.LessOrEqual(t, p.notBefore.Sub(at(0).Mono), 12*8*time.Second)
		p.Returned(true, 0, T, random, at(time.Minute))
		require.Zero(t, p.notBefore, "one has come back in time")
		p.Returned(false, 0, T, random, at(time.Minute))
		require.Equal(t, 1, p.tries)
	}
}

// A vacancy that is over leaves its number to the next one. An older vacancy may still list roles that
// it lost to the one that is over. It does not get them back.
func TestReusedNumberRevivesNoVacancy(t *testing.T) {
	var c Claims
	c.Init()
	c.Add(at(3*time.Second).Mono, []int32{1, 2})
	c.Add(at(1*time.Second).Mono, []int32{2})
	require.Equal(t, []int32{2}, c.Take(at(time.Second), 10))
	c.Add(at(4*time.Second).Mono, []int32{2, 3})
	c.Add(at(5*time.Second).Mono, []int32{4})
	require.Len(t, c.numbered, 4, "three numbers and none")
	require.Equal(t, []int32{1}, c.Take(at(3*time.Second), 10))
	c.Add(at(6*time.Second).Mono, []int32{1})
	require.Len(t, c.numbered, 4)
	c.Drop([]int32{3})
	require.Equal(t, []int32{2}, c.Take(at(4*time.Second), 10))
	require.Equal(t, []int32{4}, c.Take(at(5*time.Second), 10))
	require.Equal(t, []int32{1}, c.Take(at(6*time.Second), 10))
	require.Empty(t, c.pending)
}

// Memory for each role is needed only while roles are vacant.
func TestMemoryIsFreed(t *testing.T) {
	c := newClaims()
	c.Add(at(0).Mono, []int32{7})
	c.Free()
	require.NotEmpty(t, c.listed)
	c.Drop([]int32{7})
	c.Free()
	require.Empty(t, c.listed)
	require.Empty(t, c.numbered)
}
