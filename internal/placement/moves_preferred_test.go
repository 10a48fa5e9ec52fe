package placement

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// While the rest is level, roles that have to move go to the members with fewer roles, and no
// other role moves because of that.
func TestMovesOfMisplacedRolesMoveNoOthers(t *testing.T) {
	w := newWorld([]Candidate{
		{ID: "a", Steady: true, Roles: 300, Priority: 1}, {ID: "b", Steady: true, Roles: 300, Priority: 1}, {ID: "c", Steady: true, Roles: 300},
	}, 210)
	w.deal(func(role int) int {
		switch {
		case role < 108:
			return 0
		case role < 208:
			return 1
		}
		return 2
	})
	require.Equal(t, 2, w.settle(t, options{together: true}))
	require.Equal(t, []int{108, 102, 0}, w.all(), "105 each would be even, but takes three moves more")
}

// In the end each role is with a steady member that prefers it most, unless a member that is not
// steady but deserves it as much, or more, has it. Each class is level.
func TestMovesServePreferredMembers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		roles := rapid.IntRange(1, 60).Draw(t, "roles")
		r := random(rapid.Uint64().Draw(t, "seed"))
		w := dealt(r, someone(t, roles), roles)
		before := slices.Clone(w.holders)
		o := options{together: rapid.Bool().Draw(t, "together"), limit: rapid.SampledFrom([]int{0, 3}).Draw(t, "limit")}
		w.settle(t, o)
		classes := map[string][]int{}
		waits := map[string]bool{} // room is kept for a member that is not steady
		for role, h := range w.holders {
			deserving := best(w.plan, role, true)
			if len(deserving) == 0 {
				require.Equal(t, before[role], h, "a role that nobody steady wants has moved")
				continue
			}
			key := string(rune(0))
			for _, i := range deserving {
				key += string(rune(i + 1))
			}
			classes[key] = append(classes[key], role)
			for i := range w.plan.Len() {
				c, top := w.plan.Candidate(i), w.plan.Candidate(deserving[0])
				waits[key] = waits[key] || !c.Steady && (i == int(h) || c.Soon && role < c.Roles && c.prefers(role) == top.prefers(role))
			}
		}
		for key, class := range classes {
			deserving := best(w.plan, class[0], true)
			loads := make([]int, w.plan.Len())
			for _, role := range class {
				loads[w.holders[role]]++
				h, top := w.plan.Candidate(int(w.holders[role])), w.plan.Candidate(deserving[0])
				if h.Steady {
					require.Contains(t, deserving, int(w.holders[role]))
					continue
				}
				require.Less(t, role, h.Roles)
				require.GreaterOrEqual(t, h.prefers(role), top.prefers(role))
				if h.prefers(role) > top.prefers(role) {
					require.Equal(t, before[role], w.holders[role], "a holder that deserves the role more has lost it")
				}
			}
			var of []int
			for _, i := range deserving {
				of = append(of, loads[i])
			}
			if !waits[key] {
				require.LessOrEqual(t, spread(of), max(1, len(class)/len(of)/10))
			}
		}
	})
}

// Roles that have to move do not wait for room that is kept for a member that is not steady. They
// are shared out among the steady members.
func TestMisplacedRolesMoveAtOnce(t *testing.T) {
	w := newWorld([]Candidate{
		{ID: "a", Steady: true, Roles: 40}, {ID: "b", Steady: true, Roles: 40}, {ID: "u", Roles: 40}, {ID: "z"},
	}, 40)
	w.deal(func(role int) int {
		switch {
		case role < 14:
			return 0
		case role < 18:
			return 1
		case role < 20:
			return 2
		}
		return 3
	})
	require.Equal(t, 20, w.carry(t, 3, w.plan.Moves(3, w.holders, anything, 40), options{limit: 40, movable: anything}, w.holders), "does not move all at once")
	require.Equal(t, []int{19, 19, 2, 0}, w.all())
	require.Zero(t, w.settle(t, options{}))
}

// Roles of a holder that is not steady but deserves them more do not count: the others level what they have.
func TestMovesIgnoreRolesThatAnUnsteadyHolderDeservesMore(t *testing.T) {
	w := newWorld([]Candidate{
		{ID: "a", Steady: true, Roles: 40}, {ID: "b", Steady: true, Roles: 40}, {ID: "u", Roles: 40, Priority: 1},
	}, 40)
	w.deal(func(role int) int { return role % 2 * 2 })
	require.Equal(t, 10, w.settle(t, options{}))
	require.Equal(t, []int{10, 10, 20}, w.all())
}

// A member that is not steady and has too many roles gives up those that others deserve as much, and
// keeps those that it deserves more.
func TestMovesKeepRolesThatTheirHolderDeservesMore(t *testing.T) {
	w := newWorld([]Candidate{
		{ID: "a", Steady: true, Roles: 40}, {ID: "u", Roles: 40, Prefs: slices.Repeat([]int32{1}, 10)},
	}, 40)
	w.deal(func(int) int { return 1 })
	require.Equal(t, 15, w.settle(t, options{}))
	require.Equal(t, []int{0, 10}, w.loads(0, 10))
}

// A member keeps its share, even if the roles that it has to give up for others may not move.
func TestMovesKeepTheShareDespiteFixedRoles(t *testing.T) {
	w := newWorld([]Candidate{
		{ID: "a", Steady: true, Roles: 20}, {ID: "u", Roles: 20, Prefs: slices.Repeat([]int32{-1}, 10)},
	}, 20)
	w.deal(func(int) int { return 1 })
	require.Empty(t, w.plan.Moves(1, w.holders, func(role int) bool { return role >= 10 }, 20))
	require.Len(t, w.plan.Moves(1, w.holders, anything, 20)[0].Roles, 10)
}

// Several members that have to give up all they have choose different room. After one round all is level.
func TestMovesOfSeveralMisplacedRoles(t *testing.T) {
	r := random(4)
	who := crowd(r, 8, 80)
	for i := range 4 {
		who[i].Priority = 1
	}
	w := newWorld(who, 80)
	low := []int{}
	for i := range 8 {
		if w.plan.Candidate(i).Priority == 0 {
			low = append(low, i)
		}
	}
	w.deal(func(role int) int { return low[role%4] })
	next := slices.Clone(w.holders)
	for _, me := range low {
		w.carry(t, me, w.plan.Moves(me, w.holders, anything, 80), options{limit: 80, movable: anything}, next)
	}
	w.holders = next
	for i, has := range w.all() {
		require.Equal(t, 20*w.plan.Candidate(i).Priority, has)
	}
}
