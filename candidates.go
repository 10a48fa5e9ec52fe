package neli

import (
	"cmp"
	"encoding/binary"
	"hash/fnv"
	"slices"
)

// Who should claim a vacant partition, with Open nomination: a preference among
// the candidates, which each process works out for itself from what it has heard.
// Where two disagree, both claim and the log decides: nothing here can break a
// lease.

// candidate is a process that may claim, as another one sees it.
type candidate struct {
	member   string // its instance
	priority int
	prefs    []int // by partition: in place of priority, if the user has a Preference
	steady   bool  // it has been there for long enough to be given something
	held     int   // partitions
}

// holders that are no candidates.
const (
	nobody   = -1
	stranger = -2 // held by a process that is not among the candidates
)

// census is what one process knows of who is there and who holds what.
type census struct {
	who     []candidate // ascending by member
	holder  []int       // by partition: index into who, nobody or stranger
	uniform bool        // preference does not depend on the partition
}

// newCensus sorts the candidates. Holders are added with hold.
func newCensus(who []candidate, partitions int) *census {
	slices.SortFunc(who, func(a, b candidate) int { return cmp.Compare(a.member, b.member) })
	c := &census{who: who, holder: make([]int, partitions)}
	c.uniform = !slices.ContainsFunc(who, func(w candidate) bool { return w.prefs != nil })
	for p := range c.holder {
		c.holder[p] = nobody
	}
	return c
}

// find returns the index of a member, or stranger.
func (c *census) find(member string) int {
	i, ok := slices.BinarySearchFunc(c.who, member, func(a candidate, m string) int { return cmp.Compare(a.member, m) })
	if !ok {
		return stranger
	}
	return i
}

// hold notes that a member holds p.
func (c *census) hold(p int, member string) {
	i := c.find(member)
	c.holder[p] = i
	if i >= 0 {
		c.who[i].held++
	}
}

// preference is how much candidate i is wanted on p: the higher the better.
func (c *census) preference(i, p int) int {
	if w := &c.who[i]; p < len(w.prefs) {
		return w.prefs[p]
	}
	return c.who[i].priority
}

// rendezvous orders candidates of equal preference on p: rendezvous hashing (Thaler
// and Ravishankar, 1998), so that each partition has an order of its own, and the
// partitions of a member that is gone fall to all others alike. FNV mixes what comes
// last so little that ids which differ there only would be ordered by the parity of
// p; MurmurHash's finalizer makes up for that.
func rendezvous(member string, p int) uint64 {
	h := fnv.New64a()
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(p))
	_, _ = h.Write(b[:])
	_, _ = h.Write([]byte(member))
	x := h.Sum64()
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// best returns the candidates with the highest preference on p.
func (c *census) best(p int) []int {
	var top []int
	for i := range c.who {
		switch {
		case len(top) == 0 || c.preference(i, p) > c.preference(top[0], p):
			top = append(top[:0], i)
		case c.preference(i, p) == c.preference(top[0], p):
			top = append(top, i)
		}
	}
	return top
}

// assign chooses a candidate for each of the vacant partitions, nobody where there
// is none: the one that comes first by rendezvous hashing among those who are
// preferred most and do not have their share yet (consistent hashing with bounded
// loads: Mirrokni, Thorup and Zadimoghaddam, 2016), or who has least if all have. It
// counts them as held, so that those who see the same choose the same.
func (c *census) assign(vacant []int) []int {
	out := make([]int, len(vacant))
	total := len(vacant)
	for _, w := range c.who {
		total += w.held
	}
	share := (total + len(c.who) - 1) / max(1, len(c.who))
	for n, p := range vacant {
		out[n] = nobody
		var score uint64
		for _, i := range c.best(p) {
			if s := rendezvous(c.who[i].member, p); out[n] == nobody || c.before(i, out[n], s, score, share) {
				out[n], score = i, s
			}
		}
		if i := out[n]; i != nobody {
			c.holder[p] = i
			c.who[i].held++
		}
	}
	return out
}

// before reports whether candidate i is to be chosen rather than k, their scores
// being s and t.
func (c *census) before(i, k int, s, t uint64, share int) bool {
	a, b := c.who[i].held, c.who[k].held
	if a < share && b < share || a == b {
		return s > t
	}
	return a < b
}

// rank is how many candidates should claim p before candidate me does, chosen being
// the first of them.
func (c *census) rank(me, chosen, p int) int {
	if me == chosen {
		return 0
	}
	n, mine, score := 1, c.preference(me, p), rendezvous(c.who[me].member, p)
	for i := range c.who {
		if i == me || i == chosen {
			continue
		}
		v := c.preference(i, p)
		if v > mine || v == mine && rendezvous(c.who[i].member, p) > score {
			n++
		}
	}
	return n
}
