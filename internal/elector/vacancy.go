package elector

import (
	"github.com/goneli/neli/internal/clock"
)

// vacancies is since when roles of one partition have been vacant, as others are told
// (Status), for counters only: nothing is decided by it. It is exact, and costs a store
// for each role that becomes vacant or is won: for what happens to many roles at once
// there are no timers and no maps.
type vacancies struct {
	since []clock.Raw // by role below R: 0: it is not vacant, or nobody knows
	count int         // how many are
	at    clock.Raw   // until when they are accounted for
}

// vacated takes note that roles are vacant, from now on if they were not before.
func (n *Node) vacated(p *partition, roles []int32, now clock.Instant) {
	if !caughtUp(n.logsOf(p)) {
		return
	}
	v, below := &p.vacancies, n.localRoles(p)
	for _, role := range roles {
		if role >= below {
			continue
		}
		if len(v.since) == 0 {
			v.since = make([]clock.Raw, below)
		}
		if v.since[role] == 0 {
			v.since[role] = now.Raw
			v.count++
		}
	}
}

// occupied takes note that roles have a holder.
func (n *Node) occupied(p *partition, roles []int32, now clock.Instant) {
	v := &p.vacancies
	if v.count == 0 {
		return
	}
	won, since := 0, clock.Raw(0) // mostly all were vacated together
	for _, role := range roles {
		if int(role) >= len(v.since) || v.since[role] == 0 {
			continue
		}
		if v.since[role] != since {
			n.counts.Vacancies.Add(now.Raw.Sub(since), won)
			won, since = 0, v.since[role]
		}
		won++
		v.since[role] = 0
		v.count--
	}
	n.counts.Vacancies.Add(now.Raw.Sub(since), won)
}

// resize follows R.
func (n *Node) resize(p *partition, now clock.Instant) {
	v, below := &p.vacancies, int(n.localRoles(p))
	for _, since := range v.since[min(below, len(v.since)):] {
		if since != 0 {
			v.count-- // nobody waits for it any more
		}
	}
	if len(v.since) > 0 {
		v.since = append(v.since[:min(below, len(v.since))], make([]clock.Raw, max(0, below-len(v.since)))...)
	}
	n.recount(p, now)
}

// recount looks at all roles: a log has become known, or begins anew, so that others may hold
// them, or nobody. Nothing is counted while it is not known who holds anything.
func (n *Node) recount(p *partition, now clock.Instant) {
	if !p.lease.Known() {
		p.vacancies = vacancies{at: now.Raw}
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

// account adds up for how long roles of p have been vacant. It is to be called before
// anything is read: what is vacant was so until then.
func (n *Node) account(p *partition, now clock.Instant) {
	v := &p.vacancies
	if v.count > 0 {
		if from := max(v.at, p.lease.NewerUntil()); now.Raw > from {
			n.counts.Leaderless += now.Raw.Sub(from).Seconds() * float64(v.count)
		}
	}
	v.at = now.Raw
}
