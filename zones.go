package neli

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"iter"
	"slices"

	"github.com/goneli/neli/internal/lease"
)

const maxZones = 1000

// ByZone returns a Config.Preference for zones in order: all roles are led in the first zone that has a
// healthy member, by its members with the highest Priority. Members of other zones, and those without
// one, come last. Give all members the same zones in the same order.
//
// ByZone panics if it is given no zone or more than 1,000, or if a zone is empty, is given twice, or is
// one that Config.Zone would refuse.
func ByZone(zones ...string) func(m Member, role int) int {
	if len(zones) == 0 || len(zones) > maxZones {
		panic(fmt.Sprintf("neli: ByZone: %d zones given: must be 1 to %d", len(zones), maxZones))
	}
	zones = slices.Clone(zones)
	for i, zone := range zones {
		rule := lease.CheckZone(zone)
		switch {
		case zone == "":
			rule = "must not be empty: members without a zone come last"
		case slices.Contains(zones[:i], zone):
			rule = "must be given once"
		}
		if rule != "" {
			panic(fmt.Sprintf("neli: ByZone: zone %q %s", zone, rule))
		}
	}
	return func(m Member, _ int) int {
		rank := 0
		if i := slices.Index(zones, m.Zone); i >= 0 {
			rank = len(zones) - i
		}
		return rank*(2*maxPriority+1) + m.Priority // fits the 32 bits of a preference
	}
}

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
