package placement

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// dealt gives each role to a random candidate, of few or of all.
func dealt(r *rand.Rand, who []Candidate, roles int) *world {
	w := newWorld(who, roles)
	if few := 1 + r.IntN(max(1, len(who))); len(who) > 0 {
		w.deal(func(int) int { return r.IntN(few) })
	}
	return w
}

// Members of equal preference become level in as few moves as possible, whether they hand over in
// turns or at the same time, all at once or in small batches. Then they stay level.
func TestMovesLevel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := random(rapid.Uint64().Draw(t, "seed"))
		n, roles := rapid.IntRange(1, 10).Draw(t, "members"), rapid.IntRange(1, 300).Draw(t, "roles")
		o := options{together: rapid.Bool().Draw(t, "together"), limit: rapid.SampledFrom([]int{0, 1, 2, 7}).Draw(t, "limit")}
		w := dealt(r, crowd(r, n, roles), roles)
		before := w.all()
		slices.Sort(before)
		slices.Reverse(before)
		fewest := 0 // the members with most keep the remainder
		for i, has := range before {
			quota := roles / n
			if i < roles%n {
				quota++
			}
			fewest += max(0, has-quota)
		}
		moves := w.settle(t, o)
		require.LessOrEqual(t, spread(w.all()), max(1, roles/n/10))
		require.LessOrEqual(t, moves, fewest)
		require.Zero(t, w.settle(t, o))
	})
}

// A difference of a tenth is not worth a move.
func TestMovesHaveHysteresis(t *testing.T) {
	for _, c := range []struct{ a, b, moves int }{
		{1, 0, 0}, {2, 0, 1}, {2, 1, 0}, {10, 9, 0}, {11, 9, 1}, {19, 17, 1}, {105, 95, 0}, {106, 94, 6}, {50, 0, 25}, {51, 0, 25},
	} {
		w := newWorld([]Candidate{{ID: "a", Steady: true, Roles: 200}, {ID: "b", Steady: true, Roles: 200}}, c.a+c.b)
		w.deal(func(role int) int {
			if role < c.a {
				return 0
			}
			return 1
		})
		require.Equal(t, c.moves, w.settle(t, options{}), "%d and %d", c.a, c.b)
	}
}

// A join moves the newcomer's share to it, and nothing else. A leave moves nothing that the others have.
func TestMovesAfterAJoinAreMinimal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := random(rapid.Uint64().Draw(t, "seed"))
		n, roles := rapid.IntRange(1, 12).Draw(t, "members"), rapid.IntRange(1, 300).Draw(t, "roles")
		w := settled(r, n, roles)
		before := w.names()
		id := randomID(r)
		w.join(Candidate{ID: id, Steady: true, Roles: roles})
		require.LessOrEqual(t, w.settle(t, options{together: true}), roles/(n+1)+1)
		for role, now := range w.names() {
			require.True(t, now == before[role] || now == id)
		}
		before = w.names()
		w.leave(w.plan.Find(id))
		w.assign()
		for role, now := range w.names() {
			require.True(t, before[role] == id || now == before[role])
		}
		require.Zero(t, w.settle(t, options{}))
	})
}

// A hundred givers fill the places of ten newcomers at the same time, in one round and with one
// batch for each taker. Most of the roles are ones on which the taker comes first.
func TestMovesAtScale(t *testing.T) {
	const roles = 20_000
	r := random(5)
	w := settled(r, 100, roles)
	for range 10 {
		w.join(Candidate{ID: randomID(r), Steady: true, Roles: roles})
	}
	next := slices.Clone(w.holders)
	total, batches, firsts := 0, 0, 0
	for me := range w.plan.Len() {
		moves := w.plan.Moves(me, w.holders, anything, 20)
		total += w.carry(t, me, moves, options{limit: 20, movable: anything}, next)
		batches += len(moves)
		for _, m := range moves {
			for _, role := range m.Roles {
				if m.To == highest(w.plan.hash, hashBucket(role&w.plan.mask)) {
					firsts++
				}
			}
		}
	}
	w.holders = next
	require.LessOrEqual(t, spread(w.all()), 1)
	require.LessOrEqual(t, total, roles/11+10)
	require.LessOrEqual(t, batches, 120)
	require.Greater(t, firsts, total/10, "hardly more than the hundredth that chance gives")
	require.Zero(t, w.settle(t, options{}))
}

