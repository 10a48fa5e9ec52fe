package placement

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// zipf returns weights of which the k-th largest is most/k, in random order.
func zipf(r *rand.Rand, roles, most int) *Weights {
	of := make([]int32, roles)
	for k, role := range r.Perm(roles) {
		of[role] = int32(max(1, most/(k+1)))
	}
	return NewWeights(of)
}

// drawWeights draws weights of several kinds, sometimes for only some of the roles.
func drawWeights(t *rapid.T, roles int) *Weights {
	r := random(rapid.Uint64().Draw(t, "seed of the weights"))
	switch rapid.SampledFrom([]string{"alike", "zipf", "two", "any"}).Draw(t, "weights") {
	case "alike":
		return NewWeights(slices.Repeat([]int32{7}, roles))
	case "zipf":
		return zipf(r, roles, 1000)
	case "two":
		of := make([]int32, roles)
		for role := range of {
			of[role] = 1 + 99*r.Int32N(2)
		}
		return NewWeights(of)
	}
	of := make([]int32, r.IntN(roles+1))
	for role := range of {
		of[role] = 1 + r.Int32N(20)
	}
	return NewWeights(of)
}

// perhapsWeights draws weights, or none.
func perhapsWeights(t *rapid.T, roles int) *Weights {
	if rapid.Bool().Draw(t, "weighted") {
		return drawWeights(t, roles)
	}
	return nil
}

// weighs gives the roles of a world weights.
func (w *world) weighs(of *Weights) *world {
	w.plan = Weighted(w.plan.who, of)
	return w
}

// weights returns what the roles of each candidate weigh together, and the lightest of them.
func (w *world) weights() (sums, lightest []int64) {
	sums, lightest = make([]int64, len(w.plan.who)), make([]int64, len(w.plan.who))
	for role, h := range w.holders {
		if h < 0 {
			continue
		}
		weight := w.plan.Weight(role)
		if sums[h] += weight; lightest[h] == 0 || weight < lightest[h] {
			lightest[h] = weight
		}
	}
	return sums, lightest
}

// requireLevel asserts that sums differ by a tenth at most, or that no member can give the one with least a role without having
// less itself.
func requireLevel(t require.TestingT, w *world, members []int, exact bool) {
	sums, lightest := w.weights()
	total, least := int64(0), sums[members[0]]
	for _, i := range members {
		total, least = total+sums[i], min(least, sums[i])
	}
	tolerated := total / int64(len(members)) / 10
	if exact {
		tolerated = 0
	}
	for _, i := range members {
		if more := sums[i] - least; more > tolerated && lightest[i] < more {
			require.Fail(t, "not level", "member %d could give a role of weight %d: %v", i, lightest[i], sums)
		}
	}
}

func everyone(w *world) (all []int) {
	for i := range w.plan.Len() {
		all = append(all, i)
	}
	return all
}

// Of weights by Zipf's law, the heaviest role alone may weigh more than a share. The member with most has no more
// than that, or a twentieth more than a share. This holds at a cold start, after a crash and after a join.
func TestZipf(t *testing.T) {
	for _, c := range []struct{ members, roles int }{{2, 10}, {3, 100}, {5, 100}, {10, 1000}, {50, 1000}, {100, 10_000}, {20, 100_000}} {
		t.Run(fmt.Sprintf("members=%d/roles=%d", c.members, c.roles), func(t *testing.T) {
			r := random(5)
			of := zipf(r, c.roles, 1_000_000)
			w := newWorld(crowd(r, c.members, c.roles), c.roles).weighs(of)
			look := func(what string) {
				sums, _ := w.weights()
				total := int64(0)
				for _, sum := range sums {
					total += sum
				}
				most, n := slices.Max(sums), int64(len(sums))
				t.Logf("%s: %d members, the one with most has %.3f of a share, the one with least %.3f; the heaviest role %.3f", what, n,
					float64(most*n)/float64(total), float64(slices.Min(sums)*n)/float64(total), float64(1_000_000*n)/float64(total))
				require.LessOrEqual(t, most, max(1_000_000, total/n+total/n/20), what)
			}
			w.assign()
			look("start")
			requireLevel(t, w, everyone(w), true)
			w.leave(c.members / 2)
			w.assign()
			w.settle(t, options{together: true})
			look("crash")
			requireLevel(t, w, everyone(w), false)
			w.join(Candidate{ID: randomID(r), Steady: true, Roles: c.roles})
			moved := w.settle(t, options{together: true})
			look("join")
			requireLevel(t, w, everyone(w), false)
			t.Logf("join: %d of %d roles moved", moved, c.roles)
		})
	}
}

