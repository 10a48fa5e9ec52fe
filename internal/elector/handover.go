package elector

import (
	"log/slog"
	"slices"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/term"
)

// handover is the orderly end of the terms of some roles of one partition, which the
// same process is to lead next: lead on until that has answered, let the application
// finish its work, release.
type handover struct {
	why    term.Reason
	since  clock.Instant
	roles  map[int32]bool // still held; true: the application has finished
	to     string         // the process that is to lead next, if any is known
	named  bool           // whether that has been thought of
	pinned bool           // it is to keep them

	pinged   bool  // it was asked to answer
	on       int   // and in which log
	ping     int64 // where the log has that, −1: it was not read back yet
	answered bool

	asked    bool          // the application was asked to finish, by deadline
	deadline clock.Instant // leases kept until then at most

	finished   int        // roles that the application has finished, and are not released
	finishedAt clock.Mono // when it had finished the first of these; 0: there are none
}

func newHandover(why term.Reason, now clock.Instant, to string, named bool) *handover {
	return &handover{why: why, since: now, to: to, named: named, ping: -1, roles: map[int32]bool{}}
}

// deliberate reports whether the roles are handed over though this process could keep
// them: that is called off if there is nobody to take them.
func (h *handover) deliberate() bool { return h.why == term.Transferred || h.why == term.Rebalanced }

// conditions is what a handover is decided by.
type conditions struct {
	wanted  bool // the roles are wanted again, or still
	ready   bool // a successor is ready, or none is to be expected
	refused bool // who is to lead next is gone, or would not
	idle    bool // nobody drives this process any more: wait for no successor
	over    bool // it has been waited for long enough
}

type action int

const (
	stay    action = iota // go on leading
	ask                   // ask the application to finish
	callOff               // go on leading as if nothing had been: nobody was asked
	overdue               // release, the application not having finished
)

// decide says how a handover goes on at time now. What the application has finished, or
// was never told of, is released in any case.
func (h *handover) decide(now clock.Instant, s conditions) action {
	switch {
	case !h.asked && s.wanted && (!h.deliberate() || s.refused || s.over && !s.ready):
		return callOff
	case !h.asked && (s.ready || s.refused || s.idle || s.over):
		return ask
	case h.asked && now.Mono >= h.deadline.Mono:
		return overdue
	}
	return stay
}

// due is the monotonic time at which decide will have something else to say.
func (h *handover) due(wait time.Duration) clock.Mono {
	if h.asked {
		return h.deadline.Mono
	}
	return h.since.Mono.Add(wait)
}

// finish takes note that the application has finished a role.
func (h *handover) finish(role int32, now clock.Instant) {
	if h.roles[role] {
		return
	}
	h.roles[role] = true
	if h.finished++; h.finishedAt == 0 {
		h.finishedAt = now.Mono
	}
}

// drop takes note that a role is held no more.
func (h *handover) drop(role int32) {
	if h.roles[role] {
		if h.finished--; h.finished == 0 {
			h.finishedAt = 0
		}
	}
	delete(h.roles, role)
}

// releaseAt is when what the application has finished is released: at once when that is
// all there is, else a round trip later. Functions that end together report one by one;
// a Release of each would bring a Claim of each, one after the other.
func (h *handover) releaseAt(roundTrip time.Duration) clock.Mono {
	switch h.finished {
	case 0:
		return clock.Never
	case len(h.roles):
		return h.finishedAt
	}
	return h.finishedAt.Add(roundTrip)
}

// sorted returns the roles, ascending, that the application has finished, or all.
func (h *handover) sorted(all bool) []int32 {
	var roles []int32
	for role, finished := range h.roles {
		if all || finished {
			roles = append(roles, role)
		}
	}
	slices.Sort(roles)
	return roles
}

// advance moves the handovers of p on.
func (s *shard) advance(now clock.Instant) {
	if len(s.hands) == 0 {
		return
	}
	for _, h := range slices.Clone(s.hands) {
		s.advanceOne(h, now)
	}
	s.hands = slices.DeleteFunc(s.hands, func(h *handover) bool { return len(h.roles) == 0 })
}

func (s *shard) advanceOne(h *handover, now clock.Instant) {
	if len(h.roles) == 0 {
		return
	}
	if h.asked {
		defer func() {
			if len(h.roles) == 0 {
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
	for role := range h.roles {
		if !s.terms.Told(s.role(role)) {
			untold = append(untold, role)
		}
	}
	if now.Mono >= h.releaseAt(s.timing.roundTrip()) {
		untold = append(untold, h.sorted(false)...)
	}
	s.giveBack(untold, h, h.why, now)
	switch v {
	case ask:
		if !on.ready && !on.idle {
			h.to = "" // it would only keep the others waiting
		}
		h.asked, h.deadline = true, now.Add(s.set.Drain)
		s.terms.Revoke(s.units(h.sorted(true)), h.why, h.deadline)
		s.unite(h)
	case overdue:
		roles := h.sorted(true)
		if len(roles) > 0 {
			s.note(slog.LevelWarn, "released before the application had finished", "partition", s.index, "roles", len(roles))
		}
		s.giveBack(roles, h, term.Overdue, now)
	case stay:
		s.ping(h, now)
	case callOff:
	}
}

// unite lets what is to be given up in nobody's favour, and was asked for at the same time,
// share one Release: where all others of a crowd leave, there would be as many as these were.
func (s *shard) unite(h *handover) {
	if h.to != "" {
		return
	}
	for _, g := range s.hands {
		if g != h && g.asked && g.to == "" && g.why == h.why && g.deadline == h.deadline {
			for role := range h.roles {
				s.transferRole(h, g, role)
			}
			return
		}
	}
}

func (s *shard) conditions(h *handover, now clock.Instant) conditions {
	below, top := s.keeps(now), int32(-1)
	for role := range h.roles {
		top = max(top, role)
	}
	on := conditions{
		wanted: top < below,
		idle:   !s.desired.Contend,
		over:   now.Age(h.since) >= s.set.AnswerWait,
	}
	switch {
	case h.why == term.Roles:
		on.ready = true
	case s.set.Nominated:
		on.ready = s.members.wantedBy(s.index, s.nomination.since)
	case h.named:
		takes := s.members.takes(h.to) && s.members.wanting(h.to, s.role(top))
		on.ready = h.to == "" || h.answered && takes
		on.refused = !on.ready && !takes
	}
	return on
}

// ping asks the one that is to lead next to say that it is there, in the log that it is
// to claim in: on its way there the answer opens and warms what the claim will need, and
// of one that is dead, cut off or deaf nothing is heard.
func (s *shard) ping(h *handover, now clock.Instant) {
	if h.to == "" || h.pinged || h.asked {
		return
	}
	h.pinged = true
	c := s.main
	if len(s.channels) > 1 {
		c = s.channels[s.reachable()]
	}
	h.on = c.index
	r := c.word(lease.Ping, now)
	r.To = h.to
	c.append(now, r)
}

// pinged takes note of an own Ping that was read back, and ponged of an answer. Other
// words of that member count for nothing: it says them without having read anything.
func (c *channel) pinged(o int64, r *lease.Record) {
	for _, h := range c.shard.hands {
		if h.to == r.To && h.pinged && h.ping < 0 && h.on == c.index {
			h.ping = o
		}
	}
}

func (c *channel) ponged(r *lease.Record) {
	for _, h := range c.shard.hands {
		if h.to == r.Session.Process && h.ping >= 0 && r.Ping >= h.ping && h.on == c.index {
			h.answered = true
		}
	}
}
