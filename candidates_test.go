package neli

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// randomID is newID with a seed.
func randomID(r *rand.Rand) string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	id := make([]byte, 26)
	for i := range id {
		id[i] = letters[r.IntN(len(letters))]
	}
	return string(id)
}

// crowd returns n steady candidates without a preference.
func crowd(r *rand.Rand, n int) []candidate {
	who := make([]candidate, n)
	for i := range who {
		who[i] = candidate{member: randomID(r), steady: true}
	}
	return who
}

func upTo(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

func maxMin(ns []int) (most, least int) { return slices.Max(ns), slices.Min(ns) }

func (c *census) loads() []int {
	out := make([]int, len(c.who))
	for _, h := range c.holder {
		if h >= 0 {
			out[h]++
		}
	}
	return out
}

// first returns the candidate that rendezvous hashing alone puts first on p.
func (c *census) first(p int) int {
	best := 0
	for i := range c.who {
		if rendezvous(c.who[i].member, p) > rendezvous(c.who[best].member, p) {
			best = i
		}
	}
	return best
}

// Rendezvous hashing treats members alike, and who is gone is replaced by all
// others and not by a neighbour.
func TestRendezvousSpreads(t *testing.T) {
	const members, partitions = 100, 1000
	for seed := range uint64(6) {
		c := newCensus(crowd(rand.New(rand.NewPCG(seed, 1)), members), partitions)
		first := make([]int, members)
		second := make([]map[int]int, members) // of those on which it is first
		for p := range partitions {
			f := c.first(p)
			first[f]++
			rest := newCensus(slices.Delete(slices.Clone(c.who), f, f+1), partitions)
			s := c.find(rest.who[rest.first(p)].member)
			if second[f] == nil {
				second[f] = map[int]int{}
			}
			second[f][s]++
		}
		most, _ := maxMin(first) // of 1000 balls in 100 bins the fullest has 20 or so
		require.LessOrEqual(t, most, 26, "seed %d", seed)
		for f, to := range second {
			for s, n := range to {
				require.LessOrEqual(t, n, 4, "seed %d: %d of %d's %d go to %d", seed, n, f, first[f], s)
			}
		}
	}
}

// The order of two members is another one on each partition, also where members and
// partitions differ in one place only.
func TestRendezvousMixes(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		id := randomID(r)
		other := []byte(id)
		other[r.IntN(len(other))] ^= 1 // still another id
		wins, changes := 0, 0
		for p := range 1000 {
			now := rendezvous(id, p) > rendezvous(string(other), p)
			if now {
				wins++
			}
			if p > 0 && now != (rendezvous(id, p-1) > rendezvous(string(other), p-1)) {
				changes++
			}
		}
		require.InDelta(t, 500, wins, 100)
		require.InDelta(t, 500, changes, 150)
	}
}

func TestCensus(t *testing.T) {
	c := newCensus([]candidate{{member: "c"}, {member: "a"}, {member: "b"}}, 4)
	require.Equal(t, []int{0, 1, 2}, []int{c.find("a"), c.find("b"), c.find("c")})
	require.Equal(t, []int{nobody, nobody, nobody, nobody}, c.holder)
	for _, m := range []string{"", "aa", "z"} {
		require.Equal(t, stranger, c.find(m))
	}
	c.hold(0, "b")
	c.hold(1, "z")
	c.hold(3, "b")
	require.Equal(t, []int{1, stranger, nobody, 1}, c.holder)
	require.Equal(t, []int{0, 2, 0}, []int{c.who[0].held, c.who[1].held, c.who[2].held})
	require.True(t, c.uniform)
	require.False(t, newCensus([]candidate{{member: "a"}, {member: "b", prefs: []int{1}}}, 1).uniform)
	require.Equal(t, stranger, newCensus(nil, 3).find("a"))
}

func TestPreference(t *testing.T) {
	c := newCensus([]candidate{
		{member: "a", priority: 3},
		{member: "b", priority: 9, prefs: []int{5, 1, 3}},
		{member: "c", priority: 3},
		{member: "d", priority: -7, prefs: []int{3}}, // asked when the topic had fewer partitions
	}, 4)
	require.Equal(t, []int{1}, c.best(0))
	require.Equal(t, []int{0, 2}, c.best(1))
	require.Equal(t, []int{0, 1, 2}, c.best(2))
	require.Equal(t, []int{1}, c.best(3), "without a word of the function the priority counts")
	require.Equal(t, -7, c.preference(3, 1))
}

// With equal preferences nobody has more than the share, unless it had before, and
// what is vacant goes to those who have least.
func TestAssignKeepsToTheShare(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 2))
		n, m := 1+r.IntN(12), 1+r.IntN(200)
		c := newCensus(crowd(r, n), m)
		var vacant []int
		for p := range m {
			if r.IntN(3) == 0 {
				c.hold(p, c.who[r.IntN(1+r.IntN(n))].member)
			} else {
				vacant = append(vacant, p)
			}
		}
		before := c.loads()
		chosen := c.assign(vacant)
		after := c.loads()
		share := (m + n - 1) / n
		for i := range after {
			require.Equal(t, after[i], c.who[i].held)
			require.LessOrEqual(t, after[i], max(share, before[i]), "seed %d", seed)
		}
		for k, p := range vacant {
			require.Equal(t, chosen[k], c.holder[p])
		}
	}
}

