package elector

import (
	"log/slog"
	"slices"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/term"
)

// handovers are the orderly ends of terms in progress in one shard.
type handovers struct {
	all       []*handover
	by        byRole[*handover] // by role
	calledOff uint64            // how many were
}

// of returns the handover of a role; nil if the role is kept.
func (hs *handovers) of(role int32) *handover { return hs.by.at(role) }

// begin begins a handover of roles that were kept so far.
func (hs *handovers) begin(h *handover, roles ...int32) {
	hs.all = append(hs.all, h)
	for _, role := range roles {
		hs.give(role, h)
	}
}

// give adds a role to a handover.
func (hs *handovers) give(role int32, h *handover) {
	h.roles.set(role, false)
	h.fresh = append(h.fresh, role)
	hs.by.set(role, h)
}

// drop notes that a role is no longer held.
func (hs *handovers) drop(role int32) {
	if h := hs.by.at(role); h != nil {
		h.drop(role)
		hs.by.remove(role)
	}
}

// callOff keeps the roles of a handover of which the application was not told.
func (hs *handovers) callOff(h *handover) {
	hs.calledOff++
	for role := range h.roles.all() {
		hs.by.remove(role)
	}
	h.roles = byRole[bool]{}
}

// tidy removes handovers that are over.
func (hs *handovers) tidy() {
	hs.all = slices.DeleteFunc(hs.all, func(h *handover) bool { return h.roles.len() == 0 })
}

// unnamed reports whether some role has no decision about its successor yet.
func (hs *handovers) unnamed() bool {
	return slices.ContainsFunc(hs.all, func(h *handover) bool { return !h.named })
}

// name returns the roles for which that decision is due, and marks it as made. Once it has
// stepRoles, it leaves further handovers for the next call.
func (hs *handovers) name() (roles []int32) {
	for _, h := range hs.all {
		if !h.named && len(roles) < stepRoles {
			h.named = true
			roles = append(roles, h.sorted(true)...)
		}
	}
	return roles
}

// move moves a role from one handover to another.
func (hs *handovers) move(role int32, to *handover) {
	from := hs.by.at(role)
	finished, since := from.roles.at(role), from.finishedAt
	from.drop(role)
	hs.give(role, to)
	if finished {
		to.finish(role, since)
	}
}

// split moves a role to the handover of the same kind with successor to. begun is that handover if
// it is new.
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

// unite merges handovers without a successor that began at the same time, so that they share one
// Release. When all others of a crowd leave, there would otherwise be as many Releases as there
// were successors.
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

// due is when time alone has an effect: successors are named from nameAt on, and awaited for at
// most their patience.
func (hs *handovers) due(nameAt clock.Mono, wait, reach, roundTrip time.Duration) clock.Mono {
	next := clock.Mono(clock.Never)
	for _, h := range hs.all {
		if !h.named {
			next = min(next, nameAt)
		}
		next = min(next, h.due(h.patience(wait, reach)), h.releaseAt(roundTrip))
	}
	return next
}

// handover is the orderly end of the terms of some roles of one partition with the same successor:
// lead on until the successor has answered, let the application finish its work, then release.
type handover struct {
	why    term.Reason
	since  clock.Instant
	roles  byRole[bool] // roles still held; true: the application has finished
	fresh  []int32      // roles for which it was not checked yet whether the application was told of their terms
	to     string       // the successor; empty: none
	named  bool         // whether the successor was decided
	pinned bool         // the successor is to keep them

	pinged   bool       // the successor was asked
	on       int        // in this log
	ping     int64      // at this offset; −1: not read back yet
	pingAt   clock.Mono // when it was read back
	answered bool
	took     time.Duration // from pingAt until the answer was read

	asked    bool          // the application was asked to finish, by deadline
	deadline clock.Instant // leases are kept at most until then

	finished   int        // finished roles that are not released yet
	finishedAt clock.Mono // when the first of these was finished; 0: there are none
}

func newHandover(why term.Reason, now clock.Instant, to string, named bool) *handover {
	return &handover{why: why, since: now, to: to, named: named, ping: -1}
}

// begun is the log line of a handover that has begun.
func (h *handover) begun(partition int) []Note {
	return []Note{{slog.LevelDebug, "handing over", []any{"partition", partition, "reason", h.why, "to", h.to}}}
}

// deliberate reports whether this process could keep the roles: such a handover is called off if
// there is no successor.
func (h *handover) deliberate() bool { return h.why == term.Transferred || h.why == term.Rebalanced }

// patience is how long the successor's answer is awaited: for balance until reach at least, since this
// process leads meanwhile and nobody waits for the outcome.
func (h *handover) patience(wait, reach time.Duration) time.Duration {
	if h.why == term.Rebalanced {
		return max(wait, reach)
	}
	return wait
}

// conditions is the input of decide.
type conditions struct {
	wanted  bool // the roles are wanted again, or still
	ready   bool // the successor is ready, or none is expected
	refused bool // the successor is gone, or refuses
	idle    bool // nobody drives this process any more: wait for no successor
	over    bool // the wait for the successor is over
}

type action int

const (
	stay    action = iota // go on leading
	ask                   // ask the application to finish
	callOff               // go on leading; the application was not asked
	overdue               // release, although the application has not finished
)

// decide returns what to do next at time now. Roles that the application has finished, or was
// never told of, are released in any case.
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

// due is when the result of decide may change, by the monotonic clock.
func (h *handover) due(wait time.Duration) clock.Mono {
	if h.asked {
		return h.deadline.Mono
	}
	return h.since.Mono.Add(wait)
}

// finish notes that the application has finished a role.
func (h *handover) finish(role int32, at clock.Mono) {
	if h.roles.at(role) {
		return
	}
	h.roles.set(role, true)
	if h.finished++; h.finishedAt == 0 {
		h.finishedAt = at
	}
}

// drop notes that a role is no longer held.
func (h *handover) drop(role int32) {
	if h.roles.at(role) {
		if h.finished--; h.finished == 0 {
			h.finishedAt = 0
		}
	}
	h.roles.remove(role)
}

// releaseAt is when finished roles are released: at once if all are finished, else a round trip
// later. Functions that end together report one by one, and a Release for each would cause a Claim
// for each, one after the other.
func (h *handover) releaseAt(roundTrip time.Duration) clock.Mono {
	switch h.finished {
	case 0:
		return clock.Never
	case h.roles.len():
		return h.finishedAt
	}
	return h.finishedAt.Add(roundTrip)
}

// sorted returns the lowest stepRoles finished roles, or all roles, ascending.
func (h *handover) sorted(all bool) []int32 {
	var roles []int32
	for role, finished := range h.roles.all() {
		if !all && len(roles) == stepRoles {
			break
		}
		if all || finished {
			roles = append(roles, role)
		}
	}
	return roles
}
