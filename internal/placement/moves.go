package placement

import (
	"cmp"
	"slices"
)

// Move is a set of roles to hand over together.
type Move struct {
	To    int   // candidate
	Roles []int // ascending
}

// Moves returns the roles that candidate me should hand over now, at most limit roles, in
// ascending order of the takers. holders has the holder of each role: a candidate's index, Nobody
// or Unknown. Roles of Nobody and Unknown are ignored.
//
// A class here consists of the roles that the same steady candidates deserve. Moves levels them
// among these candidates and among candidates that deserve them as much, are not steady, and
// either hold some of them already or will soon be steady. Room is kept for the latter: otherwise
// roles given to the first of several newcomers would have to move on to the others. A holder
// that deserves the class less, or does not want it, gives up its roles without waiting for kept
// room. A holder that deserves it more and is not steady yet keeps its roles. The remainder stays
// with the candidates that hold most. A class is level, and nothing moves, while most − least ≤
// max(1, a tenth of the share) among candidates that are steady or hold some of it.
//
// A candidate gets nothing while it is not steady, and gets no role that it does not want. me
// gives nothing if it is not a candidate. The excess of all givers is matched with the room of
// all takers in one order, so that no two givers choose the same room. Of the roles that may
// move, me prefers those on which the taker comes first by rendezvous hashing.
//
// If all processes have the same view and carry it out, they are level after one round, or after
// several if limit or movable keeps something back. If movable keeps a giver from giving, the
// room that it was to fill stays reserved for it. Moves takes O(R). If there is something to
// give, it also takes a score for each deserving candidate on each bucket of the roles that me
// holds.
//
// With weights, a class is level while the weights that candidates hold differ by a tenth of the share at most, or no
// move makes the difference smaller.
func (p *Plan) Moves(me int, holders []int32, movable func(role int) bool, limit int) []Move {
	return p.moves(me, holders, movable, limit, false)
}

// Level is Moves without the tolerance of a tenth: members differ by one role at most.
func (p *Plan) Level(me int, holders []int32, movable func(role int) bool, limit int) []Move {
	return p.moves(me, holders, movable, limit, true)
}

func (p *Plan) moves(me int, holders []int32, movable func(role int) bool, limit int, exact bool) []Move {
	if me < 0 || me >= len(p.who) {
		return nil
	}
	l := &level{plan: p, me: me, holders: holders, left: limit, exact: exact, of: make([]tally, len(p.who))}
	switch {
	case p.weights != nil:
		return l.movesWeighted(movable)
	case p.capped:
		return l.movesCapped(movable)
	}
	l.table = p.steady
	for c := 0; c < p.steady.len() && l.left > 0; c++ {
		if l.count(c) {
			l.give(c, movable)
		}
	}
	return l.moves()
}

// level is the work of one call of Moves, class by class.
type level struct {
	plan    *Plan
	me      int
	holders []int32
	members []int32 // of the class: those that share it
	like    int32   // a steady member; all steady members have the same preference as it
	of      []tally // by candidate
	uneven  bool    // the members differ so much that they have to level
	left    int     // what is left of the limit
	table   *classes
	exact   bool // no tolerance
	alike   bool // all roles of a class are as good as each other to give
	fill    *filler
	given   [][]int // by candidate: the roles to hand to it
}

// tally is a candidate's part of a class.
type tally struct {
	in    bool  // it is a member of the class
	has   int32 // roles that it holds and deserves
	lost  int32 // roles that it holds and others deserve more
	quota int32 // how many roles it should hold
}

// standing says how much a holder deserves a role, compared with the members of its class.
type standing int

const (
	less standing = iota
	equal
	more
)

// standing returns the standing of candidate h on a role of the class.
func (l *level) standing(h, role int) standing {
	w := &l.plan.who[h]
	switch {
	case w.Steady && l.of[h].in: // a shortcut: the comparison below would say the same
		return equal
	case role >= w.Roles:
		return less
	}
	return standing(1 + cmp.Compare(w.prefers(role), l.plan.who[l.like].prefers(role)))
}

