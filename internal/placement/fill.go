package placement

// filler gives roles to candidates that have room, one after the other. A role goes to the first
// candidate on its bucket that has room left.
//
// It remembers the first candidate on a bucket until that one has no room left. A search takes
// time in proportion to the candidates with room. By the time most buckets search again,
// few candidates have room: giving R roles away takes O(R + buckets · n).
type filler struct {
	plan  *Plan
	room  []int32  // by candidate: how many more roles it may get
	spare []bool   // by candidate: it may get one of the extra roles besides
	extra int      // how many extra roles there are, at most one for each candidate
	open  []int32  // the candidates with room
	hash  []uint64 // their hashes
	stale bool     // some in open have no room any more
	first []first  // by bucket
	round int32    // of filling; entries of first from other rounds do not count
}

// first is the first candidate on a bucket that has room.
type first struct{ round, candidate int32 }

func newFiller(p *Plan) *filler {
	return &filler{plan: p, room: make([]int32, len(p.who)), spare: make([]bool, len(p.who)),
		first: make([]first, min(p.mask+1, p.roles))}
}

// begin starts a new round, with the room of the given candidates.
func (f *filler) begin(among []int32) {
	f.round++
	f.stale = false
	f.open, f.hash = f.open[:0], f.hash[:0]
	for _, i := range among {
		if f.has(i) {
			f.open, f.hash = append(f.open, i), append(f.hash, f.plan.hash[i])
		}
	}
}

// has reports whether a candidate has room.
func (f *filler) has(i int32) bool { return f.room[i] > 0 || f.extra > 0 && f.spare[i] }

// take gives a role to a candidate and returns it. It returns Nobody if there is no room.
func (f *filler) take(role int) int32 {
	i := f.firstOn(role & f.plan.mask)
	switch {
	case i < 0:
		return Nobody
	case f.room[i] > 0:
		f.room[i]--
	default:
		f.extra--
		f.spare[i] = false
	}
	f.stale = f.stale || !f.has(i)
	return i
}

// firstOn returns the first candidate on a bucket that has room.
func (f *filler) firstOn(bucket int) int32 {
	if c := f.first[bucket]; c.round == f.round && f.has(c.candidate) {
		return c.candidate
	}
	if f.stale {
		f.compact()
	}
	k := highest(f.hash, hashBucket(bucket))
	if k < 0 {
		return Nobody
	}
	f.first[bucket] = first{f.round, f.open[k]}
	return f.open[k]
}

// compact removes the candidates that have no room any more.
func (f *filler) compact() {
	n := 0
	for k, i := range f.open {
		if f.has(i) {
			f.open[n], f.hash[n] = i, f.hash[k]
			n++
		}
	}
	f.open, f.hash, f.stale = f.open[:n], f.hash[:n], false
}
