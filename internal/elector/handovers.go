package elector

import (
	"slices"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/term"
)

// handovers are the orderly ends of terms that are under way in one shard.
type handovers struct {
	all []*handover
	by  byRole[*handover] // by role that is given up
}

// of returns the handover in which a role is given up; nil: it is kept.
func (hs *handovers) of(role int32) *handover { return hs.by.at(role) }

// begin begins a handover of roles that are kept so far.
func (hs *handovers) begin(h *handover, roles ...int32) {
	hs.all = append(hs.all, h)
	for _, role := range roles {
		hs.give(role, false, h)
	}
}

// give adds a role to a handover.
func (hs *handovers) give(role int32, finished bool, h *handover) {
	h.roles.set(role, finished)
	h.fresh = append(h.fresh, role)
	hs.by.set(role, h)
}

// drop notes that a role is held no more.
func (hs *handovers) drop(role int32) {
	if h := hs.by.at(role); h != nil {
		h.drop(role)
		hs.by.remove(role)
	}
}

// callOff lets the roles of a handover be kept, of which the application has not been told.
func (hs *handovers) callOff(h *handover) {
	for role := range h.roles.all() {
		hs.by.remove(role)
	}
	h.roles = byRole[bool]{}
}

// tidy forgets the handovers that are over.
func (hs *handovers) tidy() {
	hs.all = slices.DeleteFunc(hs.all, func(h *handover) bool { return h.roles.len() == 0 })
}

// unnamed reports whether nobody has thought yet of who is to lead next, of some role.
func (hs *handovers) unnamed() bool {
	return slices.ContainsFunc(hs.all, func(h *handover) bool { return !h.named })
}

// name returns the roles of which that is to be thought now, and counts it as done.
func (hs *handovers) name() (roles []int32) {
	for _, h := range hs.all {
		if !h.named {
			h.named = true
			roles = append(roles, h.sorted(true)...)
		}
	}
	return roles
}

// move moves a role from one handover to another.
func (hs *handovers) move(role int32, to *handover) {
	from := hs.by.at(role)
	finished := from.roles.at(role)
	from.roles.remove(role)
	hs.give(role, finished, to)
}

// split moves a role to the handover of the same kind that names to, and returns that if it
// begins thereby.
func (hs *handovers) split(role int32, to string) (begun *handover) {
	from := hs.by.at(role)
	if from.to == to {
		return nil
	}
	for _, h := range hs.all {
		if h != from && h.to == to && h.since == from.since && h.why == from.why && !h.asked {
			hs.move(role, h)
			return nil
		}
	}
	begun = newHandover(from.why, from.since, to, true)
	hs.begin(begun)
	hs.move(role, begun)
	return begun
}

// unite lets what is to be given up in nobody's favour, and was asked for at the same time,
// share one Release: where all others of a crowd leave, there would be as many as these were.
func (hs *handovers) unite(h *handover) {
	if h.to != "" {
		return
	}
	for _, g := range hs.all {
		if g != h && g.asked && g.to == "" && g.why == h.why && g.deadline == h.deadline {
			for _, role := range h.sorted(true) {
				hs.move(role, g)
			}
			return
		}
	}
}

// pinged notes that an own Ping was read back at an offset of a log, and ponged that it was
// answered. Other words of that member count for nothing: it says them without having read
// anything.
func (hs *handovers) pinged(log int, o int64, to string) {
	for _, h := range hs.all {
		if h.to == to && h.pinged && h.ping < 0 && h.on == log {
			h.ping = o
		}
	}
}

func (hs *handovers) ponged(log int, ping int64, by string) {
	for _, h := range hs.all {
		if h.to == by && h.ping >= 0 && ping >= h.ping && h.on == log {
			h.answered = true
		}
	}
}

// due is when time alone gives something to do: successors are named from nameAt on, and
// waited for no longer than wait.
func (hs *handovers) due(nameAt clock.Mono, wait, roundTrip time.Duration) clock.Mono {
	next := clock.Mono(clock.Never)
	for _, h := range hs.all {
		if !h.named {
			next = min(next, nameAt)
		}
		next = min(next, h.due(wait), h.releaseAt(roundTrip))
	}
	return next
}

// handover is the orderly end of the terms of some roles of one partition, which the
// same process is to lead next: lead on until that has answered, let the application
// finish its work, release.
type handover struct {
	why    term.Reason
	since  clock.Instant
	roles  byRole[bool] // still held; true: the application has finished
	fresh  []int32      // of these: it was not looked yet whether the application was told of their terms
	to     string       // the process that is to lead next, if any is known
	named  bool         // whether that has been thought of
	pinned bool         // it is to keep them

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
	return &handover{why: why, since: now, to: to, named: named, ping: -1}
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
	if h.roles.at(role) {
		return
	}
	h.roles.set(role, true)
	if h.finished++; h.finishedAt == 0 {
		h.finishedAt = now.Mono
	}
}

// drop takes note that a role is held no more.
func (h *handover) drop(role int32) {
	if h.roles.at(role) {
		if h.finished--; h.finished == 0 {
			h.finishedAt = 0
		}
	}
	h.roles.remove(role)
}

// releaseAt is when what the application has finished is released: at once when that is
// all there is, else a round trip later. Functions that end together report one by one;
// a Release of each would bring a Claim of each, one after the other.
func (h *handover) releaseAt(roundTrip time.Duration) clock.Mono {
	switch h.finished {
	case 0:
		return clock.Never
	case h.roles.len():
		return h.finishedAt
	}
	return h.finishedAt.Add(roundTrip)
}

// sorted returns the roles, ascending, that the application has finished, or all.
func (h *handover) sorted(all bool) []int32 {
	var roles []int32
	for role, finished := range h.roles.all() {
		if all || finished {
			roles = append(roles, role)
		}
	}
	return roles
}
