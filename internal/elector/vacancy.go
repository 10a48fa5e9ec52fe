package elector

import (
	"github.com/goneli/neli/internal/clock"
)

// vacancies is since when roles of one partition have been vacant, as others are told
// (Status), for counters only: nothing is decided by it. It is exact, and costs a store
// for each role that becomes vacant or is won: for what happens to many roles at once
// there are no timers and no maps.
type vacancies struct {
	since []clock.Time // raw, by role below R: 0: it is not vacant, or nobody knows
	count int          // how many are
	at    clock.Time   // raw: until when they are accounted for
}

// vacated takes note that roles are vacant, from now on if they were not before. On small
// logs it does not: what is vacant on one of them may be led by the others.
func (n *Node) vacated(p *partition, roles []int32, now clock.Instant) {
	if n.quorum != nil {
		return
	}
	v, below := &p.vacancies, n.localRoles(p)
	for _, role := range roles {
		if role >= below {
			continue
		}
		if len(v.since) == 0 {
			v.since = make([]clock.Time, below)
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
	won, since := 0, clock.Time(0) // mostly all were vacated together
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
		v.since = append(v.since[:min(below, len(v.since))], make([]clock.Time, max(0, below-len(v.since)))...)
	}
	if n.quorum == nil && p.log.Known() {
		n.vacated(p, p.log.Free(int32(below)), now)
	}
}

// account adds up for how long roles of p have been vacant. It is to be called before
// anything is read: what is vacant was so until then.
func (n *Node) account(p *partition, now clock.Instant) {
	v := &p.vacancies
	if v.count > 0 {
		if from := max(v.at, n.newerUntil(p)); now.Raw > from {
			n.counts.Leaderless += now.Raw.Sub(from).Seconds() * float64(v.count)
		}
	}
	v.at = now.Raw
}

// newerUntil is until when a newer version may hold whatever is vacant, by the raw clock;
// zero if none does.
func (n *Node) newerUntil(p *partition) clock.Time {
	if n.quorum != nil {
		return n.quorum.FreeAt(n.quorum.Roles()) // of what nobody holds
	}
	if at, newer := p.log.Newer(); newer {
		return at.Raw.Add(clock.Wait(clock.Tmax, n.set.Rho))
	}
	return 0
}
