package elector

import (
	"log/slog"
	"slices"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/handover"
	"github.com/goneli/neli/internal/elector/vacancy"
	"github.com/goneli/neli/internal/placement"
	"github.com/goneli/neli/internal/ranges"
	"github.com/goneli/neli/internal/term"
)

// maxRanges limits how many ranges of roles a log line has.
const maxRanges = 20

// keeps returns the bound below which this process keeps its roles.
func (s *shard) keeps(now clock.Instant) (below int32) {
	if !s.desired.Willing(now) || !s.nomination.Keeps() {
		return 0
	}
	return s.localRoles()
}

// giveUp begins to give up unwanted roles, and names their successors.
func (s *shard) giveUp(now clock.Instant) {
	below := s.keeps(now)
	if s.own.Len() == 0 {
		return
	}
	if !s.wanted || s.unwanted || s.below != below {
		s.wanted, s.below = true, below
		s.unwanted = !s.giveUpFrom(below, now)
	}
	if now.Mono >= s.nameAt() && s.handovers.Unnamed() {
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
	if !k.desired.Closing || !k.desired.Contend || k.members.Size()+k.members.Departed() <= fewHolders {
		return 0
	}
	quiet := max(2*k.trip.Takes(), clock.Behind(k.set.T))
	return k.announcer.CrowdedUntil(min(clock.Stalled(k.set.T), k.set.AnswerWait*3/4), quiet)
}

// giveUpFrom begins to give up roles from a number on, at most stepRoles. It reports whether these
// were all.
func (s *shard) giveUpFrom(below int32, now clock.Instant) (all bool) {
	var roles []int32
	for local := range s.own.From(below) {
		if len(roles) == handover.StepRoles {
			break
		}
		if s.handovers.Of(local) == nil {
			roles = append(roles, local)
		}
	}
	if len(roles) == 0 {
		return true
	}
	why := term.Roles
	if below == 0 {
		why = s.desired.Reason(s.Role(roles[0]), now)
	}
	s.begin(handover.NewHandover(why, now, "", s.set.Nominated || why == term.Roles), roles...)
	return len(roles) < handover.StepRoles
}

// begin begins a handover.
func (s *shard) begin(h *handover.Handover, roles ...int32) {
	s.handovers.Begin(h, roles...)
	s.sayBegun(h)
}

func (s *shard) sayBegun(h *handover.Handover) {
	s.note(slog.LevelDebug, "handing over", "partition", s.Index, "reason", h.Reason(), "to", h.Successor())
}

// nameSuccessors shares the roles to be given up out among the other members.
func (s *shard) nameSuccessors(now clock.Instant) {
	roles := s.handovers.Name()
	open := make([]int32, len(roles))
	for i, local := range roles {
		open[i] = int32(s.Role(local))
	}
	plan, me := s.plan(false, now)
	first := slices.Repeat([]int32{placement.Nobody}, len(open))
	if plan.Len() > 0 {
		first = plan.Assign(open, s.holders(plan, now))
	}
	for i, local := range roles {
		to := ""
		if c := int(first[i]); c >= 0 && c != me {
			to = plan.Candidate(c).ID
		}
		if h := s.handovers.Split(local, to); h != nil {
			s.sayBegun(h)
		}
	}
	s.handovers.Tidy()
}

// callOff ends a handover of which the application was not told yet.
func (s *shard) callOff(h *handover.Handover) {
	s.handovers.CallOff(h)
	s.note(slog.LevelDebug, "handover called off", "partition", s.Index, "reason", h.Reason(), "to", h.Successor())
}

// advance takes the next step of each handover.
func (s *shard) advance(now clock.Instant) {
	if len(s.handovers.InProgress()) == 0 {
		return
	}
	for _, h := range slices.Clone(s.handovers.InProgress()) {
		s.advanceOne(h, now)
	}
	s.handovers.Tidy()
}

func (s *shard) advanceOne(h *handover.Handover, now clock.Instant) {
	if h.IsEmpty() {
		return
	}
	if h.IsAsked() {
		defer func() {
			if h.IsEmpty() {
				s.counts.Drains.Add(s.set.Drain-h.Left(now), 1)
			}
		}()
	}
	on := s.conditions(h, now)
	v := h.Decide(now, on)
	if v == handover.CallOff {
		s.callOff(h)
		return
	}
	var untold []int32
	for _, local := range h.Unchecked() {
		if !s.terms.Told(s.Role(local)) {
			untold = append(untold, local)
		}
	}
	if now.Mono >= h.ReleaseAt(s.trip.Takes()) {
		untold = append(untold, h.Sorted(false)...)
	}
	s.giveBack(untold, h, h.Reason(), now)
	switch v {
	case handover.Ask:
		deadline := now.Add(s.set.Drain)
		h.AskBy(deadline, !on.Ready && !on.Idle)
		s.terms.Revoke(s.Units(h.Sorted(true)), h.Reason(), deadline)
		s.handovers.Unite(h)
	case handover.Overdue:
		roles := h.Sorted(true)
		if len(roles) > 0 {
			s.note(slog.LevelWarn, "released before the application had finished", "partition", s.Index, "roles", ranges.Of(s.Units(roles), maxRanges), "count", len(roles))
		}
		s.giveBack(roles, h, term.Overdue, now)
	case handover.Stay:
		s.main.ping(h, now)
	case handover.CallOff:
	}
}

func (s *shard) conditions(h *handover.Handover, now clock.Instant) handover.Conditions {
	ready, refused := s.successorState(h)
	return handover.Conditions{
		Wanted:  h.Top() < s.keeps(now),
		Ready:   ready,
		Refused: refused,
		Idle:    !s.desired.Contend,
		Over:    h.Waited(s.set.AnswerWait, s.reach(), now),
	}
}

// successorState reports whether the successor is ready, or none is expected, and whether it is gone
// or refuses.
func (s *shard) successorState(h *handover.Handover) (ready, refused bool) {
	switch {
	case h.Reason() == term.Roles:
		return true, false
	case s.set.Nominated:
		return s.members.WantedBy(s.Index, s.nomination.NominatedAt()), false
	}
	to := h.Successor()
	takes := s.members.Takes(to) && s.members.Wanting(to, s.Role(h.Top())) && h.Answer() < s.reach()
	return h.SuccessorState(takes)
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
func (s *shard) giveBack(roles []int32, h *handover.Handover, why term.Reason, now clock.Instant) {
	if len(roles) == 0 {
		return
	}
	slices.Sort(roles)
	roles = slices.Compact(roles)
	s.end(roles, why)
	s.leases.Forget(roles)
	s.closing.Released(now)
	for _, c := range s.logs {
		out := s.leases.ReleaseOn(c.index, roles, now)
		if h != nil && s.members.Takes(h.Successor()) {
			wait := vacancy.AnsweredIn(h.Answer(), h.AnsweredAgo(now), s.set.T)
			s.closing.Inherit(wait)
			for i := range out {
				h.Mark(&out[i], wait)
			}
		}
		c.announcements.Released()
		c.released(now)
		c.append(now, out...)
	}
}

// Drained notes that the application has finished the work of the terms with this token on these
// units, which it was told to give up.
func (n *Node) Drained(units []int, token int64, now clock.Instant) {
	var done []int
	for _, unit := range units {
		s, local := n.local(unit)
		if h := s.handovers.Of(local); h != nil && h.IsAsked() && s.own.TokenOf(local) == token {
			h.Finish(local, now.Mono)
			done = append(done, unit)
			s.dueAt = min(s.dueAt, h.ReleaseAt(n.trip.Takes()))
		}
	}
	n.terms.Done(done)
	for _, s := range n.shards {
		if now.Mono >= s.dueAt && len(s.handovers.InProgress()) > 0 {
			s.step(now)
		}
	}
}
