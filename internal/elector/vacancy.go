package elector

import (
	"github.com/goneli/neli/internal/clock"
)

// vacated notes that roles are vacant. Nobody knows that before the log was read to where it
// ended when reading began.
func (n *Node) vacated(p *partition, roles []int32, now clock.Instant) {
	if !caughtUp(n.logsOf(p)) {
		return
	}
	p.vacancyStats.vacated(roles, n.localRoles(p), now)
}

// occupied notes that roles have a holder.
func (n *Node) occupied(p *partition, roles []int32, now clock.Instant) {
	p.vacancyStats.occupied(roles, &n.counts.Counters, now)
}

// resize follows R.
func (n *Node) resize(p *partition, now clock.Instant) {
	p.vacancyStats.resize(int(n.localRoles(p)))
	n.recount(p, now)
}

// recount looks at all roles: a log has become known, or begins anew, so that others may hold
// them, or nobody. Nothing is counted while it is not known who holds anything.
func (n *Node) recount(p *partition, now clock.Instant) {
	if !p.lease.Known() {
		p.vacancyStats = vacancyStats{at: now.Raw}
		return
	}
	all := make([]int32, n.localRoles(p))
	for role := range all {
		all[role] = int32(role)
	}
	n.recountOf(p, all, now)
}

// recountOf looks at roles of which a log says something new.
func (n *Node) recountOf(p *partition, roles []int32, now clock.Instant) {
	if !p.lease.Known() {
		return
	}
	var held, free []int32
	for _, role := range roles {
		if p.lease.Held(role, now) {
			held = append(held, role)
		} else {
			free = append(free, role)
		}
	}
	n.occupied(p, held, now)
	n.vacated(p, free, now)
}

// account adds up for how long roles of p have been vacant.
func (n *Node) account(p *partition, now clock.Instant) {
	p.vacancyStats.account(p.lease.NewerUntil(), &n.counts.Counters, now)
}
