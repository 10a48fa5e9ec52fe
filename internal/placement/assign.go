package placement

import (
	"cmp"
	"slices"
)

// Assign chooses who should claim each of the vacant roles: a candidate's index, or
// Nobody for a role that no candidate wants. Holders says, by role, who holds it: a
// candidate's index, Nobody or Unknown; roles beyond its length, and the vacant ones,
// are held by nobody.
//
// A role goes to one of those that deserve it, steady or not. Of the roles of a class
// that its candidates hold and that are vacant, nobody gets more than an equal share,
// rounded up for as many as there is a remainder, and who had more already gets
// nothing. So at a cold start (no holders) everybody knows its share at once, and what
// a member led that has crashed is spread over all others.
//
// The order of vacant roles makes no difference to who gets them. It takes O(R) to
// count what is held, and to choose as long as a score for each candidate on each
// bucket concerned.
func (p *Plan) Assign(vacant, holders []int32) []int32 {
	out := make([]int32, len(vacant))
	f, t := newFiller(p), p.all
	taken := make([]bool, p.roles) // vacant: held by nobody, whatever holders says
	for _, role := range vacant {
		if role >= 0 && int(role) < p.roles {
			taken[role] = true
		}
	}
	order := p.byClass(vacant)
	var members []int32
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
		members = p.deserving(t, role, members[:0])
		f.share(c, members, n, holders, taken)
		for _, k := range order[:n] {
			out[k] = f.take(int(vacant[k]))
		}
		order = order[n:]
	}
	return out
}

// byClass returns the positions of roles in the order of their classes, and of the
// roles within a class. What is no role comes where it would be if it were one.
func (p *Plan) byClass(roles []int32) []int32 {
	order := make([]int32, len(roles))
	for k := range order {
		order[k] = int32(k)
	}
	if !slices.IsSorted(roles) {
		slices.SortFunc(order, func(a, b int32) int { return cmp.Compare(roles[a], roles[b]) })
	}
	if p.all.order == nil { // classes are ranges
		return order
	}
	class := func(k int32) int { // one more than it is, zero for what is no role
		if role := int(roles[k]); role >= 0 && role < p.roles {
			return p.all.of(role) + 1
		}
		return 0
	}
	next := make([]int, p.all.len()+2) // where the next one of a class goes
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

// share makes room for n vacant roles of class c among those who deserve them: up to
// an equal share of these and of what they hold of the class.
func (f *filler) share(c int, members []int32, n int, holders []int32, vacant []bool) {
	clear(f.room)
	clear(f.spare)
	f.extra = 0
	t := f.plan.all
	load := f.room // counted first, and turned round
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
