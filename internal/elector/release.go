package elector

import (
	"log/slog"
	"slices"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/placement"
	"github.com/goneli/neli/internal/ranges"
	"github.com/goneli/neli/internal/term"
)

// maxRanges limits how many ranges of roles a log line has.
const maxRanges = 20

// keeps returns the bound below which this process keeps its roles.
func (s *shard) keeps(now clock.Instant) (below int32) {
	if !s.desired.Willing(now) || !s.nomination.nominated && !s.nomination.retained {
		return 0
	}
	return s.localRoles()
}

// giveUp begins to give up unwanted roles, and names their successors.
func (s *shard) giveUp(now clock.Instant) {
	below := s.keeps(now)
	if s.holds.len() == 0 {
		return
	}
	if !s.wanted || s.unwanted || s.below != below {
		s.wanted, s.below = true, below
		s.unwanted = !s.giveUpFrom(below, now)
	}
	if now.Mono >= s.nameAt() && s.hands.unnamed() {
		s.nameSuccessors(now)
	}
}

// nameAt is when successors are named. In a crowd, a closing process first waits (crowdedUntil)
// until it has read no goodbye for T/20. It waits for at most T/4, so that time is left for an
// answer; it leads meanwhile. If a whole crowd closes together, nobody is left to be named by then,
// although the members are busy and read the goodbyes late. Otherwise each of n members would ask
// all others and send each a Release: these n² records keep all readers busy, and a newcomer would
// find nothing else within its reach. A small group does not wait, nor does a process that nobody
// drives.
func (k *common) nameAt() clock.Mono {
	if !k.desired.Closing || !k.desired.Contend || k.members.size()+len(k.members.left) <= fewHolders {
		return 0
	}
	quiet := max(2*k.timing.roundTrip(), clock.Behind(k.set.T))
	return k.announcer.crowdedUntil(min(clock.Stalled(k.set.T), k.set.AnswerWait*3/4), quiet)
}

// stepRoles is how many roles a step begins to give up, and how many it releases. With a million
// roles, one step for all of them would delay beats; the next step follows at once.
const stepRoles = 1 << 15

// giveUpFrom begins to give up roles from a number on, at most stepRoles. It reports whether these
// were all.
func (s *shard) giveUpFrom(below int32, now clock.Instant) (all bool) {
	var roles []int32
	for role := range s.holds.from(below) {
		if len(roles) == stepRoles {
			break
		}
		if s.hands.of(role) == nil {
			roles = append(roles, role)
		}
	}
	if len(roles) == 0 {
		return true
	}
	why := term.Roles
	if below == 0 {
		why = s.desired.Reason(s.role(roles[0]), now)
	}
	s.begin(newHandover(why, now, "", s.set.Nominated || why == term.Roles), roles...)
	return len(roles) < stepRoles
}

// begin begins a handover.
func (s *shard) begin(h *handover, roles ...int32) {
	s.hands.begin(h, roles...)
	s.tell(h.begun(s.index))
}

// nameSuccessors shares the roles to be given up out among the other members.
func (s *shard) nameSuccessors(now clock.Instant) {
	roles := s.hands.name()
	open := make([]int32, len(roles))
	for i, role := range roles {
		open[i] = int32(s.role(role))
	}
	plan, me := s.plan(false, now)
	first := slices.Repeat([]int32{placement.Nobody}, len(open))
	if plan.Len() > 0 {
		first = plan.Assign(open, s.holders(plan, now))
	}
	for i, role := range roles {
		to := ""
		if c := int(first[i]); c >= 0 && c != me {
			to = plan.Candidate(c).ID
		}
		if h := s.hands.split(role, to); h != nil {
			s.tell(h.begun(s.index))
		}
	}
	s.hands.tidy()
}

// callOff ends a handover of which the application was not told yet.
func (s *shard) callOff(h *handover) {
	s.hands.callOff(h)
	s.note(slog.LevelDebug, "handover called off", "partition", s.index, "reason", h.why, "to", h.to)
}

// advance takes the next step of each handover.
func (s *shard) advance(now clock.Instant) {
	if len(s.hands.all) == 0 {
		return
	}
	for _, h := range slices.Clone(s.hands.all) {
		s.advanceOne(h, now)
	}
	s.hands.tidy()
}

