package placement

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// limited gives some of the candidates a cap.
func limited(t *rapid.T, who []Candidate, roles int) (sum int) {
	r := random(rapid.Uint64().Draw(t, "seed of the caps"))
	for i := range who {
		if r.IntN(3) > 0 {
			who[i].Max = 1 + r.IntN(roles)
		}
		if who[i].Max == 0 || who[i].Max > roles {
			sum += roles
		} else {
			sum += who[i].Max
		}
	}
	return sum
}

// At a cold start nobody gets more than its cap if all caps together suffice. Roles beyond all caps go to the
// members that have fewest.
func TestAssignKeepsCaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		roles := rapid.IntRange(1, 200).Draw(t, "roles")
		who := someone(t, roles)
		for i := range who {
			who[i].Roles = roles
		}
		sum := limited(t, who, roles)
		w := newWorld(who, roles)
		w.assign()
		if len(who) == 0 {
			return
		}
		requireCaps(t, w, sum >= roles, 1)
	})
}

// requireCaps asserts that the caps are kept or, if they do not suffice, that all have what they
// want, and those that have more differ by no more than most.
func requireCaps(t *rapid.T, w *world, suffice bool, most int) {
	loads := w.all()
	var above []int
	for i, n := range loads {
		c := w.plan.Candidate(i)
		if suffice {
			require.True(t, c.Max == 0 || n <= c.Max, "%d roles, more than the cap %d", n, c.Max)
			continue
		}
		require.GreaterOrEqual(t, n, c.Max, "less than the cap, though others have more")
		if n > c.Max {
			above = append(above, n)
		}
	}
	if !suffice {
		require.LessOrEqual(t, spread(above), most)
	}
}

// From any first placement, members keep the caps in the end, and then nothing moves. They may hand over in turns or together,
// in batches or at once.
func TestMovesKeepCaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := random(rapid.Uint64().Draw(t, "seed"))
		n, roles := rapid.IntRange(1, 9).Draw(t, "members"), rapid.IntRange(1, 200).Draw(t, "roles")
		who := crowd(r, n, roles)
		sort := rapid.SampledFrom([]string{"alike", "priorities", "preference"}).Draw(t, "sort")
		for i := range who {
			switch sort {
			case "priorities":
				who[i].Priority = r.IntN(3)
			case "preference":
				who[i].Prefs = make([]int32, roles)
				for role := range who[i].Prefs {
					who[i].Prefs[role] = int32(r.IntN(2))
				}
			}
		}
		sum := limited(t, who, roles)
		o := options{together: rapid.Bool().Draw(t, "together"), limit: rapid.SampledFrom([]int{0, 1, 3}).Draw(t, "limit")}
		w := dealt(r, who, roles)
		w.settle(t, o)
		requireCaps(t, w, sum >= roles, max(1, slices.Max(w.all())/10)+1)
		require.Zero(t, w.settle(t, o), "they go on")
	})
}

// The moves of members of all kinds, steady or not, end, and nobody gets a role that it does not want. Processes with
// the same knowledge decide alike.
func TestMovesOfAllKindsEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := random(rapid.Uint64().Draw(t, "seed"))
		roles := rapid.IntRange(1, 120).Draw(t, "roles")
		who := someone(t, roles)
		if rapid.Bool().Draw(t, "caps") {
			limited(t, who, roles)
		}
		w := dealt(r, who, roles).weighs(perhapsWeights(t, roles))
		if rapid.Bool().Draw(t, "some vacant") {
			for role := range w.holders {
				if r.IntN(4) == 0 {
					w.holders[role] = int32(Nobody - r.IntN(2))
				}
			}
			vacant := w.vacant()
			shuffled := slices.Clone(who)
			shuffle(r, shuffled)
			require.Equal(t, w.plan.Assign(vacant, w.holders), Weighted(shuffled, w.plan.weights).Assign(vacant, w.holders))
			w.assign()
		}
		o := options{together: rapid.Bool().Draw(t, "together"), limit: rapid.SampledFrom([]int{0, 2}).Draw(t, "limit")}
		w.settle(t, o)
		require.Zero(t, w.settle(t, o), "they go on")
		for role, h := range w.holders {
			if h < 0 || w.plan.capped || slices.ContainsFunc(who, func(c Candidate) bool { return c.Soon }) {
				continue
			}
			if c := w.plan.Candidate(int(h)); c.Steady && role < c.Roles {
				require.Contains(t, best(w.plan, role, true), int(h), "preference comes first")
			}
		}
	})
}

