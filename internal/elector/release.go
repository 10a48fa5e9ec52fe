package elector

import (
	"log/slog"
	"slices"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/placement"
	"github.com/goneli/neli/internal/term"
)

// keeps reports whether this process goes on holding what it holds of p, and up to
// which role.
func (n *Node) keeps(p *partition, now clock.Instant) (below int32) {
	if !n.desired.Willing(now) || !p.nomination.nominated && !p.nomination.retained {
		return 0
	}
	return n.localRoles(p)
}

// giveUp begins to give up what is not wanted any more, and names who is to have it.
func (n *Node) giveUp(p *partition, now clock.Instant) {
	below := n.keeps(p, now)
	if len(p.holds) == 0 || p.wanted && below > 0 {
		return
	}
	p.wanted = below > 0
	n.giveUpFrom(p, below, now)
	if now.Mono >= n.nameAt() && slices.ContainsFunc(p.hands, func(h *handover) bool { return !h.named }) {
		n.nameSuccessors(p, now)
	}
}

// nameAt is from when on successors are named. In a crowd, a closing process waits first
// (crowdedUntil), for T/8 at most, so that there is time left for an answer. Where a whole
// crowd closes together, nobody is named, asked or given anything by then. Otherwise each of
// n members would ask all others, and send a Release to each: these n² records keep all
// readers busy, and a newcomer would find nothing else within its reach. A small group does
// not wait, nor does a process that nobody drives.
func (n *Node) nameAt() clock.Mono {
	if !n.desired.Closing || !n.desired.Contend || n.members.size()+len(n.members.left) <= fewHolders {
		return 0
	}
	return n.announcer.crowdedUntil(min(clock.Pause(n.set.T), n.set.AnswerWait*3/4), n.timing.roundTrip())
}

// giveUpFrom begins to hand over roles from a number on.
func (n *Node) giveUpFrom(p *partition, below int32, now clock.Instant) {
	var h *handover
	for role, held := range p.holds {
		if role < below || held.hand != nil {
			continue
		}
		if h == nil {
			why := n.desired.Reason(n.role(p, role), now)
			if below > 0 {
				why = term.Roles
			}
			h = newHandover(why, now, "", n.set.Nominated || why == term.Roles)
			n.begin(p, h)
		}
		h.roles[role], held.hand = false, h
	}
}

// begin begins a handover.
func (n *Node) begin(p *partition, h *handover) {
	p.hands = append(p.hands, h)
	n.note(slog.LevelDebug, "handing over", "partition", p.index, "reason", h.why, "to", h.to)
}

// nameSuccessors chooses who is to lead next what is to be given up: it is shared out
// among those who are there.
func (n *Node) nameSuccessors(p *partition, now clock.Instant) {
	var open []int32
	var from []*handover
	for _, h := range p.hands {
		if h.named {
			continue
		}
		h.named = true
		for _, role := range h.sorted(true) {
			open, from = append(open, int32(n.role(p, role))), append(from, h)
		}
	}
	plan, me := n.plan(false, now)
	first := plan.Assign(open, n.holders(plan, now))
	for i, role := range open {
		to := ""
		if c := int(first[i]); c >= 0 && c != me {
			to = plan.Candidate(c).ID
		}
		_, u := n.local(int(role))
		n.split(p, from[i], u, to)
	}
	p.hands = slices.DeleteFunc(p.hands, func(h *handover) bool { return len(h.roles) == 0 })
}

// split moves a role from a handover to the one of the same kind that names to.
func (n *Node) split(p *partition, from *handover, role int32, to string) {
	if from.to == to {
		return
	}
	for _, h := range p.hands {
		if h != from && h.to == to && h.since == from.since && h.why == from.why && !h.asked {
			n.transferRole(p, from, h, role)
			return
		}
	}
	h := newHandover(from.why, from.since, to, true)
	n.begin(p, h)
	n.transferRole(p, from, h, role)
}

func (n *Node) transferRole(p *partition, from, to *handover, role int32) {
	to.roles[role] = from.roles[role]
	delete(from.roles, role)
	p.holds[role].hand = to
}

// callOff ends a handover of which the application has not been told.
func (n *Node) callOff(p *partition, h *handover) {
	for role := range h.roles {
		p.holds[role].hand = nil
	}
	clear(h.roles)
	n.mover.dirty = true
	n.ready.Changed = true
	n.note(slog.LevelDebug, "handover called off", "partition", p.index, "reason", h.why, "to", h.to)
}

// giveBack ends leadership of roles and then releases them.
func (n *Node) giveBack(p *partition, roles []int32, h *handover, why term.Reason, now clock.Instant) {
	if len(roles) == 0 {
		return
	}
	slices.Sort(roles)
	roles = slices.Compact(roles)
	n.end(p, roles, why, false)
	p.lease.Forget(roles)
	n.timing.parted = now.Mono
	for _, log := range n.logsOf(p) {
		out := p.lease.ReleaseOn(log.index, roles, now)
		if h != nil && n.members.takes(h.to) {
			for i := range out {
				out[i].To, out[i].Pinned, out[i].Moved = h.to, h.pinned, h.why == term.Rebalanced
			}
		}
		log.announcements.releasedHere = true
		log.released(now, n.set.T)
		n.append(log, now, out...)
	}
}

// Drained says that the application has finished the work of the terms of units with
// this token, which it was asked to give up.
func (n *Node) Drained(units []int, token int64, now clock.Instant) {
	var done []int
	for _, unit := range units {
		p, role := n.local(unit)
		if h := p.holds[role]; h != nil && h.token == token && h.hand != nil && h.hand.asked {
			h.hand.finish(role, now)
			done = append(done, unit)
			p.dueAt = min(p.dueAt, h.hand.releaseAt(n.timing.roundTrip()))
		}
	}
	n.terms.Done(done)
	for _, p := range n.parts {
		if now.Mono >= p.dueAt && len(p.hands) > 0 {
			n.stepOf(p, now)
		}
	}
}

// holders says by role who holds what, as a Plan's candidates.
func (n *Node) holders(plan *placement.Plan, now clock.Instant) []int32 {
	total := n.desired.Roles
	for _, p := range n.parts {
		if r := p.lease.Roles(); r > 0 {
			total = max(total, n.role(p, r-1)+1)
		}
	}
	out := make([]int32, total)
	for i := range out {
		out[i] = placement.Nobody
	}
	for _, p := range n.parts {
		p.lease.Each(func(h lease.HolderState) int32 {
			if now.Raw >= h.FreeAt || n.members.suspected(h.Session.Process) {
				return placement.Nobody
			}
			return int32(plan.Find(h.Session.Process))
		}, func(role, i int32) { out[n.role(p, role)] = i })
		for _, h := range p.hands {
			if h.to == "" {
				continue
			}
			i := int32(plan.Find(h.to))
			for role := range h.roles {
				out[n.role(p, role)] = i
			}
		}
	}
	return out
}

// expected says by role who holds what, or was given it and has not claimed it yet: what is
// on its way to one is not to be taken for room that it has.
func (n *Node) expected(plan *placement.Plan, now clock.Instant) []int32 {
	out := n.holders(plan, now)
	for _, p := range n.parts {
		for u, s := range p.claims.successors {
			if role := n.role(p, u); role < len(out) && out[role] == placement.Nobody && n.members.takes(s.process) {
				out[role] = int32(plan.Find(s.process))
			}
		}
	}
	return out
}
