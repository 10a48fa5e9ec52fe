package elector

import (
	"slices"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/placement"
)

// successor is the process in whose favour a role was released.
type successor struct {
	process string
	cause   cause
}

// designate takes note of whom a Release is in favour of, before anybody may claim.
func (n *Node) designate(p *partition, changed []int32, r *lease.Record) {
	switch {
	case r == nil:
	case r.Kind == lease.Release && r.To != "":
		why := claimed
		if r.Moved {
			why = rebalanced
		}
		if r.Pinned {
			why = transferred
		}
		for _, role := range changed {
			p.claims.successors[role] = successor{r.To, why}
		}
	case r.Kind == lease.Claim && r.Session.Process != n.set.Process || r.Kind == lease.Release:
		for _, role := range changed {
			delete(p.claims.successors, role)
		}
	}
}

// vacate takes note that nobody holds roles any more, or that their holder was silent
// for so long that its lease is over.
func (n *Node) vacate(p *partition, roles []int32, now clock.Instant) {
	limit := n.localRoles(p)
	roles = slices.DeleteFunc(roles, func(role int32) bool { return role >= limit })
	if len(roles) == 0 {
		return
	}
	if !n.willing(p, now) {
		n.eager = n.eager && n.desired.Willing(now) && n.set.Alive(now)
		return
	}
	if n.set.Nominated {
		p.claims.add(now.Mono, roles)
		return
	}
	n.place(p, roles, now)
}

// place works out when this process will claim roles: at once what was released in its
// favour, later what was released in another's. The rest is shared out.
func (n *Node) place(p *partition, roles []int32, now clock.Instant) {
	var ours, theirs []int32
	open := make([]int32, 0, len(roles))
	for _, role := range roles {
		h, given := p.claims.successors[role]
		switch {
		case given && h.process == n.set.Process:
			ours = append(ours, role)
		case given && n.members.mayTake(h.process):
			theirs = append(theirs, role)
		default:
			open = append(open, role)
		}
	}
	if len(ours) > 0 {
		n.timing.given(now)
		p.claims.add(now.Mono, ours)
	}
	if len(theirs) > 0 {
		// It is shared out when the other one has not claimed it: mostly there is nothing left
		// to be shared out by then, and that takes long where there are many roles.
		p.claims.list(&vacancy{at: now.Mono.Add(headStart(2*n.timing.roundTrip()) + p.lease.Reading()), roles: theirs, what: toShare})
	}
	if len(open) > 0 {
		n.share(p, open, now)
	}
}

// share works out when this process will claim roles that nobody comes before others for:
// at once what it should have itself. Of the rest it is thought when those who should have
// it have had the time for it: mostly nothing is left then, and it takes long where there
// are many roles. Where two disagree both claim and the log decides.
func (n *Node) share(p *partition, roles []int32, now clock.Instant) {
	if next := p.claims.sharings.next; now.Mono < next {
		p.claims.list(&vacancy{at: next, roles: roles, what: toShare})
		return
	}
	pause := n.sharePause(p, now)
	p.claims.sharings.add(now.Mono, pause)
	plan, me := n.plan(true, now)
	shares := n.shares(plan, p, roles, false, now)
	recovering := p.link.recovered != 0 && now.Mono.Sub(p.link.recovered) < n.set.T
	late := time.Duration(0)
	if recovering || p.link.stalled {
		// Who should have it may still be on its way back, like everybody.
		late = clock.Patience(n.set.T) + n.set.Random(clock.Stalled(n.set.T))
	}
	var ours, others []int32
	for _, role := range roles {
		if int(shares[n.role(p, role)]) == me {
			ours = append(ours, role)
		} else {
			others = append(others, role)
		}
	}
	jitter := n.set.Random(n.timing.roundTrip() + 1)
	p.claims.add(now.Mono, ours)
	p.claims.list(&vacancy{at: now.Mono.Add(late + n.claimTurn(p) + pause + jitter), roles: others, what: toRank})
}

// sharePause is how long after a sharing out there is no other one: after an outage a
// hundred holders are found to be silent, or say so, one after the other, and each time all
// that is held has to be counted. It is far below a round trip where that is little. Who is
// behind would share out what others have claimed already, and reads on for that first.
func (n *Node) sharePause(p *partition, now clock.Instant) time.Duration {
	if p.link.behind(now, n.set.T) {
		return clock.Patience(n.set.T)
	}
	return p.claims.sharings.pause(now.Mono, min(clock.Pause(n.set.T), time.Duration(n.desired.Roles*(n.members.size()+1))*50*time.Nanosecond))
}

