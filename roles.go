package neli

import (
	"crypto/sha256"
	"encoding/binary"
	"iter"
)

// partitionOf maps a role to the partition on which it is contended:
// j mod M (paper, section 3).
func partitionOf(role, partitions int) int { return role % partitions }

// rolesOn yields the roles below roles that live on partition p of partitions,
// in ascending order.
func rolesOn(p, partitions, roles int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for j := p; j < roles; j += partitions {
			if !yield(j) {
				return
			}
		}
	}
}

// Slot maps a key to one of n slots, 0 to n−1, so that anyone can find the owner
// of a key's shard: use the slot as the role, with Roles = n.
//
// The mapping is fixed for ever and easy to have in any language: the first
// eight bytes of the key's SHA-256, read as a big-endian unsigned integer,
// modulo n. It spreads keys evenly, also keys that differ in few bits. A change
// of n moves most keys: choose n generously (roles are cheap, see Config.Roles)
// and keep it.
//
// Slot panics when n < 1, as indexing an empty array does.
func Slot(key string, n int) int {
	if n < 1 {
		panic("neli: Slot: n must be at least 1")
	}
	sum := sha256.Sum256([]byte(key))
	return int(binary.BigEndian.Uint64(sum[:8]) % uint64(n))
}
