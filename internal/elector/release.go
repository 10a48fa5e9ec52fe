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
	"github.com/goneli/neli/internal/placement"
	"github.com/goneli/neli/internal/ranges"
	"github.com/goneli/neli/internal/term"
)

// maxRanges limits how many ranges of roles a log line has.
const maxRanges = 20

// keeps returns the bound below which this process keeps its roles.
func (s *shard) keeps(in *told.In) (below int32) {
	if !in.Desired.Willing(in.Now) || !s.nomination.Keeps() {
		return 0
	}
	return s.Count(in.Desired.Roles)
}

// giveUp begins to give up unwanted roles, and names their successors.
func (s *shard) giveUp(in *told.In) {
	below := s.keeps(in)
	if s.own.Len() == 0 {
		return
	}
	if !s.wanted || s.unwanted || s.below != below {
		s.wanted, s.below = true, below
		s.unwanted = !s.giveUpFrom(below, in)
	}
	if in.Now.Mono >= in.NameAt() && s.handovers.Unnamed() {
		s.nameSuccessors(in)
	}
}

// giveUpFrom begins to give up roles from a number on, at most stepRoles. It reports whether these
// were all.
func (s *shard) giveUpFrom(below int32, in *told.In) (all bool) {
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
		why = in.Desired.Reason(s.Role(roles[0]), in.Now)
	}
	s.begin(in, handover.NewHandover(why, in.Now, "", s.set.Nominated || why == term.Roles), roles...)
	return len(roles) < handover.StepRoles
}

// begin begins a handover.
func (s *shard) begin(in *told.In, h *handover.Handover, roles ...int32) {
	s.handovers.Begin(h, roles...)
	s.sayBegun(h, in)
}

func (s *shard) sayBegun(h *handover.Handover, in *told.In) {
	in.Note(slog.LevelDebug, "handing over", "partition", s.Index, "reason", h.Reason(), "to", h.Successor())
}

// nameSuccessors shares the roles to be given up out among the other members.
func (s *shard) nameSuccessors(in *told.In) {
	roles := s.handovers.Name()
	open := make([]int32, len(roles))
	for i, local := range roles {
		open[i] = int32(s.Role(local))
	}
	plan, me := in.Plan(false)
	first := slices.Repeat([]int32{placement.Nobody}, len(open))
	if plan.Len() > 0 {
		first = in.Warmth.Prefer(open, plan.Assign(open, in.Plans.Holders(plan, in)), plan)
	}
	for i, local := range roles {
		to := ""
		if c := int(first[i]); c >= 0 && c != me {
			to = plan.Candidate(c).ID
		}
		if h := s.handovers.Split(local, to); h != nil {
			s.sayBegun(h, in)
		}
	}
	s.handovers.Tidy()
}

// callOff ends a handover of which the application was not told yet.
func (s *shard) callOff(h *handover.Handover, in *told.In) {
	s.handovers.CallOff(h)
	in.Note(slog.LevelDebug, "handover called off", "partition", s.Index, "reason", h.Reason(), "to", h.Successor())
}

// advance takes the next step of each handover.
func (s *shard) advance(in *told.In) {
	if len(s.handovers.InProgress()) == 0 {
		return
	}
	for i := 0; i < len(s.handovers.InProgress()); i++ { // some may begin meanwhile
		s.advanceOne(s.handovers.InProgress()[i], in)
	}
	s.handovers.Tidy()
}

func (s *shard) advanceOne(h *handover.Handover, in *told.In) {
	if h.IsEmpty() {
		return
	}
	if !warm.Prepares(h, in) {
		s.next(warm.Part{Handover: h, On: s.conditions(h, in)}, in)
		return
	}
	for _, p := range s.offering(in).Parts(h, in) {
		s.next(p, in)
	}
}

// offering is what is needed to offer roles of the shard, and to prepare some.
func (s *shard) offering(in *told.In) warm.Shard {
	return warm.Shard{Numbering: s.Numbering, Handovers: &s.handovers, Fold: s.leases, Own: &s.own, Claims: &s.claims, Claiming: s.logs.Claiming,
		Keeps: s.keeps(in), Log: s.logs.Reachable(in.Home).Index}
}

