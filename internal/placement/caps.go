package placement

import (
	"cmp"
	"iter"
	"math"
	"slices"
)

// Caps couple the classes: what a candidate gets of one leaves it less room for the others. So if any
// candidate has a cap, roles form a class only if all candidates prefer them alike, and the classes
// are shared out one after the other. Within a class, those that prefer it most get an equal share, none
// more than it has room for; what is left goes to those that prefer it next, and so on. What exceeds
// all caps goes to those that have least.

// capped reports whether any candidate has a cap.
func capped(who []Candidate) bool {
	return slices.ContainsFunc(who, func(c Candidate) bool { return c.Max > 0 })
}

// classifyAlike divides roles by the preferences of all candidates.
func (p *Plan) classifyAlike() *classes {
	among, sign := p.everybody(), make([]uint64, p.roles)
	step := make([]uint64, p.roles+1) // by role: the sum of the signs by Priority, minus that of the role before
	for _, i := range among {
		w := &p.who[i]
		signOf := func(preference int) uint64 { return finish(p.hash[i] + finish(uint64(preference))) }
		listed := min(w.Roles, len(w.Prefs))
		for role := range listed {
			sign[role] += signOf(w.prefers(role))
		}
		step[listed] += signOf(w.Priority)
		step[w.Roles] -= signOf(w.Priority)
	}
	alike := uint64(0)
	for role := range sign {
		alike += step[role]
		sign[role] += alike
	}
	return p.group(among, sign)
}

// tiers yields the candidates that want a role in tiers of equal preference, the highest first. Each
// tier takes O(n), and usually few are needed.
func (p *Plan) tiers(role int) iter.Seq[[]int32] {
	return func(yield func([]int32) bool) {
		var tier []int32
		for above := math.MaxInt; ; {
			top := math.MinInt
			tier = tier[:0]
			for i := range p.who {
				w := &p.who[i]
				if role >= w.Roles || w.prefers(role) >= above {
					continue
				}
				switch v := w.prefers(role); {
				case len(tier) == 0 || v > top:
					top, tier = v, append(tier[:0], int32(i))
				case v == top:
					tier = append(tier, int32(i))
				}
			}
			if len(tier) == 0 || !yield(tier) {
				return
			}
			above = top
		}
	}
}

// sorted orders a tier for n roles. For one role only the first place matters.
func sorted(tier []int32, n int, room []int, order func(a, b int32) int) {
	if n > 1 {
		slices.SortFunc(tier, order)
		return
	}
	best := 0
	for k, i := range tier {
		if room[tier[best]] == 0 || room[i] > 0 && order(i, tier[best]) < 0 {
			best = k
		}
	}
	tier[0], tier[best] = tier[best], tier[0]
}

// held counts the roles of each candidate, without the vacant ones.
func (p *Plan) held(holders []int32, vacant []bool) []int {
	n := make([]int, len(p.who))
	for role := range holders {
		if h := p.heldBy(holders, role); h >= 0 && (role >= len(vacant) || !vacant[role]) {
			n[h]++
		}
	}
	return n
}

// pour adds n to the parts of these candidates, each up to its room, so that base + part is as level as
// possible. The remainder goes to the first of them. It returns what finds no room.
func pour(n int, among []int32, base, room, part []int) (left int) {
	if n == 1 && len(among) > 0 && base[among[0]] == 0 && room[among[0]] > 0 { // one of the lowest
		part[among[0]]++
		return 0
	}
	at := func(level int, i int32) int { return min(max(level-base[i], 0), room[i]) }
	sum := func(level int) (all int) {
		for _, i := range among {
			all += at(level, i)
		}
		return all
	}
	low, high := 0, 1
	for sum(high) <= n && high <= 2*MaxRoles { // beyond this level nobody has more room
		high *= 2
	}
	for low+1 < high { // sum(low) ≤ n
		if middle := (low + high) / 2; sum(middle) <= n {
			low = middle
		} else {
			high = middle
		}
	}
	n -= sum(low)
	for _, i := range among {
		more := at(low, i)
		if n > 0 && at(low+1, i) > more {
			more++
			n--
		}
		part[i] += more
	}
	return n
}

// shareCapped is share with caps. all has how many roles each candidate holds or gets.
func (f *filler) shareCapped(c, n int, holders []int32, vacant []bool, all []int) {
	p, t := f.plan, f.plan.all
	load, room, part := make([]int, len(p.who)), make([]int, len(p.who)), make([]int, len(p.who))
	for k := t.start[c]; k < t.start[c+1]; k++ {
		if role := t.at(k); !vacant[role] {
			if h := p.heldBy(holders, role); h >= 0 {
				load[h]++
			}
		}
	}
	role := t.at(t.start[c])
	bucket := hashBucket(role & p.mask)
	byHash := func(a, b int32) int {
		return cmp.Compare(score(p.hash[b], bucket), score(p.hash[a], bucket))
	}
	for i := range p.who {
		room[i] = n
		if m := p.who[i].Max; m > 0 {
			room[i] = min(n, max(0, m-all[i]))
		}
	}
	var members []int32
	left := n
	for tier := range p.tiers(role) {
		sorted(tier, left, room, byHash)
		left = pour(left, tier, load, room, part)
		if members = append(members, tier...); left == 0 {
			break
		}
	}
	if left > 0 {
		for i := range p.who {
			all[i], room[i] = all[i]+part[i], left
		}
		more := make([]int, len(p.who))
		slices.SortFunc(members, byHash)
		pour(left, members, all, room, more)
		for i := range more {
			all[i], part[i] = all[i]-part[i], part[i]+more[i]
		}
	}
	f.extra = 0
	clear(f.spare)
	for i, n := range part {
		f.room[i] = int32(n)
		all[i] += n
	}
	f.begin(members)
}

