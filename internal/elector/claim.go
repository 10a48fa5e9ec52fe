package elector

import (
	"log/slog"
	"slices"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
)

// claims is what a process knows of vacant roles of one partition, and when it will
// claim them. The lease says which it may claim at all; all else is preference, and
// restraint: after an outage everybody would claim everything, and the log would never
// recover from that.
type claims struct {
	vacant     []*vacancy
	listed     []*vacancy                  // by role: which of them has it
	successors map[int32]successor         // roles released in somebody's favour
	silent     map[lease.Session]clock.Raw // whose silence was dealt with: when it was last heard; saidOnly
	silentAt   clock.Raw                   // when the next holder's lease will be over
	sharings   sharings                    // of what is vacant
}

func (c *claims) init() {
	*c = claims{successors: map[int32]successor{}, silent: map[lease.Session]clock.Raw{}, silentAt: clock.Never}
}

// causeOf tells how this process came by a role that it has just won.
func (c *claims) causeOf(role int32, self string) cause {
	h, ok := c.successors[role]
	delete(c.successors, role)
	if ok && h.process == self {
		return h.cause
	}
	return claimed
}

// settleFor is how long a process that starts waits for Hellos, before it claims its share of
// several roles: so long for each newcomer, three times at most.
const settleFor = 100 * time.Millisecond

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
	if !s.lease.Paces() && !s.lease.Known() && len(c.vacant) == 0 && now.Raw >= s.main.log.FreshAt() {
		s.placeFresh(now)
	}
	s.overdue(now)
	if at, ok := s.claimDue(now); !ok || now.Mono < at {
		return
	}
	if !s.lease.Paces() && !s.main.link.check(now, s.set.T) {
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
	if s.lease.Paces() {
		if len(c.vacant) == 0 {
			return 0, false
		}
		return max(c.next(s.main.pacing.thinkAt), s.timing.settled(s.desired.Roles, false)), true
	}
	if under, _ := s.lease.Claiming(); under > 0 {
		return 0, false
	}
	if !s.lease.Known() && len(c.vacant) == 0 {
		if s.localRoles() == 0 {
			return 0, false
		}
		at = now.MonoOf(s.main.log.FreshAt())
	} else {
		if len(c.vacant) == 0 {
			return 0, false
		}
		at = c.next(s.main.pacing.thinkAt)
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
	if s.lease.Paces() {
		return // it gives them up by itself
	}
	under, oldest := s.lease.Claiming()
	limit := max(2*s.set.T, 10*time.Second)
	if !s.desired.Willing(now) {
		limit = closeTail // nothing is lost
	}
	if under == 0 || now.Mono.Sub(oldest.Mono) < limit {
		return
	}
	if s.reports.claims.due(now) { // where reading stands still, it is all partitions
		s.note(slog.LevelWarn, "claim did not come back: given up", "partition", s.index, "after", limit)
	}
	s.main.log.GiveUpClaims(now.Add(-limit))
	s.main.pacing.late(s.set, now)
	s.review(now)
	s.ready.Changed, s.ready.Verify = true, true
}
