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
func (s *shard) designate(changed []int32, r *lease.Record) {
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
			s.claims.successors[role] = successor{r.To, why}
		}
	case r.Kind == lease.Claim && r.Session.Process != s.set.Process || r.Kind == lease.Release:
		for _, role := range changed {
			delete(s.claims.successors, role)
		}
	}
}

// vacate takes note that nobody holds roles any more, or that their holder was silent
// for so long that its lease is over.
func (s *shard) vacate(roles []int32, now clock.Instant) {
	limit := s.localRoles()
	roles = slices.DeleteFunc(roles, func(role int32) bool { return role >= limit })
	if len(roles) == 0 {
		return
	}
	if !s.willing(now) {
		s.eager = s.eager && s.desired.Willing(now) && s.set.Alive(now)
		return
	}
	if s.set.Nominated {
		s.claims.add(now.Mono, roles)
		return
	}
	s.place(roles, now)
}

// place works out when this process will claim roles: at once what was released in its
// favour, later what was released in another's. The rest is shared out.
func (s *shard) place(roles []int32, now clock.Instant) {
	var ours, theirs []int32
	open := make([]int32, 0, len(roles))
	for _, role := range roles {
		h, given := s.claims.successors[role]
		switch {
		case given && h.process == s.set.Process:
			ours = append(ours, role)
		case given && s.members.mayTake(h.process):
			theirs = append(theirs, role)
		default:
			open = append(open, role)
		}
	}
	if len(ours) > 0 {
		s.timing.given(now)
		s.claims.add(now.Mono, ours)
	}
	if len(theirs) > 0 {
		// It is shared out when the other one has not claimed it: mostly there is nothing left
		// to be shared out by then, and that takes long where there are many roles.
		s.claims.list(&vacancy{at: now.Mono.Add(headStart(2*s.timing.roundTrip()) + s.lease.Reading()), roles: theirs, what: toShare})
	}
	if len(open) > 0 {
		s.share(open, now)
	}
}

// share works out when this process will claim roles that nobody comes before others for:
// at once what it should have itself. Of the rest it is thought when those who should have
// it have had the time for it: mostly nothing is left then, and it takes long where there
// are many roles. Where two disagree both claim and the log decides.
func (s *shard) share(roles []int32, now clock.Instant) {
	if next := s.claims.sharings.next; now.Mono < next {
		s.claims.list(&vacancy{at: next, roles: roles, what: toShare})
		return
	}
	pause := s.sharePause(now)
	s.claims.sharings.add(now.Mono, pause)
	plan, me := s.plan(true, now)
	shares := s.shares(plan, roles, false, now)
	recovering := s.main.link.recovered != 0 && now.Mono.Sub(s.main.link.recovered) < s.set.T
	late := time.Duration(0)
	if recovering || s.main.link.stalled {
		// Who should have it may still be on its way back, like everybody.
		late = clock.Patience(s.set.T) + s.set.Random(clock.Stalled(s.set.T))
	}
	var ours, others []int32
	for _, role := range roles {
		if int(shares[s.role(role)]) == me {
			ours = append(ours, role)
		} else {
			others = append(others, role)
		}
	}
	jitter := s.set.Random(s.timing.roundTrip() + 1)
	s.claims.add(now.Mono, ours)
	s.claims.list(&vacancy{at: now.Mono.Add(late + s.claimTurn() + pause + jitter), roles: others, what: toRank})
}

