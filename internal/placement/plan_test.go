package placement

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestPlanFindsCandidates(t *testing.T) {
	given := []Candidate{{ID: "c"}, {ID: "a", Priority: 1}, {ID: "b"}, {ID: "a", Priority: 2}}
	p := New(given)
	require.Equal(t, "c", given[0].ID, "New has changed the caller's slice")
	require.Equal(t, 3, p.Len())
	require.Equal(t, []int{0, 1, 2}, []int{p.Find("a"), p.Find("b"), p.Find("c")})
	require.Equal(t, 1, p.Candidate(0).Priority, "not the first of two with the same id")
	for _, id := range []string{"", "aa", "z"} {
		require.Equal(t, Unknown, p.Find(id))
	}
	require.Equal(t, Unknown, New(nil).Find("a"))
}

// best returns the candidates that want a role and prefer it most, calculated one by one.
func best(p *Plan, role int, steady bool) (out []int) {
	top := math.MinInt
	for i := range p.Len() {
		c := p.Candidate(i)
		if role >= c.Roles || steady && !c.Steady {
			continue
		}
		v := c.Priority
		if role < len(c.Prefs) {
			v = int(c.Prefs[role])
		}
		if v > top {
			top, out = v, nil
		}
		if v == top {
			out = append(out, i)
		}
	}
	return out
}

func TestDeserving(t *testing.T) {
	p := New([]Candidate{
		{ID: "a", Priority: 3, Roles: 5},
		{ID: "b", Priority: 9, Roles: 5, Prefs: []int32{5, 1, 3}},
		{ID: "c", Priority: 3, Roles: 4},
		{ID: "d", Priority: -7, Roles: 6, Prefs: []int32{3}}, // its preferences are from when there were fewer roles
	})
	for role, want := range [][]int32{{1}, {0, 2}, {0, 1, 2}, {1}, {1}, {3}} {
		require.Equal(t, want, p.deserving(p.all, role, nil), "role %d", role)
	}
}

// someone draws candidates of all kinds.
func someone(t *rapid.T, roles int) []Candidate {
	n := rapid.IntRange(0, 9).Draw(t, "members")
	r := random(rapid.Uint64().Draw(t, "seed"))
	who := crowd(r, n, roles)
	sort := rapid.SampledFrom([]string{"alike", "priorities", "preference", "some preference"}).Draw(t, "sort")
	fickle, short := rapid.Bool().Draw(t, "not all steady"), rapid.Bool().Draw(t, "not all want all")
	for i := range who {
		w := &who[i]
		if sort == "priorities" {
			w.Priority = r.IntN(3) - 1
		}
		if sort == "preference" || sort == "some preference" && r.IntN(2) == 0 {
			w.Prefs = make([]int32, r.IntN(roles+1))
			if sort == "preference" {
				w.Prefs = make([]int32, roles)
			}
			for role := range w.Prefs {
				w.Prefs[role] = int32(r.IntN(3) - 1)
			}
		}
		if fickle {
			w.Steady = r.IntN(3) > 0
			w.Soon = !w.Steady && r.IntN(2) > 0
		}
		if short && r.IntN(2) == 0 {
			w.Roles = r.IntN(roles + 1)
		}
	}
	return who
}

// Two roles are of one class exactly if the same candidates deserve them.
func TestClassesGroupRolesByDeservingCandidates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := New(someone(t, rapid.IntRange(1, 40).Draw(t, "roles")))
		for steady, part := range map[bool]*classes{false: p.all, true: p.steady} {
			seen := map[int]int{}
			for c := range part.len() {
				for k := part.start[c]; k < part.start[c+1]; k++ {
					role := part.at(k)
					require.Equal(t, c, part.of(role))
					require.True(t, k == part.start[c] || part.at(k-1) < role, "ascending within a class")
					seen[role]++
				}
			}
			require.Len(t, seen, p.roles, "each role, once")
			for a := range p.roles {
				for b := range a {
					same := slices.Equal(best(p, a, steady), best(p, b, steady))
					require.Equal(t, same, part.of(a) == part.of(b), "roles %d and %d", a, b)
				}
			}
		}
	})
}