// count finds the members of class c, and how many of its roles each has. It reports whether me has
// any of them and the class has members.
func (l *level) count(c int) bool {
	t := l.plan.steady
	from, to := t.start[c], t.start[c+1]
	k := from
	for k < to && l.plan.heldBy(l.holders, t.at(k)) != l.me {
		k++
	}
	if k == to {
		return false
	}
	l.members = l.plan.deserving(t, t.at(from), l.members[:0])
	if len(l.members) == 0 {
		return false
	}
	l.like = l.members[0]
	clear(l.of)
	for _, i := range l.members {
		l.of[i].in = true
	}
	for k := from; k < to; k++ {
		role := t.at(k)
		h := l.plan.heldBy(l.holders, role)
		if h < 0 {
			continue
		}
		switch w := &l.of[h]; l.standing(h, role) {
		case equal:
			if w.has++; !w.in {
				w.in, l.members = true, append(l.members, int32(h))
			}
		case less:
			w.lost++
		}
	}
	l.expect(t.at(from))
	l.quotas(t.at(from))
	return true
}

// expect adds the candidates that will soon be steady and hold nothing of the class, but deserve
// it as much, judging by its lowest role.
func (l *level) expect(role int) {
	for i := range l.plan.who {
		if w := &l.plan.who[i]; w.Soon && !l.of[i].in && role < w.Roles && l.standing(i, role) == equal {
			l.of[i].in, l.members = true, append(l.members, int32(i))
		}
	}
}

// quotas calculates how many roles each member should have, and whether they are level.
func (l *level) quotas(role int) {
	total := 0
	for _, w := range l.of {
		total += int(w.has + w.lost)
	}
	bucket := hashBucket(role & l.plan.mask)
	byLoad := slices.Clone(l.members)
	slices.SortFunc(byLoad, func(a, b int32) int { // of equal members, not always the same ones come first
		return cmp.Or(cmp.Compare(l.of[b].has, l.of[a].has), cmp.Compare(score(l.plan.hash[b], bucket), score(l.plan.hash[a], bucket)), cmp.Compare(a, b))
	})
	each, rest := total/len(byLoad), total%len(byLoad)
	for n, i := range byLoad {
		l.of[i].quota = int32(each)
		if n < rest {
			l.of[i].quota++
		}
	}
	raised := l.raise(byLoad)
	most, least := l.of[byLoad[0]].has, l.of[byLoad[0]].has
	for _, i := range byLoad {
		if l.plan.who[i].Steady || l.of[i].has > 0 {
			least = l.of[i].has
		}
	}
	l.uneven = !raised && int(most-least) > l.tolerance(each) // a difference of one is the remainder, which stays where it is
}

// tolerance is the difference that is not worth a move among members with that share.
func (l *level) tolerance(share int) int {
	if l.exact {
		return 0
	}
	return share / 10
}

// raise makes sure that the steady members have room for all roles whose holders deserve them
// less, since those do not wait for kept room. It raises the quotas of the members that have or
// should have least, and reports whether it had to. In that case the members must not level among
// themselves in the same round, or a role might go to and fro between them. If all members are
// steady, it never has to.
func (l *level) raise(members []int32) bool {
	short := 0
	for _, w := range l.of {
		short += int(w.lost)
	}
	var steady []int32
	for _, i := range members {
		if w := l.of[i]; l.plan.who[i].Steady {
			steady = append(steady, i)
			short -= int(max(0, w.quota-w.has))
		}
	}
	if short <= 0 {
		return false
	}
	base := func(i int32) int { return int(max(l.of[i].quota, l.of[i].has)) }
	slices.SortStableFunc(steady, func(a, b int32) int { return cmp.Compare(base(a), base(b)) })
	n, below := 1, 0 // the n lowest are raised to the same level; below is what they have of that
	for below = base(steady[0]); n < len(steady) && base(steady[n])*n-below < short; n++ {
		below += base(steady[n])
	}
	each, rest := (below+short)/n, (below+short)%n
	for k, i := range steady[:n] {
		l.of[i].quota = int32(each)
		if k < rest {
			l.of[i].quota++
		}
	}
	return true
}

// surplus returns how many roles that a candidate deserves it should give up.
func (l *level) surplus(i int) int {
	if !l.uneven {
		return 0
	}
	return int(max(0, l.of[i].has-l.of[i].quota))
}

