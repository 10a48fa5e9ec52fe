package elector

import (
	"log/slog"
	"slices"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/placement"
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
	on       int   // and in which small log
	ping     int64 // where the log has that, −1: it was not read back yet
	answered bool

	asked    bool          // the application was asked to finish, by deadline
	deadline clock.Instant // leases kept until then at most
}

func newHandover(why term.Reason, now clock.Instant, to string, named bool) *handover {
	return &handover{why: why, since: now, to: to, named: named, ping: -1, roles: map[int32]bool{}}
}

// deliberate reports whether the roles are handed over though this process could keep
// them: that is called off if there is nobody to take them.
func (h *handover) deliberate() bool { return h.why == term.Transferred || h.why == term.Rebalanced }

// situation is what a handover is decided by.
type situation struct {
	wanted  bool // the roles are wanted again, or still
	ready   bool // a successor is ready, or none is to be expected
	refused bool // who is to lead next is gone, or would not
	idle    bool // nobody drives this process any more: wait for no successor
	over    bool // it has been waited for long enough
}

type verdict int

const (
	stay    verdict = iota // go on leading
	ask                    // ask the application to finish
	callOff                // go on leading as if nothing had been: nobody was asked
	overdue                // release, the application not having finished
)

// decide says how a handover goes on at time now. What the application has finished, or
// was never told of, is released in any case.
func (h *handover) decide(now clock.Instant, s situation) verdict {
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
func (h *handover) due(wait time.Duration) clock.Time {
	if h.asked {
		return h.deadline.Mono
	}
	return h.since.Mono.Add(wait)
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

// keeps reports whether this process goes on holding what it holds of p, and up to
// which role.
func (n *Node) keeps(p *partition, now clock.Instant) (below int32) {
	if !n.desired.Willing(now) || !p.group.nominated && !p.group.retained {
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
	if slices.ContainsFunc(p.hands, func(h *handover) bool { return !h.named }) {
		n.nameSuccessors(p, now)
	}
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
	plan, me := n.planner.plan(n, false, now)
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

// advance moves the handovers of p on.
func (n *Node) advance(p *partition, now clock.Instant) {
	if len(p.hands) == 0 {
		return
	}
	for _, h := range slices.Clone(p.hands) {
		n.advanceOne(p, h, now)
	}
	p.hands = slices.DeleteFunc(p.hands, func(h *handover) bool { return len(h.roles) == 0 })
}

func (n *Node) advanceOne(p *partition, h *handover, now clock.Instant) {
	if len(h.roles) == 0 {
		return
	}
	s := n.situation(p, h, now)
	v := h.decide(now, s)
	if v == callOff {
		n.callOff(p, h)
		return
	}
	var untold []int32
	for role := range h.roles {
		if !n.terms.Told(n.role(p, role)) {
			untold = append(untold, role)
		}
	}
	if h.asked {
		untold = append(untold, h.sorted(false)...)
	}
	n.giveBack(p, untold, h, h.why, now)
	switch v {
	case ask:
		if !s.ready && !s.idle {
			h.to = "" // it would only keep the others waiting
		}
		h.asked, h.deadline = true, now.Add(n.set.Drain)
		n.terms.Revoke(n.units(p, h.sorted(true)), h.why, h.deadline)
	case overdue:
		roles := h.sorted(true)
		if len(roles) > 0 {
			n.note(slog.LevelWarn, "released before the application had finished", "partition", p.index, "roles", len(roles))
		}
		n.giveBack(p, roles, h, term.Overdue, now)
	case stay:
		n.ping(p, h, now)
	case callOff:
	}
}

func (n *Node) situation(p *partition, h *handover, now clock.Instant) situation {
	below, top := n.keeps(p, now), int32(-1)
	for role := range h.roles {
		top = max(top, role)
	}
	s := situation{
		wanted: top < below,
		idle:   !n.desired.Contend,
		over:   now.Age(h.since) >= n.set.AnswerWait,
	}
	switch {
	case h.why == term.Roles:
		s.ready = true
	case n.set.Nominated:
		s.ready = n.members.wantedBy(p.index, p.group.since)
	case h.named:
		takes := n.members.takes(h.to) && n.members.wanting(h.to, n.role(p, top))
		s.ready = h.to == "" || h.answered && takes
		s.refused = !s.ready && !takes
	}
	return s
}

// callOff ends a handover of which the application has not been told.
func (n *Node) callOff(p *partition, h *handover) {
	for role := range h.roles {
		p.holds[role].hand = nil
	}
	clear(h.roles)
	n.moves.dirty = true
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
		out := n.releases(log, roles, now)
		if h != nil && n.members.takes(h.to) {
			for i := range out {
				out[i].To, out[i].Pinned, out[i].Moved = h.to, h.pinned, h.why == term.Rebalanced
			}
		}
		log.talk.gave = true
		log.releaseAt = now.Mono.Add(n.set.T / 4)
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
			h.hand.roles[role] = true
			done = append(done, unit)
		}
	}
	n.terms.Done(done)
	for _, p := range n.parts {
		if len(p.hands) > 0 {
			n.stepOf(p, now)
		}
	}
}

// ping asks the one that is to lead next to say that it is there, in the log that it is
// to claim in: on its way there the answer opens and warms what the claim will need, and
// of one that is dead, cut off or deaf nothing is heard.
func (n *Node) ping(p *partition, h *handover, now clock.Instant) {
	if h.to == "" || h.pinged || h.asked {
		return
	}
	h.pinged = true
	if n.quorum != nil {
		p = n.logs[n.reachable()]
		h.on = p.index
	}
	r := n.word(p, lease.Ping, now)
	r.To = h.to
	n.append(p, now, r)
}

// pinged takes note of an own Ping that was read back, and ponged of an answer. Other
// words of that member count for nothing: it says them without having read anything.
func (n *Node) pinged(p *partition, o int64, r *lease.Record) {
	for _, h := range n.rolesOf(p).hands {
		if h.to == r.To && h.pinged && h.ping < 0 && (n.quorum == nil || h.on == p.index) {
			h.ping = o
		}
	}
}

func (n *Node) ponged(p *partition, r *lease.Record) {
	for _, h := range n.rolesOf(p).hands {
		if h.to == r.Session.Process && h.ping >= 0 && r.Ping >= h.ping && (n.quorum == nil || h.on == p.index) {
			h.answered = true
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
