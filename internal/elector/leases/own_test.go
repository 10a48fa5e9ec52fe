package leases

import (
	"iter"
	"testing"
	"time"

	"github.com/goneli/neli/internal/byrole"
	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/balance"
	"github.com/goneli/neli/internal/elector/vacancy"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/term"
	"github.com/stretchr/testify/require"
)

// saying is Leases whose answers a test sets.
type saying struct {
	Leases
	terms   map[int32]saidTerm
	vacant  map[int32]bool
	outdone map[int32]bool
	v       []clock.Instant // by line; zero: no term follows it
}

type saidTerm struct {
	token int64
	line  int
}

func (s *saying) Term(local int32, _ clock.Instant) Term {
	x, ok := s.terms[local]
	return Term{ok, x.token, x.line, !ok && s.vacant[local]}
}
func (s *saying) Holder(local int32) (g lease.Grantee, ok bool) {
	g.Session.Process = "b"
	return g, s.outdone[local]
}
func (s *saying) Lines() iter.Seq2[int, clock.Instant] {
	return func(yield func(int, clock.Instant) bool) {
		for line, v := range s.v {
			if v != (clock.Instant{}) && !yield(line, v) {
				return
			}
		}
	}
}

// newOwn returns the Own of the second of two shards, with a term table of four lines.
func newOwn(now *clock.Instant) (*Own, *saying) {
	say := &saying{terms: map[int32]saidTerm{}, vacant: map[int32]bool{}, outdone: map[int32]bool{}, v: make([]clock.Instant, 4)}
	table := term.New(func(now, v clock.Instant) bool { return lease.Young(now, v, time.Second) }, func() clock.Instant { return *now })
	table.Open(4, 2)
	h := NewOwn(byrole.Numbering{Index: 1, Of: 2}, say, SmallTraits, "a", table, 100)
	return &h, say
}

// tell delivers all changes to the application, so that it leads the held roles.
func (hs *Own) tell(now clock.Instant) {
	for len(hs.table.Collect(now)) > 0 {
	}
}

func because(c vacancy.Cause) func(int32) vacancy.Cause {
	return func(int32) vacancy.Cause { return c }
}

func none(int32) bool { return false }

func TestOwnComparesWithTheLease(t *testing.T) {
	now := at(0)
	h, say := newOwn(&now)
	h.Gain(Won{7, []int32{0, 1, 2, 3, 4}}, because(vacancy.Claimed), now)
	say.terms = map[int32]saidTerm{0: {7, 1}, 1: {9, 1}, 4: {7, 3}, 5: {9, 1}} // 2 and 3 are lost
	say.outdone[2] = true
	say.vacant = map[int32]bool{3: true, 6: true}
	changed := []int32{0, 1, 2, 3, 4, 5, 6, 8}
	require.Equal(t, Difference{
		Superseded: []int32{2},
		Lapsed:     []int32{1, 3}, // 1 is held by another term
		Shifted:    []int32{4},
		Gained:     wins{{9, []int32{1, 5}}},
		Taken:      []int32{0, 1, 2, 4, 5, 8},
		Free:       []int32{3, 6},
	}, h.Compare(changed, none, now))

	h.traits.Reminds = false
	listed := func(local int32) bool { return local == 6 }
	require.Equal(t, []int32{3, 6}, h.Compare(changed, listed, now).Free)
	h.traits.Reminds = true
	require.Equal(t, []int32{3}, h.Compare(changed, listed, now).Free, "6 is to be claimed already, and was named again")
	require.Equal(t, Difference{}, h.Compare(nil, none, now))
}

func TestOwnKeepsTheTermTableInStep(t *testing.T) {
	now := at(0)
	h, say := newOwn(&now)
	say.v[1] = now
	say.terms = map[int32]saidTerm{0: {7, 1}, 2: {7, 1}, 3: {8, 1}}
	require.Equal(t, int64(-1), h.TokenOf(0))
	h.Renew()
	h.Gain(Won{7, []int32{0, 2}}, because(vacancy.Transferred), now)
	h.Gain(Won{7, []int32{0, 2}}, because(vacancy.Claimed), now.Add(time.Second)) // again: a log may say it twice
	h.tell(now)
	id, token, _, leads := h.table.Leads(1)
	require.True(t, leads)
	require.Equal(t, []int64{7, 107}, []int64{id, token}, "others see the log's token, the application one above those of before")
	require.Equal(t, int64(7), h.TokenOf(2))
	require.Equal(t, Hold{7, vacancy.Transferred, at(0).Mono, 1}, *h.At(0), "its first term goes on")

	_, _, _, leads = h.table.Leads(7)
	require.False(t, leads)
	h.Gain(Won{8, []int32{3}}, because(vacancy.Rebalanced), now)
	h.tell(now)
	_, _, _, leads = h.table.Leads(7)
	require.True(t, leads, "role 3 of the shard is role 7 of all")
	require.NotSame(t, h.At(0), h.At(3))

	h.End([]int32{0, 3}, term.Closing)
	require.Equal(t, []int32{2}, h.Roles())
	for unit, want := range map[int]bool{1: false, 5: true, 7: false} {
		_, _, _, leads = h.table.Leads(unit)
		require.Equal(t, want, leads, "unit %d", unit)
	}
	before := h.table.Counts()
	h.End(nil, term.Closing)
	require.Equal(t, before, h.table.Counts())
}

