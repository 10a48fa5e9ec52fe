package plan

import (
	"fmt"
	"hash/fnv"
)

// Leaning is the kind of preferences that members have in a run, with Open nomination.
type Leaning int

const (
	Indifferent Leaning = iota // none
	Priorities                 // some members are wanted more than others
	Honest                     // all have the same function of member and partition
	Lying                      // each has a function of its own: they contradict each other
	leanings
)

func (l Leaning) String() string {
	return [...]string{"none", "priorities", "one function", "a function each"}[l]
}

// LeaningOf returns the leaning of a seed. Successive seeds go through all of them.
func LeaningOf(seed uint64) Leaning { return Leaning(seed % uint64(leanings)) }

// Contradicts reports whether members want different things.
func (l Leaning) Contradicts() bool { return l == Lying }

// Wanted returns how much a member wants another one, or itself, on a partition. It identifies members by their hosts, so that a
// restarted member is wanted as much as before, and the runner knows what is wanted without asking.
func (l Leaning) Wanted(seed uint64, by, host string, partition int) int {
	switch l {
	case Priorities:
		return opinion(2, seed, host)
	case Honest:
		return opinion(3, seed, host, partition)
	case Lying:
		return opinion(3, seed, by, host, partition)
	default:
		return 0
	}
}

// opinion is a number below limit that depends only on its arguments.
func opinion(limit uint32, of ...any) int {
	h := fnv.New32a()
	_, _ = fmt.Fprint(h, of...)
	return int(h.Sum32() >> 8 % limit)
}
