package placement

// filler gives roles to candidates that have room, one role after the other: to the
// one that comes first on the role's bucket of those that have any left.
//
// It remembers who came first on a bucket until that has no room any more. A search
// takes as long as there are candidates with room, and there are few when most
// searches are repeated, so that giving R roles away takes O(R + buckets · n).
type filler struct {
	plan  *Plan
	room  []int32  // by candidate: roles that it may be given
	spare []bool   // by candidate: it may be given one of the extra roles beyond that
	extra int      // roles that may be given beyond room, one to each
	open  []int32  // candidates with room
	hash  []uint64 // of these
	stale bool     // open has some that have no room any more
	first []first  // by bucket
	round int32    // of the classes that it was begun with
}

// first is who comes first on a bucket.
type first struct{ round, candidate int32 }

func newFiller(p *Plan) *filler {
	return &filler{plan: p, room: make([]int32, len(p.who)), spare: make([]bool, len(p.who)),
		first: make([]first, min(p.mask+1, p.roles))}
}

// begin begins again with the room of some candidates.
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

// take gives a role to a candidate, or to Nobody if there is no room.
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

// firstOn returns who comes first on a bucket of those that have room.
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

// compact leaves out who has no room any more.
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
