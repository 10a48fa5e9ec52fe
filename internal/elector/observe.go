package elector

import (
	"cmp"
	"slices"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
)

// Status is what is known of who holds a role.
type Status int

// Unknown: not enough was read yet (not even what was in the log when reading began), or nothing
// of the holder since this process came. Vacant: nobody holds it, or its holder's lease is over by
// any clock. Held: evidence of the holder was read less than T′ ago.
const (
	Unknown Status = iota
	Vacant
	Held
)

// Standing is what is known of some roles of one partition: they have the same holder
// and token, or none.
type Standing struct {
	Partition int
	Status    Status
	Roles     []int // ascending
	Holder    lease.Grantee
}

// standing is what makes a Standing differ from the one before: a token, or one of
// these.
const (
	unknownToken = int64(-2)
	vacantToken  = int64(-1)
)

// standing says what is known of a role at time now. Silence is measured as a claimant
// does it.
func (s *shard) standing(role int32, now clock.Instant) (token int64, g lease.Grantee) {
	if !s.lease.Known() {
		return unknownToken, g
	}
	g, held := s.lease.Holder(role)
	if held && now.Raw < g.FreeAt {
		if s.old(g.Last) {
			return unknownToken, g // it was in the log before this process came, for nobody knows how long
		}
		return s.lease.Tenure(g), g
	}
	if now.Raw < s.lease.FreeAt(role) || !caughtUp(s.channels) { // a newer version may hold it, or somebody who comes later in the log
		return unknownToken, g
	}
	return vacantToken, g
}

// Holder returns who holds a role, as far as was read.
func (n *Node) Holder(role int, now clock.Instant) (lease.Grantee, bool) {
	if len(n.shards) == 0 {
		return lease.Grantee{}, false
	}
	p, u := n.local(role)
	token, g := p.standing(u, now)
	return g, token >= 0
}

// Share is how many roles a process holds, as far as was read.
type Share struct {
	Process, Name string
	Roles         int
}

// Shares returns who holds how many roles, the largest first. It costs a look at each
// process that holds something, and none at roles.
func (n *Node) Shares(now clock.Instant) []Share {
	held := map[string]int{}
	for _, p := range n.shards {
		for h := range p.lease.Holders() {
			if now.Raw < h.FreeAt && !p.old(h.Last) {
				held[h.Session.Process] += h.Held
			}
		}
	}
	var out []Share
	for process, roles := range held {
		s := Share{Process: process, Roles: roles}
		if process == n.set.Process {
			s.Name = n.set.Name
		} else if m := n.members.by[process]; m != nil {
			s.Name = m.name
		}
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b Share) int {
		return cmp.Or(cmp.Compare(b.Roles, a.Roles), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Process, b.Process))
	})
	return out
}

// Shares returns who holds how many roles, the largest first.
func (e *Elector) Shares() []Share {
	defer e.hold()()
	return e.node.Shares(e.now())
}

// Members returns those who have said something since this process came, and this one if
// it is not an observer.
func (n *Node) Members(now clock.Instant) []Member {
	n.members.expire(now, n.planner.forget)
	var out []Member
	for id, m := range n.members.by {
		if m.present {
			out = append(out, Member{Name: m.name, Process: id, Nominated: m.nominated, Priority: m.priority, Heard: m.heard})
		}
	}
	if !n.set.Observer {
		wants := n.wants(now)
		out = append(out, Member{Name: n.set.Name, Process: n.set.Process, Self: true, Priority: n.set.Priority,
			Nominated: wants == nil || len(wants) > 0, Heard: now})
	}
	return out
}

// Watcher is one Watch under way: what its consumer was told last of each role. It is
// told of what has changed when it has time; so it costs no more than this, however slow
// it is.
type Watcher struct {
	told []int64 // by role: token, or what stands for none
}

// NewWatcher returns a Watcher that was told nothing.
func NewWatcher() *Watcher { return &Watcher{} }

// Changes returns what w was not told yet of the roles below R, and counts it as told.
// Nothing is said of what is not known, unless it was before.
func (n *Node) Changes(w *Watcher, now clock.Instant) []Standing {
	for len(w.told) < n.desired.Roles {
		w.told = append(w.told, unknownToken)
	}
	w.told = w.told[:n.desired.Roles]
	var out []Standing
	for _, p := range n.shards {
		at := map[int64]int{}
		for u := range p.localRoles() {
			role := p.role(u)
			token, g := p.standing(u, now)
			if token == w.told[role] {
				continue
			}
			w.told[role] = token
			if token == vacantToken {
				p.claims.saidSilent(g.Session)
			}
			i, ok := at[token]
			if !ok {
				i = len(out)
				at[token] = i
				out = append(out, newStanding(p, token, g))
			}
			out[i].Roles = append(out[i].Roles, role)
		}
	}
	return out
}

func newStanding(p *shard, token int64, g lease.Grantee) Standing {
	s := Standing{Partition: p.index, Status: Unknown}
	switch token {
	case unknownToken:
	case vacantToken:
		s.Status = Vacant
	default:
		s.Status, s.Holder = Held, g
	}
	return s
}

// Standings returns what is known of all roles below R, and of which nothing is: by
// partition, then by lowest role.
func (n *Node) Standings(now clock.Instant) []Standing {
	var out []Standing
	for _, p := range n.shards {
		g := grouping{at: map[int64]int{}, of: map[int64]int{}}
		for u := range p.localRoles() {
			i, ok := 0, false
			token, holder, short := p.lease.Grant(u)
			if short {
				i, ok = g.find(token, holder)
			}
			if !ok { // what has one token has one holder, too: it is asked about once
				key, grantee := p.standing(u, now)
				if i, ok = g.at[key]; !ok {
					i = len(out)
					out = append(out, newStanding(p, key, grantee))
					g.at[key] = i
				}
				if short {
					g.add(token, holder, i)
				}
			}
			out[i].Roles = append(out[i].Roles, p.role(u))
		}
	}
	return out
}

// grouping finds the Standing that a role belongs to. Most roles of a holder have the
// token that the last one had: that is looked for first, as a map costs too much for each
// of a million roles.
type grouping struct {
	at, of map[int64]int // index of the Standing, by what makes one differ and by token of the fold
	recent []recent      // by number of the holder, from −1
}

type recent struct {
	token    int64
	standing int
	any      bool
}

func (g *grouping) find(token int64, holder int32) (i int, ok bool) {
	if int(holder)+1 < len(g.recent) {
		if r := g.recent[holder+1]; r.any && r.token == token {
			return r.standing, true
		}
	}
	if i, ok = g.of[token]; ok {
		g.add(token, holder, i)
	}
	return i, ok
}

func (g *grouping) add(token int64, holder int32, i int) {
	for len(g.recent) <= int(holder)+1 {
		g.recent = append(g.recent, recent{})
	}
	g.of[token], g.recent[holder+1] = i, recent{token, i, true}
}
