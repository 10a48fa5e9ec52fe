package neli

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// Which partition a holder should hand to whom, so that everybody has a share. Each
// holder decides for itself, and only of what it holds: those who see the same
// arrive at the same plan, of which each carries out its own part; where they do
// not, a partition moves once too often.

// move is one partition to be handed over to a candidate.
type move struct{ partition, to int }

// next returns the partition that candidate me should hand over now, of those
// below limit that may be moved.
//
// Partitions that have the same best candidates are levelled among these; holders
// that are not among the best should have nothing of them. Who is no candidate
// itself hands nothing over.
func (c *census) next(me, limit int, may func(p int) bool) (move, bool) {
	if me < 0 {
		return move{}, false
	}
	for _, g := range c.groups(limit) {
		for _, to := range g.receivers(c, me) {
			if m, ok := g.pick(c, me, to, may); ok {
				return m, true
			}
		}
	}
	return move{}, false
}

// group is the partitions that have the same best candidates.
type group struct {
	best       []int // who should have them, ascending
	partitions []int // those that candidates hold
	has        []int // by candidate
}

// groups puts the partitions that candidates hold into groups, in a stable order.
func (c *census) groups(limit int) []*group {
	var order []*group
	groups := map[string]*group{}
	var uniform, best []int
	var key []byte
	for p, h := range c.holder[:min(limit, len(c.holder))] {
		if h < 0 {
			continue
		}
		if c.uniform && uniform != nil {
			best = uniform
		} else if best = c.deserving(p); c.uniform {
			uniform = best
		}
		if len(best) == 0 || c.preference(h, p) > c.preference(best[0], p) {
			continue // it is where it should be, or nobody is there to take it
		}
		key = key[:0]
		if !c.uniform {
			for _, i := range best {
				key = binary.AppendUvarint(key, uint64(i))
			}
		}
		g := groups[string(key)]
		if g == nil {
			g = &group{best: best, has: make([]int, len(c.who))}
			groups[string(key)] = g
			order = append(order, g)
		}
		g.partitions = append(g.partitions, p)
		g.has[h]++
	}
	return order
}

// deserving returns the candidates that should share p with its like: the steady
// ones of the highest preference, and others of that preference who hold something,
// so that it is left to them.
func (c *census) deserving(p int) []int {
	var best []int
	top := 0
	for i := range c.who {
		if v := c.preference(i, p); c.who[i].steady && (len(best) == 0 || v > top) {
			top, best = v, []int{i}
		}
	}
	if len(best) == 0 {
		return nil
	}
	best = best[:0]
	for i := range c.who {
		if (c.who[i].steady || c.who[i].held > 0) && c.preference(i, p) == top {
			best = append(best, i)
		}
	}
	return best
}

// receivers returns who should get the partitions that me has too many of, one
// element for each. The surplus of all givers is paired with what all takers lack
// in one and the same order, so that no two givers mean the same place.
func (g *group) receivers(c *census, me int) []int {
	quota := g.quotas()
	if quota == nil {
		return nil
	}
	var lacking []int
	for _, i := range g.best {
		for n := g.has[i]; c.who[i].steady && n < quota[i]; n++ {
			lacking = append(lacking, i)
		}
	}
	before := 0
	for i := range me {
		before += max(0, g.has[i]-quota[i])
	}
	mine := max(0, g.has[me]-quota[me])
	if before >= len(lacking) {
		return nil
	}
	return lacking[before:min(before+mine, len(lacking))]
}

// quotas returns how many partitions each candidate should have. Those who have
// most already get what cannot be divided, so that nothing moves for its sake. It
// is nil if all is as it should be: a tenth more than another is not worth the
// disturbance.
func (g *group) quotas() []int {
	quota := make([]int, len(g.has))
	among := slices.Clone(g.best)
	slices.SortStableFunc(among, func(a, b int) int { return cmp.Compare(g.has[b], g.has[a]) })
	each, rest := len(g.partitions)/len(among), len(g.partitions)%len(among)
	inside := 0
	for n, i := range among {
		quota[i] = each
		if n < rest {
			quota[i]++
		}
		inside += g.has[i]
	}
	most, least := g.has[among[0]], g.has[among[len(among)-1]]
	if inside == len(g.partitions) && most-least <= max(1, each/10) {
		return nil
	}
	return quota
}

// pick returns the partition that me should hand to candidate to: the one on which
// that comes first by most.
func (g *group) pick(c *census, me, to int, may func(int) bool) (move, bool) {
	var best move
	var most uint64
	found := false
	for _, p := range g.partitions {
		if c.holder[p] != me || !may(p) {
			continue
		}
		if s := rendezvous(c.who[to].member, p); !found || s > most {
			best, most, found = move{p, to}, s, true
		}
	}
	return best, found
}
