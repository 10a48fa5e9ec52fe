package observe

import (
	"github.com/goneli/neli/internal/byrole"
	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
)

// SurveyRoles is how many roles are looked at under one hold of the Elector's lock (nearly twice
// as many with several partitions). With a million roles, one look at all of them would delay
// beats. So an answer that spans several holds is true for each role at some time during the call,
// not for all roles at one instant.
const SurveyRoles = 4096

// Known is what is known of a role.
type Known struct {
	Key     int64 // a tenure, UnknownToken or VacantToken
	grantee lease.Grantee
}

// Lookup finds what is known of the roles of one shard at one instant. Roles with the same token
// have the same holder, so each token is looked up once. Most roles of a holder have the same
// token as the holder's role before; that is tried first, since a map lookup costs too much for
// each of a million roles.
type Lookup struct {
	In     *Standings
	Now    clock.Instant
	of     map[int64]*Known // by token of the fold
	recent []recent         // by number of the holder, from −1
}

type recent struct {
	token int64
	known *Known
}

func (l *Lookup) Role(local int32) *Known {
	if l.In.short == nil {
		key, g := l.In.Standing(local, l.Now)
		return &Known{key, g}
	}
	token, holder := l.In.short.Grant(local)
	for len(l.recent) <= int(holder)+1 {
		l.recent = append(l.recent, recent{})
	}
	last := &l.recent[holder+1]
	if last.known != nil && last.token == token {
		return last.known
	}
	k := l.of[token]
	if k == nil {
		key, g := l.In.Standing(local, l.Now)
		k = &Known{key, g}
		if l.of == nil {
			l.of = map[int64]*Known{}
		}
		l.of[token] = k
	}
	*last = recent{token, k}
	return k
}

// Grouped makes one Standing of a shard's roles with the same key, in the order of their lowest
// roles. Roles are added in ascending order.
type Grouped struct {
	Out   []Standing
	shard byrole.Numbering
	at    map[int64]int // by key: the index in Out of the shard's Standing with it
	key   int64         // of the last role
	last  int           // the index of its Standing
}

func (g *Grouped) Add(s byrole.Numbering, local int32, k *Known) {
	if g.shard != s {
		g.shard, g.at, g.last = s, map[int64]int{}, -1
	}
	if g.last < 0 || g.key != k.Key {
		i, ok := g.at[k.Key]
		if !ok {
			i = len(g.Out)
			g.at[k.Key] = i
			g.Out = append(g.Out, newStanding(s, k.Key, k.grantee))
		}
		g.key, g.last = k.Key, i
	}
	g.Out[g.last].Roles = append(g.Out[g.last].Roles, s.Role(local))
}

func newStanding(s byrole.Numbering, key int64, g lease.Grantee) Standing {
	out := Standing{Partition: s.Index, Status: StatusOf(key)}
	if out.Status == Held {
		out.Holder = g
	}
	return out
}

func StatusOf(key int64) Status {
	switch key {
	case UnknownToken:
		return Unknown
	case VacantToken:
		return Vacant
	}
	return Held
}
