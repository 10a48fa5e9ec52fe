package placement

import (
	"cmp"
	"slices"
)

// Assign chooses the candidate that should claim each vacant role. It returns the candidate's
// index, or Nobody for a role that no candidate wants. holders has the holder of each role: a
// candidate's index, Nobody or Unknown. Roles beyond its length, and the vacant ones, have no
// holder.
//
// A role goes to one of the candidates that deserve it, steady or not. The held and the vacant
// roles of a class are divided equally among its candidates, with the remainder given out one by
// one. A candidate that already holds more than its share gets none. So at a cold start (no
// holders) every candidate can compute its share at once, and the roles of a crashed member are
// spread over all others.
//
// With weights, no candidate is brought above an equal share of the weight by more than one role.
//
// The result does not depend on the order of vacant. Counting holders takes O(R). Choosing takes
// one score for each candidate on each bucket concerned.
func (p *Plan) Assign(vacant, holders []int32) []int32 {
	if p.weights != nil {
		return p.assignWeighted(vacant, holders)
	}
	out := make([]int32, len(vacant))
	f, t := newFiller(p), p.all
	taken := make([]bool, p.roles) // held by nobody, even if holders names a holder
	for _, role := range vacant {
		if role >= 0 && int(role) < p.roles {
			taken[role] = true
		}
	}
	order := p.byClass(vacant)
	var members []int32
	var all []int
	if p.capped {
		all = p.held(holders, taken)
	}
	for len(order) > 0 {
		role := int(vacant[order[0]])
		if role < 0 || role >= p.roles {
			out[order[0]] = Nobody
			order = order[1:]
			continue
		}
		c, n := t.of(role), 1
		for n < len(order) && int(vacant[order[n]]) < p.roles && t.of(int(vacant[order[n]])) == c {
			n++
		}
		if p.capped {
			f.shareCapped(c, n, holders, taken, all)
		} else {
			members = p.deserving(t, role, members[:0])
			f.share(c, members, n, holders, taken)
		}
		for _, k := range order[:n] {
			out[k] = f.take(int(vacant[k]))
		}
		order = order[n:]
	}
	return out
}

// byClass returns the indices of roles, sorted by class and then by role. It keeps numbers that are not roles, too.
func (p *Plan) byClass(roles []int32) []int32 {
	order := make([]int32, len(roles))
	for k := range order {
		order[k] = int32(k)
	}
	if !slices.IsSorted(roles) {
		slices.SortFunc(order, func(a, b int32) int { return cmp.Compare(roles[a], roles[b]) })
	}
	if p.all.order == nil { // the classes are ranges
		return order
	}
	class := func(k int32) int { // the class plus one; zero for a number that is not a role
		if role := int(roles[k]); role >= 0 && role < p.roles {
			return p.all.of(role) + 1
		}
		return 0
	}
	next := make([]int, p.all.len()+2) // where the next role of a class goes
	for _, k := range order {
		next[class(k)+1]++
	}
	for c := range p.all.len() + 1 {
		next[c+1] += next[c]
	}
	sorted := make([]int32, len(order))
	for _, k := range order {
		c := class(k)
		sorted[next[c]] = k
		next[c]++
	}
	return sorted
}

// share gives the candidates of class c room for its n vacant roles. Each gets room up to an
// equal share of these and of all that they hold.
func (f *filler) share(c int, members []int32, n int, holders []int32, vacant []bool) {
	clear(f.room)
	clear(f.spare)
	f.extra = 0
	t := f.plan.all
	load := f.room // first the number held, then the room left
	for k := t.start[c]; k < t.start[c+1]; k++ {
		role := t.at(k)
		if h := f.plan.heldBy(holders, role); h >= 0 && !vacant[role] {
			load[h]++
		}
	}
	total := n
	for _, i := range members {
		total += int(load[i])
	}
	each := int32(total / max(1, len(members)))
	f.extra = n
	for _, i := range members {
		f.spare[i] = load[i] <= each
		load[i] = max(0, each-load[i])
		f.extra -= int(load[i])
	}
	f.extra = max(0, f.extra)
	f.begin(members)
}
