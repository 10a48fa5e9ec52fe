package neli

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// carry carries out a move in a census.
func (c *census) carry(m move) {
	c.who[c.holder[m.partition]].held--
	c.holder[m.partition] = m.to
	c.who[m.to].held++
}

// settleAll lets all members hand over what they want to until nobody wants to any
// more: one after the other, or all at once in each round by the same view. It
// returns how many partitions moved.
func (c *census) settleAll(t *testing.T, limit int, together bool, may func(int) bool) int {
	total := 0
	for range 3 * len(c.holder) {
		var moves []move
		for me := range c.who {
			m, ok := c.next(me, limit, may)
			if !ok {
				continue
			}
			require.Equal(t, me, c.holder[m.partition], "of what it holds only")
			require.NotEqual(t, me, m.to)
			require.Less(t, m.partition, limit)
			require.True(t, may(m.partition))
			require.True(t, c.who[m.to].steady)
			if moves = append(moves, m); !together {
				break
			}
		}
		if len(moves) == 0 {
			return total
		}
		for _, m := range moves {
			c.carry(m)
		}
		total += len(moves)
	}
	require.Fail(t, "never ends")
	return total
}

// deal gives each of the m partitions to a random candidate.
func deal(r *rand.Rand, c *census) {
	skew := 1 + r.IntN(len(c.who))
	for p := range c.holder {
		c.hold(p, c.who[r.IntN(skew)].member)
	}
}

// Members of equal preference come to a level in as few moves as possible, whether
// they hand over in turns or all at the same time, and stay there.
func TestNextLevels(t *testing.T) {
	for seed := range uint64(400) {
		for _, together := range []bool{false, true} {
			r := rand.New(rand.NewPCG(seed, 1))
			n, m := 1+r.IntN(10), 1+r.IntN(120)
			c := newCensus(crowd(r, n), m)
			deal(r, c)
			before := c.loads()
			each, rest := m/n, m%n
			slices.Sort(before)
			slices.Reverse(before)
			fewest := 0 // those with most keep what cannot be divided
			for i, has := range before {
				quota := each
				if i < rest {
					quota++
				}
				fewest += max(0, has-quota)
			}
			moves := c.settleAll(t, m, together, anything)
			most, least := maxMin(c.loads())
			require.LessOrEqual(t, most-least, max(1, each/10), "seed %d", seed)
			require.LessOrEqual(t, moves, fewest, "seed %d", seed)
			require.Zero(t, c.settleAll(t, m, together, anything))
		}
	}
}

// A tenth more than another is not worth a move.
func TestNextHasHysteresis(t *testing.T) {
	for _, c := range []struct {
		a, b  int
		moves int
	}{
		{1, 0, 0}, {2, 0, 1}, {2, 1, 0}, {10, 9, 0}, {11, 9, 1}, {105, 95, 0}, {106, 94, 1}, {50, 0, 24},
	} {
		s := newCensus([]candidate{{member: "a", steady: true}, {member: "b", steady: true}}, c.a+c.b)
		for p := range s.holder {
			s.hold(p, map[bool]string{true: "a", false: "b"}[p < c.a])
		}
		require.Equal(t, c.moves, s.settleAll(t, c.a+c.b, false, anything), "%d and %d", c.a, c.b)
	}
}

// What is beyond the number of roles, or may not be moved, stays, and does not stop
// the rest.
func TestNextLeavesAloneWhatMayNotMove(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 2))
		n, m := 2+r.IntN(5), 10+r.IntN(60)
		limit := r.IntN(m + 1)
		c := newCensus(preferring(r, crowd(r, n), m), m)
		deal(r, c)
		before := slices.Clone(c.holder)
		pinned := func(p int) bool { return p%3 != 0 }
		c.settleAll(t, limit, seed%2 == 0, pinned) // asserts it of each move
		for p := range m {
			if p >= limit || p%3 == 0 {
				require.Equal(t, before[p], c.holder[p])
			}
		}
		_, ok := c.next(0, m, func(int) bool { return false })
		require.False(t, ok)
		_, ok = c.next(0, 0, anything)
		require.False(t, ok)
		_, ok = c.next(0, m+1000, func(int) bool { return false })
		require.False(t, ok, "more roles than partitions")
	}
}

// With priorities all comes to those who are preferred most and are steady, and is
// level among these.
func TestNextServesThePreferred(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 3))
		n, m := 2+r.IntN(8), 1+r.IntN(60)
		who := crowd(r, n)
		for i := range who {
			who[i].priority, who[i].steady = r.IntN(4)-1, r.IntN(3) > 0
		}
		c := newCensus(who, m)
		deal(r, c)
		before := slices.Clone(c.holder)
		top, reserved := -100, false
		for _, w := range c.who {
			if w.steady {
				top = max(top, w.priority)
			}
		}
		for _, w := range c.who {
			reserved = reserved || w.priority == top && !w.steady && w.held > 0
		}
		c.settleAll(t, m, seed%2 == 0, anything)
		var loads []int
		for i, w := range c.who {
			switch has := c.loads()[i]; {
			case w.priority < top && top > -100 && !reserved: // nothing waits for who becomes steady
				require.Zero(t, has, "seed %d", seed)
			case w.priority == top && w.steady:
				loads = append(loads, has)
			}
		}
		for p, h := range before {
			if c.who[h].priority > top {
				require.Equal(t, h, c.holder[p], "who is preferred, and not steady, keeps what it has")
			}
		}
		if len(loads) > 1 && !slices.ContainsFunc(c.who, func(w candidate) bool { return !w.steady }) {
			most, least := maxMin(loads)
			require.LessOrEqual(t, most-least, max(1, m/len(loads)/10), "seed %d", seed)
		}
	}
}

