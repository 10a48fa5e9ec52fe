package elector

import (
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/channel"
	"github.com/goneli/neli/internal/elector/handover"
	"github.com/goneli/neli/internal/elector/leases"
	"github.com/goneli/neli/internal/elector/outside"
	"github.com/goneli/neli/internal/elector/roster"
	"github.com/goneli/neli/internal/elector/told"
	"github.com/goneli/neli/internal/elector/vacancy"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/placement"
)

// willing reports whether this process would lead roles of the shard now.
func (s *shard) willing(now clock.Instant) bool {
	return !s.set.Observer && s.nomination.MayClaim() && s.able(now)
}

// able reports whether this process would lead a role that it won now.
func (s *shard) able(now clock.Instant) bool { return outside.Able(s.set, *s.desired, now) }

// claim claims all roles that are due, together.
func (s *shard) claim(in told.In, now clock.Instant) {
	if !s.willing(now) {
		s.main.Link.Claims()
		return
	}
	c := &s.claims
	if c.IsEmpty() && now.Raw >= s.freshAt() {
		s.placeFresh(in, now)
	}
	s.overdue(in, now)
	switch at, ok := s.claimDue(now); {
	case !ok:
		s.main.Link.Claims()
		return
	case now.Mono < at:
		return
	}
	if !s.main.Link.Check(now, s.set.T) {
		s.nomination.Claimed(now) // this process would claim
		s.main.Probe(in.Takes, now)
		if s.main.Link.Withhold(now, s.set.T) {
			s.out.Note(slog.LevelWarn, "own records take too long to come back: claiming nothing", "partition", s.Index,
				"roundTrip", s.main.Link.LastTook().Round(time.Millisecond), "limit", clock.Stalled(s.set.T), "heartbeatTimeout", s.set.T)
		}
		return
	}
	s.main.Link.Claims()
	due := c.Take(now, s.Count(s.desired.Roles))
	if len(due) == 0 {
		return
	}
	s.send(due, now)
}

// send appends Claims of those roles that may be claimed. Others without a holder are listed for later.
func (s *shard) send(roles []int32, now clock.Instant) {
	fresh := !s.leases.Known()
	out := s.leases.Contest(roles, now)
	if len(out) > 0 {
		s.nomination.Claimed(now)
	}
	s.appendAll(out, now)
	if fresh && len(out) > 0 {
		return // the rest follows when the Claim has come back
	}
	if s.traits.Reminds {
		return
	}
	// Never: no role has to wait, or this process may claim nothing before it knows which fold is
	// wrong; then all vacancies are reconsidered.
	if later, at := leases.Later(s.main.Log, roles, now); at != clock.Never {
		s.claims.Add(now.MonoOf(at), later)
	}
}

// placeFresh plans the Claim of a process that knows nothing. It claims its share, or one role if it
// has no share. The more members rank before it, the later it claims.
func (s *shard) placeFresh(in told.In, now clock.Instant) {
	limit := s.Count(s.desired.Roles)
	if limit == 0 {
		return
	}
	all := make([]int32, limit)
	for i := range all {
		all[i] = int32(i)
	}
	if s.set.Nominated {
		s.claims.Add(now.Mono, all)
		return
	}
	plan, me := in.Plans.Plan(true, now)
	assigned := s.assignments(plan, all, true, in, now)
	rank := plan.Rank(me, int(assigned[s.Role(0)]), s.Role(0))
	ours := slices.DeleteFunc(slices.Clone(all), func(local int32) bool { return int(assigned[s.Role(local)]) != me })
	if len(ours) == 0 {
		ours = all[:1]
	}
	s.claims.Add(now.Mono.Add(2*in.Takes*time.Duration(rank)+s.set.Random(in.Takes+1)), ours)
}

// claimDue is when claim has something to do; ok is false if it has nothing.
func (s *shard) claimDue(now clock.Instant) (at clock.Mono, ok bool) {
	c := &s.claims
	if !s.willing(now) {
		return 0, false
	}
	switch fresh := s.freshAt(); {
	case s.waits():
		return 0, false
	case !c.IsEmpty():
		at = c.Next(s.main.Pacing.ThinksAt())
	case fresh != clock.Never && s.Count(s.desired.Roles) > 0:
		at = now.MonoOf(fresh)
	default:
		return 0, false
	}
	return max(at, s.main.Pacing.ClaimsAt(), s.out.Startup.End(s.desired.Roles, s.set.Nominated), s.main.Link.ProbedUntil(s.main.Announcements.NextHello(), now, s.set.T)), true
}

