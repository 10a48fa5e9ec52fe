package elector

import (
	"log/slog"
	"slices"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/placement"
	"github.com/goneli/neli/internal/term"
)

// Transfer begins to hand a role over to a member, and returns a number by which its
// Outcome is known. The error is ErrNotLeader, ErrLeadsAlready or ErrNoMember.
func (n *Node) Transfer(role int, to string, now clock.Instant) (id int, err error) {
	if len(n.parts) == 0 {
		return 0, ErrNotLeader
	}
	p, u := n.local(role)
	h := p.holds[u]
	if _, leads := p.lease.Leads(u, now); !leads || h == nil || h.hand != nil || !n.terms.Told(role) {
		return 0, ErrNotLeader
	}
	member := n.members.find(to)
	if to == n.set.Process || to == n.set.Name && member == "" {
		return 0, ErrLeadsAlready
	}
	if member == "" || !n.members.wanting(member, role) {
		return 0, ErrNoMember
	}
	id = n.requests.number()
	hand := newHandover(term.Transferred, now, member, true)
	hand.pinned = true
	n.handOver(p, hand, []int32{u}, id, now)
	n.stepOf(p, now)
	return id, nil
}

// handOver begins a handover of roles, and waits for its outcome.
func (n *Node) handOver(p *partition, h *handover, roles []int32, id int, now clock.Instant) {
	for _, role := range roles {
		h.roles[role] = false
		p.holds[role].hand = h
	}
	n.begin(p, h)
	n.mover.under = append(n.mover.under, move{partition: p.index, role: roles[0], token: p.holds[roles[0]].token, to: h.to,
		began: now.Mono, id: id})
}

// rebalance hands over what is more than this process's share, or deserved more by others.
func (n *Node) rebalance(now clock.Instant) {
	m := &n.mover
	willing := !n.set.Nominated && !n.set.Observer && n.desired.Willing(now) && n.set.Alive(now)
	m.contend(willing, now)
	n.resolveMoves(now)
	if !m.looks(willing && n.set.Rebalance, now) {
		return
	}
	if m.putOff(allBehind(n.parts, now, n.set.T), now) {
		return
	}
	plan, me := n.plan(false, now)
	if m.dirty = n.planner.changed() || m.dirty; !m.dirty {
		return
	}
	var todo []placement.Move
	if me >= 0 {
		todo = plan.Moves(me, n.expected(plan, now), func(role int) bool {
			p, u := n.local(role)
			h := p.holds[u]
			return role < n.desired.Roles && h != nil && h.movable(now) && n.terms.Told(role)
		}, maxBatch)
	}
	for _, v := range m.weigh(todo, func() bool { return tenured(n.parts, now) }, now) {
		n.move(plan.Candidate(v.To).ID, v.Roles, now)
	}
}

// allBehind reports whether this process is behind in all logs.
func allBehind(parts []*partition, now clock.Instant, t time.Duration) bool {
	return !slices.ContainsFunc(parts, func(p *partition) bool { return !p.link.behind(now, t) })
}

func tenured(parts []*partition, now clock.Instant) bool {
	for _, p := range parts {
		for _, h := range p.holds {
			if h.tenured(now) {
				return true
			}
		}
	}
	return false
}

// move hands roles over to a process, those of each partition together.
func (n *Node) move(to string, roles []int, now clock.Instant) {
	byPartition := map[*partition][]int32{}
	for _, role := range roles {
		p, u := n.local(role)
		byPartition[p] = append(byPartition[p], u)
	}
	for p, some := range byPartition {
		slices.Sort(some)
		n.handOver(p, newHandover(term.Rebalanced, now, to, true), some, 0, now)
	}
}

// resolveMoves finds out what became of what is being handed over.
func (n *Node) resolveMoves(now clock.Instant) {
	limit := n.set.AnswerWait + n.set.Drain + 2*clock.Wait(n.set.T, n.set.Rho)
	ended, failed := n.mover.resolve(func(v move) fate {
		p := n.parts[v.partition]
		g, held := p.lease.Holder(v.role)
		f := fate{held: held, ours: held && g.Token == v.token, by: g.Session.Process}
		if n.quorum != nil { // a role that is being given up has no token; it is ours until enough logs say that it is not
			f.ours = held && g.Session == n.quorum.Session()
		}
		f.kept = p.holds[v.role] != nil && p.holds[v.role].hand == nil
		return f
	}, limit, now)
	n.ready.Outcomes = append(n.ready.Outcomes, ended...)
	for _, v := range failed {
		n.planner.forget()
		n.note(slog.LevelInfo, "member did not claim what was handed to it: nothing more for a while",
			"partition", v.partition, "member", v.to, "for", v.cooldown)
	}
}

// plan returns the plan of who should lead what, and the index of this process in it.
func (n *Node) plan(expected bool, now clock.Instant) (plan *placement.Plan, me int) {
	steady := n.mover.willing != 0 && now.Mono.Sub(n.mover.willing) >= steadyAfter
	return n.planner.plan(census{members: &n.members, quiet: silentHolders(n.parts, now), cool: n.mover.cool,
		self:    placement.Candidate{ID: n.set.Process, Priority: n.set.Priority, Roles: n.desired.Roles, Steady: steady, Soon: !steady},
		willing: n.desired.Willing(now) && !n.set.Observer && n.set.Alive(now)}, expected, now)
}

// silentHolders returns the processes that hold something and of which nothing was read for
// half of their lease, though the log works: they are probably dead.
func silentHolders(parts []*partition, now clock.Instant) map[string]bool {
	var silent map[string]bool
	for _, p := range parts {
		if p.link.stalled {
			continue
		}
		for h := range p.lease.Holders() {
			whole := h.FreeAt.Sub(h.Heard.Raw)
			if now.Raw.Sub(h.Heard.Raw) > whole/2 && !p.link.doubtful(h.Heard) {
				if silent == nil {
					silent = map[string]bool{}
				}
				silent[h.Session.Process] = true
			}
		}
	}
	return silent
}

// Unasked returns the members whose Preference is not known, for so many roles. The caller
// asks without a lock, as it is the user's code, and says what it heard with
// planner.preferred.
func (n *Node) Unasked() (ask []Member, roles int) {
	if n.set.Preference == nil || n.set.Nominated {
		return nil, 0
	}
	self := Member{Name: n.set.Name, Process: n.set.Process, Priority: n.set.Priority}
	return n.planner.unasked(&n.members, self, n.set.Observer, n.desired.Roles), n.desired.Roles
}
