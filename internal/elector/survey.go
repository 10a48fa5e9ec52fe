package elector

import (
	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
)

// surveyRoles is how many roles are looked at under one hold of the Elector's lock (nearly twice
// as many with several partitions). With a million roles, one look at all of them would delay
// beats. So an answer that spans several holds is true for each role at some time during the call,
// not for all roles at one instant.
const surveyRoles = 4096

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
			from, c.next = c.next, c.next+surveyRoles
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

// known is what is known of a role.
type known struct {
	key     int64 // a token, or what stands for none
	grantee lease.Grantee
}

// lookup finds what is known of the roles of one shard at one instant. Roles with the same token
// have the same holder, so each token is looked up once. Most roles of a holder have the same
// token as the holder's role before; that is tried first, since a map lookup costs too much for
// each of a million roles.
type lookup struct {
	shard  *shard
	now    clock.Instant
	of     map[int64]*known // by token of the fold
	recent []recent         // by number of the holder, from −1
}

type recent struct {
	token int64
	known *known
}

func (l *lookup) role(local int32) *known {
	token, holder, short := l.shard.lease.Grant(local)
	if !short {
		key, g := l.shard.standing(local, l.now)
		return &known{key, g}
	}
	for len(l.recent) <= int(holder)+1 {
		l.recent = append(l.recent, recent{})
	}
	last := &l.recent[holder+1]
	if last.known != nil && last.token == token {
		return last.known
	}
	k := l.of[token]
	if k == nil {
		key, g := l.shard.standing(local, l.now)
		k = &known{key, g}
		if l.of == nil {
			l.of = map[int64]*known{}
		}
		l.of[token] = k
	}
	*last = recent{token, k}
	return k
}

// grouped makes one Standing of a shard's roles with the same key, in the order of their lowest
// roles. Roles are added in ascending order.
type grouped struct {
	out   []Standing
	shard *shard
	at    map[int64]int // of the shard, by key
	key   int64         // of the last role
	last  int           // its Standing
}

func (g *grouped) add(s *shard, local int32, k *known) {
	if g.shard != s {
		g.shard, g.at, g.last = s, map[int64]int{}, -1
	}
	if g.last < 0 || g.key != k.key {
		i, ok := g.at[k.key]
		if !ok {
			i = len(g.out)
			g.at[k.key] = i
			g.out = append(g.out, newStanding(s, k.key, k.grantee))
		}
		g.key, g.last = k.key, i
	}
	g.out[g.last].Roles = append(g.out[g.last].Roles, s.Role(local))
}

func newStanding(s *shard, key int64, g lease.Grantee) Standing {
	out := Standing{Partition: s.Index, Status: statusOf(key)}
	if out.Status == Held {
		out.Holder = g
	}
	return out
}

func statusOf(key int64) Status {
	switch key {
	case unknownToken:
		return Unknown
	case vacantToken:
		return Vacant
	}
	return Held
}

// survey is a look at all roles below R in progress.
type survey struct {
	cursor
	grouped
}

// survey looks at the next roles, and reports whether there are more.
func (n *Node) survey(v *survey, now clock.Instant) (more bool) {
	return n.look(&v.cursor, now, func(s *shard, local int32, k *known) { v.add(s, local, k) })
}

// look calls tell for the next roles, and reports whether there are more. If partitions have few
// roles it covers several, and stops after surveyRoles.
func (k *common) look(c *cursor, now clock.Instant, tell func(*shard, int32, *known)) (more bool) {
	for looked := int32(0); looked < surveyRoles; {
		s, from, to, ok := k.slice(c)
		if !ok {
			return false
		}
		l := lookup{shard: s, now: now}
		for local := from; local < to; local++ {
			tell(s, local, l.role(local))
		}
		looked += to - from
	}
	return !k.last(*c)
}

// Standings returns what is known of all roles below R, by partition, then by lowest role.
func (n *Node) Standings(now clock.Instant) []Standing {
	var v survey
	for n.survey(&v, now) {
	}
	return v.out
}

// headcount is how many of the roles looked at so far have each Status.
type headcount struct {
	cursor
	of [Held + 1]int
}

// headcount counts the next roles, and reports whether there are more.
func (n *Node) headcount(c *headcount, now clock.Instant) (more bool) {
	return n.look(&c.cursor, now, func(_ *shard, _ int32, k *known) { c.of[statusOf(k.key)]++ })
}