// A first election of many partitions gives each member its share.
func TestAssignLevelsTheFirstElection(t *testing.T) {
	for _, n := range []int{1, 2, 3, 7, 24, 100} {
		c := newCensus(crowd(rand.New(rand.NewPCG(7, uint64(n))), n), 1000)
		c.assign(upTo(1000))
		most, least := maxMin(c.loads())
		require.Equal(t, (1000+n-1)/n, most, n)
		require.GreaterOrEqual(t, least, 1000/n-n, n)
	}
}

// The partitions of a member that is gone go to all others.
func TestAssignSpreadsWhatTheDeadHad(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 5))
		who := crowd(r, 20)
		c := newCensus(slices.Clone(who), 400)
		c.assign(upTo(400))
		left := newCensus(slices.DeleteFunc(slices.Clone(who), func(w candidate) bool { return w.member == c.who[7].member }), 400)
		var vacant []int
		for p, h := range c.holder {
			if h == 7 {
				vacant = append(vacant, p)
			} else {
				left.hold(p, c.who[h].member)
			}
		}
		for i := range left.who {
			left.who[i].held = left.loads()[i]
		}
		heirs := map[int]int{}
		for _, i := range left.assign(vacant) {
			heirs[i]++
		}
		require.GreaterOrEqual(t, len(heirs), 10, "%d partitions, seed %d", len(vacant), seed)
		most, _ := maxMin(left.loads())
		require.LessOrEqual(t, most, 22, "seed %d", seed)
	}
}

// All members come to the same result, in whatever order they have heard of each
// other.
func TestEverybodyAssignsAlike(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 6))
		n, m := 1+r.IntN(9), 1+r.IntN(60)
		who := preferring(r, crowd(r, n), m)
		holders := make([]int, m)
		for p := range holders {
			holders[p] = r.IntN(n+1) - 1
		}
		var want string
		for range 4 {
			shuffled := slices.Clone(who)
			r.Shuffle(n, func(i, k int) { shuffled[i], shuffled[k] = shuffled[k], shuffled[i] })
			c := newCensus(shuffled, m)
			var vacant []int
			for p, h := range holders {
				if h < 0 {
					vacant = append(vacant, p)
				} else {
					c.hold(p, who[h].member)
				}
			}
			var names []string
			for _, i := range c.assign(vacant) {
				names = append(names, c.who[i].member)
			}
			for me := range c.who {
				move, ok := c.next(me, m, anything)
				names = append(names, fmt.Sprint(move.partition, c.who[move.to].member, ok))
			}
			if want == "" {
				want = fmt.Sprint(names)
			}
			require.Equal(t, want, fmt.Sprint(names), "seed %d", seed)
		}
	}
}

func anything(int) bool { return true }

// preferring gives candidates priorities, or words of a function.
func preferring(r *rand.Rand, who []candidate, m int) []candidate {
	switch r.IntN(3) {
	case 0:
		for i := range who {
			who[i].priority = r.IntN(3)
		}
	case 1:
		for i := range who {
			who[i].prefs = make([]int, m)
			for p := range who[i].prefs {
				who[i].prefs[p] = r.IntN(3)
			}
		}
	}
	return who
}

// On each partition one candidate comes first: the chosen one, of those who are
// preferred most. The others follow by preference, no two alike behind the first.
func TestRank(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 8))
		n, m := 1+r.IntN(10), 1+r.IntN(20)
		c := newCensus(preferring(r, crowd(r, n), m), m)
		for p, chosen := range c.assign(upTo(m)) {
			require.Contains(t, c.best(p), chosen)
			seen := make([]bool, n)
			for me := range n {
				rank := c.rank(me, chosen, p)
				require.Equal(t, rank == 0, me == chosen)
				require.True(t, rank >= 0 && rank < n && !seen[rank], "seed %d: rank %d of %d", seed, rank, n)
				seen[rank] = true
				for other := range n {
					if c.preference(other, p) > c.preference(me, p) {
						require.Less(t, c.rank(other, chosen, p), rank)
					}
				}
			}
		}
	}
}

// Who has its share already waits behind those who have not.
func TestAssignPassesOverWhoHasEnough(t *testing.T) {
	c := newCensus(crowd(rand.New(rand.NewPCG(1, 9)), 2), 10)
	for p := range 9 {
		c.hold(p, c.who[0].member)
	}
	require.Equal(t, []int{1}, c.assign([]int{9}), "whatever the hash says")
}

// With nobody there nobody is chosen; who is not among the candidates may ask.
func TestAssignWithoutCandidates(t *testing.T) {
	c := newCensus(nil, 3)
	require.Equal(t, []int{nobody, nobody}, c.assign([]int{0, 2}))
	require.Equal(t, []int{nobody, nobody, nobody}, c.holder)
	require.Empty(t, c.best(0))
	require.Empty(t, c.assign(nil))
	one := newCensus([]candidate{{member: "a"}}, 3)
	require.Equal(t, []int{0, 0, 0}, one.assign([]int{0, 1, 2}))
	require.Zero(t, one.rank(0, 0, 1))
	require.Equal(t, 1, one.rank(0, nobody, 1), "nobody comes first")
}
