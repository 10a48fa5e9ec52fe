package placement

import (
	"cmp"
	"slices"
)

// Weights are how much work each role is, compared with the others. They do not change.
type Weights struct {
	of    []int32 // by role
	order []int32 // the roles, the heaviest first; equal ones ascend
}

// NewWeights returns the weights of roles, each 1 or more. Roles beyond them weigh 1. It keeps the slice.
func NewWeights(of []int32) *Weights {
	w := &Weights{of: of, order: make([]int32, len(of))}
	for role := range of {
		w.order[role] = int32(role)
	}
	slices.SortFunc(w.order, func(a, b int32) int { return cmp.Or(cmp.Compare(of[b], of[a]), cmp.Compare(a, b)) })
	return w
}

// Weight returns how much a role weighs. Without weights all roles weigh 1.
func (p *Plan) Weight(role int) int64 {
	if p.weights == nil || role < 0 || role >= len(p.weights.of) {
		return 1
	}
	return int64(p.weights.of[role])
}

// IsWeighted reports whether the plan has weights.
func (p *Plan) IsWeighted() bool { return p.weights != nil }

// heaviestFirst orders the roles within each class.
func (t *classes) heaviestFirst(w *Weights) {
	next := slices.Clone(t.start)
	add := func(role int32) {
		c := t.class[role]
		t.order[next[c]] = role
		next[c]++
	}
	for _, role := range w.order {
		if int(role) < len(t.class) {
			add(role)
		}
	}
	for role := len(w.order); role < len(t.class); role++ { // these weigh least
		add(int32(role))
	}
}

// scales deal roles out by weight.
type scales struct {
	plan  *Plan
	load  []int64 // by candidate: what its roles of the class weigh
	total []int64 // and its roles of all classes
	room  []int   // how many more roles of the class it may get; below zero, how many it should give
	first []first // by bucket: who got the last role that fitted
	round int32   // of deal; entries of first from other rounds do not count
}

// newScales returns scales with what candidates hold, without the vacant roles.
func newScales(p *Plan, holders []int32, vacant []bool) *scales {
	n := len(p.who)
	s := &scales{plan: p, load: make([]int64, n), total: make([]int64, n), room: make([]int, n), first: make([]first, min(p.mask+1, p.roles))}
	for role := range holders {
		if h := p.heldBy(holders, role); h >= 0 && (role >= len(vacant) || !vacant[role]) {
			s.total[h] += p.Weight(role)
		}
	}
	return s
}

// deal gives roles, sorted by weight, to candidates that have room for more. Each goes to the first candidate on its
// bucket whose load with it is within an equal share, or to the one with the least load if there is none. So no
// load exceeds the share by more than one role. deal returns the roles for which there is no room.
func (s *scales) deal(roles, among []int32, load []int64, give func(role, to int32)) (rest []int32) {
	var open []int32
	for _, i := range among {
		if s.room[i] > 0 {
			open = append(open, i)
		}
	}
	left := int64(0)
	for _, role := range roles {
		left += s.plan.Weight(int(role))
	}
	s.round++
	share := raised(left, open, load)
	for k, role := range roles {
		if len(open) == 0 {
			return roles[k:]
		}
		weight := s.plan.Weight(int(role))
		to, fits := s.choose(int(role)&s.plan.mask, weight, share, open, load)
		give(role, to)
		load[to] += weight
		left -= weight
		s.room[to]--
		if s.room[to] == 0 {
			open = slices.DeleteFunc(open, func(i int32) bool { return i == to })
		}
		if !fits || s.room[to] == 0 {
			share = raised(left, open, load)
		}
	}
	return nil
}

// choose returns the first candidate on a bucket whose load with the weight is within the share, or else one with the
// least load.
func (s *scales) choose(bucket int, weight, share int64, open []int32, load []int64) (best int32, fits bool) {
	if f := s.first[bucket]; f.round == s.round && s.room[f.candidate] > 0 && load[f.candidate]+weight <= share {
		return f.candidate, true
	}
	best = Nobody
	top, hash := uint64(0), hashBucket(bucket)
	for _, i := range open {
		in, mark := load[i]+weight <= share, score(s.plan.hash[i], hash)
		switch {
		case best < 0 || in && !fits:
		case in != fits, in && mark <= top, !in && (load[i] > load[best] || load[i] == load[best] && mark <= top):
			continue
		}
		best, top, fits = i, mark, in
	}
	if fits {
		s.first[bucket] = first{s.round, best}
	}
	return best, fits
}

// raised returns the load, rounded down, to which a weight raises the candidates with the least load if it is shared
// out so that they all have the same.
func raised(weight int64, among []int32, load []int64) (share int64) {
	loads := make([]int64, len(among))
	for k, i := range among {
		loads[k] = load[i]
	}
	slices.Sort(loads)
	sum := weight
	for k, l := range loads {
		sum += l
		share = sum / int64(k+1)
		if k+1 < len(loads) && share <= loads[k+1] {
			break
		}
	}
	return share
}

// assignWeighted is Assign with weights.
func (p *Plan) assignWeighted(vacant, holders []int32) []int32 {
	taken := make([]bool, p.roles)
	for _, role := range vacant {
		if role >= 0 && int(role) < p.roles {
			taken[role] = true
		}
	}
	to := slices.Repeat([]int32{Nobody}, p.roles)
	s, count, t := newScales(p, holders, taken), p.held(holders, taken), p.all
	for c := range t.len() {
		clear(s.load)
		var loose []int32
		for k := t.start[c]; k < t.start[c+1]; k++ {
			role := t.at(k)
			if taken[role] {
				loose = append(loose, int32(role))
			} else if h := p.heldBy(holders, role); h >= 0 {
				s.load[h] += p.Weight(role)
			}
		}
		if len(loose) > 0 {
			s.assign(loose, to, count)
		}
	}
	out := slices.Repeat([]int32{Nobody}, len(vacant))
	for k, role := range vacant {
		if role >= 0 && int(role) < p.roles {
			out[k] = to[role]
		}
	}
	return out
}

// assign shares out vacant roles of a class. It notes takers in to, and each candidate's number of roles in count.
func (s *scales) assign(loose, to []int32, count []int) {
	for i := range s.room {
		s.room[i] = len(loose)
		if most := s.plan.who[i].Max; most > 0 {
			s.room[i] = min(len(loose), max(0, most-count[i]))
		}
	}
	var members []int32
	for tier := range s.plan.tiers(int(loose[0])) {
		members = append(members, tier...)
		loose = s.deal(loose, tier, s.load, func(role, i int32) {
			to[role] = i
			count[i]++
			s.total[i] += s.plan.Weight(int(role))
		})
		if len(loose) == 0 {
			return
		}
	}
	for i := range s.room { // all have as many as they want
		s.room[i] = len(loose)
	}
	s.deal(loose, members, s.total, func(role, i int32) {
		to[role] = i
		count[i]++
	})
}
