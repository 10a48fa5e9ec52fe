package elector

import (
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
)

// willing reports whether this process would lead roles of the shard now.
func (s *shard) willing(now clock.Instant) bool {
	return !s.set.Observer && s.nomination.nominated && s.able(now)
}

// claim claims all roles that are due, together.
func (s *shard) claim(now clock.Instant) {
	if !s.willing(now) {
		s.main.link.claims()
		return
	}
	c := &s.claims
	if len(c.vacant) == 0 && now.Raw >= s.lease.FreshAt() {
		s.placeFresh(now)
	}
	s.overdue(now)
	switch at, ok := s.claimDue(now); {
	case !ok:
		s.main.link.claims()
		return
	case now.Mono < at:
		return
	}
	if !s.main.link.check(now, s.set.T) {
		s.nomination.claimed(now) // this process would claim
		s.main.probe(now)
		if s.main.link.withhold(now, s.set.T) {
			s.note(slog.LevelWarn, "own records take too long to come back: claiming nothing", "partition", s.index,
				"roundTrip", s.main.link.took.Round(time.Millisecond), "limit", clock.Stalled(s.set.T), "heartbeatTimeout", s.set.T)
		}
		return
	}
	s.main.link.claims()
	due := c.take(now, s.localRoles())
	if len(due) == 0 {
		return
	}
	s.send(due, now)
}

// send appends Claims of those roles that may be claimed. Others without a holder are listed for
// later.
func (s *shard) send(roles []int32, now clock.Instant) {
	fresh := !s.lease.Known()
	out := s.lease.Contest(roles, now)
	if len(out) > 0 {
		s.nomination.claimed(now)
	}
	s.appendAll(out, now)
	if fresh && len(out) > 0 {
		return // the rest follows when the Claim has come back
	}
	// Never: this process may claim nothing before it knows which fold is wrong; all vacancies
	// are reviewed then.
	if later, at := s.lease.Later(roles, now); at != clock.Never {
		s.claims.add(now.MonoOf(at), later)
	}
}

// placeFresh plans the Claim of a process that knows nothing: of its share, or of any role if it
// has none, later the more members rank before it.
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

// claimDue is when a role may be claimed, by the monotonic clock.
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
	return max(at, s.main.pacing.notBefore, s.timing.settled(s.desired.Roles, s.set.Nominated), s.main.link.probedUntil(s.main.announcements.helloAt, now, s.set.T)), true
}

// giveUpClaims forgets Claims that have not come back for as long as a lease lasts: the log has
// lost them, or reading has stopped.
func (s *shard) giveUpClaims(now clock.Instant) {
	_, oldest := s.lease.Claiming()
	limit := max(2*s.set.T, 10*time.Second)
	if !s.desired.Willing(now) {
		limit = closeTail // nothing is lost
	}
	if !s.lease.Waits() || now.Mono.Sub(oldest.Mono) < limit {
		return
	}
	if s.reports.claims.due(now) { // one line is enough if all partitions stand still
		s.note(slog.LevelWarn, "claim did not come back: given up", "partition", s.index, "after", limit)
	}
	s.lease.GiveUp(now.Add(-limit))
	s.main.pacing.late(s.set, now)
	s.review(now)
	s.ready.Verify = true
}

// vacate handles roles whose holder has released them, or was silent until its lease was over.
func (s *shard) vacate(roles []int32, now clock.Instant) {
	limit := s.localRoles()
	roles = slices.DeleteFunc(roles, func(role int32) bool { return role >= limit })
	if len(roles) == 0 {
		return
	}
	if !caughtUp(s.logs) { // most of them have holders by the end of the log
		s.claims.deferred = true
		return
	}
	if !s.willing(now) {
		s.eager = s.eager && s.able(now)
		return
	}
	if s.set.Nominated {
		s.claims.add(now.Mono, roles)
		return
	}
	s.place(roles, now)
}

// place decides when this process will claim roles: at once those released in its favour, later
// those released in favour of another process. The rest is shared out.
func (s *shard) place(roles []int32, now clock.Instant) {
	ours, theirs, open := s.claims.bySuccessor(roles, s.set.Process, s.members.mayTake)
	if len(ours) > 0 {
		s.timing.given(now)
		s.claims.add(now.Mono, ours)
	}
	if len(theirs) > 0 {
		// They are shared out only if the other process has not claimed them: usually none is
		// left by then, and sharing out many roles takes long.
		least := headStart(2 * s.timing.roundTrip())
		waits := s.claims.waits(theirs, clock.Patience(s.set.T))
		for _, wait := range slices.Sorted(maps.Keys(waits)) { // in one order, so that a seed can be repeated
			s.claims.list(&vacancy{at: now.Mono.Add(max(least, wait) + s.lease.Reading()), roles: waits[wait], what: toShare})
		}
	}
	if len(open) > 0 {
		s.share(open, now)
	}
}

// sharingOut is how long members take to share out and claim some of all roles, if they do it at the
// same time on one machine: for each of them, about a seventh of a microsecond for each role. It is
// at most T/2 for all roles, and a tenth of that for a tenth of them: where many members have
// machines of their own, what a few have led when they crashed must not wait as long as a start.
func sharingOut(roles, all, members int, t time.Duration) time.Duration {
	return min(clock.Patience(t)*time.Duration(roles)/time.Duration(max(1, all)), time.Duration(roles*members)*150*time.Nanosecond)
}

// sharings is how often vacant roles were shared out recently.
type sharings struct {
	next clock.Mono    // no sharing out before then
	last time.Duration // the pause until then
	made int           // in a row
}

