package placement

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
)

// Moves with weights cannot match the excess of givers with the room of takers, as Moves without weights does, since
// roles differ in size. Instead, every process plans the moves of all, role by role, and carries out its own. Each move
// goes from a candidate with more than its share to one with less, and makes their difference smaller. So moves come to
// an end, even if only some of them are carried out.
//
// Roles form a class if all candidates prefer them alike, as with caps. Within a class, those that prefer it most come
// first, as far as their caps allow.

// maxNamed bounds how many roles of the same weight are searched for one whose taker Toward names.
const maxNamed = 64

// weighing is the work of one call of Moves with weights.
type weighing struct {
	*level
	*scales
	*budget
	plan    *Plan
	room    []int // of scales
	movable func(role int) bool
	at      []int32   // by role of the class: who has it by now, in the plan
	loose   []bool    // by role: its holder has too many
	count   []int     // by candidate: roles of the class that it holds
	gave    []int     // roles of the class that it gives, in the plan
	got     []int     // and gets
	in      []bool    // it is in the tier
	own     [][]int32 // its roles of the class, the heaviest first, that it may keep or give
}

// movesWeighted is Moves with weights.
func (l *level) movesWeighted(movable func(role int) bool) []Move {
	p, n := l.plan, len(l.plan.who)
	planned := p.held(l.holders, nil)
	scales := newScales(p, l.holders, nil)
	w := &weighing{level: l, scales: scales, budget: &budget{planned: planned, reserved: slices.Clone(planned)}, plan: p, room: scales.room, movable: movable,
		at: make([]int32, p.roles), loose: make([]bool, p.roles), count: make([]int, n), gave: make([]int, n), got: make([]int, n), in: make([]bool, n), own: make([][]int32, n)}
	l.given = make([][]int, n)
	for c := 0; c < p.all.len() && l.left > 0; c++ {
		w.class(c)
	}
	return l.moves()
}

// class plans the moves of class c.
func (w *weighing) class(c int) {
	p, t := w.plan, w.plan.all
	clear(w.load)
	clear(w.count)
	clear(w.gave)
	clear(w.got)
	var roles []int32
	for k := t.start[c]; k < t.start[c+1]; k++ {
		role := t.at(k)
		if h := p.heldBy(w.holders, role); h >= 0 {
			roles = append(roles, int32(role))
			w.at[role] = int32(h)
			w.load[h] += p.Weight(role)
			w.count[h]++
		}
	}
	if len(roles) == 0 || w.count[w.me] == 0 && !p.capped {
		return
	}
	for i := range p.who {
		w.room[i] = w.share(i, &p.who[i], w.count[i], len(roles)) - w.count[i]
	}
	roles = w.loosen(roles)
	var members []int32
	for tier := range p.tiers(int(roles[0])) {
		members = append(members, tier...)
		if roles = w.tier(tier, roles); len(roles) == 0 {
			break
		}
	}
	w.overflow(roles, members)
	for i := range p.who {
		w.planned[i] += w.got[i] - w.gave[i]
		w.reserved[i] += w.got[i]
	}
}

// loosen finds the roles that exceed their holders' caps, the lightest of each holder, and puts them first. Otherwise
// another role could take the room for them, and free room elsewhere only once its holder has given it.
func (w *weighing) loosen(roles []int32) []int32 {
	var over, kept []int32
	for _, role := range slices.Backward(roles) {
		if h := w.at[role]; w.room[h] < 0 {
			w.room[h]++
			w.loose[role] = true
			w.load[h] -= w.plan.Weight(int(role))
			over = append(over, role)
		} else {
			kept = append(kept, role)
		}
	}
	if over == nil {
		return roles
	}
	slices.Reverse(over)
	slices.Reverse(kept)
	return append(over, kept...)
}

// tier plans what a tier gives and gets of these roles, which no better tier of the class takes. It returns the roles
// that the tier has no room for. Candidates that will soon be steady get what the steady ones have no room for.
func (w *weighing) tier(tier, roles []int32) (rest []int32) {
	who := w.plan.who
	clear(w.in)
	for _, i := range tier {
		w.in[i] = true
		w.own[i] = w.own[i][:0]
	}
	for _, role := range roles {
		h := w.at[role]
		switch {
		case !w.in[h] || w.loose[role]:
			rest = append(rest, role)
		case int(h) != w.me || w.movable(int(role)):
			w.own[h] = append(w.own[h], role)
		}
	}
	var steady, soon []int32
	for _, i := range tier {
		switch {
		case who[i].Steady:
			steady = append(steady, i)
		case who[i].Soon:
			soon = append(soon, i)
		}
	}
	rest = w.deal(rest, steady, w.load, w.hand)
	rest = w.deal(rest, soon, w.load, w.hand)
	w.even(slices.Clone(tier))
	return rest
}

// hand plans that a role goes to another candidate. me hands it over if it can.
func (w *weighing) hand(role, to int32) {
	weight, from := w.plan.Weight(int(role)), w.at[role]
	if !w.loose[role] {
		w.load[from] -= weight
	}
	w.at[role] = to
	w.gave[from]++
	w.got[to]++
	w.total[from] -= weight
	w.total[to] += weight
	if int(from) == w.me && w.left > 0 && w.plan.who[to].Steady && w.movable(int(role)) {
		w.add(to, int(role))
	}
}