// next takes the next step of a handover, or of a part of it.
func (s *shard) next(p warm.Part, in *told.In) {
	h := p.Handover
	if h.IsAsked() {
		defer func() {
			if h.IsEmpty() {
				in.Finish(s.set.DrainTimeout - h.Left(in.Now))
			}
		}()
	}
	v := h.Decide(in.Now, p.On)
	if v == handover.CallOff {
		s.offering(in).CallOff(p, in)
		s.callOff(h, in)
		return
	}
	var untold []int32
	for _, local := range h.Unchecked() {
		if !s.terms.Told(s.Role(local)) {
			untold = append(untold, local)
		}
	}
	if in.Now.Mono >= h.ReleaseAt(in.Trip.Takes()) {
		untold = append(untold, h.Sorted(false)...)
	}
	s.giveBack(untold, h, h.Reason(), in)
	switch v {
	case handover.Ask:
		deadline, alone := h.Deadline(s.set.DrainTimeout, in.Now), !p.On.Ready && !p.On.Idle && !p.Answered
		s.offering(in).Ask(p, alone, in)
		h.AskBy(deadline, alone)
		s.terms.Revoke(s.Units(h.Sorted(true)), h.Reason(), deadline)
		s.handovers.Unite(h)
	case handover.Overdue:
		roles := h.Sorted(true)
		if len(roles) > 0 {
			in.Note(slog.LevelWarn, "released before the application had finished", "partition", s.Index, "roles", ranges.Of(s.Units(roles), maxRanges), "count", len(roles))
		}
		s.giveBack(roles, h, term.Overdue, in)
	case handover.Rename:
		for _, begun := range s.offering(in).Rename(p, in) {
			s.sayBegun(begun, in)
		}
	case handover.Stay:
		s.ping(h, in)
	case handover.CallOff:
	}
}

func (s *shard) conditions(h *handover.Handover, in *told.In) handover.Conditions {
	ready, refused := s.successorState(h, in)
	return handover.Conditions{
		Wanted:  h.Top() < s.keeps(in),
		Ready:   ready,
		Refused: refused,
		Idle:    !in.Desired.Contend,
		Over:    h.Waited(s.set.SuccessorWait, s.reach(), in.Now),
	}
}

// successorState reports whether the successor is ready, or none is expected, and whether it is gone
// or refuses.
func (s *shard) successorState(h *handover.Handover, in *told.In) (ready, refused bool) {
	switch {
	case h.Reason() == term.Roles:
		return true, false
	case s.set.Nominated:
		return in.Members.WantedBy(s.Index, s.nomination.NominatedAt()), false
	}
	to := h.Successor()
	takes := in.Members.Takes(to) && in.Members.Wanting(to, s.Role(h.Top())) && h.Answer() < s.reach()
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
func (s *shard) giveBack(roles []int32, h *handover.Handover, why term.Reason, in *told.In) {
	if len(roles) == 0 {
		return
	}
	slices.Sort(roles)
	roles = slices.Compact(roles)
	s.end(roles, why)
	s.leases.Forget(roles)
	in.Part()
	for _, c := range s.logs {
		out := s.leases.ReleaseOn(c.Index, roles, in.Now)
		if h != nil && in.Members.Takes(h.Successor()) {
			wait := vacancy.AnsweredIn(h.Answer(), h.AnsweredAgo(in.Now), s.set.T)
			in.Inherit(wait)
			for i := range out {
				h.Mark(&out[i], wait)
			}
		}
		c.Announcements.Released()
		c.Released(in.Now)
		c.Append(in, out...)
	}
}

// ping asks a handover's successor whether it is there, in the log in which it is to claim or, of
// several, in one that works. The answer opens and warms up the connection that the claim needs,
// and a successor that is dead, cut off or deaf does not answer.
func (s *shard) ping(h *handover.Handover, in *told.In) {
	if !h.NeedsPing() {
		return
	}
	c := s.logs.Reachable(in.Home)
	h.Pinging(c.Index)
	r := c.Word(lease.Ping, in.Now)
	r.To = h.Successor()
	c.Append(in, r)
}
