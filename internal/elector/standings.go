package elector

import (
	"cmp"
	"slices"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/observe"
	"github.com/goneli/neli/internal/elector/roster"
	"github.com/goneli/neli/internal/lease"
)

// Holder returns the known holder of a role.
func (n *Node) Holder(role int, now clock.Instant) (lease.Grantee, bool) {
	if len(n.shards) == 0 {
		return lease.Grantee{}, false
	}
	s, local := n.local(role)
	token, g := s.Standing(local, now)
	return g, token >= 0
}

// Shares returns how many roles each process holds, the largest number first. Its cost depends on
// the number of holders, not of roles.
func (n *Node) Shares(now clock.Instant) []observe.Share {
	held := map[string]int{}
	for _, s := range n.shards {
		for h := range s.lease.Holders() {
			if now.Raw < h.FreeAt && !s.logs.Old(h.Last) {
				held[h.Session.Process] += h.Held
			}
		}
	}
	var out []observe.Share
	for process, roles := range held {
		name := n.set.Name
		if process != n.set.Process {
			name = n.members.NameOf(process)
		}
		out = append(out, observe.Share{Process: process, Name: name, Roles: roles})
	}
	slices.SortFunc(out, func(a, b observe.Share) int {
		return cmp.Or(cmp.Compare(b.Roles, a.Roles), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Process, b.Process))
	})
	return out
}

// Members returns the processes that have written something since this process started, and this
// one unless it is an observer.
func (n *Node) Members(now clock.Instant) []roster.Member {
	n.members.Expire(now, n.planner.Forget)
	out := n.members.All()
	if !n.set.Observer {
		out = append(out, n.self(n.mayClaim(now), now))
	}
	return out
}

// self is what this process says of itself.
func (k *common) self(nominated bool, now clock.Instant) roster.Member {
	return roster.Member{Name: k.set.Name, Process: k.set.Process, Self: true, Nominated: nominated, Priority: k.set.Priority,
		Roles: k.desired.Roles, Advertise: k.set.Advertise, Zone: k.set.Zone, Heard: now}
}

// mayClaim reports whether this process may claim some roles.
func (k *common) mayClaim(now clock.Instant) bool {
	wants := k.wants(now)
	return wants == nil || len(wants) > 0
}

// shown is what Members and Busy depend on, and which roles there are.
type shown struct {
	shards, roles  int
	members        uint64
	mayClaim, busy bool
}

// changed reports whether Holder, Standings, Members or Busy may answer differently than at the
// last call. That follows from counters and states that are kept where these things change, so
// nobody who changes one of them can forget to announce it.
func (n *Node) changed(now clock.Instant) bool {
	is := shown{len(n.shards), n.desired.Roles, n.members.Changes(), n.mayClaim(now), n.Busy(now)}
	changed := is != n.shown
	n.shown = is
	for _, s := range n.shards {
		changed = s.Standings.Changed(s.claims.Silences(), now) || changed
	}
	return changed
}
