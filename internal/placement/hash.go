package placement

import (
	"hash/fnv"
	"math/bits"
)

const (
	// mostBuckets is the number of buckets for up to mostScores/mostBuckets candidates. It is
	// large enough that one of a hundred members leads few roles of any bucket.
	mostBuckets = 1 << 14
	// leastBuckets is the least number of buckets, for very many candidates.
	leastBuckets = 1 << 10
	// mostScores bounds candidates × buckets, the scores computed to place all roles, above
	// leastBuckets. One score takes about a nanosecond.
	mostScores = 1 << 24
)

// bucketsFor returns the number of buckets for n candidates, a power of two. When the number
// halves, pairs of buckets merge and keep the name of one of them, so half of all roles
// keep their order of candidates.
func bucketsFor(n int) int {
	b := mostBuckets
	for b > leastBuckets && n > mostScores/b {
		b /= 2
	}
	return b
}

// finish is MurmurHash3's finalizer: each bit of x affects about half of the result's bits.
func finish(x uint64) uint64 {
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// hashID hashes a candidate's id. FNV barely mixes the last bytes, so ids that differ only
// there would be ordered alike on nearly all buckets; finish corrects that.
func hashID(id string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id))
	return finish(h.Sum64())
}

// hashBucket hashes a bucket's number. It avoids zero, which finish maps to zero.
func hashBucket(b int) uint64 { return finish(uint64(b) + 0x9e3779b97f4a7c15) }

// score ranks a candidate on a bucket, both given by their hashes: the highest score comes
// first. Both hashes are well mixed, so one full-width multiplication is enough, as in
// wyhash.
func score(candidate, bucket uint64) uint64 {
	hi, lo := bits.Mul64(candidate, bucket)
	return hi ^ lo
}

// highest returns the position of the candidate with the highest score, or −1 if there are
// no candidates. Of equal scores the first counts.
func highest(candidates []uint64, bucket uint64) int {
	best, top := -1, uint64(0)
	for k, h := range candidates {
		if s := score(h, bucket); s > top || best < 0 {
			best, top = k, s
		}
	}
	return best
}