// With a function each partition comes to those who are preferred on it.
func TestNextServesThePreferredByPartition(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 4))
		n, m := 2+r.IntN(6), 1+r.IntN(50)
		who := crowd(r, n)
		for i := range who {
			who[i].prefs = make([]int, m)
			for p := range m {
				who[i].prefs[p] = r.IntN(5)
			}
		}
		c := newCensus(who, m)
		deal(r, c)
		misplaced := 0
		for p, h := range c.holder {
			if !slices.Contains(c.best(p), h) {
				misplaced++
			}
		}
		moves := c.settleAll(t, m, seed%2 == 0, anything)
		for p, h := range c.holder {
			require.Contains(t, c.best(p), h, "seed %d", seed)
		}
		require.GreaterOrEqual(t, moves, misplaced)
		require.Zero(t, c.settleAll(t, m, true, anything), "and then nothing moves")
	}
}

// Nothing is given to members that are not steady, and what these have is theirs.
func TestNextWaitsUntilAMemberIsSteady(t *testing.T) {
	c := newCensus([]candidate{{member: "a", steady: true}, {member: "b"}, {member: "c", steady: true}}, 12)
	for p := range 11 {
		c.hold(p, "a")
	}
	c.hold(11, "b")
	c.settleAll(t, 12, false, anything)
	require.Equal(t, []int{7, 1, 4}, c.loads(), "a third is left for b")
	c.who[1].steady = true
	c.settleAll(t, 12, false, anything)
	require.Equal(t, []int{4, 4, 4}, c.loads())
	for i := range c.who {
		c.who[i].steady = false
	}
	c.carry(move{0, 2})
	c.carry(move{1, 2})
	require.Zero(t, c.settleAll(t, 12, false, anything), "nobody is steady")
}

// Partitions that nobody holds, or one that is not a candidate, play no part.
func TestNextPassesOverStrangers(t *testing.T) {
	c := newCensus([]candidate{{member: "a", steady: true}, {member: "b", steady: true}}, 20)
	for p := range 10 {
		c.hold(p, "a")
	}
	for p := 12; p < 20; p++ {
		c.hold(p, "z")
	}
	require.Equal(t, 5, c.settleAll(t, 20, false, anything))
	require.Equal(t, []int{5, 5}, c.loads())
	for p := 12; p < 20; p++ {
		require.Equal(t, stranger, c.holder[p])
	}
}

// Nobody there, one alone, and one who is no candidate itself: nothing is handed
// over.
func TestNextOfFewMembers(t *testing.T) {
	empty := newCensus(nil, 4)
	empty.hold(1, "z")
	alone := newCensus([]candidate{{member: "a", steady: true}}, 4)
	two := newCensus([]candidate{{member: "a", steady: true}, {member: "b", steady: true}}, 4)
	for p := range 4 {
		alone.hold(p, "a")
		two.hold(p, "a")
	}
	for _, c := range []struct {
		name string
		*census
		me int
	}{
		{"nobody", empty, stranger}, {"alone", alone, 0},
		{"a stranger among none", empty, empty.find("me")}, {"a stranger beside one", alone, alone.find("me")},
		{"a stranger among two", two, two.find("me")}, {"nobody among two", two, nobody},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, ok := c.next(c.me, 4, anything)
			require.False(t, ok)
			require.Zero(t, m)
		})
	}
}

// Two who contradict each other hand over once each by their own view, and nothing
// panics; that this ends is not theirs to see to, but the tenure's.
func TestNextOfContradictoryViews(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 5))
		n, m := 2+r.IntN(5), 1+r.IntN(30)
		who := crowd(r, n)
		views := make([]*census, n)
		for v := range views {
			theirs := slices.Clone(who)
			for i := range theirs {
				theirs[i].prefs = make([]int, r.IntN(m+1)) // and of different length
				for p := range theirs[i].prefs {
					theirs[i].prefs[p] = r.IntN(3) - 1
				}
				theirs[i].steady = r.IntN(4) > 0
			}
			views[v] = newCensus(theirs, m)
		}
		holder := make([]string, m)
		for p := range holder {
			holder[p] = views[0].who[r.IntN(n)].member
		}
		for range 50 {
			for me := range n {
				c := newCensus(views[me].who, m)
				for i := range c.who {
					c.who[i].held = 0
				}
				for p, h := range holder {
					c.hold(p, h)
				}
				if mv, ok := c.next(me, m, anything); ok {
					require.Equal(t, c.who[me].member, holder[mv.partition])
					require.NotEqual(t, me, mv.to)
					holder[mv.partition] = c.who[mv.to].member
				}
			}
		}
	}
}
