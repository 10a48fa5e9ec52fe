package elector

import (
	"log/slog"
	"slices"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/handover"
	"github.com/goneli/neli/internal/elector/told"
	"github.com/goneli/neli/internal/elector/vacancy"
	"github.com/goneli/neli/internal/elector/warm"
	"github.com/goneli/neli/internal/lease"
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
	return s.Count(s.desired.Roles)
}

// giveUp begins to give up unwanted roles, and names their successors.
func (s *shard) giveUp(in told.In, now clock.Instant) {
	below := s.keeps(now)
	if s.own.Len() == 0 {
		return
	}
	if !s.wanted || s.unwanted || s.below != below {
		s.wanted, s.below = true, below
		s.unwanted = !s.giveUpFrom(below, now)
	}
	if now.Mono >= in.NameAt && s.handovers.Unnamed() {
		s.nameSuccessors(in, now)
	}
}

// giveUpFrom begins to give up roles from a number on, at most StepRoles. It reports false if there may be more.
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
	s.out.Note(slog.LevelDebug, "handing over", "partition", s.Index, "reason", h.Reason(), "to", h.Successor())
}

// nameSuccessors shares out the roles to be given up among the other members.
func (s *shard) nameSuccessors(in told.In, now clock.Instant) {
	roles := s.handovers.Name()
	open := make([]int32, len(roles))
	for i, local := range roles {
		open[i] = int32(s.Role(local))
	}
	for i, to := range in.Plans.Successors(open, now) {
		if h := s.handovers.Split(roles[i], to); h != nil {
			s.sayBegun(h)
		}
	}
	s.handovers.Tidy()
}

// callOff ends a handover of which the application was not told yet.
func (s *shard) callOff(h *handover.Handover) {
	s.handovers.CallOff(h)
	s.out.Note(slog.LevelDebug, "handover called off", "partition", s.Index, "reason", h.Reason(), "to", h.Successor())
}

// advance takes the next step of each handover.
func (s *shard) advance(takes time.Duration, now clock.Instant) {
	if len(s.handovers.InProgress()) == 0 {
		return
	}
	for i := 0; i < len(s.handovers.InProgress()); i++ { // some may begin meanwhile
		s.advanceOne(s.handovers.InProgress()[i], takes, now)
	}
	s.handovers.Tidy()
}

func (s *shard) advanceOne(h *handover.Handover, takes time.Duration, now clock.Instant) {
	if h.IsEmpty() {
		return
	}
	if !s.warm.Prepares(h) {
		s.next(warm.Part{Handover: h, On: s.conditions(h, now)}, takes, now)
		return
	}
	for _, p := range s.offering(now).Parts(h, now) {
		s.next(p, takes, now)
	}
}

// offering returns what package warm needs to offer roles of the shard, and to prepare some.
func (s *shard) offering(now clock.Instant) warm.Shard {
	return warm.Shard{Exchange: s.warm, Numbering: s.Numbering, Handovers: &s.handovers, Fold: s.leases, Own: &s.own, Claims: &s.claims, Claiming: s.logs.Claiming,
		Keeps: s.keeps(now), Log: s.logs.Reachable(s.home).Index, Idle: !s.desired.Contend}
}

// next takes the next step of a handover, or of a part of it.
func (s *shard) next(p warm.Part, takes time.Duration, now clock.Instant) {
	h := p.Handover
	if h.IsAsked() {
		defer func() {
			if h.IsEmpty() {
				s.out.Finish(s.set.DrainTimeout - h.Left(now))
			}
		}()
	}
	v := h.Decide(now, p.On)
	if v == handover.CallOff {
		s.offering(now).CallOff(p, now)
		s.callOff(h)
		return
	}
	var untold []int32
	for _, local := range h.Unchecked() {
		if !s.terms.Told(s.Role(local)) {
			untold = append(untold, local)
		}
	}
	if now.Mono >= h.ReleaseAt(takes) {
		untold = append(untold, h.Sorted(false)...)
	}
	s.giveBack(untold, h, h.Reason(), now)
	switch v {
	case handover.Ask:
		deadline, alone := h.Deadline(s.set.DrainTimeout, now), !p.On.Ready && !p.On.Idle && !p.Answered
		if why := s.offering(now).Ask(p, alone); why != "" {
			roles := h.Sorted(true)
			s.out.Note(slog.LevelInfo, "giving roles up unprepared", "partition", s.Index, "roles", ranges.Of(s.Units(roles), maxRanges), "count", len(roles), "to", h.Successor(), "why", why)
		}
		h.AskBy(deadline, alone)
		s.terms.Revoke(s.Units(h.Sorted(true)), h.Reason(), deadline)
		s.handovers.Unite(h)
	case handover.Overdue:
		roles := h.Sorted(true)
		if len(roles) > 0 {
			s.out.Note(slog.LevelWarn, "released before the application had finished", "partition", s.Index, "roles", ranges.Of(s.Units(roles), maxRanges), "count", len(roles))
		}
		s.giveBack(roles, h, term.Overdue, now)
	case handover.Rename:
		for _, begun := range s.offering(now).Rename(p, now) {
			s.sayBegun(begun)
		}
	case handover.Stay:
		s.ping(h, now)
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
		Over:    h.Waited(s.set.SuccessorWait, s.reach(), now),
	}
}

// successorState reports whether the successor is ready, or none is expected, and whether it is gone or refuses.
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

// reach is the time within which a successor must have answered. A log whose records take T/4 is
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
	s.out.Part()
	for _, c := range s.logs {
		out := s.leases.ReleaseOn(c.Index, roles, now)
		if h != nil && s.members.Takes(h.Successor()) {
			wait := vacancy.AnsweredIn(h.Answer(), h.AnsweredAgo(now), s.set.T)
			s.out.Inherit(wait)
			for i := range out {
				h.Mark(&out[i], wait)
			}
		}
		c.Announcements.Released()
		c.Released(now)
		c.Append(now, out...)
	}
}

// ping asks a handover's successor whether it is there, in the log in which it is to claim or, of
// several, in one that works. The answer opens and warms up the connection that the claim needs,
// and a successor that is dead, cut off or deaf does not answer.
func (s *shard) ping(h *handover.Handover, now clock.Instant) {
	if !h.NeedsPing() {
		return
	}
	c := s.logs.Reachable(s.home)
	h.Pinging(c.Index)
	r := c.Word(lease.Ping, now)
	r.To = h.Successor()
	c.Append(now, r)
}
