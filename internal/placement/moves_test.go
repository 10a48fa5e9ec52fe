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

// Members of equal preference come to a level in as few moves as possible, whether they
// hand over in turns or all at the same time, all at once or in small batches; and
// stay there.
func TestMovesLevel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := random(rapid.Uint64().Draw(t, "seed"))
		n, roles := rapid.IntRange(1, 10).Draw(t, "members"), rapid.IntRange(1, 300).Draw(t, "roles")
		o := options{together: rapid.Bool().Draw(t, "together"), limit: rapid.SampledFrom([]int{0, 1, 2, 7}).Draw(t, "limit")}
		w := dealt(r, crowd(r, n, roles), roles)
		before := w.all()
		slices.Sort(before)
		slices.Reverse(before)
		fewest := 0 // those with most keep what cannot be divided
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

// A tenth more than another is not worth a move.
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

// While the rest is level, what has to move fills up those that have less, and no other
// role moves for its sake.
func TestMovesOfTheMisplacedDisturbNobodyElse(t *testing.T) {
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
	require.Equal(t, []int{108, 102, 0}, w.all(), "105 each would be even, and three moves more")
}

// A join moves what the newcomer's share is, to it only; a leave moves nothing of what
// the others have.
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

// All givers at once fill the places of ten newcomers beside a hundred, each in one
// batch a taker, in one round; and most of it is what the takers come first on.
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
	require.Greater(t, firsts, total/10, "a hundredth would be chance")
	require.Zero(t, w.settle(t, options{}))
}

// One that has everything gives to all others at once, to each in proportion to what it
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

// What may not be moved stays, and does not stop the rest.
func TestMovesLeaveAloneWhatMayNotMove(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		roles := rapid.IntRange(1, 70).Draw(t, "roles")
		r := random(rapid.Uint64().Draw(t, "seed"))
		w := dealt(r, someone(t, roles), roles)
		before := slices.Clone(w.holders)
		may := func(role int) bool { return role%3 != 0 }
		w.settle(t, options{together: rapid.Bool().Draw(t, "together"), limit: 5, movable: may})
		for role := range roles {
			if !may(role) {
				require.Equal(t, before[role], w.holders[role])
			}
		}
		for me := range w.plan.Len() {
			require.Empty(t, w.plan.Moves(me, before, func(int) bool { return false }, roles), "nothing is what may move")
			require.Empty(t, w.plan.Moves(me, before, anything, 0))
		}
	})
	w := newWorld(crowd(random(1), 2, 10), 10)
	w.deal(func(int) int { return 0 })
	require.Equal(t, 5, w.settle(t, options{movable: func(role int) bool { return role >= 5 }}))
	require.Equal(t, []int{5, 5}, w.all())
}

