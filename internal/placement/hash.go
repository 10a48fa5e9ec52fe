package placement

import (
	"hash/fnv"
	"math/bits"
)

const (
	// mostBuckets is how many buckets there are beside up to mostScores/mostBuckets
	// candidates: enough that a bucket holds few of what one of a hundred members leads.
	mostBuckets = 1 << 14
	// leastBuckets is how many there are beside ever so many candidates.
	leastBuckets = 1 << 10
	// mostScores bounds candidates × buckets, the number of scores that a placement of
	// everything computes: one takes about a nanosecond.
	mostScores = 1 << 24
)

// bucketsFor returns the number of buckets beside n candidates, a power of two. The
// buckets of half as many are pairs of these, and keep one name of the two: half of
// all roles keep their order of candidates.
func bucketsFor(n int) int {
	b := mostBuckets
	for b > leastBuckets && n > mostScores/b {
		b /= 2
	}
	return b
}

// finish is MurmurHash3's finalizer: every bit of x changes half of the result.
func finish(x uint64) uint64 {
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// hashID hashes a candidate's id. FNV mixes what comes last so little that ids which
// differ there only would be ordered alike nearly everywhere; finish makes up for it.
func hashID(id string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id))
	return finish(h.Sum64())
}

// hashBucket hashes a bucket's number. Zero, of which finish makes zero, is avoided.
func hashBucket(b int) uint64 { return finish(uint64(b) + 0x9e3779b97f4a7c15) }

// score is how much a candidate is wanted on a bucket, both given by their hashes: the
// highest comes first. Both are well mixed, so that one multiplication of full width
// is enough (as in wyhash).
func score(candidate, bucket uint64) uint64 {
	hi, lo := bits.Mul64(candidate, bucket)
	return hi ^ lo
}

// highest returns the position of the candidate with the highest score, the first of
// equals; −1 if there is none.
func highest(candidates []uint64, bucket uint64) int {
	best, top := -1, uint64(0)
	for k, h := range candidates {
		if s := score(h, bucket); s > top || best < 0 {
			best, top = k, s
		}
	}
	return best
}
