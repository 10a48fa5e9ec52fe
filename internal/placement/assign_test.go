package placement

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A first election gives each member its share: at most one role more than another.
func TestAssignLevelsTheFirstElection(t *testing.T) {
	for _, c := range []struct{ members, roles int }{
		{1, 1}, {1, 1000}, {2, 1}, {3, 10}, {7, 3}, {7, 1000}, {24, 1000}, {100, 1000}, {100, 16384}, {100, 16385}, {100, 100_000}, {1500, 20_000},
	} {
		w := settled(random(7), c.members, c.roles)
		require.LessOrEqual(t, spread(w.all()), 1, c)
		require.Empty(t, w.vacant(), c)
		for me := 0; me < c.members; me += 1 + c.members/10 {
			require.Empty(t, w.plan.Moves(me, w.holders, anything, c.roles), "roles have to be moved afterwards")
		}
	}
	w := settled(random(1), 3, 10)
	loads := w.all()
	slices.Sort(loads)
	require.Equal(t, []int{3, 3, 4}, loads)
}

// Most roles go to the member that rendezvous hashing puts first. That keeps them where they are
// when other members come and go.
func TestAssignFollowsTheHash(t *testing.T) {
	w := settled(random(3), 20, 2000)
	first := 0
	for role, h := range w.holders {
		if int(h) == highest(w.plan.hash, hashBucket(role&w.plan.mask)) {
			first++
		}
	}
	require.Greater(t, first, 1700, "of 2000")
}

// No member gets more than an equal share of its class, unless it had more before. Each vacant
// role goes to a member that prefers it most, or to nobody if nobody wants it.
func TestAssignKeepsToTheShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		roles := rapid.IntRange(1, 120).Draw(t, "roles")
		w := newWorld(someone(t, roles), roles)
		r := random(rapid.Uint64().Draw(t, "holders"))
		n := w.plan.Len()
		few := 1 + r.IntN(n+1)
		w.deal(func(int) int { return r.IntN(few+2) - 2 })
		for role, h := range w.holders {
			if int(h) >= n {
				w.holders[role] = Unknown
			}
		}
		before := slices.Clone(w.holders)
		vacant := w.vacant()
		w.assign()
		for _, role := range vacant {
			deserving := best(w.plan, int(role), false)
			if len(deserving) == 0 {
				require.Equal(t, int32(Nobody), w.holders[role])
				continue
			}
			require.Contains(t, deserving, int(w.holders[role]))
			had, has, total := make([]int, n), make([]int, n), 0
			for other := range roles { // the class of role
				if !slices.Equal(best(w.plan, other, false), deserving) {
					continue
				}
				if h := int(before[other]); h >= 0 {
					had[h]++
				}
				if h := int(w.holders[other]); slices.Contains(deserving, h) {
					has[h]++
					total++
				}
			}
			for _, i := range deserving {
				require.LessOrEqual(t, has[i], max(had[i], (total+len(deserving)-1)/len(deserving)))
			}
		}
	})
}

// The roles of a crashed member go to all others, and each of them knows its part.
func TestAssignSpreadsRolesOfACrashedMember(t *testing.T) {
	for seed := range uint64(20) {
		w := settled(random(seed), 20, 400)
		before := w.names()
		dead := w.plan.who[7].ID
		w.leave(7)
		require.Equal(t, 20, w.assign())
		heirs := map[string]bool{}
		for role, id := range w.names() {
			if before[role] != dead {
				require.Equal(t, before[role], id, "another role has moved")
				continue
			}
			heirs[id] = true
		}
		require.LessOrEqual(t, spread(w.all()), 2, "not 21 or 22 each, where all had 20")
		require.Greater(t, len(heirs), 15)
	}
}

// The sizes of the design's goals: after ten of a hundred members have crashed, nobody has over a
// tenth more than the mean, and all vacant roles have a claimant.
func TestAssignAtScale(t *testing.T) {
	const roles = 100_000
	w := settled(random(1), 100, roles)
	require.LessOrEqual(t, slices.Max(w.all()), roles/100)
	for range 10 {
		w.leave(w.plan.Len() / 2)
	}
	require.Equal(t, roles/10, w.assign())
	require.LessOrEqual(t, slices.Max(w.all()), roles/90+1)
	require.GreaterOrEqual(t, slices.Min(w.all()), roles/90-10)
	for me := 0; me < w.plan.Len(); me += 10 {
		require.Empty(t, w.plan.Moves(me, w.holders, anything, roles), "the result is not level")
	}
}

// A member that already has its share is passed over, whatever the hash says.
func TestAssignPassesOverMembersWithTheirShare(t *testing.T) {
	w := newWorld(crowd(random(9), 2, 200), 200)
	w.deal(func(role int) int {
		if role < 100 {
			return 0
		}
		return Nobody
	})
	w.assign()
	require.Equal(t, []int{100, 100}, w.all())
	w.deal(func(role int) int {
		if role < 150 {
			return 0
		}
		return Nobody
	})
	w.assign()
	require.Equal(t, []int{150, 50}, w.all())
}