// A member that has everything gives to all others at once, to each in proportion to what it
// lacks, however small the limit.
func TestMovesServeSeveralTakersAtOnce(t *testing.T) {
	w := newWorld(crowd(random(6), 11, 1100), 1100)
	w.deal(func(role int) int { return 0 })
	moves := w.plan.Moves(0, w.holders, anything, 50)
	require.Len(t, moves, 10)
	for _, m := range moves {
		require.Len(t, m.Roles, 5)
	}
	moves = w.plan.Moves(0, w.holders, anything, 3)
	require.Len(t, moves, 3)
	moves = w.plan.Moves(0, w.holders, anything, 5000)
	require.Len(t, moves, 10)
	for _, m := range moves {
		require.Len(t, m.Roles, 100)
	}
}

// A role that may not move stays, and does not stop the rest.
func TestMovesSkipFixedRoles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		roles := rapid.IntRange(1, 70).Draw(t, "roles")
		r := random(rapid.Uint64().Draw(t, "seed"))
		w := dealt(r, someone(t, roles), roles).weighs(perhapsWeights(t, roles))
		before := slices.Clone(w.holders)
		may := func(role int) bool { return role%3 != 0 }
		w.settle(t, options{together: rapid.Bool().Draw(t, "together"), limit: 5, movable: may})
		for role := range roles {
			if !may(role) {
				require.Equal(t, before[role], w.holders[role])
			}
		}
		for me := range w.plan.Len() {
			require.Empty(t, w.plan.Moves(me, before, func(int) bool { return false }, roles), "moves a role that may not move")
			require.Empty(t, w.plan.Moves(me, before, anything, 0))
		}
	})
	for _, of := range []*Weights{nil, NewWeights(slices.Repeat([]int32{3}, 10))} {
		w := newWorld(crowd(random(1), 2, 10), 10).weighs(of)
		w.deal(func(int) int { return 0 })
		require.Equal(t, 5, w.settle(t, options{movable: func(role int) bool { return role >= 5 }}))
		require.Equal(t, []int{5, 5}, w.all())
	}
}

// Several newcomers one after the other: the first does not get the room of those that are not
// steady yet, so nothing has to move on.
func TestMovesReserveRoomForUnsteadyMembers(t *testing.T) {
	who := crowd(random(3), 10, 600)
	for i := range who[5:] {
		who[5+i].Steady, who[5+i].Soon = false, true
	}
	who = append(who, Candidate{ID: "crashes", Roles: 600})
	w := newWorld(who, 600)
	w.deal(func(role int) int { return w.plan.Find(who[role%5].ID) })
	for i := range 5 {
		who[5+i].Steady, who[5+i].Soon = true, false
		w.change(who)
		require.Equal(t, 60, w.settle(t, options{}), "moves more than the newcomer's share")
		require.Equal(t, 60, w.all()[w.plan.Find(who[5+i].ID)])
	}
	require.Zero(t, w.settle(t, options{}))
	require.Zero(t, w.all()[w.plan.Find("crashes")], "a member that comes and goes got roles")
}

// Of several newcomers, some givers know three to be steady, others all five. They must not choose the same room.
func TestMovesWithViewsThatDifferInSteadyMembers(t *testing.T) {
	who := crowd(random(3), 15, 600)
	slices.SortFunc(who, func(a, b Candidate) int { return cmp.Compare(a.ID, b.ID) })
	var some, all []Candidate
	for i, c := range who {
		c.Steady = true
		all = append(all, c)
		if i%3 == 0 && i < 6 { // the newcomers, which are every third member
			c.Steady, c.Soon = false, true
		}
		some = append(some, c)
	}
	views := []*Plan{New(some), New(all)}
	holders := make([]int32, 600)
	for role := range holders {
		old := role % 10
		holders[role] = int32(old/2*3 + 1 + old%2)
	}
	loads := make([]int, len(who))
	for _, h := range holders {
		loads[h]++
	}
	for me := range who {
		for _, m := range views[me/8].Moves(me, holders, func(int) bool { return true }, 600) {
			loads[m.To] += len(m.Roles)
			loads[me] -= len(m.Roles)
		}
	}
	for i := 0; i < len(who); i += 3 {
		require.LessOrEqual(t, loads[i], 40, "a member got more than its share")
	}
}

