package placement

import (
	"math"
	"slices"
)

// classes divides the roles into classes. The same candidates deserve all roles of a class.
// Classes are ordered by their lowest role, and roles ascend within a class; with weights the heaviest come first.
type classes struct {
	among []int32 // the candidates considered, ascending
	start []int   // by class: where its roles begin in order; finally the length of order
	order []int32 // all roles, class by class; nil: 0, 1, 2, …
	class []int32 // by role; nil if order is
}

// len returns the number of classes.
func (t *classes) len() int { return len(t.start) - 1 }

// at returns the k-th role of the order.
func (t *classes) at(k int) int {
	if t.order == nil {
		return k
	}
	return int(t.order[k])
}

// of returns the class of a role below the plan's roles.
func (t *classes) of(role int) int {
	if t.order != nil {
		return int(t.class[role])
	}
	k, ok := slices.BinarySearch(t.start, role)
	if !ok {
		k--
	}
	return k
}

// deserving adds to out, which is empty, the candidates that deserve a role, ascending: those with
// the highest preference of all that want it.
func (p *Plan) deserving(t *classes, role int, out []int32) []int32 {
	top := 0
	for _, i := range t.among {
		w := &p.who[i]
		if role >= w.Roles {
			continue
		}
		switch v := w.prefers(role); {
		case len(out) == 0 || v > top:
			top, out = v, append(out[:0], i)
		case v == top:
			out = append(out, i)
		}
	}
	return out
}

// classify divides the roles into classes by the given candidates that deserve them.
func (p *Plan) classify(among []int32) *classes {
	for _, i := range among {
		if p.who[i].Prefs != nil {
			return p.classifyEach(among)
		}
	}
	return p.classifyRanges(among)
}

// sign identifies a set of candidates by the sum of their hashes. Two sets collide with the same
// probability as two random 64-bit numbers. A collision would make a less preferred candidate
// lead.
func (p *Plan) sign(set []int32) (sum uint64) {
	for _, i := range set {
		sum += finish(p.hash[i])
	}
	return sum
}

// classifyRanges divides roles when nobody has preferences by role. The roles differ only in
// which candidates want them, so each class is a range.
func (p *Plan) classifyRanges(among []int32) *classes {
	t := &classes{among: among, start: []int{0}}
	ends := make([]int, 0, len(among)+1)
	for _, i := range among {
		ends = append(ends, p.who[i].Roles)
	}
	ends = append(ends, p.roles)
	slices.Sort(ends)
	from, last := 0, uint64(0)
	var set []int32
	for _, end := range slices.Compact(ends) {
		if end == 0 {
			continue
		}
		set = p.deserving(t, from, set[:0])
		if sign := p.sign(set); from > 0 && sign == last {
			t.start[len(t.start)-1] = end
		} else {
			t.start, last = append(t.start, end), sign
		}
		from = end
	}
	return t
}

// classifyEach divides roles when somebody has preferences by role. It reads the preferences
// candidate by candidate, in memory order.
func (p *Plan) classifyEach(among []int32) *classes {
	top, sign := slices.Repeat([]int{math.MinInt}, p.roles), make([]uint64, p.roles)
	for _, i := range among {
		w, own := &p.who[i], finish(p.hash[i])
		add := func(role, v int) {
			switch {
			case v < top[role]:
			case v > top[role] || sign[role] == 0:
				top[role], sign[role] = v, own
			default:
				sign[role] += own
			}
		}
		said := min(len(w.Prefs), w.Roles)
		for role, v := range w.Prefs[:said] {
			add(role, int(v))
		}
		for role := said; role < w.Roles; role++ {
			add(role, w.Priority)
		}
	}
	return p.group(among, sign)
}

// group makes a class of all roles with the same sign.
func (p *Plan) group(among []int32, sign []uint64) *classes {
	t := &classes{among: among, class: make([]int32, p.roles), order: make([]int32, p.roles)}
	classes := map[uint64]int32{}
	var size []int
	for role, s := range sign {
		c, ok := classes[s]
		if !ok {
			c = int32(len(size))
			classes[s], size = c, append(size, 0)
		}
		t.class[role] = c
		size[c]++
	}
	t.start = make([]int, len(size)+1)
	for c, n := range size {
		t.start[c+1] = t.start[c] + n
	}
	next := slices.Clone(t.start)
	for role, c := range t.class {
		t.order[next[c]] = int32(role)
		next[c]++
	}
	return t
}
