package placement

import (
	"math/rand/v2"
	"slices"

	"github.com/stretchr/testify/require"
)

func random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 7)) }

// randomID returns an id like those of processes.
func randomID(r *rand.Rand) string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	id := make([]byte, 26)
	for i := range id {
		id[i] = letters[r.IntN(len(letters))]
	}
	return string(id)
}

// crowd returns n steady candidates without preferences, for that many roles.
func crowd(r *rand.Rand, n, roles int) []Candidate {
	who := make([]Candidate, n)
	for i := range who {
		who[i] = Candidate{ID: randomID(r), Steady: true, Roles: roles}
	}
	return who
}

func upTo(n int) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = int32(i)
	}
	return out
}

func anything(int) bool { return true }

// world is the members and their roles, in the common view of all.
type world struct {
	plan    *Plan
	holders []int32
}

func newWorld(who []Candidate, roles int) *world {
	w := &world{plan: New(who), holders: make([]int32, roles)}
	w.deal(func(int) int { return Nobody })
	return w
}

// settled returns a world after a cold start.
func settled(r *rand.Rand, members, roles int) *world {
	w := newWorld(crowd(r, members, roles), roles)
	w.assign()
	return w
}

func (w *world) deal(f func(role int) int) {
	for role := range w.holders {
		w.holders[role] = int32(f(role))
	}
}

func (w *world) vacant() (out []int32) {
	for role, h := range w.holders {
		if h == Nobody {
			out = append(out, int32(role))
		}
	}
	return out
}

// assign lets all members claim what they should, and returns how many roles were claimed.
func (w *world) assign() int {
	vacant := w.vacant()
	for k, to := range w.plan.Assign(vacant, w.holders) {
		w.holders[vacant[k]] = to
	}
	return len(vacant)
}

// change makes a plan of other candidates. Former candidates that are not among them have crashed.
func (w *world) change(who []Candidate) {
	old := w.plan
	w.plan = Weighted(who, w.plan.weights)
	for role, h := range w.holders {
		if h >= 0 {
			w.holders[role] = int32(max(Nobody, w.plan.Find(old.who[h].ID)))
		}
	}
}

func (w *world) leave(i int) { w.change(slices.Delete(slices.Clone(w.plan.who), i, i+1)) }

func (w *world) join(c Candidate) { w.change(append(slices.Clone(w.plan.who), c)) }

// names returns the leader of each role, by id.
func (w *world) names() []string {
	out := make([]string, len(w.holders))
	for role, h := range w.holders {
		if h >= 0 {
			out[role] = w.plan.who[h].ID
		}
	}
	return out
}

// loads returns how many of the roles from, from+1, …, to−1 each candidate holds.
func (w *world) loads(from, to int) []int {
	out := make([]int, len(w.plan.who))
	for _, h := range w.holders[from:to] {
		if h >= 0 {
			out[h]++
		}
	}
	return out
}

func (w *world) all() []int { return w.loads(0, len(w.holders)) }

func spread(loads []int) int { return slices.Max(loads) - slices.Min(loads) }

// options say how a world settles.
type options struct {
	together bool // all hand over at the same time, by the same view; otherwise in turns
	limit    int
	movable  func(role int) bool
}

// settle lets all members hand over roles until none wants to any more, and returns how many
// roles moved. It fails if that takes more moves than twice the number of roles.
func (w *world) settle(t require.TestingT, o options) int {
	if o.limit == 0 {
		o.limit = len(w.holders)
	}
	if o.movable == nil {
		o.movable = anything
	}
	total := 0
	for total <= 2*len(w.holders) {
		now := 0
		next := slices.Clone(w.holders)
		for me := range w.plan.who {
			view := next
			if o.together {
				view = w.holders
			}
			moves := w.plan.Moves(me, view, o.movable, o.limit)
			now += w.carry(t, me, moves, o, next)
		}
		if now == 0 {
			return total
		}
		w.holders, total = next, total+now
	}
	require.Fail(t, "never ends")
	return total
}

// carry carries out the moves of me, and asserts what must always hold for them.
func (w *world) carry(t require.TestingT, me int, moves []Move, o options, holders []int32) int {
	n := 0
	for k, m := range moves {
		to := w.plan.Candidate(m.To)
		require.NotEqual(t, me, m.To)
		require.True(t, to.Steady, "a member that is not steady gets roles")
		require.NotEmpty(t, m.Roles)
		require.True(t, slices.IsSorted(m.Roles))
		require.True(t, k == 0 || moves[k-1].To < m.To, "more than one batch for a taker")
		for _, role := range m.Roles { // a loop, since require is slow for many roles
			if int(holders[role]) != me || !o.movable(role) || role >= to.Roles {
				require.Fail(t, "me does not hold the role, gives it twice, may not move it, or the taker does not want it", "role %d of %d, held by %d, to %d", role, me, holders[role], m.To)
			}
			holders[role] = int32(m.To)
			n++
		}
	}
	require.LessOrEqual(t, n, o.limit)
	return n
}