// On each role, one candidate comes first: the chosen one, of those that prefer it most. The
// others follow by preference, no two at a time.
func TestRank(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		roles := rapid.IntRange(1, 20).Draw(t, "roles")
		p := New(someone(t, roles))
		for role, first := range p.Assign(upTo(roles), nil) {
			var seen []int
			for i := range p.Len() {
				rank := p.Rank(i, int(first), role)
				if role >= p.Candidate(i).Roles {
					require.Equal(t, MaxRank, rank)
					continue
				}
				require.Equal(t, rank == 0, i == int(first))
				seen = append(seen, rank)
				for k := range p.Len() {
					if a, b := p.Candidate(i), p.Candidate(k); role < b.Roles && b.prefers(role) > a.prefers(role) {
						require.Less(t, p.Rank(k, int(first), role), rank)
					}
				}
			}
			slices.Sort(seen)
			for k, rank := range seen {
				require.Equal(t, k, rank, "two candidates have the same rank")
			}
		}
	})
}

// After the first, the others come in another order on each role.
func TestRankSpreads(t *testing.T) {
	p := New(crowd(random(1), 5, 1000))
	second := make([]int, 5)
	for role := range 1000 {
		for i := range 5 {
			if p.Rank(i, 0, role) == 1 {
				second[i]++
			}
		}
	}
	require.Zero(t, second[0])
	for _, n := range second[1:] {
		require.InDelta(t, 250, n, 60)
	}
}

func TestRankIsBounded(t *testing.T) {
	p := New(crowd(random(2), 100, 10))
	counts := map[int]int{}
	for i := range 100 {
		counts[p.Rank(i, 7, 3)]++
	}
	for rank := range MaxRank {
		require.Equal(t, 1, counts[rank])
	}
	require.Equal(t, 100-MaxRank, counts[MaxRank])
	for _, i := range []int{Nobody, Unknown, 100} {
		require.Equal(t, MaxRank, p.Rank(i, 7, 3), "no candidate")
	}
	require.Equal(t, MaxRank, p.Rank(7, 7, 10), "not wanted")
	require.Equal(t, MaxRank, p.Rank(7, 7, -1), "no role")
	require.Equal(t, 1, New([]Candidate{{ID: "a", Roles: 1}}).Rank(0, Nobody, 0), "ranks do not begin with 1")
}

// Nonsense announced by a peer is bounded, and causes no panic.
func TestNewBoundsNonsense(t *testing.T) {
	p := New([]Candidate{{ID: "a", Roles: math.MaxInt}, {ID: "b", Roles: -5, Priority: math.MaxInt}, {Prefs: []int32{}, Roles: 3, Steady: true}})
	require.Equal(t, MaxRoles, p.Candidate(p.Find("a")).Roles)
	require.Zero(t, p.Candidate(p.Find("b")).Roles)
	a := int32(p.Find("a"))
	require.Equal(t, []int32{Nobody, a, Nobody, a, Nobody}, p.Assign([]int32{-1, 100, MaxRoles, MaxRoles - 1, math.MaxInt32}, []int32{7, -9, math.MaxInt32}))
	holders := []int32{0, 3, -9, math.MaxInt32}
	require.Equal(t, []int32{a, a}, p.Assign([]int32{4, 5}, holders))
	for me := range 3 {
		require.Empty(t, p.Moves(me, holders, anything, 10), "moves roles, though the only steady member has all it wants")
		require.Empty(t, p.Moves(me, []int32{1, 1, 1}, anything, -1))
	}
}

// Two processes with the same knowledge decide alike, in whatever order they got it.
func TestAllProcessesDecideAlike(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		roles := rapid.IntRange(1, 60).Draw(t, "roles")
		who := someone(t, roles)
		r := random(rapid.Uint64().Draw(t, "order"))
		shuffled, vacant := slices.Clone(who), upTo(roles)
		shuffle(r, shuffled)
		a, b := newWorld(who, roles), newWorld(shuffled, roles)
		deal := func(int) int { return r.IntN(len(who)+2) - 2 }
		a.deal(deal)
		copy(b.holders, a.holders)
		vacant = slices.DeleteFunc(vacant, func(int32) bool { return r.IntN(3) > 0 })
		mixed := slices.Clone(vacant)
		shuffle(r, mixed)
		chosen := map[int32]int32{}
		for k, to := range b.plan.Assign(mixed, b.holders) {
			chosen[mixed[k]] = to
		}
		for k, to := range a.plan.Assign(vacant, a.holders) {
			require.Equal(t, chosen[vacant[k]], to)
		}
		for me := range who {
			require.Equal(t, a.plan.Moves(me, a.holders, anything, roles), b.plan.Moves(me, b.holders, anything, roles))
		}
	})
}

func shuffle[E any](r *rand.Rand, s []E) {
	r.Shuffle(len(s), func(i, k int) { s[i], s[k] = s[k], s[i] })
}
