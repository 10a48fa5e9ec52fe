package neli

import (
	"crypto/sha256"
	"encoding/binary"
	"iter"
)

// partitionOf returns the partition of a role: j mod M (paper, section 3).
func partitionOf(role, partitions int) int { return role % partitions }

// rolesOn yields the roles of partition p that are below roles, ascending.
func rolesOn(p, partitions, roles int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for j := p; j < roles; j += partitions {
			if !yield(j) {
				return
			}
		}
	}
}

// Slot maps a key to one of n slots, 0 to n−1. Use the slot as the role, with Roles = n: any
// process can then find the owner of a key's shard.
//
// The mapping never changes and is easy to implement in any language: the first eight bytes of the
// key's SHA-256, read as a big-endian unsigned integer, modulo n. It spreads keys evenly,
// including keys that differ in few bits. Changing n moves most keys: choose n generously (roles
// are cheap, see Config.Roles) and keep it.
//
// Slot panics if n < 1.
func Slot(key string, n int) int {
	if n < 1 {
		panic("neli: Slot: n must be at least 1")
	}
	sum := sha256.Sum256([]byte(key))
	return int(binary.BigEndian.Uint64(sum[:8]) % uint64(n))
}