// row is the number of recent sharings out in a row, each soon after the one before.
func (s *sharings) row(now clock.Mono) int {
	if now.Sub(s.next) > s.last {
		return 0
	}
	return s.made
}

// pause is the pause after a sharing out made now: an eighth of whole after the first one of a
// row, and twice as long after each further one. Processes that die together are found silent
// within much less than whole, and their roles need not wait for it. If that goes on, sharings out
// soon become as rare as whole makes them.
func (s *sharings) pause(now clock.Mono, whole time.Duration) time.Duration {
	return whole >> max(0, 3-s.row(now))
}

// least is the least time from a sharing out made now to the next one. After an outage a hundred
// holders are found silent, or release, one after the other, and each sharing out counts all held
// roles. With few roles the pause is far below a round trip. A process that is behind would share
// out roles that others have claimed already, and reads on first.
func (s *sharings) least(behind bool, roles, members int, t time.Duration, now clock.Instant) time.Duration {
	if behind {
		return clock.Patience(t)
	}
	return s.pause(now.Mono, min(clock.Pause(t), time.Duration(roles*(members+1))*50*time.Nanosecond))
}

// add notes a sharing out.
func (s *sharings) add(now clock.Mono, pause time.Duration) {
	*s = sharings{next: now.Add(pause), last: pause, made: s.row(now) + 1}
}

// share decides when this process will claim roles without a successor: at once those that are its
// own share. The others are reconsidered after the time that their processes have for it: usually
// none is left then, and ranking takes long for many roles. If two processes disagree, both claim,
// and the log decides.
func (s *shard) share(roles []int32, now clock.Instant) {
	if next := s.claims.sharings.next; now.Mono < next {
		s.claims.list(&vacancy{at: next, roles: roles, what: toShare})
		return
	}
	pause := s.claims.sharings.least(s.main.link.behind(now, s.set.T), s.desired.Roles, s.members.size(), s.set.T, now)
	s.claims.sharings.add(now.Mono, pause)
	plan, me := s.plan(true, now)
	shares := s.shares(plan, roles, false, now)
	recovering := s.main.link.recovered != 0 && now.Mono.Sub(s.main.link.recovered) < s.set.T
	late := s.main.othersRead(now)
	late = max(late, sharingOut(len(roles), s.desired.Roles, plan.Len(), s.set.T)) // others share out as slowly
	if recovering || s.main.link.stalled {
		// Those processes may still be recovering, as all are.
		late = clock.Patience(s.set.T) + s.set.Random(clock.Stalled(s.set.T))
	}
	ours := make([]int32, 0, len(roles)/max(1, plan.Len()))
	others := make([]int32, 0, len(roles))
	for _, role := range roles {
		if int(shares[s.role(role)]) == me {
			ours = append(ours, role)
		} else {
			others = append(others, role)
		}
	}
	jitter := s.set.Random(s.timing.roundTrip() + 1)
	at := now.Mono
	if len(ours) > stepRoles {
		// Sharing out was enough for one step: the next one, which follows at once, claims.
		at = at.Add(1)
	}
	s.claims.add(at, ours)
	s.claims.list(&vacancy{at: now.Mono.Add(late + s.timing.claimTurn(s.lease.Reading()) + pause + jitter), roles: others, what: toRank})
}

// overdue reconsiders roles that others should have claimed by now. It waits while an own Claim is
// undecided: others' Claims are in flight too then, and nothing could be claimed anyway. It also
// waits while this process is behind, since it will still read their Claims: where many members
// start at once and read slowly, ranking again and again would slow them further. That wait is
// limited to T/2, because where round trips are always long it would never end.
func (s *shard) overdue(now clock.Instant) {
	c := &s.claims
	if s.lease.Waits() || now.Mono < s.main.pacing.thinkAt {
		return
	}
	if s.main.link.behind(now, s.set.T) && !c.overdue(now.Mono.Add(-clock.Patience(s.set.T))) {
		s.main.pacing.thinkAt = now.Mono.Add(clock.Behind(s.set.T))
		return
	}
	limit := s.localRoles() // R may be smaller by now
	if roles := s.claims.due(toRank, now, limit); len(roles) > 0 {
		plan, me := s.plan(true, now)
		c.rank(roles, ranking{plan, me, s.shares(plan, roles, false, now), s.numbering}, s.timing.claimTurn(s.lease.Reading()), now)
	}
	if roles := s.claims.due(toShare, now, limit); len(roles) > 0 {
		for _, role := range roles {
			s.claims.successors.remove(role)
		}
		s.share(roles, now)
	}
}

// review considers all roles without a holder. It drops what was shared out before, so the next
// sharing out need not wait: a process that is behind would otherwise put its own share off by T/2,
// again and again while its round trips vary.
func (s *shard) review(now clock.Instant) {
	s.claims.clear()
	s.claims.sharings.next = min(s.claims.sharings.next, now.Mono)
	s.claims.deferred = false
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

// silence handles holders that were silent until their leases were over. After an outage the roles
// of all are shared out together, since each sharing out takes long for many roles.
func (s *shard) silence(now clock.Instant) {
	over := map[lease.Session]bool{}
	found := s.claims.findSilent(s.lease.Holders(), s.lease.Lapses, now)
	for _, h := range found {
		over[h.Session] = true
		s.main.suspect(h.Session.Process, h.Heard, now)
	}
	if len(over) == 0 {
		return
	}
	roles := s.heldBy(over)
	s.vacancies.addUp(now)
	s.vacancies.fellSilent(found, s.localRoles(), now)
	if !s.lease.Reminds() {
		s.vacate(roles, now)
	}
}