// overflow plans for roles beyond all caps: they go to the steady candidates with the least weight in all. A tenth, or
// the role's own weight, is not worth a move, unless the holder does not want the role.
func (w *weighing) overflow(roles, members []int32) {
	p := w.plan
	members = slices.DeleteFunc(members, func(i int32) bool { return !p.who[i].Steady })
	if len(members) == 0 {
		return
	}
	for _, role := range roles {
		from, weight := w.at[role], p.Weight(int(role))
		to := slices.MinFunc(members, func(a, b int32) int { return cmp.Or(cmp.Compare(w.total[a], w.total[b]), cmp.Compare(a, b)) })
		if from == to || int(role) < p.who[from].Roles && w.total[from]-w.total[to] <= max(weight, w.tolerated(w.total[from])) {
			continue
		}
		w.hand(role, to)
	}
}

// tolerated is tolerance for weights.
func (w *weighing) tolerated(share int64) int64 {
	if w.exact {
		return 0
	}
	return share / 10
}

// even levels the members of a tier: those with more than an equal share give, those with less get. Two kinds of
// members do not count: those that have no role to give, or would have the least after giving their lightest, and those
// below the share that may get no more. So one heavy role does not hide how the others differ.
func (w *weighing) even(members []int32) {
	var sum, n, least int64
	for before := 0; before != len(members); {
		before = len(members)
		sum, n, least = 0, int64(len(members)), math.MaxInt64
		for _, i := range members {
			sum += w.load[i]
			if w.plan.who[i].Steady || w.count[i] > 0 {
				least = min(least, w.load[i])
			}
		}
		members = slices.DeleteFunc(members, func(i int32) bool {
			if w.load[i]*n > sum {
				return len(w.own[i]) == 0 || w.plan.Weight(int(w.own[i][len(w.own[i])-1])) >= w.load[i]-least
			}
			return w.load[i]*n < sum && w.room[i] <= 0
		})
	}
	most := int64(0)
	var givers, takers []int32
	for _, i := range members {
		most = max(most, w.load[i])
		switch {
		case w.load[i]*n > sum:
			givers = append(givers, i)
		case w.load[i]*n < sum:
			takers = append(takers, i)
		}
	}
	if n == 0 || most-least <= w.tolerated(sum/n) || !w.plan.capped && !slices.Contains(givers, int32(w.me)) {
		return
	}
	w.exchange(givers, takers, sum/n, (sum+n-1)/n)
}

// exchange plans moves from the member with most to the one with least until none makes their difference smaller. A
// member gives the heaviest role that leaves itself at least its share and the taker at most its share, or else its
// lightest.
func (w *weighing) exchange(givers, takers []int32, low, high int64) {
	from := &pile{givers, func(a, b int32) bool { return w.load[a] > w.load[b] || w.load[a] == w.load[b] && a < b }}
	to := &pile{takers, func(a, b int32) bool { return w.load[a] < w.load[b] || w.load[a] == w.load[b] && a < b }}
	heap.Init(from)
	heap.Init(to)
	heavy := make(map[int32][]int32, len(givers)) // roles that were too heavy, the lightest last
	for from.Len() > 0 && to.Len() > 0 && w.left > 0 {
		giver, taker := from.of[0], to.of[0]
		role, ok := w.pick(giver, taker, heavy, min(w.load[giver]-high, low-w.load[taker]), w.load[giver]-w.load[taker])
		if !ok { // takers get no lighter
			heap.Pop(from)
			continue
		}
		w.load[taker] += w.plan.Weight(int(role))
		w.hand(role, taker)
		heap.Fix(from, 0)
		if w.room[taker]--; w.room[taker] == 0 {
			heap.Pop(to)
		} else {
			heap.Fix(to, 0)
		}
	}
}

// pick takes the heaviest role of a member that weighs no more than fits, or else its lightest if that weighs less than
// below. fits must not grow from call to call. Of me's roles that weigh the same, one for which Toward names to comes
// first.
func (w *weighing) pick(from, to int32, heavy map[int32][]int32, fits, below int64) (role int32, ok bool) {
	own := w.own[from]
	for len(own) > 0 && w.plan.Weight(int(own[0])) > fits {
		heavy[from] = append(heavy[from], own[0])
		own = own[1:]
	}
	if w.own[from] = own; len(own) > 0 {
		for k := range min(len(own), maxNamed) {
			if int(from) != w.me || w.plan.toward == nil || w.plan.Weight(int(own[k])) != w.plan.Weight(int(own[0])) {
				break
			}
			if w.plan.toward(int(own[k])) == int(to) {
				own[0], own[k] = own[k], own[0]
				break
			}
		}
		w.own[from] = own[1:]
		return own[0], true
	}
	if k := len(heavy[from]) - 1; k >= 0 && w.plan.Weight(int(heavy[from][k])) < below {
		role, heavy[from] = heavy[from][k], heavy[from][:k]
		return role, true
	}
	return 0, false
}

// pile is a heap of candidates.
type pile struct {
	of     []int32
	before func(a, b int32) bool
}

func (p *pile) Len() int           { return len(p.of) }
func (p *pile) Less(i, j int) bool { return p.before(p.of[i], p.of[j]) }
func (p *pile) Swap(i, j int)      { p.of[i], p.of[j] = p.of[j], p.of[i] }
func (p *pile) Push(x any)         { p.of = append(p.of, x.(int32)) }

func (p *pile) Pop() any {
	last := p.of[len(p.of)-1]
	p.of = p.of[:len(p.of)-1]
	return last
}
