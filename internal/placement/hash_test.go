package placement

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBucketsAreBounded(t *testing.T) {
	require.Equal(t, 16384, bucketsFor(0))
	require.Equal(t, 16384, bucketsFor(100))
	require.Equal(t, 16384, bucketsFor(1024))
	require.Equal(t, 8192, bucketsFor(1025))
	require.Equal(t, 1024, bucketsFor(16384))
	require.Equal(t, 1024, bucketsFor(1_000_000))
	for n := 1; n <= 16384; n *= 2 {
		require.LessOrEqual(t, n*bucketsFor(n), 1<<24)
	}
}

// winner returns the first candidate on a bucket, leaving out one.
func winner(hashes []uint64, bucket, but int) int {
	rest := append([]uint64(nil), hashes...)
	if but >= 0 {
		rest = append(rest[:but], rest[but+1:]...)
	}
	k := highest(rest, hashBucket(bucket))
	if but >= 0 && k >= but {
		k++
	}
	return k
}

// Rendezvous hashing treats members alike. A member that is gone is replaced by all others, not
// by one neighbour, even if ids differ only in the last place.
func TestRendezvousSpreads(t *testing.T) {
	const members, buckets = 100, 10_000
	for name, id := range map[string]func(i int) string{
		"random":      func(i int) string { return randomID(random(uint64(i))) },
		"consecutive": func(i int) string { return fmt.Sprintf("member-%03d", i) },
	} {
		t.Run(name, func(t *testing.T) {
			hashes := make([]uint64, members)
			for i := range hashes {
				hashes[i] = hashID(id(i))
			}
			wins := make([]int, members)
			heirs := map[[2]int]int{}
			for b := range buckets {
				w := winner(hashes, b, -1)
				wins[w]++
				heirs[[2]int{w, winner(hashes, b, w)}]++
			}
			for i, n := range wins { // 100 ± 10
				require.InDelta(t, buckets/members, n, 45, "member %d", i)
			}
			for k, n := range heirs { // 1 ± 1
				require.LessOrEqual(t, n, 9, "%v", k)
			}
		})
	}
}

// The order of two members differs from bucket to bucket, even if their ids differ in one bit.
func TestRendezvousMixes(t *testing.T) {
	r := random(3)
	for range 50 {
		id := randomID(r)
		other := []byte(id)
		other[r.IntN(len(other))] ^= 1
		a, b := hashID(id), hashID(string(other))
		wins, changes := 0, 0
		last := false
		for k := range 1000 {
			now := score(a, hashBucket(k)) > score(b, hashBucket(k))
			if now {
				wins++
			}
			if k > 0 && now != last {
				changes++
			}
			last = now
		}
		require.InDelta(t, 500, wins, 100)
		require.InDelta(t, 500, changes, 100)
	}
}

// One more candidate may halve the number of buckets. Half of all roles keep their order of candidates.
func TestFewerBucketsKeepHalfOfTheOrders(t *testing.T) {
	who := crowd(random(1), 1025, 1)
	few, many := New(who), New(who[:1024])
	require.Equal(t, many.Buckets(), 2*few.Buckets())
	same, asked := 0, 0
	for role := 0; role < 1<<15; role += 31 {
		asked++
		a, b := highest(few.hash, hashBucket(role&few.mask)), highest(many.hash, hashBucket(role&many.mask))
		if few.who[a].ID == many.who[b].ID {
			same++
		}
	}
	require.InDelta(t, 0.5, float64(same)/float64(asked), 0.05)
}