// sharings is how often vacant roles were shared out lately.
type sharings struct {
	next clock.Mono    // there is none before
	last time.Duration // the pause until then
	made int           // in a row
}

// row is how many there have been by now, each soon after the one before.
func (s *sharings) row(now clock.Mono) int {
	if now.Sub(s.next) > s.last {
		return 0
	}
	return s.made
}

// pause is the one after a sharing out that is made now: an eighth of the whole one after
// the first of a row, and twice as long after each of the next. Many who die together are
// found to be silent within much less than the whole pause, and what they held need not wait
// for it; where that goes on, sharing out is soon as rare as the whole pause makes it.
func (s *sharings) pause(now clock.Mono, whole time.Duration) time.Duration {
	return whole >> max(0, 3-s.row(now))
}

// add takes note of a sharing out.
func (s *sharings) add(now clock.Mono, pause time.Duration) {
	*s = sharings{next: now.Add(pause), last: pause, made: s.row(now) + 1}
}

// claimTurn is how long one who comes before others has for its Claim.
func (n *Node) claimTurn(p *partition) time.Duration {
	return 2*n.timing.roundTrip() + p.lease.Reading()
}

// rank works out when this process will claim roles that those who should have them have
// not claimed: the later, the more members come before it.
func (n *Node) rank(p *partition, roles []int32, now clock.Instant) {
	plan, me := n.plan(true, now)
	shares := n.shares(plan, p, roles, false, now)
	byRank := map[time.Duration][]int32{}
	for _, role := range roles {
		wait := time.Duration(0)
		if first := int(shares[n.role(p, role)]); first != me {
			wait = n.claimTurn(p) * time.Duration(max(0, plan.Rank(me, first, n.role(p, role))-1))
		}
		byRank[wait] = append(byRank[wait], role)
	}
	for wait, some := range byRank {
		p.claims.add(now.Mono.Add(wait), some)
	}
}

// overdue thinks of what others should have claimed by now. While an own Claim is under way
// theirs are, too, and nothing could be claimed anyway; and who is behind will read them yet:
// where many members start at once, and are slow to read what all of them claim, to think of
// it over and over would make them slower. It waits no longer than T/2 for having read on:
// where round trips are always long it would wait for ever.
func (n *Node) overdue(p *partition, now clock.Instant) {
	c := &p.claims
	if under, _ := p.lease.Claiming(); under > 0 && !p.lease.Paces() || now.Mono < c.thinkAt {
		return
	}
	if p.link.behind(now, n.set.T) && !c.overdue(now.Mono.Add(-clock.Patience(n.set.T))) {
		c.thinkAt = now.Mono.Add(clock.Behind(n.set.T))
		return
	}
	limit := n.localRoles(p) // there may be fewer by now
	if roles := p.claims.due(toRank, now, limit); len(roles) > 0 {
		n.rank(p, roles, now)
	}
	if roles := p.claims.due(toShare, now, limit); len(roles) > 0 {
		for _, role := range roles {
			delete(p.claims.successors, role)
		}
		n.share(p, roles, now)
	}
}

// headStart is how long others leave a role to the one in whose favour it was released.
func headStart(unit time.Duration) time.Duration { return 4*unit + 10*time.Millisecond }

// review takes all roles of p into account that nobody holds.
func (n *Node) review(p *partition, now clock.Instant) {
	p.claims.clear()
	clear(p.claims.silent)
	p.claims.silentAt = 0 // look now
	n.silence(p, now)
	if !p.lease.Paces() && !p.lease.Known() || !n.willing(p, now) {
		return
	}
	n.vacate(p, p.lease.Free(n.localRoles(p), now), now)
}

func (n *Node) reviewAll(now clock.Instant) {
	for _, p := range n.parts {
		n.review(p, now)
	}
}

