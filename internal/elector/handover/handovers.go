package handover

import (
	"iter"
	"slices"
	"time"

	"github.com/goneli/neli/internal/byrole"
	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/term"
)

// StepRoles limits how many roles a step begins to give up, and how many finished ones it releases. With
// a million roles, one step for all would delay beats; the next step follows at once.
const StepRoles = 1 << 15

// Handovers are the orderly ends of terms in progress in one shard.
type Handovers struct {
	all       []*Handover
	by        byrole.Map[*Handover] // by role
	calledOff uint64                // how many were called off
}

// InProgress returns the handovers in progress, and CallOffs how many were called off so far.
func (hs *Handovers) InProgress() []*Handover { return hs.all }
func (hs *Handovers) CallOffs() uint64        { return hs.calledOff }

// Of returns the handover of a role; nil if the role is kept.
func (hs *Handovers) Of(local int32) *Handover { return hs.by.At(local) }

// Begin begins a handover of roles that were kept so far.
func (hs *Handovers) Begin(h *Handover, roles ...int32) {
	hs.all = append(hs.all, h)
	for _, local := range roles {
		hs.give(local, h)
	}
}

// give adds a role to a handover.
func (hs *Handovers) give(local int32, h *Handover) {
	h.roles.Set(local, false)
	h.fresh = append(h.fresh, local)
	if h.to != "" && !h.asked {
		h.unoffered = append(h.unoffered, local)
	}
	hs.by.Set(local, h)
}

// Drop notes that a role is no longer held.
func (hs *Handovers) Drop(local int32) {
	if h := hs.by.At(local); h != nil {
		h.drop(local)
		hs.by.Remove(local)
	}
}

// CallOff keeps the roles of a handover of which the application was not told.
func (hs *Handovers) CallOff(h *Handover) {
	hs.calledOff++
	for local := range h.roles.All() {
		hs.by.Remove(local)
	}
	h.roles = byrole.Map[bool]{}
}

// Tidy removes handovers that are over.
func (hs *Handovers) Tidy() {
	hs.all = slices.DeleteFunc(hs.all, func(h *Handover) bool { return h.roles.Len() == 0 })
}

// Unnamed reports whether some role has no decision about its successor yet.
func (hs *Handovers) Unnamed() bool {
	return slices.ContainsFunc(hs.all, func(h *Handover) bool { return !h.named })
}

// Name returns the roles whose successors are to be decided now, and marks that as done. Once it has
// StepRoles, it leaves further handovers for the next call.
func (hs *Handovers) Name() (roles []int32) {
	for _, h := range hs.all {
		if !h.named && len(roles) < StepRoles {
			h.named = true
			roles = append(roles, h.Sorted(true)...)
		}
	}
	return roles
}

// move moves a role from one handover to another.
func (hs *Handovers) move(local int32, to *Handover) {
	from := hs.by.At(local)
	finished, since := from.roles.At(local), from.finishedAt
	from.drop(local)
	hs.give(local, to)
	if finished {
		to.Finish(local, since)
	}
}

// Split moves a role to the handover of the same kind with successor to. begun is that handover if it is new.
func (hs *Handovers) Split(local int32, to string) (begun *Handover) {
	from := hs.by.At(local)
	if from.to == to {
		return nil
	}
	for _, h := range hs.all {
		if h != from && h.to == to && h.since == from.since && h.why == from.why && !h.asked {
			hs.move(local, h)
			return nil
		}
	}
	begun = NewHandover(from.why, from.since, to, true)
	begun.forced = from.forced
	hs.Begin(begun)
	hs.move(local, begun)
	return begun
}

// Rename moves a role to the handover of the same kind with another successor. begun is that handover if it is new:
// then its wait begins now, and the waits for all successors together take half of drain at most. The rest is the
// application's.
func (hs *Handovers) Rename(local int32, to string, drain time.Duration, now clock.Instant) (begun *Handover) {
	if begun = hs.Split(local, to); begun != nil {
		begun.chosen, begun.warm, begun.most = now, true, drain/2
	} else if h := hs.by.At(local); h.prepared {
		h.looks = now.Mono // it is to be offered this role, too
	}
	return begun
}

