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
	if len(n.shards) == 0 {
		return 0, ErrNotLeader
	}
	p, u := n.local(role)
	h := p.holds.at(u)
	if _, leads := p.lease.Leads(u, now); !leads || h == nil || p.hands.of(u) != nil || !n.terms.Told(role) {
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
	p.handOver(hand, []int32{u}, id, now)
	p.step(now)
	return id, nil
}

// handOver begins a handover of roles, and waits for its outcome.
func (s *shard) handOver(h *handover, roles []int32, id int, now clock.Instant) {
	s.begin(h, roles...)
	s.mover.under = append(s.mover.under, move{partition: s.index, role: roles[0], token: s.holds.at(roles[0]).token, to: h.to,
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
	if m.putOff(allBehind(n.shards, now, n.set.T), now) {
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
			h := p.holds.at(u)
			return role < n.desired.Roles && h != nil && p.hands.of(u) == nil && h.movable(now) && n.terms.Told(role)
		}, maxBatch)
	}
	for _, v := range m.weigh(todo, func() bool { return tenured(n.shards, now) }, now) {
		n.move(plan.Candidate(v.To).ID, v.Roles, now)
	}
}

// allBehind reports whether this process is behind in all logs.
func allBehind(parts []*shard, now clock.Instant, t time.Duration) bool {
	return !slices.ContainsFunc(parts, func(p *shard) bool { return !p.main.link.behind(now, t) })
}

func tenured(parts []*shard, now clock.Instant) bool {
	for _, p := range parts {
		var last *hold
		for _, h := range p.holds.all() {
			if h != last && h.tenured(now) {
				return true
			}
			last = h
		}
	}
	return false
}

// move hands roles over to a process, those of each partition together.
func (n *Node) move(to string, roles []int, now clock.Instant) {
	byPartition := map[*shard][]int32{}
	for _, role := range roles {
		p, u := n.local(role)
		byPartition[p] = append(byPartition[p], u)
	}
	for p, some := range byPartition {
		slices.Sort(some)
		p.handOver(newHandover(term.Rebalanced, now, to, true), some, 0, now)
	}
}

// resolveMoves finds out what became of what is being handed over.
func (n *Node) resolveMoves(now clock.Instant) {
	limit := n.set.AnswerWait + n.set.Drain + 2*clock.Wait(n.set.T, n.set.Rho)
	ended, failed := n.mover.resolve(func(v move) fate {
		p := n.shards[v.partition]
		g, held := p.lease.Holder(v.role)
		f := fate{held: held, ours: held && p.lease.Ours(g, v.token), by: g.Session.Process}
		f.kept = p.holds.at(v.role) != nil && p.hands.of(v.role) == nil
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
func (k *common) plan(expected bool, now clock.Instant) (plan *placement.Plan, me int) {
	steady := k.mover.willing != 0 && now.Mono.Sub(k.mover.willing) >= steadyAfter
	return k.planner.plan(census{members: &k.members, quiet: silentHolders(k.shards, now), cool: k.mover.cool,
		self:    placement.Candidate{ID: k.set.Process, Priority: k.set.Priority, Roles: k.desired.Roles, Steady: steady, Soon: !steady},
		willing: k.desired.Willing(now) && !k.set.Observer && k.set.Alive(now)}, expected, now)
}

// silentHolders returns the processes that hold something and of which nothing was read for
// half of their lease, though the log works: they are probably dead.
func silentHolders(parts []*shard, now clock.Instant) map[string]bool {
	var silent map[string]bool
	for _, p := range parts {
		if p.main.link.stalled {
			continue
		}
		for h := range p.lease.Holders() {
			whole := h.FreeAt.Sub(h.Heard.Raw)
			if now.Raw.Sub(h.Heard.Raw) > whole/2 && !p.main.link.doubtful(h.Heard) {
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