// From any first placement, members become level by weight, in turns or together, all at once or in batches. Then nothing moves.
func TestMovesLevelWeights(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := random(rapid.Uint64().Draw(t, "seed"))
		n, roles := rapid.IntRange(1, 10).Draw(t, "members"), rapid.IntRange(1, 300).Draw(t, "roles")
		o := options{together: rapid.Bool().Draw(t, "together"), limit: rapid.SampledFrom([]int{0, 1, 2, 7}).Draw(t, "limit")}
		w := dealt(r, crowd(r, n, roles), roles).weighs(drawWeights(t, roles))
		w.settle(t, o)
		requireLevel(t, w, everyone(w), false)
		require.Zero(t, w.settle(t, o), "they go on")
	})
}

// At a cold start each member gets its share, and at most one role more.
func TestAssignLevelsWeights(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := random(rapid.Uint64().Draw(t, "seed"))
		n, roles := rapid.IntRange(1, 10).Draw(t, "members"), rapid.IntRange(1, 300).Draw(t, "roles")
		w := newWorld(crowd(r, n, roles), roles).weighs(drawWeights(t, roles))
		w.assign()
		require.Empty(t, w.vacant())
		sums, _ := w.weights()
		total, heaviest := int64(0), int64(0)
		for role := range roles {
			total, heaviest = total+w.plan.Weight(role), max(heaviest, w.plan.Weight(role))
		}
		for _, sum := range sums {
			require.LessOrEqual(t, sum, total/int64(n)+heaviest)
		}
	})
}

// Caps count roles, whatever they weigh, and are kept if all together suffice.
func TestCapsWithWeights(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := random(rapid.Uint64().Draw(t, "seed"))
		n, roles := rapid.IntRange(1, 9).Draw(t, "members"), rapid.IntRange(1, 200).Draw(t, "roles")
		who := crowd(r, n, roles)
		if rapid.Bool().Draw(t, "priorities") {
			for i := range who {
				who[i].Priority = r.IntN(3)
			}
		}
		sum := limited(t, who, roles)
		of := drawWeights(t, roles)
		keeps := func(w *world) {
			for i, n := range w.all() {
				most := w.plan.Candidate(i).Max
				require.True(t, sum < roles || most == 0 || n <= most, "%d roles, more than the cap %d", n, most)
				require.True(t, sum >= roles || n >= min(most, roles), "%d roles, though others have more than the cap %d", n, most)
			}
		}
		w := newWorld(who, roles).weighs(of)
		w.assign()
		require.Empty(t, w.vacant())
		keeps(w)
		w = dealt(r, who, roles).weighs(of)
		w.settle(t, options{together: rapid.Bool().Draw(t, "together"), limit: rapid.SampledFrom([]int{0, 1, 3}).Draw(t, "limit")})
		keeps(w)
	})
}

// A difference of a tenth is not worth a move, nor is a move that makes it no smaller. One heavy role does not hide
// how the others differ.
func TestMovesHaveHysteresisWithWeights(t *testing.T) {
	for _, c := range []struct {
		what  string
		of    []int32
		hold  []int32 // by role
		moves int
		sums  []int64
	}{
		{"105 and 95", []int32{100, 5, 95}, []int32{0, 0, 1}, 0, []int64{105, 95}},
		{"106 and 94", []int32{100, 6, 94}, []int32{0, 0, 1}, 1, []int64{100, 100}},
		{"the heavy one stays", []int32{50, 1}, []int32{0, 1}, 0, []int64{50, 1}},
		{"it stays alone", []int32{50, 1, 1}, []int32{0, 0, 1}, 1, []int64{50, 2}},
		{"no role is so light", []int32{6, 6, 5, 4}, []int32{0, 0, 1, 1}, 0, []int64{12, 9}},
		{"the others level", []int32{100, 2, 2, 2, 2}, []int32{0, 1, 1, 1, 1}, 2, []int64{100, 4, 4}},
	} {
		members := len(c.sums)
		who := []Candidate{{ID: "a"}, {ID: "b"}, {ID: "c"}}[:members]
		for i := range who {
			who[i].Steady, who[i].Roles = true, len(c.of)
		}
		w := newWorld(who, len(c.of)).weighs(NewWeights(c.of))
		copy(w.holders, c.hold)
		require.Equal(t, c.moves, w.settle(t, options{together: true}), c.what)
		sums, _ := w.weights()
		require.Equal(t, c.sums, sums, c.what)
	}
	w := newWorld(crowd(random(1), 2, 3), 3).weighs(NewWeights([]int32{100, 5, 95}))
	copy(w.holders, []int32{0, 0, 1})
	require.NotEmpty(t, w.plan.Level(0, w.holders, anything, 3), "on demand there is no tolerance")
}

// A member that will soon be steady gets nothing, and room is kept for it.
func TestMovesKeepRoomWithWeights(t *testing.T) {
	who := []Candidate{{ID: "a", Steady: true, Roles: 12}, {ID: "b", Soon: true, Roles: 12}, {ID: "c", Steady: true, Roles: 12}}
	w := newWorld(who, 12).weighs(NewWeights(slices.Repeat([]int32{5}, 12)))
	w.deal(func(int) int { return 0 })
	w.settle(t, options{})
	require.Equal(t, []int{8, 0, 4}, w.all(), "does not leave a third for b")
	who[1].Steady = true
	w.change(who)
	w.settle(t, options{})
	require.Equal(t, []int{4, 4, 4}, w.all())
}