// In the end each role is with one of the steady that prefer it most, unless one that
// deserves it as much, or more, and is not steady has it; and each class is level.
func TestMovesServeThePreferred(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		roles := rapid.IntRange(1, 60).Draw(t, "roles")
		r := random(rapid.Uint64().Draw(t, "seed"))
		w := dealt(r, someone(t, roles), roles)
		before := slices.Clone(w.holders)
		o := options{together: rapid.Bool().Draw(t, "together"), limit: rapid.SampledFrom([]int{0, 3}).Draw(t, "limit")}
		w.settle(t, o)
		classes := map[string][]int{}
		waits := map[string]bool{} // a place is kept for one that is not steady
		for role, h := range w.holders {
			deserving := best(w.plan, role, true)
			if len(deserving) == 0 {
				require.Equal(t, before[role], h, "nobody steady wants it")
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
					require.Equal(t, before[role], w.holders[role], "it keeps what it deserves more")
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

// Several that come one after the other get what they keep: the places of those that are
// not steady yet are not given to the first.
func TestMovesLeaveRoomForWhoComesNext(t *testing.T) {
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
		require.Equal(t, 60, w.settle(t, options{}), "its share, and nothing moves that was moved")
		require.Equal(t, 60, w.all()[w.plan.Find(who[5+i].ID)])
	}
	require.Zero(t, w.settle(t, options{}))
	require.Zero(t, w.all()[w.plan.Find("crashes")], "nothing is kept for who comes and goes")
}

// Of several newcomers some givers know three to be steady, some all five: they do not mean
// the same places.
func TestMovesOfWhoKnowsOneMoreToBeSteady(t *testing.T) {
	who := crowd(random(3), 15, 600)
	slices.SortFunc(who, func(a, b Candidate) int { return cmp.Compare(a.ID, b.ID) })
	var some, all []Candidate
	for i, c := range who {
		c.Steady = true
		all = append(all, c)
		if i%3 == 0 && i < 6 { // of the newcomers, which are each third
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
		require.LessOrEqual(t, loads[i], 40, "nobody gets more than its share")
	}
}

// Nothing is given to members that are not steady, and what these have is theirs.
func TestMovesWaitUntilAMemberIsSteady(t *testing.T) {
	who := []Candidate{{ID: "a", Steady: true, Roles: 12}, {ID: "b", Roles: 12}, {ID: "c", Steady: true, Roles: 12}}
	w := newWorld(who, 12)
	w.deal(func(role int) int { return role / 11 })
	w.settle(t, options{})
	require.Equal(t, []int{7, 1, 4}, w.all(), "a third is left for b")
	who[1].Steady = true
	w.change(who)
	w.settle(t, options{})
	require.Equal(t, []int{4, 4, 4}, w.all())
	for i := range who {
		who[i].Steady = false
	}
	w.change(who)
	w.deal(func(role int) int { return role / 11 })
	require.Zero(t, w.settle(t, options{}), "nobody is steady")
}

// One that is not steady gives up what others deserve more, and what it has too much
// of; it keeps what it deserves more itself.
func TestMovesFromWhoIsNotSteady(t *testing.T) {
	who := []Candidate{
		{ID: "a", Steady: true, Roles: 30},
		{ID: "b", Roles: 30, Prefs: slices.Concat(slices.Repeat([]int32{-1}, 10), slices.Repeat([]int32{0}, 10), slices.Repeat([]int32{1}, 10))},
	}
	w := newWorld(who, 30)
	w.deal(func(int) int { return 1 })
	w.settle(t, options{})
	require.Equal(t, []int{10, 0}, w.loads(0, 10))
	require.Equal(t, []int{0, 10}, w.loads(20, 30))
	require.Equal(t, 10, w.all()[0], "a has its share of those that both deserve by then")
	w.deal(func(role int) int { return 1 })
	w.plan = New([]Candidate{{ID: "a", Steady: true, Roles: 30}, {ID: "b", Roles: 30}})
	w.settle(t, options{})
	require.Equal(t, []int{15, 15}, w.all())
}

// What has to move waits for no place that is kept for one that is not steady; it is
// shared out among those that are.
func TestMovesOfTheMisplacedDoNotWait(t *testing.T) {
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
	require.Equal(t, 20, w.carry(t, 3, w.plan.Moves(3, w.holders, anything, 40), options{limit: 40, movable: anything}, w.holders), "all at once")
	require.Equal(t, []int{19, 19, 2, 0}, w.all())
	require.Zero(t, w.settle(t, options{}))
}

// What one that is not steady deserves more counts for nothing: the others level what
// they have.
func TestMovesLevelBesideWhatIsDeservedMore(t *testing.T) {
	w := newWorld([]Candidate{
		{ID: "a", Steady: true, Roles: 40}, {ID: "b", Steady: true, Roles: 40}, {ID: "u", Roles: 40, Priority: 1},
	}, 40)
	w.deal(func(role int) int { return role % 2 * 2 })
	require.Equal(t, 10, w.settle(t, options{}))
	require.Equal(t, []int{10, 10, 20}, w.all())
}

// One that has too much, and is not steady, gives of what others deserve as much.
func TestMovesKeepWhatIsDeservedMore(t *testing.T) {
	w := newWorld([]Candidate{
		{ID: "a", Steady: true, Roles: 40}, {ID: "u", Roles: 40, Prefs: slices.Repeat([]int32{1}, 10)},
	}, 40)
	w.deal(func(int) int { return 1 })
	require.Equal(t, 15, w.settle(t, options{}))
	require.Equal(t, []int{0, 10}, w.loads(0, 10))
}

// One keeps its share, though what it has to give up for others may not move.
func TestMovesKeepTheShareBesideWhatMayNotMove(t *testing.T) {
	w := newWorld([]Candidate{
		{ID: "a", Steady: true, Roles: 20}, {ID: "u", Roles: 20, Prefs: slices.Repeat([]int32{-1}, 10)},
	}, 20)
	w.deal(func(int) int { return 1 })
	require.Empty(t, w.plan.Moves(1, w.holders, func(role int) bool { return role >= 10 }, 20))
	require.Len(t, w.plan.Moves(1, w.holders, anything, 20)[0].Roles, 10)
}

// Several that have to give up all they have mean different places: after one round all
// is level.
func TestMovesOfSeveralMisplaced(t *testing.T) {
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

// Roles beyond what its holder wants go to who wants them; nobody gets what it does not
// want.
func TestMovesWithDifferentRoles(t *testing.T) {
	w := newWorld([]Candidate{{ID: "a", Roles: 10, Steady: true}, {ID: "b", Roles: 20, Steady: true}, {ID: "c", Roles: 30, Soon: true}}, 30)
	w.deal(func(int) int { return 0 })
	w.settle(t, options{})
	require.Equal(t, []int{7, 3, 0}, w.loads(0, 10), "a third is left for c")
	require.Equal(t, []int{0, 10, 0}, w.loads(10, 20), "what a does not want does not wait for c")
	require.Equal(t, []int{10, 0, 0}, w.loads(20, 30), "nobody steady wants these")
	w.plan = New([]Candidate{{ID: "a", Roles: 10}, {ID: "b", Roles: 20, Steady: true}})
	w.deal(func(int) int { return 0 })
	w.settle(t, options{})
	require.Equal(t, []int{10, 0}, w.loads(0, 10), "a's share of all")
	require.Equal(t, []int{0, 10}, w.loads(10, 20), "which a does not want")
}

// Roles that nobody holds, or one that is no candidate, play no part; nor do those
// beyond what anybody announced.
func TestMovesPassOverTheUnknown(t *testing.T) {
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

// Nobody there, one alone, and one who is no candidate itself: nothing is handed over.
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
	const classes, roles = 60, 240 // four roles each, of two members and one that is of this class only
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

// Members that contradict each other hand over by their own views, of what they hold
// and to who is steady; that this ends is not theirs to see to.
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

// Members come, go, waver and change their minds. After each change what is vacant is
// claimed and everybody hands over what it wants to, which ends, with a leader for each
// role that somebody wants.
func TestChurn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		roles := rapid.IntRange(1, 80).Draw(t, "roles")
		r := random(rapid.Uint64().Draw(t, "seed"))
		w := newWorld(crowd(r, 3, roles), roles)
		for range rapid.IntRange(1, 12).Draw(t, "changes") {
			who := slices.Clone(w.plan.who)
			switch n := len(who); rapid.IntRange(0, 4).Draw(t, "change") {
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
			}
			w.change(who)
			w.assign()
			w.settle(t, options{together: r.IntN(2) == 0, limit: 1 + r.IntN(roles)})
			for role, h := range w.holders {
				switch {
				case h == Nobody:
					require.Empty(t, best(w.plan, role, false), "nobody wants it")
				case role >= w.plan.Candidate(int(h)).Roles:
					require.Empty(t, best(w.plan, role, true), "nobody steady wants it")
				}
			}
		}
	})
}
