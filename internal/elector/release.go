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
func (s *shard) keeps(now clock.Instant) (below int32) {
	if !s.desired.Willing(now) || !s.nomination.nominated && !s.nomination.retained {
		return 0
	}
	return s.localRoles()
}

// giveUp begins to give up what is not wanted any more, and names who is to have it.
func (s *shard) giveUp(now clock.Instant) {
	below := s.keeps(now)
	if len(s.holds) == 0 || s.wanted && below > 0 {
		return
	}
	s.wanted = below > 0
	s.giveUpFrom(below, now)
	if now.Mono >= s.nameAt() && slices.ContainsFunc(s.hands, func(h *handover) bool { return !h.named }) {
		s.nameSuccessors(now)
	}
}

// nameAt is from when on successors are named. In a crowd, a closing process waits first
// (crowdedUntil), for T/8 at most, so that there is time left for an answer. Where a whole
// crowd closes together, nobody is named, asked or given anything by then. Otherwise each of
// n members would ask all others, and send a Release to each: these n² records keep all
// readers busy, and a newcomer would find nothing else within its reach. A small group does
// not wait, nor does a process that nobody drives.
func (k *common) nameAt() clock.Mono {
	if !k.desired.Closing || !k.desired.Contend || k.members.size()+len(k.members.left) <= fewHolders {
		return 0
	}
	return k.announcer.crowdedUntil(min(clock.Pause(k.set.T), k.set.AnswerWait*3/4), k.timing.roundTrip())
}

// giveUpFrom begins to hand over roles from a number on.
func (s *shard) giveUpFrom(below int32, now clock.Instant) {
	var h *handover
	for role, held := range s.holds {
		if role < below || held.hand != nil {
			continue
		}
		if h == nil {
			why := s.desired.Reason(s.role(role), now)
			if below > 0 {
				why = term.Roles
			}
			h = newHandover(why, now, "", s.set.Nominated || why == term.Roles)
			s.begin(h)
		}
		h.roles[role], held.hand = false, h
	}
}

// begin begins a handover.
func (s *shard) begin(h *handover) {
	s.hands = append(s.hands, h)
	s.note(slog.LevelDebug, "handing over", "partition", s.index, "reason", h.why, "to", h.to)
}

// nameSuccessors chooses who is to lead next what is to be given up: it is shared out
// among those who are there.
func (s *shard) nameSuccessors(now clock.Instant) {
	var open []int32
	var from []*handover
	for _, h := range s.hands {
		if h.named {
			continue
		}
		h.named = true
		for _, role := range h.sorted(true) {
			open, from = append(open, int32(s.role(role))), append(from, h)
		}
	}
	plan, me := s.plan(false, now)
	first := plan.Assign(open, s.holders(plan, now))
	for i, role := range open {
		to := ""
		if c := int(first[i]); c >= 0 && c != me {
			to = plan.Candidate(c).ID
		}
		_, u := s.local(int(role))
		s.split(from[i], u, to)
	}
	s.hands = slices.DeleteFunc(s.hands, func(h *handover) bool { return len(h.roles) == 0 })
}

// split moves a role from a handover to the one of the same kind that names to.
func (s *shard) split(from *handover, role int32, to string) {
	if from.to == to {
		return
	}
	for _, h := range s.hands {
		if h != from && h.to == to && h.since == from.since && h.why == from.why && !h.asked {
			s.transferRole(from, h, role)
			return
		}
	}
	h := newHandover(from.why, from.since, to, true)
	s.begin(h)
	s.transferRole(from, h, role)
}

func (s *shard) transferRole(from, to *handover, role int32) {
	to.roles[role] = from.roles[role]
	delete(from.roles, role)
	s.holds[role].hand = to
}

// callOff ends a handover of which the application has not been told.
func (s *shard) callOff(h *handover) {
	for role := range h.roles {
		s.holds[role].hand = nil
	}
	clear(h.roles)
	s.mover.dirty = true
	s.ready.Changed = true
	s.note(slog.LevelDebug, "handover called off", "partition", s.index, "reason", h.why, "to", h.to)
}

// giveBack ends leadership of roles and then releases them.
func (s *shard) giveBack(roles []int32, h *handover, why term.Reason, now clock.Instant) {
	if len(roles) == 0 {
		return
	}
	slices.Sort(roles)
	roles = slices.Compact(roles)
	s.end(roles, why, false)
	s.lease.Forget(roles)
	s.timing.parted = now.Mono
	for _, log := range s.channels {
		out := s.lease.ReleaseOn(log.index, roles, now)
		if h != nil && s.members.takes(h.to) {
			for i := range out {
				out[i].To, out[i].Pinned, out[i].Moved = h.to, h.pinned, h.why == term.Rebalanced
			}
		}
		log.announcements.releasedHere = true
		log.released(now)
		log.append(now, out...)
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
	for _, p := range n.shards {
		if now.Mono >= p.dueAt && len(p.hands) > 0 {
			p.step(now)
		}
	}
}

// holders says by role who holds what, as a Plan's candidates.
func (k *common) holders(plan *placement.Plan, now clock.Instant) []int32 {
	total := k.desired.Roles
	for _, p := range k.shards {
		if r := p.lease.Roles(); r > 0 {
			total = max(total, p.role(r-1)+1)
		}
	}
	out := make([]int32, total)
	for i := range out {
		out[i] = placement.Nobody
	}
	for _, p := range k.shards {
		p.lease.Each(func(h lease.HolderState) int32 {
			if now.Raw >= h.FreeAt || k.members.suspected(h.Session.Process) {
				return placement.Nobody
			}
			return int32(plan.Find(h.Session.Process))
		}, func(role, i int32) { out[p.role(role)] = i })
		for _, h := range p.hands {
			if h.to == "" {
				continue
			}
			i := int32(plan.Find(h.to))
			for role := range h.roles {
				out[p.role(role)] = i
			}
		}
	}
	return out
}

// expected says by role who holds what, or was given it and has not claimed it yet: what is
// on its way to one is not to be taken for room that it has.
func (k *common) expected(plan *placement.Plan, now clock.Instant) []int32 {
	out := k.holders(plan, now)
	for _, p := range k.shards {
		for u, s := range p.claims.successors {
			if role := p.role(u); role < len(out) && out[role] == placement.Nobody && k.members.takes(s.process) {
				out[role] = int32(plan.Find(s.process))
			}
		}
	}
	return out
}