// sharePause is how long after a sharing out there is no other one: after an outage a
// hundred holders are found to be silent, or say so, one after the other, and each time all
// that is held has to be counted. It is far below a round trip where that is little. Who is
// behind would share out what others have claimed already, and reads on for that first.
func (s *shard) sharePause(now clock.Instant) time.Duration {
	if s.main.link.behind(now, s.set.T) {
		return clock.Patience(s.set.T)
	}
	return s.claims.sharings.pause(now.Mono, min(clock.Pause(s.set.T), time.Duration(s.desired.Roles*(s.members.size()+1))*50*time.Nanosecond))
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
func (s *shard) claimTurn() time.Duration {
	return 2*s.timing.roundTrip() + s.lease.Reading()
}

// rank works out when this process will claim roles that those who should have them have
// not claimed: the later, the more members come before it.
func (s *shard) rank(roles []int32, now clock.Instant) {
	plan, me := s.plan(true, now)
	shares := s.shares(plan, roles, false, now)
	byRank := map[time.Duration][]int32{}
	for _, role := range roles {
		wait := time.Duration(0)
		if first := int(shares[s.role(role)]); first != me {
			wait = s.claimTurn() * time.Duration(max(0, plan.Rank(me, first, s.role(role))-1))
		}
		byRank[wait] = append(byRank[wait], role)
	}
	for wait, some := range byRank {
		s.claims.add(now.Mono.Add(wait), some)
	}
}

// overdue thinks of what others should have claimed by now. While an own Claim is under way
// theirs are, too, and nothing could be claimed anyway; and who is behind will read them yet:
// where many members start at once, and are slow to read what all of them claim, to think of
// it over and over would make them slower. It waits no longer than T/2 for having read on:
// where round trips are always long it would wait for ever.
func (s *shard) overdue(now clock.Instant) {
	c := &s.claims
	if under, _ := s.lease.Claiming(); under > 0 && !s.lease.Paces() || now.Mono < s.main.pacing.thinkAt {
		return
	}
	if s.main.link.behind(now, s.set.T) && !c.overdue(now.Mono.Add(-clock.Patience(s.set.T))) {
		s.main.pacing.thinkAt = now.Mono.Add(clock.Behind(s.set.T))
		return
	}
	limit := s.localRoles() // there may be fewer by now
	if roles := s.claims.due(toRank, now, limit); len(roles) > 0 {
		s.rank(roles, now)
	}
	if roles := s.claims.due(toShare, now, limit); len(roles) > 0 {
		for _, role := range roles {
			delete(s.claims.successors, role)
		}
		s.share(roles, now)
	}
}

// headStart is how long others leave a role to the one in whose favour it was released.
func headStart(unit time.Duration) time.Duration { return 4*unit + 10*time.Millisecond }

// review takes all roles of p into account that nobody holds.
func (s *shard) review(now clock.Instant) {
	s.claims.clear()
	clear(s.claims.silent)
	s.claims.silentAt = 0 // look now
	s.silence(now)
	if !s.lease.Paces() && !s.lease.Known() || !s.willing(now) {
		return
	}
	s.vacate(s.lease.Free(s.localRoles(), now), now)
}

func (k *common) reviewAll(now clock.Instant) {
	for _, p := range k.shards {
		p.review(now)
	}
}

// silence deals with holders of which nothing was read for so long that their leases
// are over.
func (s *shard) silence(now clock.Instant) {
	c := &s.claims
	if c.silentAt != clock.Never && now.Raw < c.silentAt {
		return
	}
	c.silentAt = clock.Never
	if len(c.silent) > 0 { // what was dealt with and is forgotten by the fold
		for id := range c.silent {
			if s.lease.HeldBy(id) == 0 {
				delete(c.silent, id)
			}
		}
	}
	over := map[lease.Session]bool{}
	for h := range s.lease.Holders() {
		switch {
		case c.silent[h.Session] == h.Heard.Raw:
		case now.Raw < h.FreeAt:
			c.silentAt = min(c.silentAt, h.FreeAt)
		case !s.lease.Outlasts() && h.Session == s.lease.Session():
			// It has lapsed long ago, and is dealt with by that.
		default:
			c.silent[h.Session] = h.Heard.Raw
			over[h.Session] = true
			s.ready.Changed = true
			if !s.main.link.doubtful(h.Heard) && s.members.suspect(h.Session.Process) {
				s.planner.forget()
			}
		}
	}
	if len(over) > 0 {
		roles := s.heldBy(over)
		s.account(now)
		s.vacated(roles, now)
		if !s.lease.Paces() { // which of them may be claimed on enough small logs is found out elsewhere
			s.vacate(roles, now)
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
func (s *shard) heldBy(sessions map[lease.Session]bool) []int32 {
	var roles []int32
	if len(sessions) > 0 {
		s.lease.Each(func(h lease.HolderState) int32 {
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
func (s *shard) heardSince(now clock.Instant) {
	if s.claims.silentAt != clock.Never {
		s.claims.silentAt = min(s.claims.silentAt, now.Raw)
		s.silence(now)
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
func (s *shard) shares(plan *placement.Plan, roles []int32, fresh bool, now clock.Instant) []int32 {
	sh := &s.planner.sharing
	recent := sh.plan == plan && sh.fresh == fresh && len(sh.first) == s.desired.Roles && now.Mono.Sub(sh.at) < clock.Behind(s.set.T)
	if recent && !slices.ContainsFunc(roles, func(role int32) bool { return sh.first[s.role(role)] == uncovered }) {
		return sh.first
	}
	if !recent || len(s.shards) > 1 {
		*sh = sharing{plan: plan, fresh: fresh, at: now.Mono, first: slices.Repeat([]int32{uncovered}, s.desired.Roles)}
	}
	var holders []int32
	if !fresh {
		holders = s.holders(plan, now)
	}
	open := s.open(roles, holders)
	for i, first := range plan.Assign(open, holders) {
		sh.first[open[i]] = first
	}
	return sh.first
}

// open are the roles, ascending, that are shared out together with these of p.
func (s *shard) open(roles, holders []int32) []int32 {
	var open []int32
	if len(s.shards) == 1 {
		for _, role := range roles {
			open = append(open, int32(s.role(role)))
		}
		return open
	}
	for role := range s.desired.Roles {
		if holders == nil || holders[role] == placement.Nobody {
			open = append(open, int32(role))
		}
	}
	return open
}
