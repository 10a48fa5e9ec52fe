package observe

import (
	"cmp"
	"slices"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
)

// Shards is what is known of the holders of all roles. Role j is in shard j mod M.
type Shards []*Standings

// Holder returns the known holder of a role.
func (a Shards) Holder(role int, now clock.Instant) (lease.Grantee, bool) {
	if len(a) == 0 {
		return lease.Grantee{}, false
	}
	token, g := a[role%len(a)].Standing(int32(role/len(a)), now)
	return g, token >= 0
}

// Shares returns how many roles each process holds, the largest number first. Its cost depends on
// the number of holders, not of roles.
func (a Shards) Shares(nameOf func(process string) string, now clock.Instant) []Share {
	held := map[string]int{}
	for _, s := range a {
		for h := range s.of.Holders() {
			if now.Raw < h.FreeAt && !s.logs.Old(h.Last) {
				held[h.Session.Process] += h.Held
			}
		}
	}
	var out []Share
	for process, roles := range held {
		out = append(out, Share{Process: process, Name: nameOf(process), Roles: roles})
	}
	slices.SortFunc(out, func(a, b Share) int {
		return cmp.Or(cmp.Compare(b.Roles, a.Roles), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Process, b.Process))
	})
	return out
}

// Changed reports, once, that the standings of some role may have changed.
func (a Shards) Changed(now clock.Instant) (changed bool) {
	for _, s := range a {
		changed = s.Changed(now) || changed
	}
	return changed
}

// Standings returns what is known of all roles below R, by partition, then by lowest role.
func (a Shards) Standings(roles int, now clock.Instant) []Standing {
	var v Survey
	for v.Next(a, roles, now) {
	}
	return v.Out
}

// Changes returns what w was not told yet of the roles below R, and marks it as told. It leaves
// out unknown roles, unless they were known before.
func (a Shards) Changes(w *Watcher, roles int, now clock.Instant) []Standing {
	p := NewPicture(0)
	for p.Next(a, roles, w.Last, now) {
	}
	return w.Compare(p)
}

// cursor goes through the roles below R, shard by shard, in slices of at most SurveyRoles. R may
// change between slices.
type cursor struct {
	shard int
	next  int32
}

// slice returns the next slice: the roles from..to−1 of s. ok is false after the last one.
func (c *cursor) slice(of Shards, roles int) (s *Standings, from, to int32, ok bool) {
	for ; c.shard < len(of); c.shard, c.next = c.shard+1, 0 {
		s = of[c.shard]
		if below := s.shard.Count(roles); c.next < below {
			from, c.next = c.next, c.next+SurveyRoles
			return s, from, min(below, c.next), true
		}
	}
	return nil, 0, 0, false
}

// last reports whether slice has nothing more to return.
func (c cursor) last(of Shards, roles int) bool {
	_, _, _, more := c.slice(of, roles)
	return !more
}

// look calls tell for the next roles, and reports whether there are more. If partitions have few
// roles it covers several, until it has seen SurveyRoles.
func (c *cursor) look(of Shards, roles int, now clock.Instant, tell func(*Standings, int32, *Known)) (more bool) {
	for looked := int32(0); looked < SurveyRoles; {
		s, from, to, ok := c.slice(of, roles)
		if !ok {
			return false
		}
		l := Lookup{In: s, Now: now}
		for local := from; local < to; local++ {
			tell(s, local, l.Role(local))
		}
		looked += to - from
	}
	return !c.last(of, roles)
}

// Survey is a look at all roles below R in progress. Out has what was found.
type Survey struct {
	cursor
	Grouped
}

// Next looks at the next roles, and reports whether there are more.
func (v *Survey) Next(of Shards, roles int, now clock.Instant) (more bool) {
	return v.look(of, roles, now, func(s *Standings, local int32, k *Known) { v.Add(s.shard, local, k) })
}

// Headcount is how many of the roles looked at so far have each Status.
type Headcount struct {
	cursor
	Of [Held + 1]int
}

// Next counts the next roles, and reports whether there are more.
func (c *Headcount) Next(of Shards, roles int, now clock.Instant) (more bool) {
	return c.look(of, roles, now, func(_ *Standings, _ int32, k *Known) { c.Of[StatusOf(k.Key)]++ })
}