func (s *shard) advanceOne(h *handover, now clock.Instant) {
	if h.roles.len() == 0 {
		return
	}
	if h.asked {
		defer func() {
			if h.roles.len() == 0 {
				s.counts.Drains.Add(s.set.Drain-h.deadline.Mono.Sub(now.Mono), 1)
			}
		}()
	}
	on := s.conditions(h, now)
	v := h.decide(now, on)
	if v == callOff {
		s.callOff(h)
		return
	}
	var untold []int32
	for _, role := range h.fresh {
		if h.roles.has(role) && !s.terms.Told(s.role(role)) {
			untold = append(untold, role)
		}
	}
	h.fresh = nil
	if now.Mono >= h.releaseAt(s.timing.roundTrip()) {
		untold = append(untold, h.sorted(false)...)
	}
	s.giveBack(untold, h, h.why, now)
	switch v {
	case ask:
		if !on.ready && !on.idle {
			h.to = "" // its claim would only keep the others waiting
		}
		h.asked, h.deadline = true, now.Add(s.set.Drain)
		s.terms.Revoke(s.units(h.sorted(true)), h.why, h.deadline)
		s.hands.unite(h)
	case overdue:
		roles := h.sorted(true)
		if len(roles) > 0 {
			s.note(slog.LevelWarn, "released before the application had finished", "partition", s.index, "roles", ranges.Of(s.units(roles), maxRanges), "count", len(roles))
		}
		s.giveBack(roles, h, term.Overdue, now)
	case stay:
		s.main.ping(h, now)
	case callOff:
	}
}

func (s *shard) conditions(h *handover, now clock.Instant) conditions {
	below, top := s.keeps(now), h.roles.top()
	on := conditions{
		wanted: top < below,
		idle:   !s.desired.Contend,
		over:   now.Age(h.since) >= h.patience(s.set.AnswerWait, s.reach()),
	}
	switch {
	case h.why == term.Roles:
		on.ready = true
	case s.set.Nominated:
		on.ready = s.members.wantedBy(s.index, s.nomination.since)
	case h.named:
		takes := s.members.takes(h.to) && s.members.wanting(h.to, s.role(top)) && h.took < s.reach()
		on.ready = h.to == "" || h.answered && takes
		on.refused = !on.ready && !takes
	}
	return on
}

// reach is within how long a member must answer to become a successor. A log whose records take T/4 is
// stalled by that member's own measure, so it would not claim in time. Small logs are claimed without
// such a check, but no role is left to a successor for longer than T/2.
func (s *shard) reach() time.Duration {
	if len(s.logs) > 1 {
		return clock.Patience(s.set.T)
	}
	return clock.Stalled(s.set.T)
}

// giveBack ends leadership of roles, and then releases them.
func (s *shard) giveBack(roles []int32, h *handover, why term.Reason, now clock.Instant) {
	if len(roles) == 0 {
		return
	}
	slices.Sort(roles)
	roles = slices.Compact(roles)
	s.end(roles, why)
	s.lease.Forget(roles)
	s.timing.parted = now.Mono
	for _, log := range s.logs {
		out := s.lease.ReleaseOn(log.index, roles, now)
		if h != nil && s.members.takes(h.to) {
			wait := answeredIn(h.took, now.Mono.Sub(h.pingAt.Add(h.took)), s.set.T)
			s.timing.heirs = max(s.timing.heirs, wait)
			for i := range out {
				out[i].To, out[i].Wait, out[i].Pinned, out[i].Moved = h.to, wait, h.pinned, h.why == term.Rebalanced
			}
		}
		log.announcements.releasedHere = true
		log.released(now)
		log.append(now, out...)
	}
}

// Drained notes that the application has finished the work of the terms with this token on these
// units, which it was told to give up.
func (n *Node) Drained(units []int, token int64, now clock.Instant) {
	var done []int
	for _, unit := range units {
		p, role := n.local(unit)
		if h := p.hands.of(role); h != nil && h.asked && p.holds.tokenOf(role) == token {
			h.finish(role, now.Mono)
			done = append(done, unit)
			p.dueAt = min(p.dueAt, h.releaseAt(n.timing.roundTrip()))
		}
	}
	n.terms.Done(done)
	for _, p := range n.shards {
		if now.Mono >= p.dueAt && len(p.hands.all) > 0 {
			p.step(now)
		}
	}
}
