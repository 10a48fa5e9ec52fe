package elector

import (
	"log/slog"
	"slices"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
)

// willing reports whether this process would lead anything of p now.
func (s *shard) willing(now clock.Instant) bool {
	return !s.set.Observer && s.nomination.nominated && s.desired.Willing(now) && s.set.Alive(now)
}

// claim claims what is due, all of it together.
func (s *shard) claim(now clock.Instant) {
	if !s.willing(now) {
		return
	}
	c := &s.claims
	if len(c.vacant) == 0 && now.Raw >= s.lease.FreshAt() {
		s.placeFresh(now)
	}
	s.overdue(now)
	if at, ok := s.claimDue(now); !ok || now.Mono < at {
		return
	}
	if !s.main.link.check(now, s.set.T) {
		s.nomination.claimed(now) // it would claim
		s.main.probe(now)
		return
	}
	due := c.take(now, s.localRoles())
	if len(due) == 0 {
		return
	}
	s.send(due, now)
}

// send appends Claims of those of the roles that may be claimed; the others are left to
// a later time if nobody holds them.
func (s *shard) send(roles []int32, now clock.Instant) {
	fresh := !s.lease.Known()
	out := s.lease.Contest(roles, now)
	if len(out) > 0 {
		s.nomination.claimed(now)
	}
	s.appendAll(out, now)
	if fresh && len(out) > 0 {
		return // the rest follows when it has come back
	}
	// Never: this process may claim nothing before it knows whose fold is wrong, and then
	// all vacancies are reviewed.
	if later, at := s.lease.Later(roles, now); at != clock.Never {
		s.claims.add(now.MonoOf(at), later)
	}
}

// placeFresh plans the Claim of a process that knows nothing: of its share, or of any
// role if it has none, the later the more members there are before it.
func (s *shard) placeFresh(now clock.Instant) {
	limit := s.localRoles()
	if limit == 0 {
		return
	}
	all := make([]int32, limit)
	for i := range all {
		all[i] = int32(i)
	}
	if s.set.Nominated {
		s.claims.add(now.Mono, all)
		return
	}
	plan, me := s.plan(true, now)
	shares := s.shares(plan, all, true, now)
	rank := plan.Rank(me, int(shares[s.role(0)]), s.role(0))
	share := slices.DeleteFunc(slices.Clone(all), func(role int32) bool { return int(shares[s.role(role)]) != me })
	if len(share) == 0 {
		share = all[:1]
	}
	s.claims.add(now.Mono.Add(2*s.timing.roundTrip()*time.Duration(rank)+s.set.Random(s.timing.roundTrip()+1)), share)
}

// claimDue is when something may be claimed, by the monotonic clock.
func (s *shard) claimDue(now clock.Instant) (at clock.Mono, ok bool) {
	c := &s.claims
	if !s.willing(now) {
		return 0, false
	}
	switch fresh := s.lease.FreshAt(); {
	case s.lease.Waits():
		return 0, false
	case len(c.vacant) > 0:
		at = c.next(s.main.pacing.thinkAt)
	case fresh != clock.Never && s.localRoles() > 0:
		at = now.MonoOf(fresh)
	default:
		return 0, false
	}
	return max(at, s.main.pacing.notBefore, s.timing.settled(s.desired.Roles, s.set.Nominated), s.probing(now)), true
}

// probing is until when a Claim waits for a probe to come back, if one has to.
func (s *shard) probing(now clock.Instant) clock.Mono {
	if s.main.link.check(now, s.set.T) {
		return 0
	}
	if s.main.link.probing(now, s.set.T) {
		return s.main.link.hello.at.Add(s.set.T)
	}
	return s.main.announcements.helloAt
}

// claimFailed takes note that a Claim may or may not be in the log.
func (s *shard) claimFailed(roles []int32, now clock.Instant) {
	s.main.pacing.late(s.set, now)
	s.vacate(roles, now)
	s.ready.Changed = true
}

// giveUpClaims forgets Claims of which nothing was heard for as long as a lease lasts:
// the log has lost them, or reading has stopped.
func (s *shard) giveUpClaims(now clock.Instant) {
	_, oldest := s.lease.Claiming()
	limit := max(2*s.set.T, 10*time.Second)
	if !s.desired.Willing(now) {
		limit = closeTail // nothing is lost
	}
	if !s.lease.Waits() || now.Mono.Sub(oldest.Mono) < limit {
		return
	}
	if s.reports.claims.due(now) { // where reading stands still, it is all partitions
		s.note(slog.LevelWarn, "claim did not come back: given up", "partition", s.index, "after", limit)
	}
	s.lease.GiveUp(now.Add(-limit))
	s.main.pacing.late(s.set, now)
	s.review(now)
	s.ready.Changed, s.ready.Verify = true, true
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
	ours, theirs, open := s.claims.bySuccessor(roles, s.set.Process, s.members.mayTake)
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
	if s.lease.Waits() || now.Mono < s.main.pacing.thinkAt {
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
			s.claims.successors.remove(role)
		}
		s.share(roles, now)
	}
}

// review takes all roles of p into account that nobody holds.
func (s *shard) review(now clock.Instant) {
	s.claims.clear()
	clear(s.claims.silent)
	s.claims.silentAt = 0 // look now
	s.silence(now)
	if !s.willing(now) {
		return
	}
	s.vacate(s.lease.Free(s.localRoles(), now), now)
}

func (k *common) reviewAll(now clock.Instant) {
	for _, p := range k.shards {
		p.review(now)
	}
}

// silence deals with holders of which nothing was read for so long that their leases are over.
func (s *shard) silence(now clock.Instant) {
	over := map[lease.Session]bool{}
	for _, h := range s.claims.findSilent(s.lease.Holders(), s.lease.Lapses, now) {
		over[h.Session] = true
		if !s.main.link.doubtful(h.Heard) && s.members.suspect(h.Session.Process) {
			s.planner.forget()
		}
	}
	if len(over) == 0 {
		return
	}
	s.ready.Changed = true
	roles := s.heldBy(over)
	s.account(now)
	s.vacated(roles, now)
	if !s.lease.Reminds() {
		s.vacate(roles, now)
	}
}

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