// freshAt is when a process that does not know the fold may claim; Never if it knows it, or if its leases
// remind it of vacant roles.
func (s *shard) freshAt() clock.Raw {
	if s.traits.Reminds {
		return clock.Never
	}
	return s.main.Log.FreshAt()
}

// waits reports whether no Claim is made because another one is in flight.
func (s *shard) waits() bool { return s.traits.OneClaim && s.logs.Claiming() }

// lapses reports whether a session is this process's own, which Tick ends when it has lapsed.
func (s *shard) lapses(id lease.Session) bool {
	return !s.traits.Together && id == s.main.Log.Session()
}

// giveUpClaims forgets Claims that have not come back for 2T (at least 10 s; CloseTail if this process
// is not willing): the log has lost them, or reading has stopped. It returns that time; 0: none was forgotten.
func (s *shard) giveUpClaims(in told.In, now clock.Instant) (after time.Duration) {
	if !s.waits() {
		return 0
	}
	_, oldest := s.main.Log.Claiming()
	limit := max(2*s.set.T, 10*time.Second)
	if !s.desired.Willing(now) {
		limit = handover.CloseTail // it wants no role, so nothing is lost
	}
	if now.Mono.Sub(oldest.Mono) < limit {
		return 0
	}
	s.main.Log.GiveUpClaims(now.Add(-limit))
	s.main.Pacing.Late(s.set.T, s.set.Random, now)
	s.reconsiderVacant(in, now)
	return limit
}

// vacate handles roles that nobody holds, or whose holder was silent until its lease was over.
func (s *shard) vacate(roles []int32, in told.In, now clock.Instant) {
	limit := s.Count(s.desired.Roles)
	roles = slices.DeleteFunc(roles, func(local int32) bool { return local >= limit })
	if len(roles) == 0 {
		return
	}
	if !s.logs.CaughtUp() { // most of them have holders by the end of the log
		s.claims.Postpone()
		return
	}
	if !s.willing(now) {
		if !s.able(now) {
			s.out.PassOver()
		}
		return
	}
	if s.set.Nominated {
		s.claims.Add(now.Mono, roles)
		return
	}
	s.place(roles, in, now)
}

// place decides when this process will claim roles: at once those released in its favour, and those that it has
// prepared, later those released in favour of another process, or for which one stands by. The rest is assigned.
func (s *shard) place(roles []int32, in told.In, now clock.Instant) {
	ours, theirs, open := s.claims.BySuccessor(roles, s.set.Process, s.members.MayTake)
	if len(ours) > 0 {
		s.out.Startup.Given(now)
		s.claims.Add(now.Mono, ours)
	}
	if len(theirs) > 0 {
		// They are assigned only if the other process has not claimed them: usually none is
		// left by then, and assigning many roles takes long.
		least := vacancy.HeadStart(2 * in.Takes)
		waits := s.claims.Waits(theirs, clock.Patience(s.set.T))
		for _, wait := range slices.Sorted(maps.Keys(waits)) { // in one order, so that a seed can be repeated
			s.claims.AddFor(vacancy.ToAssign, now.Mono.Add(max(least, wait)+s.reading), waits[wait])
		}
	}
	ready, stood, open := s.warm.Sort(s.Numbering, open, s.leases.Holder)
	s.claims.Add(now.Mono, ready)
	s.claims.AddFor(vacancy.ToAssign, now.Mono.Add(in.ClaimTurn(s.reading)), stood)
	if len(open) > 0 {
		s.assign(open, in, now)
	}
}

// assign decides when this process will claim roles without a successor: at once those that are its
// own share. The others are reconsidered when the processes that should claim them have had their
// turn: usually none is left by then, and ranking takes long for many roles. If two processes
// disagree, both claim, and the log decides.
func (s *shard) assign(roles []int32, in told.In, now clock.Instant) {
	if next := s.claims.AssignAt(); now.Mono < next {
		s.claims.AddFor(vacancy.ToAssign, next, roles)
		return
	}
	pause := s.claims.Assigned(s.main.Link.Behind(now, s.set.T), s.desired.Roles, s.members.Size(), s.set.T, now)
	plan, me := in.Plans.Plan(true, now)
	assigned := s.assignments(plan, roles, false, in, now)
	late := s.main.OthersRead(now)
	late = max(late, vacancy.AssignTime(len(roles), s.desired.Roles, plan.Len(), s.set.T)) // others assign as slowly
	if s.main.Link.Recovering(now, s.set.T) || s.main.Link.IsStalled() {
		// The other processes may still be recovering, like this one.
		late = clock.Patience(s.set.T) + s.set.Random(clock.Stalled(s.set.T))
	}
	ours := make([]int32, 0, len(roles)/max(1, plan.Len()))
	others := make([]int32, 0, len(roles))
	for _, local := range roles {
		if int(assigned[s.Role(local)]) == me {
			ours = append(ours, local)
		} else {
			others = append(others, local)
		}
	}
	jitter := s.set.Random(in.Takes + 1)
	at := now.Mono
	if len(ours) > handover.StepRoles {
		// Assigning was enough for one step: the next one, which follows at once, claims.
		at = at.Add(1)
	}
	s.claims.Add(at, ours)
	s.claims.AddFor(vacancy.ToRank, now.Mono.Add(late+in.ClaimTurn(s.reading)+pause+jitter), others)
}

