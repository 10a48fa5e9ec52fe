package elector

import (
	"cmp"
	"slices"

	"github.com/goneli/neli/internal/clock"
)

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