// Roles that other members prefer more than their holder does go to those members at once, by weight.
func TestMovesServePreferredMembersByWeight(t *testing.T) {
	who := []Candidate{{ID: "a", Steady: true, Roles: 5, Priority: 1}, {ID: "b", Steady: true, Roles: 5, Priority: 1}, {ID: "c", Steady: true, Roles: 5}}
	w := newWorld(who, 5).weighs(NewWeights([]int32{8, 2, 2, 2, 2}))
	w.deal(func(int) int { return 2 })
	require.Equal(t, 5, w.carry(t, 2, w.plan.Moves(2, w.holders, anything, 5), options{limit: 5, movable: anything}, w.holders))
	sums, _ := w.weights()
	require.Equal(t, []int64{8, 8, 0}, sums)
}

// Weights that are all the same, or nil, give the shares that there are without weights.
func TestEqualWeightsChangeNothing(t *testing.T) {
	for _, c := range []struct{ members, roles int }{{1, 1}, {3, 10}, {7, 3}, {7, 1000}, {24, 1000}} {
		r := random(7)
		w := newWorld(crowd(r, c.members, c.roles), c.roles).weighs(NewWeights(slices.Repeat([]int32{9}, c.roles)))
		w.assign()
		require.LessOrEqual(t, spread(w.all()), 1, c)
	}
	who := crowd(random(3), 5, 60)
	require.Equal(t, New(who).Assign(upTo(60), nil), Weighted(who, nil).Assign(upTo(60), nil))
}

// With weights, too, many roles go to the member that rendezvous hashing puts first: by chance one of 20 would.
func TestWeightsFollowTheHash(t *testing.T) {
	r := random(3)
	w := newWorld(crowd(r, 20, 2000), 2000).weighs(zipf(r, 2000, 1000))
	w.assign()
	first := 0
	for role, h := range w.holders {
		if int(h) == highest(w.plan.hash, hashBucket(role&w.plan.mask)) {
			first++
		}
	}
	require.Greater(t, first, 700, "of 2000")
}

// Roles are handed to the candidates that Toward names, and no candidate gets more by that.
func TestMovesToward(t *testing.T) {
	who := []Candidate{{ID: "a", Steady: true, Roles: 40}, {ID: "b", Steady: true, Roles: 40}, {ID: "c", Steady: true, Roles: 40}, {ID: "d", Steady: true, Roles: 40}}
	w := newWorld(who, 40)
	w.deal(func(int) int { return 0 })
	named := func(role int) int {
		if role < 25 {
			return role % 4
		}
		return Nobody
	}
	moves := w.plan.Toward(named).Moves(0, w.holders, anything, 40)
	require.Len(t, moves, 3)
	for _, m := range moves {
		require.Len(t, m.Roles, 10)
		for role := range 25 {
			if role > 0 && role%4 == m.To {
				require.Contains(t, m.Roles, role, "it is named for it")
			}
		}
	}
	require.Len(t, w.plan.Toward(func(int) int { return 1 }).Moves(0, w.holders, anything, 40)[0].Roles, 10, "no more than its share")
	require.Len(t, w.plan.Toward(named).Moves(0, w.holders, anything, 5), 3)
	w.weighs(NewWeights(slices.Concat(slices.Repeat([]int32{20}, 20), slices.Repeat([]int32{10}, 20))))
	before := w.plan.Moves(0, w.holders, anything, 40)
	for k, m := range w.plan.Toward(named).Moves(0, w.holders, anything, 40) {
		require.Len(t, m.Roles, len(before[k].Roles), "of the same weight")
		for role := range 20 {
			if role > 0 && role%4 == m.To {
				require.Contains(t, m.Roles, role, "it is named for it, among those of its weight")
			}
		}
	}
}

// No member gets more roles than its cap, not even for a moment.
func TestMovesNeverExceedACapWithWeights(t *testing.T) {
	for _, c := range []struct {
		preferred int // a's priority
		max       []int
		hold      []int32
		moves     int
		want      []int
	}{
		{1, []int{1, 2, 1}, []int32{1, 1, 2, 2}, 1, []int{1, 2, 1}},
		{0, []int{0, 1, 0}, []int32{0, 0, 0, 0, 0, 0}, 3, []int{3, 1, 2}},
	} {
		who := []Candidate{{ID: "a", Priority: c.preferred}, {ID: "b"}, {ID: "c"}}
		for i := range who {
			who[i].Steady, who[i].Roles, who[i].Max = true, len(c.hold), c.max[i]
		}
		w := newWorld(who, len(c.hold)).weighs(NewWeights(slices.Repeat([]int32{1}, len(c.hold))))
		copy(w.holders, c.hold)
		require.Equal(t, c.moves, w.settle(t, options{together: true}), "what exceeds a cap moves on")
		require.Equal(t, c.want, w.all())
	}
}