// Members that are not steady get nothing, and keep what they have.
func TestMovesWaitUntilAMemberIsSteady(t *testing.T) {
	who := []Candidate{{ID: "a", Steady: true, Roles: 12}, {ID: "b", Roles: 12}, {ID: "c", Steady: true, Roles: 12}}
	w := newWorld(who, 12)
	w.deal(func(role int) int { return role / 11 })
	w.settle(t, options{})
	require.Equal(t, []int{7, 1, 4}, w.all(), "does not leave a third for b")
	who[1].Steady = true
	w.change(who)
	w.settle(t, options{})
	require.Equal(t, []int{4, 4, 4}, w.all())
	for i := range who {
		who[i].Steady = false
	}
	w.change(who)
	w.deal(func(role int) int { return role / 11 })
	require.Zero(t, w.settle(t, options{}), "roles move, though nobody is steady")
}

// A member that is not steady gives up what others deserve more, and its excess. It keeps what it
// deserves more itself.
func TestMemberThatIsNotSteadyHandsOver(t *testing.T) {
	who := []Candidate{
		{ID: "a", Steady: true, Roles: 30},
		{ID: "b", Roles: 30, Prefs: slices.Concat(slices.Repeat([]int32{-1}, 10), slices.Repeat([]int32{0}, 10), slices.Repeat([]int32{1}, 10))},
	}
	w := newWorld(who, 30)
	w.deal(func(int) int { return 1 })
	w.settle(t, options{})
	require.Equal(t, []int{10, 0}, w.loads(0, 10))
	require.Equal(t, []int{0, 10}, w.loads(20, 30))
	require.Equal(t, 10, w.all()[0], "a does not have its share of the roles that both deserve")
	w.deal(func(role int) int { return 1 })
	w.plan = New([]Candidate{{ID: "a", Steady: true, Roles: 30}, {ID: "b", Roles: 30}})
	w.settle(t, options{})
	require.Equal(t, []int{15, 15}, w.all())
}

// Roles that their holder does not want go to members that want them. No member gets a role that it does not want.
func TestMovesWithDifferentRoles(t *testing.T) {
	w := newWorld([]Candidate{{ID: "a", Roles: 10, Steady: true}, {ID: "b", Roles: 20, Steady: true}, {ID: "c", Roles: 30, Soon: true}}, 30)
	w.deal(func(int) int { return 0 })
	w.settle(t, options{})
	require.Equal(t, []int{7, 3, 0}, w.loads(0, 10), "does not leave a third for c")
	require.Equal(t, []int{0, 10, 0}, w.loads(10, 20), "roles that a does not want wait for c")
	require.Equal(t, []int{10, 0, 0}, w.loads(20, 30), "roles that nobody steady wants have moved")
	w.plan = New([]Candidate{{ID: "a", Roles: 10}, {ID: "b", Roles: 20, Steady: true}})
	w.deal(func(int) int { return 0 })
	w.settle(t, options{})
	require.Equal(t, []int{10, 0}, w.loads(0, 10), "a does not have its share of all")
	require.Equal(t, []int{0, 10}, w.loads(10, 20), "a got roles that it does not want")
}

// Roles without a holder, roles of a process that is not a candidate, and roles beyond what
// anybody announced are ignored.
func TestMovesIgnoreRolesOfUnknownHolders(t *testing.T) {
	w := newWorld(crowd(random(1), 2, 20), 25)
	w.deal(func(role int) int {
		switch {
		case role < 10:
			return 0
		case role < 12:
			return Nobody
		}
		return Unknown
	})
	w.holders[24], w.holders[23] = 0, 77
	require.Equal(t, 5, w.settle(t, options{}))
	require.Equal(t, []int{5, 5}, w.loads(0, 20))
	require.Equal(t, 8, count(w.holders[:20], Unknown))
	require.Equal(t, int32(0), w.holders[24])
	require.Empty(t, w.plan.Moves(0, nil, anything, 10))
}

// No member, a single one, and a process that is not a candidate: nothing is handed over.
func TestMovesOfFewMembers(t *testing.T) {
	holders := make([]int32, 4)
	for n := range 3 {
		p := New(crowd(random(1), n, 4))
		for _, me := range []int{Nobody, Unknown, n, n + 1} {
			require.Empty(t, p.Moves(me, slices.Repeat([]int32{int32(me)}, 4), anything, 4))
			require.Empty(t, p.Moves(me, holders, anything, 4))
		}
	}
	require.Empty(t, New(crowd(random(1), 1, 4)).Moves(0, holders, anything, 4))
	require.NotEmpty(t, New(crowd(random(1), 2, 4)).Moves(0, holders, anything, 4))
}