// Part moves some roles to a handover of their own, of the same kind and with the same successor. It
// returns h itself if these are all.
func (hs *Handovers) Part(h *Handover, roles []int32) *Handover {
	if len(roles) == h.roles.Len() {
		return h
	}
	h.readyAt = 0
	own := *h
	own.roles, own.fresh, own.unoffered, own.finished, own.finishedAt = byrole.Map[bool]{}, nil, nil, 0, 0
	hs.all = append(hs.all, &own)
	for _, local := range roles {
		hs.move(local, &own)
	}
	return &own
}

// Unite merges handovers without a successor that have one reason and deadline, so that they share
// one Release. When all others of a crowd leave, there would otherwise be as many Releases as there
// were successors.
func (hs *Handovers) Unite(h *Handover) {
	if h.to != "" {
		return
	}
	for _, g := range hs.all {
		if g != h && g.asked && g.to == "" && g.why == h.why && g.deadline == h.deadline {
			for _, local := range h.Sorted(true) {
				hs.move(local, g)
			}
			return
		}
	}
}

// Pinged notes that an own Ping in a log was read back at offset o, and Ponged that it was answered.
// Other records of the member do not count, since it may write them without having read anything.
func (hs *Handovers) Pinged(log int, o int64, to string, now clock.Instant) {
	for _, h := range hs.all {
		if h.to == to && h.pinged && h.ping < 0 && h.on == log {
			h.ping, h.pingAt = o, now.Mono
		}
	}
}

func (hs *Handovers) Ponged(log int, ping int64, by string, now clock.Instant) {
	for _, h := range hs.all {
		if h.to == by && h.ping >= 0 && ping >= h.ping && h.on == log && !h.answered {
			h.answered, h.took = true, now.Mono.Sub(h.pingAt)
		}
	}
}

// Due is when time alone has an effect: successors are named from nameAt on, and awaited for at most their patience.
func (hs *Handovers) Due(nameAt clock.Mono, wait, reach, roundTrip time.Duration) clock.Mono {
	next := clock.Mono(clock.Never)
	for _, h := range hs.all {
		if !h.named {
			next = min(next, nameAt)
		}
		next = min(next, h.due(h.patience(wait, reach)), h.ReleaseAt(roundTrip))
	}
	return next
}