// When other logs sustain a term, it follows another line of V, and does not end.
func TestOwnShiftsTermsToTheirLines(t *testing.T) {
	now := at(0)
	h, say := newOwn(&now)
	say.v[1] = now
	say.terms = map[int32]saidTerm{0: {7, 1}, 1: {7, 1}, 2: {7, 1}}
	h.Renew()
	h.Gain(Won{7, []int32{0, 1, 2}}, because(vacancy.Claimed), now)
	h.tell(now)
	all := h.At(0)

	now = at(990 * time.Millisecond)
	say.v[1], say.v[3] = clock.Instant{}, now // line 1 sustains nothing any more
	say.terms[0], say.terms[1] = saidTerm{7, 3}, saidTerm{7, 3}
	delete(say.terms, 2)
	h.Renew()
	h.Shift([]int32{0, 1, 2, 5}, now)
	require.Equal(t, 3, h.At(0).Line)
	require.Same(t, h.At(0), h.At(1), "roles that move together still share what they have in common")
	require.Same(t, all, h.At(2), "it is not led any more")
	require.False(t, h.Has(5), "it is not held at all")
	require.Equal(t, 1, all.Line, "what other roles have in common did not change")

	now = at(1500 * time.Millisecond)
	_, _, _, leads := h.table.Leads(1)
	require.True(t, leads, "by the new line's V")
	_, _, _, leads = h.table.Leads(5)
	require.False(t, leads, "by the old one's it is over")
	require.Equal(t, at(990*time.Millisecond), h.Evidence(now))
}

func TestEvidenceIsTheOldestLineInUse(t *testing.T) {
	now := at(time.Second)
	h, say := newOwn(&now)
	say.v[1], say.v[3] = at(300*time.Millisecond), at(200*time.Millisecond)
	h.Renew()
	require.Zero(t, h.Evidence(now), "nothing is held")
	h.Gain(Won{7, []int32{0}}, because(vacancy.Claimed), now)
	require.Equal(t, at(200*time.Millisecond), h.Evidence(now))
	say.v[3] = clock.Instant{}
	require.Equal(t, at(300*time.Millisecond), h.Evidence(now), "no term follows that one")
}

// A role whose end the application was told of is given up once, unless it was won again meanwhile.
func TestRoleIsGivenUpOnceItsEndIsDelivered(t *testing.T) {
	now := at(0)
	h, say := newOwn(&now)
	say.v[1] = now
	h.Renew()
	h.Gain(Won{7, []int32{0, 1}}, because(vacancy.Claimed), now)
	h.table.Collect(now)
	require.Empty(t, h.TakeOver())
	now = at(2 * time.Second) // the lease has lapsed, and only the table has noticed
	require.Len(t, h.table.Collect(now), 1)
	for _, local := range []int32{0, 1, 2} {
		h.Delivered(local)
	}
	h.End([]int32{1}, term.Lapsed)
	h.Gain(Won{9, []int32{1}}, because(vacancy.Claimed), now)
	require.Equal(t, []int32{0}, h.TakeOver(), "1 is led in another term, 2 is not held")
	require.Empty(t, h.TakeOver())
}

func TestMovableRoles(t *testing.T) {
	young, old := at(time.Hour-balance.MinTenure+1).Mono, at(time.Hour-balance.MinTenure).Mono
	now := at(time.Hour)
	for name, c := range map[string]struct {
		Hold
		movable, tenured bool
	}{
		"what was claimed":        {Hold{Cause: vacancy.Claimed, Since: young}, true, false},
		"what was moved lately":   {Hold{Cause: vacancy.Rebalanced, Since: young}, false, true},
		"what was moved long ago": {Hold{Cause: vacancy.Rebalanced, Since: old}, true, false},
		"what was given to stay":  {Hold{Cause: vacancy.Transferred, Since: old}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.movable, c.Movable(now))
			require.Equal(t, c.tenured, c.Tenured(now))
		})
	}
}