// takers makes room for the excess of me. Of everything that members lack, it takes the part that
// corresponds to me's part of the total excess, but no more than is left of the limit, with each
// taker in proportion. It returns how much room it made.
//
// Room that is kept for a candidate that will soon be steady counts, too, and its part waits.
// Givers learn at different times that a candidate has become steady. If only steady takers
// counted, a giver that knows one more of them would choose other room than the rest.
func (l *level) takers(room []int32) int {
	before, lost := 0, false
	for i := range l.of {
		if i < l.me {
			before += l.surplus(i) + int(l.of[i].lost)
		}
		lost = lost || l.of[i].lost > 0 // lost roles do not wait for kept room
	}
	end := before + l.surplus(l.me) + int(l.of[l.me].lost)
	mine, at := 0, 0
	for _, i := range slices.Sorted(slices.Values(l.members)) {
		steady := l.plan.who[i].Steady
		if (steady || !lost) && l.of[i].has < l.of[i].quota {
			from := at
			at += int(l.of[i].quota - l.of[i].has)
			if steady {
				room[i] = int32(max(0, min(at, end)-max(from, before)))
				mine += int(room[i])
			}
		}
	}
	if mine <= l.left {
		return mine
	}
	left := l.left
	for _, i := range l.members {
		part := min(left, (int(room[i])*l.left+mine-1)/mine)
		room[i] = int32(part)
		left -= part
	}
	return l.left
}

// give chooses which roles of class c me gives to whom.
func (l *level) give(c int, movable func(role int) bool) {
	surplus := l.surplus(l.me)
	if surplus == 0 && l.of[l.me].lost == 0 {
		return
	}
	if l.fill == nil {
		l.fill, l.given = newFiller(l.plan), make([][]int, len(l.plan.who))
	}
	clear(l.fill.room)
	room := l.takers(l.fill.room)
	if room == 0 {
		return
	}
	var lost, own []int
	t := l.table
	for k := t.start[c]; k < t.start[c+1]; k++ {
		role := t.at(k)
		if l.plan.heldBy(l.holders, role) != l.me {
			continue
		}
		how := equal
		if !l.alike {
			how = l.standing(l.me, role)
		}
		switch {
		case how == more || !movable(role):
		case how == less:
			lost = append(lost, role)
		default:
			own = append(own, role)
		}
	}
	room -= l.choose(lost, room)
	l.choose(own, min(room, surplus))
}

// choose gives up to n of the roles to candidates that together have room for n: first roles for which Toward names
// one of them, then roles on which one of them comes before all other members, then any. It returns how many it gave.
func (l *level) choose(roles []int, n int) int {
	roles, given := l.named(roles, n)
	rest, more := l.preferred(roles, n-given)
	given += more
	l.fill.begin(l.members)
	for _, role := range rest {
		if given == n {
			break
		}
		l.add(l.fill.take(role), role)
		given++
	}
	return given
}

// named gives up to n of the roles to candidates that Toward names and that have room. It returns the roles that are
// left, and how many it gave.
func (l *level) named(roles []int, n int) (rest []int, given int) {
	if l.plan.toward == nil {
		return roles, 0
	}
	for _, role := range roles {
		to := l.plan.toward(role)
		if given == n || to < 0 || l.fill.room[to] == 0 {
			rest = append(rest, role)
			continue
		}
		l.fill.room[to]--
		l.add(int32(to), role)
		given++
	}
	return rest, given
}

// preferred gives up to n of the roles to candidates that come first of all members and have
// room. It returns the roles that are left, if more are to be given, and how many it gave.
func (l *level) preferred(roles []int, n int) (rest []int, given int) {
	f := l.fill
	hashes := make([]uint64, len(l.members))
	for k, i := range l.members {
		hashes[k] = l.plan.hash[i]
	}
	f.round++ // first now remembers the first of all members, with room or not
	for _, role := range roles {
		if given == n {
			return nil, n
		}
		b := role & l.plan.mask
		if f.first[b].round != f.round {
			f.first[b] = first{f.round, l.members[highest(hashes, hashBucket(b))]}
		}
		i := f.first[b].candidate
		if f.room[i] == 0 {
			rest = append(rest, role)
			continue
		}
		f.room[i]--
		l.add(i, role)
		given++
	}
	return rest, given
}

func (l *level) add(to int32, role int) {
	l.given[to] = append(l.given[to], role)
	l.left--
}

// moves returns what was given, by taker.
func (l *level) moves() (out []Move) {
	for to, roles := range l.given {
		if len(roles) > 0 {
			slices.Sort(roles)
			out = append(out, Move{To: to, Roles: roles})
		}
	}
	return out
}