// A vacant role counts as held by nobody, even if holders names its former holder. A role that is
// neither held nor vacant is ignored.
func TestAssignTreatsListedRolesAsVacant(t *testing.T) {
	p := New([]Candidate{{ID: "a", Roles: 40}, {ID: "b", Roles: 40}})
	holders := make([]int32, 20) // all are a's; the last twenty are nobody's
	for _, to := range p.Assign([]int32{0, 1, 2, 3, 4, 5}, holders) {
		require.Equal(t, int32(1), to, "a has fourteen still")
	}
	got := p.Assign(upTo(20), holders)
	require.Equal(t, 10, count(got, 0))
	require.Equal(t, 10, count(got, 1))
}

func count(s []int32, v int32) (n int) {
	for _, w := range s {
		if w == v {
			n++
		}
	}
	return n
}

// The members with the highest priority get all roles that they want, in equal shares. The other
// roles go to the members with the next priority.
func TestAssignByPriority(t *testing.T) {
	p := New([]Candidate{{ID: "a", Priority: 5, Roles: 20}, {ID: "b", Roles: 30}, {ID: "c", Priority: 5, Roles: 20}, {ID: "d", Roles: 30}})
	got := p.Assign(upTo(40), nil)
	for role, to := range got {
		switch {
		case role < 20:
			require.Contains(t, []int32{0, 2}, to)
		case role < 30:
			require.Contains(t, []int32{1, 3}, to)
		default:
			require.Equal(t, int32(Nobody), to, "a role that nobody wants was assigned")
		}
	}
	require.Equal(t, []int{10, 5, 10, 5}, []int{count(got, 0), count(got, 1), count(got, 2), count(got, 3)})
}

// Members announced different numbers of roles. Each range is shared out separately among those
// that want it, so that no role moves twice until all have announced the same number.
func TestAssignDifferentRoleCounts(t *testing.T) {
	w := newWorld([]Candidate{{ID: "a", Roles: 100, Steady: true}, {ID: "b", Roles: 200, Steady: true}, {ID: "c", Roles: 200, Steady: true}}, 200)
	w.assign()
	require.LessOrEqual(t, spread(w.loads(0, 100)), 1)
	require.Equal(t, []int{0, 50, 50}, w.loads(100, 200))
	before := w.names()
	who := slices.Clone(w.plan.who)
	who[0].Roles = 200 // a follows
	w.change(who)
	require.Equal(t, 33, w.settle(t, options{}))
	for role, id := range w.names() {
		require.True(t, id == before[role] || id == "a", "a role has moved to another member than a")
	}
}

// Two processes whose views differ in one member or one vacant role agree on most roles: at a
// cold start, and when one of a hundred members has crashed.
func TestAssignDegradesGently(t *testing.T) {
	const members, roles = 100, 10_000
	r := random(11)
	who := crowd(r, members, roles)
	differ := func(p, q *Plan, vacant, vacant2, holders []int32) float64 {
		chosen := map[int32]string{}
		for k, to := range p.Assign(vacant, holders) {
			chosen[vacant[k]] = p.who[to].ID
		}
		n := 0
		for k, to := range q.Assign(vacant2, inOther(p, q, holders)) {
			if id, ok := chosen[vacant2[k]]; ok && id != q.who[to].ID {
				n++
			}
		}
		return float64(n) / float64(len(vacant))
	}
	cold := upTo(roles)
	require.Less(t, differ(New(who), New(who[1:]), cold, cold, nil), 0.05, "cold start, one member less known")
	require.Less(t, differ(New(who), New(who), cold, cold[1:], nil), 0.01, "cold start, one role less")
	w := settled(r, members, roles)
	w.leave(3)
	vacant := w.vacant()
	require.Less(t, differ(w.plan, New(w.plan.who[1:]), vacant, vacant, w.holders), 0.3, "crash, one member less known")
	require.Less(t, differ(w.plan, w.plan, vacant, vacant[1:], w.holders), 0.3, "crash, one role less")
}

// inOther translates holders from p's indices to q's.
func inOther(p, q *Plan, holders []int32) []int32 {
	out := slices.Clone(holders)
	for role, h := range out {
		if h >= 0 {
			out[role] = int32(q.Find(p.who[h].ID))
		}
	}
	return out
}

// Without candidates, nobody is chosen.
func TestAssignWithoutCandidates(t *testing.T) {
	none := New(nil)
	require.Equal(t, []int32{Nobody, Nobody}, none.Assign([]int32{0, 2}, nil))
	require.Empty(t, none.Assign(nil, nil))
	require.Empty(t, New(crowd(random(1), 2, 3)).Assign(nil, nil))
}
