package elector

import (
	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/observe"
)

// cursor goes through the roles below R, shard by shard, in slices of at most surveyRoles. R may
// change between slices.
type cursor struct {
	shard int
	next  int32
}

// slice returns the next slice: the roles from..to−1 of s. ok is false after the last one.
func (k *common) slice(c *cursor) (s *shard, from, to int32, ok bool) {
	for ; c.shard < len(k.shards); c.shard, c.next = c.shard+1, 0 {
		s = k.shards[c.shard]
		if below := s.localRoles(); c.next < below {
			from, c.next = c.next, c.next+observe.SurveyRoles
			return s, from, min(below, c.next), true
		}
	}
	return nil, 0, 0, false
}

// last reports whether slice has nothing more to return.
func (k *common) last(c cursor) bool {
	_, _, _, more := k.slice(&c)
	return !more
}

// survey is a look at all roles below R in progress.
type survey struct {
	cursor
	observe.Grouped
}

// survey looks at the next roles, and reports whether there are more.
func (n *Node) survey(v *survey, now clock.Instant) (more bool) {
	return n.look(&v.cursor, now, func(s *shard, local int32, k *observe.Known) { v.Add(s.Numbering, local, k) })
}

// look calls tell for the next roles, and reports whether there are more. If partitions have few
// roles it covers several, and stops after surveyRoles.
func (k *common) look(c *cursor, now clock.Instant, tell func(*shard, int32, *observe.Known)) (more bool) {
	for looked := int32(0); looked < observe.SurveyRoles; {
		s, from, to, ok := k.slice(c)
		if !ok {
			return false
		}
		l := observe.Lookup{In: &s.Standings, Now: now}
		for local := from; local < to; local++ {
			tell(s, local, l.Role(local))
		}
		looked += to - from
	}
	return !k.last(*c)
}

// Standings returns what is known of all roles below R, by partition, then by lowest role.
func (n *Node) Standings(now clock.Instant) []observe.Standing {
	var v survey
	for n.survey(&v, now) {
	}
	return v.Out
}

// headcount is how many of the roles looked at so far have each Status.
type headcount struct {
	cursor
	of [observe.Held + 1]int
}

// headcount counts the next roles, and reports whether there are more.
func (n *Node) headcount(c *headcount, now clock.Instant) (more bool) {
	return n.look(&c.cursor, now, func(_ *shard, _ int32, k *observe.Known) { c.of[observe.StatusOf(k.Key)]++ })
}