// overdue reconsiders roles that others should have claimed by now. It waits while an own Claim is
// in flight: so are others' Claims then, and nothing could be claimed anyway. It also
// waits while this process is behind, since it will still read their Claims: where many members
// start at once and read slowly, ranking again and again would slow them further. That wait is
// limited to T/2, because where round trips are always long it would never end.
func (s *shard) overdue(in told.In, now clock.Instant) {
	c := &s.claims
	if s.waits() || now.Mono < s.main.Pacing.ThinksAt() {
		return
	}
	if s.main.Link.Behind(now, s.set.T) && !c.Overdue(now.Mono.Add(-clock.Patience(s.set.T))) {
		s.main.Pacing.Think(now.Mono.Add(clock.Behind(s.set.T)))
		return
	}
	limit := s.Count(s.desired.Roles) // R may be smaller by now
	if roles := s.claims.Due(vacancy.ToRank, now, limit); len(roles) > 0 {
		plan, me := in.Plans.Plan(true, now)
		c.Rank(roles, vacancy.Ranking{Plan: plan, Me: me, First: s.assignments(plan, roles, false, in, now), RoleOf: s.Numbering, Full: in.Plans.Full()}, in.ClaimTurn(s.reading), now)
	}
	if roles := s.claims.Due(vacancy.ToAssign, now, limit); len(roles) > 0 {
		s.claims.ForgetSuccessors(roles)
		s.assign(roles, in, now)
	}
}

// reconsiderVacant considers all vacant roles anew.
func (s *shard) reconsiderVacant(in told.In, now clock.Instant) {
	s.claims.StartOver(now)
	s.noticeSilent(in, now)
	if !s.willing(now) {
		return
	}
	s.vacate(s.leases.Free(s.Count(s.desired.Roles), now), in, now)
}

// noticeSilent handles holders that were silent until their leases were over. After an outage the roles
// of all of them are assigned together, since assigning many roles takes long.
func (s *shard) noticeSilent(in told.In, now clock.Instant) {
	over := map[lease.Session]bool{}
	found := s.claims.FindSilent(s.leases.Holders(), s.lapses, now)
	for _, h := range found {
		over[h.Session] = true
		s.suspect(s.main, h.Session.Process, h.Heard, in, now)
	}
	if len(over) == 0 {
		return
	}
	roles := s.HeldBy(over)
	s.vacancyStats.AddUp(now)
	s.vacancyStats.FellSilent(found, s.Count(s.desired.Roles), now)
	if !s.traits.Reminds {
		s.vacate(roles, in, now)
	}
}

// unclaim handles a Claim that may not be in the log.
func (s *shard) unclaim(c *channel.Channel, r *lease.Record, in told.In, now clock.Instant) {
	s.leases.Failed(c.Index, r, now)
	if !s.traits.Reminds {
		c.Pacing.Late(s.set.T, s.set.Random, now)
		s.vacate(r.Roles, in, now)
	}
}

// assignments returns, by role, which of the plan's candidates should claim it if nobody holds it.
// It covers the given roles of the shard; fresh assumes that nobody holds anything. With several
// partitions, roles that become vacant within T/20, such as those that a dead process held on
// many, are assigned together. With one partition only the given roles are: after an outage
// holders are found silent one after the other, and assigning the roles of all takes long.
func (s *shard) assignments(plan *placement.Plan, roles []int32, fresh bool, in told.In, now clock.Instant) []int32 {
	v := roster.Vacant{Roles: roles, Of: s.Numbering, Fresh: fresh, Wanted: s.desired.Roles,
		Holders: func() []int32 { return in.Plans.Holders(plan, now) }}
	return in.Plans.Assign(plan, v, now)
}