// budget is what is left of the caps while one class after the other is levelled.
type budget struct {
	planned  []int // by candidate: its roles after it has given and got what it should
	reserved []int // by candidate: its roles if it gets what it should, but gives nothing

	has, room, quota, none []int // of the class; none is all zero
}

// share returns how many of the total roles of a class candidate i may have. It has `has` of them now.
func (b *budget) share(i int, w *Candidate, has, total int) int {
	switch {
	case w.Max <= 0 && (w.Steady || w.Soon):
		return total
	case w.Max <= 0:
		return has
	case b.planned[i] > w.Max:
		return max(0, has-(b.planned[i]-w.Max))
	case w.Steady || w.Soon:
		return min(total, has+max(0, w.Max-b.reserved[i]))
	}
	return has
}

// movesCapped is Moves with caps.
func (l *level) movesCapped(movable func(role int) bool) []Move {
	p := l.plan
	l.table, l.alike = p.all, true
	held := p.held(l.holders, nil)
	n := len(p.who)
	b := &budget{held, slices.Clone(held), make([]int, n), make([]int, n), make([]int, n), make([]int, n)}
	for c := 0; c < l.table.len() && l.left > 0; c++ {
		l.quotasCapped(c, b)
		l.give(c, movable)
	}
	return l.moves()
}

// quotasCapped counts class c, and calculates how much of it each candidate should have.
func (l *level) quotasCapped(c int, b *budget) {
	p := l.plan
	clear(l.of)
	l.members, l.uneven = l.members[:0], true
	from, to := l.table.start[c], l.table.start[c+1]
	total := 0
	for k := from; k < to; k++ {
		if h := p.heldBy(l.holders, l.table.at(k)); h >= 0 {
			l.of[h].has++
			total++
		}
	}
	if total == 0 {
		return
	}
	role := l.table.at(from)
	bucket := hashBucket(role & p.mask)
	has, room, quota, none := b.has, b.room, b.quota, b.none
	clear(quota)
	for i := range p.who {
		has[i] = int(l.of[i].has)
		room[i] = b.share(i, &p.who[i], has[i], total)
	}
	byLoad := func(a, b int32) int {
		return cmp.Or(cmp.Compare(has[b], has[a]), cmp.Compare(score(p.hash[b], bucket), score(p.hash[a], bucket)), cmp.Compare(a, b))
	}
	left := total
	for tier := range p.tiers(role) {
		sorted(tier, left, room, byLoad)
		before := left
		left = pour(left, tier, none, room, quota)
		l.keep(tier, before-left, has, room, quota)
		if l.members = append(l.members, tier...); left == 0 {
			break
		}
	}
	if left > 0 {
		left = l.overflow(left, has, quota, b)
	}
	for i := range p.who { // nobody wants these or may have them: they stay
		stay := min(left, max(0, has[i]-quota[i]))
		quota[i], left = quota[i]+stay, left-stay
		l.of[i].quota = int32(quota[i])
		b.planned[i] += quota[i] - has[i]
		b.reserved[i] += max(0, quota[i]-has[i])
	}
}

// keep leaves the parts of a tier as they are if they add up to what the tier should have, no member has more
// than it has room for, and they differ within tolerance. A member without room for more does not count as least.
func (l *level) keep(tier []int32, should int, has, room, quota []int) {
	sum, most, least := 0, 0, MaxRoles
	for _, i := range tier {
		if has[i] > room[i] {
			return
		}
		sum, most = sum+has[i], max(most, has[i])
		if has[i] < room[i] && (l.plan.who[i].Steady || has[i] > 0) {
			least = min(least, has[i])
		}
	}
	if sum != should || most-least > l.tolerance(should/len(tier)) {
		return
	}
	for _, i := range tier {
		quota[i] = has[i]
	}
}

// overflow gives what exceeds all caps to the members with fewest roles in all. It returns what nobody may have.
func (l *level) overflow(left int, has, quota []int, b *budget) int {
	who, base, room := l.plan.who, make([]int, len(quota)), make([]int, len(quota))
	sum, most, least, behind := 0, 0, MaxRoles, false
	for _, i := range l.members {
		base[i] = b.planned[i] - has[i] + quota[i]
		if room[i] = left; !who[i].Steady && !who[i].Soon {
			room[i] = max(0, has[i]-quota[i])
		}
		sum += has[i] - quota[i]
		behind = behind || has[i] < quota[i]
		most = max(most, b.planned[i])
		if who[i].Steady || has[i] > 0 {
			least = min(least, b.planned[i])
		}
	}
	if !behind && sum == left && most-least <= l.tolerance(most) {
		for _, i := range l.members {
			quota[i] = has[i]
		}
		return 0
	}
	slices.SortStableFunc(l.members, func(a, b int32) int { return cmp.Compare(has[b]-quota[b], has[a]-quota[a]) })
	return pour(left, l.members, base, room, quota)
}