// Handover is the orderly end of the terms of some roles of one partition with the same successor:
// lead on until the successor has answered, let the application finish its work, then release.
type Handover struct {
	why    term.Reason
	since  clock.Instant
	chosen clock.Instant    // since when its successor is waited for
	roles  byrole.Map[bool] // roles still held; true: the application has finished
	fresh  []int32          // roles for which it was not checked yet whether the application was told of their terms
	to     string           // the successor; empty: none
	named  bool             // whether the successor was decided
	pinned bool             // the successor is to keep them
	forced bool             // this process could keep them when it began, and cannot any more

	cold      bool          // the successor is to take the roles unprepared
	warm      bool          // this successor, or a former one, was offered the roles to prepare
	most      time.Duration // how long all successors together are waited for; 0: no such limit
	unoffered []int32       // roles that were not offered to the successor yet
	readyAt   clock.Mono    // since when some of the roles are known to be prepared; 0: none are
	prepared  bool          // its successor was offered roles
	looks     clock.Mono    // when the result of Decide may change, if the successor prepares; 0: it does not

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

func NewHandover(why term.Reason, now clock.Instant, to string, named bool) *Handover {
	return &Handover{why: why, since: now, chosen: now, to: to, named: named, ping: -1}
}

// Pin makes the successor keep the roles.
func (h *Handover) Pin() { h.pinned = true }

// NeedsPing reports whether the successor is to be asked, and Pinging notes that it was, in a log.
func (h *Handover) NeedsPing() bool { return h.to != "" && !h.pinged && !h.asked }
func (h *Handover) Pinging(log int) { h.pinged, h.on = true, log }

// Prepare notes that the successor is offered the roles in a log; the offer serves as the Ping. It returns the
// roles that were not offered yet.
func (h *Handover) Prepare(log int) (roles []int32) {
	h.warm, h.prepared, h.pinged, h.on = true, true, true, log
	roles, h.unoffered = h.unoffered, nil
	return roles
}

// Unprepared makes the successor take the roles unprepared, and IsUnprepared reports whether it does.
func (h *Handover) Unprepared()        { h.cold = true }
func (h *Handover) IsUnprepared() bool { return h.cold }

// IsPrepared reports whether the successor was offered roles.
func (h *Handover) IsPrepared() bool { return h.prepared }

// WasPrepared reports whether this successor, or a former one, was offered roles.
func (h *Handover) WasPrepared() bool { return h.warm }

// Gather returns when roles that are prepared go on: at once if all are, else a round trip after the first of
// them, so that those which get ready together move together.
func (h *Handover) Gather(roles int, roundTrip time.Duration, now clock.Instant) clock.Mono {
	if h.readyAt == 0 {
		h.readyAt = now.Mono
	}
	if roles == h.roles.Len() {
		return h.readyAt
	}
	return h.readyAt.Add(roundTrip)
}

// LooksAt notes when the result of Decide may change while the successor prepares.
func (h *Handover) LooksAt(at clock.Mono) { h.looks = at }

// Since is when the handover began, and Chosen since when its successor is waited for.
func (h *Handover) Since() clock.Instant  { return h.since }
func (h *Handover) Chosen() clock.Instant { return h.chosen }

// Deadline is when the application must have finished if it is asked now. If roles that could not be kept have waited
// for preparation, that wait is part of drain, but the application has at least half of drain, however late the
// successors were named.
func (h *Handover) Deadline(drain time.Duration, now clock.Instant) clock.Instant {
	if !h.warm || h.Deliberate() && !h.forced {
		return now.Add(drain)
	}
	shared, half := h.since.Add(drain), now.Add(drain/2)
	if shared.Mono < half.Mono {
		return half
	}
	return shared
}

// Keeps notes whether this process could keep the roles. If that changes, a Deliberate handover counts as begun now.
func (h *Handover) Keeps(could bool, now clock.Instant) {
	if h.Deliberate() && h.forced == could {
		h.forced, h.since = !could, now
	}
}

// Successor is the process to which the roles go; empty: none.
func (h *Handover) Successor() string { return h.to }

// Reason is why this process gives the roles up.
func (h *Handover) Reason() term.Reason { return h.why }

// Answer is how long the successor took to answer; 0 if it has not answered.
func (h *Handover) Answer() time.Duration { return h.took }

// AnsweredAgo is how long ago the answer was read.
func (h *Handover) AnsweredAgo(now clock.Instant) time.Duration {
	return now.Mono.Sub(h.pingAt.Add(h.took))
}

// IsAsked reports whether the application was asked to finish.
func (h *Handover) IsAsked() bool { return h.asked }

// AskBy notes that the application is to finish by a deadline; alone says that the Release will name no
// successor, since that would only keep others waiting.
func (h *Handover) AskBy(deadline clock.Instant, alone bool) {
	if alone {
		h.to = ""
	}
	h.asked, h.deadline, h.unoffered = true, deadline, nil
}

// Left is how much of the time for the application is left.
func (h *Handover) Left(now clock.Instant) time.Duration { return h.deadline.Mono.Sub(now.Mono) }

// IsEmpty reports whether no role is left.
func (h *Handover) IsEmpty() bool { return h.roles.Len() == 0 }

// Top is the highest role.
func (h *Handover) Top() int32 { return h.roles.Top() }

// Each yields the roles.
func (h *Handover) Each() iter.Seq2[int32, bool] { return h.roles.All() }

// Unchecked returns, once, the roles for which it was not checked yet whether the application was
// told of their terms.
func (h *Handover) Unchecked() (roles []int32) {
	for _, local := range h.fresh {
		if h.roles.Has(local) {
			roles = append(roles, local)
		}
	}
	h.fresh = nil
	return roles
}

// SuccessorState reports whether the successor is ready, or none is expected, and whether it refuses;
// takes says that it would take the roles.
func (h *Handover) SuccessorState(takes bool) (ready, refused bool) {
	if !h.named {
		return false, false
	}
	ready = h.to == "" || h.answered && takes
	return ready, !ready && !takes
}

// Waited reports whether the wait for the successor is over.
func (h *Handover) Waited(wait, reach time.Duration, now clock.Instant) bool {
	return now.Age(h.chosen) >= h.patience(wait, reach) || h.most > 0 && now.Age(h.since) >= h.most
}

// Mark marks a Release of the roles: to whom they go, and why.
func (h *Handover) Mark(r *lease.Record, wait time.Duration) {
	r.To, r.Wait, r.Pinned, r.Moved = h.to, wait, h.pinned, h.why == term.Rebalanced
}

// Deliberate reports whether this process could keep the roles at first. If it still can, it does so
// without a successor.
func (h *Handover) Deliberate() bool { return h.why == term.Transferred || h.why == term.Rebalanced }

// patience is how long the successor's answer is awaited: for balance at least for reach, since this
// process leads meanwhile and nobody waits for the outcome.
func (h *Handover) patience(wait, reach time.Duration) time.Duration {
	if h.why == term.Rebalanced {
		return max(wait, reach)
	}
	return wait
}

// Conditions is the input of Decide.
type Conditions struct {
	Wanted  bool // the roles are wanted again, or still
	Ready   bool // the successor is ready, or none is expected
	Refused bool // the successor is gone, or refuses
	Idle    bool // nobody drives this process any more: wait for no successor
	Over    bool // the wait for the successor is over
	Another bool // another member may be named instead
}

type action int

const (
	Stay    action = iota // go on leading
	Ask                   // ask the application to finish
	CallOff               // go on leading; the application was not asked
	Overdue               // release, although the application has not finished
	Rename                // name another successor
)

// Decide returns what to do next at time now. Roles that the application has finished, or was
// never told of, are released too, except upon CallOff.
func (h *Handover) Decide(now clock.Instant, s Conditions) action {
	switch {
	case !h.asked && s.Wanted && (!h.Deliberate() || s.Refused || s.Over && !s.Ready):
		return CallOff
	case !h.asked && s.Another && !s.Ready && !s.Idle && (s.Refused || s.Over):
		return Rename
	case !h.asked && (s.Ready || s.Refused || s.Idle || s.Over):
		return Ask
	case h.asked && now.Mono >= h.deadline.Mono:
		return Overdue
	}
	return Stay
}

// due is when the result of Decide may change, by the monotonic clock.
func (h *Handover) due(wait time.Duration) clock.Mono {
	switch {
	case h.asked:
		return h.deadline.Mono
	case h.looks != 0:
		return h.looks
	}
	if h.most > 0 {
		return min(h.chosen.Mono.Add(wait), h.since.Mono.Add(h.most))
	}
	return h.chosen.Mono.Add(wait)
}

// Finish notes that the application has finished a role.
func (h *Handover) Finish(local int32, at clock.Mono) {
	if h.roles.At(local) {
		return
	}
	h.roles.Set(local, true)
	if h.finished++; h.finishedAt == 0 {
		h.finishedAt = at
	}
}

// drop notes that a role is no longer held.
func (h *Handover) drop(local int32) {
	if h.roles.At(local) {
		if h.finished--; h.finished == 0 {
			h.finishedAt = 0
		}
	}
	h.roles.Remove(local)
}

// ReleaseAt is when finished roles are released: at once if all are finished, else a round trip
// after the first. Functions that end together report one by one, and a Release for each would cause
// a Claim for each, one after the other.
func (h *Handover) ReleaseAt(roundTrip time.Duration) clock.Mono {
	switch h.finished {
	case 0:
		return clock.Never
	case h.roles.Len():
		return h.finishedAt
	}
	return h.finishedAt.Add(roundTrip)
}

// Sorted returns the lowest StepRoles finished roles, or all roles, ascending.
func (h *Handover) Sorted(all bool) []int32 {
	var roles []int32
	for local, finished := range h.roles.All() {
		if !all && len(roles) == StepRoles {
			break
		}
		if all || finished {
			roles = append(roles, local)
		}
	}
	return roles
}