// Many classes with a remainder each do not all leave it to the same member.
func TestMovesShareOutTheRemainders(t *testing.T) {
	const classes, roles = 60, 240 // four roles in each class, which two members share with one that is in this class only
	r := random(8)
	who := crowd(r, 2, roles)
	a, b := who[0].ID, who[1].ID
	for k := range classes {
		prefs := slices.Repeat([]int32{-1}, roles)
		copy(prefs[4*k:], make([]int32, 4))
		who = append(who, Candidate{ID: randomID(r), Steady: true, Roles: roles, Prefs: prefs})
	}
	giver := randomID(r)
	w := newWorld(append(who, Candidate{ID: giver, Steady: true, Roles: roles, Priority: -5}), roles)
	w.deal(func(int) int { return w.plan.Find(giver) })
	require.Equal(t, roles, w.settle(t, options{}))
	loads := w.all()
	require.Equal(t, classes, w.plan.steady.len())
	require.InDelta(t, classes+classes/3, loads[w.plan.Find(a)], 12)
	require.InDelta(t, classes+classes/3, loads[w.plan.Find(b)], 12)
}

// Members that contradict each other hand over by their own views, to steady members, out of what
// they hold. Such moves need not end.
func TestMovesOfContradictoryViews(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := random(rapid.Uint64().Draw(t, "seed"))
		n, roles := rapid.IntRange(2, 6).Draw(t, "members"), rapid.IntRange(1, 30).Draw(t, "roles")
		who := crowd(r, n, roles)
		views := make([]*Plan, n)
		for v := range views {
			theirs := slices.Clone(who)
			for i := range theirs {
				theirs[i].Prefs = make([]int32, r.IntN(roles+1))
				for role := range theirs[i].Prefs {
					theirs[i].Prefs[role] = int32(r.IntN(3) - 1)
				}
				theirs[i].Steady, theirs[i].Roles = r.IntN(4) > 0, r.IntN(roles+1)
			}
			views[v] = New(theirs)
		}
		w := dealt(r, who, roles)
		for range 30 {
			for me, view := range views {
				w.plan = view
				w.carry(t, me, view.Moves(me, w.holders, anything, 3), options{limit: 3, movable: anything}, w.holders)
			}
		}
	})
}

// Members come, go, become unsteady, and change their preferences and caps. After each change, vacant
// roles are claimed, and all members hand over what they want to. That ends, and every role that
// somebody wants has a leader.
func TestChurn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		roles := rapid.IntRange(1, 80).Draw(t, "roles")
		r := random(rapid.Uint64().Draw(t, "seed"))
		w := newWorld(crowd(r, 3, roles), roles).weighs(perhapsWeights(t, roles))
		for range rapid.IntRange(1, 12).Draw(t, "changes") {
			who := slices.Clone(w.plan.who)
			switch n := len(who); rapid.IntRange(0, 5).Draw(t, "change") {
			case 0:
				who = append(who, Candidate{ID: randomID(r), Roles: roles, Steady: r.IntN(2) == 0})
			case 1:
				if n > 1 {
					who = slices.Delete(who, 0, 1+r.IntN(n-1))
				}
			case 2:
				who[r.IntN(n)].Steady = r.IntN(2) == 0
			case 3:
				who[r.IntN(n)].Priority = r.IntN(3)
			case 4:
				who[r.IntN(n)].Roles = r.IntN(roles + 1)
			case 5:
				who[r.IntN(n)].Max = r.IntN(roles + 1)
			}
			w.change(who)
			w.assign()
			w.settle(t, options{together: r.IntN(2) == 0, limit: 1 + r.IntN(roles)})
			for role, h := range w.holders {
				switch {
				case h == Nobody:
					require.Empty(t, best(w.plan, role, false), "a role that somebody wants has no leader")
				case role >= w.plan.Candidate(int(h)).Roles:
					require.Empty(t, best(w.plan, role, true), "a role that somebody steady wants is with the wrong member")
				}
			}
		}
	})
}