// silence deals with holders of which nothing was read for so long that their leases
// are over.
func (n *Node) silence(p *partition, now clock.Instant) {
	c := &p.claims
	if c.silentAt != clock.Never && now.Raw < c.silentAt {
		return
	}
	c.silentAt = clock.Never
	if len(c.silent) > 0 { // what was dealt with and is forgotten by the fold
		for id := range c.silent {
			if p.lease.HeldBy(id) == 0 {
				delete(c.silent, id)
			}
		}
	}
	over := map[lease.Session]bool{}
	for h := range p.lease.Holders() {
		switch {
		case c.silent[h.Session] == h.Heard.Raw:
		case now.Raw < h.FreeAt:
			c.silentAt = min(c.silentAt, h.FreeAt)
		case !p.lease.Outlasts() && h.Session == p.lease.Session():
			// It has lapsed long ago, and is dealt with by that.
		default:
			c.silent[h.Session] = h.Heard.Raw
			over[h.Session] = true
			n.ready.Changed = true
			if !p.link.doubtful(h.Heard) && n.members.suspect(h.Session.Process) {
				n.planner.forget()
			}
		}
	}
	if len(over) > 0 {
		roles := p.heldBy(over)
		n.account(p, now)
		n.vacated(p, roles, now)
		if !p.lease.Paces() { // which of them may be claimed on enough small logs is found out elsewhere
			n.vacate(p, roles, now)
		}
	}
}

// saidSilent takes note that others were told of a holder's silence, maybe before it was
// dealt with: they have to be told if it is heard again.
func (c *claims) saidSilent(id lease.Session) {
	if id != (lease.Session{}) && c.silent[id] == 0 {
		c.silent[id] = saidOnly
	}
}

// saidOnly stands for a time in claims.silent: nothing was done yet but to say so.
const saidOnly = clock.Raw(1)

// heldBy returns the roles that some sessions hold, ascending: after an outage those of all
// are shared out at once, which takes long where there are many.
func (p *partition) heldBy(sessions map[lease.Session]bool) []int32 {
	var roles []int32
	if len(sessions) > 0 {
		p.lease.Each(func(h lease.HolderState) int32 {
			if sessions[h.Session] {
				return 1
			}
			return 0
		}, func(role, yes int32) {
			if yes == 1 {
				roles = append(roles, role)
			}
		})
	}
	return roles
}

// heardSince works out anew when the next holder's lease will be over: records that
// were read since have put that off.
func (n *Node) heardSince(p *partition, now clock.Instant) {
	if p.claims.silentAt != clock.Never {
		p.claims.silentAt = min(p.claims.silentAt, now.Raw)
		n.silence(p, now)
	}
}

// sharing is who should claim what nobody holds, by role, worked out for all partitions
// at once: for each by itself, the same processes would come first on all of them.
type sharing struct {
	plan  *placement.Plan
	fresh bool
	at    clock.Mono
	first []int32
}

// uncovered stands for a role that was held when vacant ones were shared out.
const uncovered = int32(-3)

// shares says, by role, which of the plan's candidates should claim it if nobody holds
// it, these roles of p among them; fresh reckons with nobody holding anything. With several
// partitions, what becomes vacant within T/20, such as what a dead process held on many, is
// shared out once. With one, only what is asked for is: after an outage holders are found to
// be silent one after the other, and what all of them held takes long to share out.
func (n *Node) shares(plan *placement.Plan, p *partition, roles []int32, fresh bool, now clock.Instant) []int32 {
	s := &n.planner.sharing
	recent := s.plan == plan && s.fresh == fresh && len(s.first) == n.desired.Roles && now.Mono.Sub(s.at) < clock.Behind(n.set.T)
	if recent && !slices.ContainsFunc(roles, func(role int32) bool { return s.first[n.role(p, role)] == uncovered }) {
		return s.first
	}
	if !recent || len(n.parts) > 1 {
		*s = sharing{plan: plan, fresh: fresh, at: now.Mono, first: slices.Repeat([]int32{uncovered}, n.desired.Roles)}
	}
	var holders []int32
	if !fresh {
		holders = n.holders(plan, now)
	}
	open := n.open(p, roles, holders)
	for i, first := range plan.Assign(open, holders) {
		s.first[open[i]] = first
	}
	return s.first
}

// open are the roles, ascending, that are shared out together with these of p.
func (n *Node) open(p *partition, roles, holders []int32) []int32 {
	var open []int32
	if len(n.parts) == 1 {
		for _, role := range roles {
			open = append(open, int32(n.role(p, role)))
		}
		return open
	}
	for role := range n.desired.Roles {
		if holders == nil || holders[role] == placement.Nobody {
			open = append(open, int32(role))
		}
	}
	return open
}