// Together, members give nobody more than its cap, not even for a moment, while there is room elsewhere.
func TestMovesNeverExceedACap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := random(rapid.Uint64().Draw(t, "seed"))
		n, roles := rapid.IntRange(2, 6).Draw(t, "members"), rapid.IntRange(1, 100).Draw(t, "roles")
		who := crowd(r, n, roles)
		for i := range who {
			who[i].Prefs = make([]int32, roles)
			for role := range who[i].Prefs {
				who[i].Prefs[role] = int32(r.IntN(2))
			}
			if i > 0 {
				who[i].Max = 1 + r.IntN(roles)
			}
		}
		w := dealt(r, who, roles).weighs(perhapsWeights(t, roles))
		before, next := w.all(), slices.Clone(w.holders)
		for me := range w.plan.who {
			w.carry(t, me, w.plan.Moves(me, w.holders, anything, roles), options{movable: anything, limit: roles}, next)
		}
		w.holders = next
		for i, n := range w.all() {
			if c := w.plan.Candidate(i); c.Max > 0 && n > before[i] {
				require.LessOrEqual(t, n, c.Max, "more than the cap")
			}
		}
	})
}

func TestPreferredMembersAreFilledFirst(t *testing.T) {
	for _, c := range []struct {
		what      string
		max, want []int // of a, which is preferred, and b, c
	}{
		{"the others share what is left", []int{10, 0, 0}, []int{10, 45, 45}},
		{"the last one takes it", []int{10, 20, 0}, []int{10, 20, 70}},
		{"all are full: those with least get more", []int{10, 20, 5}, []int{34, 33, 33}},
		{"all are full, one has more already", []int{10, 80, 5}, []int{10, 80, 10}},
		{"the cap is no aim", []int{200, 5, 5}, []int{100, 0, 0}},
	} {
		w := newWorld([]Candidate{{ID: "a", Priority: 1, Max: c.max[0]}, {ID: "b", Max: c.max[1]}, {ID: "c", Max: c.max[2]}}, 100)
		who := slices.Clone(w.plan.who)
		for i := range who {
			who[i].Roles, who[i].Steady = 100, true
		}
		w = newWorld(who, 100)
		w.assign()
		got := w.all()
		if c.what == "all are full: those with least get more" {
			slices.Sort(got)
			slices.Reverse(got)
		}
		require.Equal(t, c.want, got, c.what)
		require.Zero(t, w.settle(t, options{}), c.what)
		w.deal(func(int) int { return 2 })
		w.settle(t, options{together: true})
		if got = w.all(); c.what == "all are full: those with least get more" {
			require.LessOrEqual(t, spread(got), 3, c.what)
			continue
		}
		require.Equal(t, c.want, got, "%s: all from c", c.what)
	}
}

// A difference of a tenth is not worth a move, neither below the caps nor above them. A member at its
// cap is not behind.
func TestMovesHaveHysteresisWithCaps(t *testing.T) {
	for _, c := range []struct{ a, b, cap, moves int }{
		{105, 95, 110, 0}, {106, 94, 110, 6}, {150, 50, 50, 0}, {150, 49, 50, 1}, {52, 48, 10, 0}, {60, 40, 10, 10},
	} {
		who := []Candidate{{ID: "a", Steady: true, Roles: 200}, {ID: "b", Steady: true, Roles: 200, Max: c.cap}}
		if c.cap == 10 {
			who[0].Max = 10
		}
		w := newWorld(who, c.a+c.b)
		w.deal(func(role int) int {
			if role < c.a {
				return 0
			}
			return 1
		})
		require.Equal(t, c.moves, w.settle(t, options{}), "%d and %d", c.a, c.b)
	}
	w := newWorld([]Candidate{{ID: "a", Steady: true, Roles: 300}, {ID: "b", Steady: true, Roles: 300}, {ID: "c", Steady: true, Roles: 300, Max: 20}}, 220)
	w.deal(func(role int) int { return min(role/103, 1) + role/200 })
	require.Equal(t, []int{103, 97, 20}, w.all())
	require.Zero(t, w.settle(t, options{}), "a member at its cap is not behind")
}

// Level tolerates no difference but the remainder, with and without caps.
func TestLevelHasNoTolerance(t *testing.T) {
	for _, most := range []int{0, 150} {
		w := newWorld([]Candidate{{ID: "a", Steady: true, Roles: 200}, {ID: "b", Steady: true, Roles: 200, Max: most}}, 200)
		w.deal(func(role int) int { return min(role/105, 1) })
		for me := range 2 {
			w.carry(t, me, w.plan.Level(me, w.holders, anything, 200), options{movable: anything, limit: 200}, w.holders)
		}
		require.LessOrEqual(t, spread(w.all()), 1, "they differ by more than one")
	}
}
