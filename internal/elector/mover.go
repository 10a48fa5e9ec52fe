package elector

import (
	"log/slog"
	"slices"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/balance"
	"github.com/goneli/neli/internal/elector/handover"
	"github.com/goneli/neli/internal/elector/roster"
	"github.com/goneli/neli/internal/placement"
	"github.com/goneli/neli/internal/term"
)

// placed returns the present state.
func (parts shards) placed(told uint64) balance.Placed {
	holders, calledOff := uint64(0), uint64(0)
	for _, s := range parts {
		holders += s.leases.Turns()
		calledOff += s.handovers.CallOffs()
	}
	return balance.Placed{Holders: holders, CalledOff: calledOff, Told: told}
}

// Transfer begins to hand a role over to a member, and returns the number of its Outcome. The
// error is ErrNotLeader, ErrLeadsAlready or ErrNoMember.
func (n *Node) Transfer(role int, to string, now clock.Instant) (id int, err error) {
	if len(n.shards) == 0 {
		return 0, balance.ErrNotLeader
	}
	s, local := n.shards.local(role)
	h := s.own.At(local)
	if _, leads := s.leases.Leads(local, now); !leads || h == nil || s.handovers.Of(local) != nil || !n.terms.Told(role) {
		return 0, balance.ErrNotLeader
	}
	member, err := n.members.Find(to, roster.Self{Process: n.set.Process, Name: n.set.Name}, now)
	if err != nil {
		return 0, err
	}
	if member == n.set.Process {
		return 0, balance.ErrLeadsAlready
	}
	if member == "" || !n.members.Wanting(member, role) {
		return 0, roster.ErrNoMember
	}
	id = n.requests.Number()
	hand := handover.NewHandover(term.Transferred, now, member, true)
	hand.Pin()
	n.mover.Await(balance.Move{Partition: s.Index, Role: local, Token: h.Token, To: member, Began: now.Mono, ID: id})
	n.do(now, func(in *In) { s.begin(in, hand, local) })
	n.step(s, now)
	return id, nil
}

// rebalance hands over roles that exceed this process's share, or for which another member is
// preferred.
func (n *Node) rebalance(now clock.Instant) {
	m := &n.mover
	willing := !n.set.Nominated && !n.set.Observer && able(n.set, n.desired, now)
	m.Contend(willing, now)
	if m.Overfull(n.shards.held(), n.set.MaxRoles) {
		n.ready.note(slog.LevelWarn, "this process leads more roles than Config.MaxRoles, as others have none to spare", "roles", n.shards.held(), "maxRoles", n.set.MaxRoles)
	}
	n.resolveMoves(now)
	if !m.Looks(willing && n.set.Rebalance, now) {
		return
	}
	if m.PutOff(n.shards.allBehind(now, n.set.T), now) {
		return
	}
	if n.planner.Undecided() {
		if first, leads := n.shards.first(n.set.Process); leads {
			n.planner.Decide(first && now.Mono.Sub(n.timing.opened) < roster.SteadyAfter, now)
		}
	}
	in := n.in(now)
	plan, me := in.plan(false)
	if m.Needless(n.planner.Changed(), n.shards.placed(n.terms.Counts().Told)) {
		return
	}
	var todo []placement.Move
	if me >= 0 {
		todo = plan.Moves(me, n.expected(plan, in), func(role int) bool {
			s, local := n.shards.local(role)
			h := s.own.At(local)
			return role < n.desired.Roles && h != nil && s.handovers.Of(local) == nil && h.Movable(now) && n.terms.Told(role)
		}, balance.MaxBatch)
	}
	for _, v := range m.Weigh(todo, func() bool { return n.shards.anyTenured(now) }, now) {
		to, roles := plan.Candidate(v.To).ID, v.Roles
		if m.Doubts(to) {
			roles = roles[:1]
		}
		n.move(to, roles, now)
	}
}

func (parts shards) held() (n int) {
	for _, s := range parts {
		n += s.own.Len()
	}
	return n
}

// first reports whether no other process leads anything as far as is known, which is everything, and
// whether this process leads something.
func (parts shards) first(process string) (first, leads bool) {
	first = true
	for _, s := range parts {
		first, leads = first && s.leases.Known(), leads || s.own.Len() > 0
		for h := range s.leases.Holders() {
			first = first && h.Session.Process == process
		}
	}
	return first, leads
}

// allBehind reports whether this process is behind in all logs.
func (parts shards) allBehind(now clock.Instant, t time.Duration) bool {
	return !slices.ContainsFunc(parts, func(s *shard) bool { return !s.main.link.Behind(now, t) })
}

// anyTenured reports whether a role may be moved later, but not yet.
func (parts shards) anyTenured(now clock.Instant) bool {
	return slices.ContainsFunc(parts, func(s *shard) bool { return s.own.AnyTenured(now) })
}

// move hands roles over to a process, one handover for each partition.
func (n *Node) move(to string, roles []int, now clock.Instant) {
	byPartition := map[*shard][]int32{}
	for _, role := range roles {
		s, local := n.shards.local(role)
		byPartition[s] = append(byPartition[s], local)
	}
	for s, some := range byPartition {
		slices.Sort(some)
		n.mover.Await(balance.Move{Partition: s.Index, Role: some[0], Token: s.own.At(some[0]).Token, To: to, Began: now.Mono})
		n.do(now, func(in *In) { s.begin(in, handover.NewHandover(term.Rebalanced, now, to, true), some...) })
	}
}

// resolveMoves ends the handovers whose outcome is known.
func (n *Node) resolveMoves(now clock.Instant) {
	limit := n.set.SuccessorWait + n.set.DrainTimeout + 2*clock.Wait(n.set.T, n.set.Rho)
	ended, failed := n.mover.Resolve(func(v balance.Move) balance.Fate {
		s := n.shards[v.Partition]
		g, held := s.leases.Holder(v.Role)
		// A log that is read again tells of earlier terms first.
		held = held && s.logs.CaughtUp() && !s.traits.Earlier(s.main.index, s.main.index, g.Token, v.Token)
		return balance.Fate{Held: held, Ours: held && s.traits.Ours(g, n.set.Process, v.Token), By: g.Session.Process,
			Kept: s.own.At(v.Role) != nil && s.handovers.Of(v.Role) == nil}
	}, limit, now)
	n.ready.ended(ended)
	for _, v := range failed {
		n.planner.Forget()
		n.ready.note(slog.LevelInfo, "member did not claim what was handed to it: nothing more for a while",
			"partition", v.Partition, "member", v.To, "for", v.Cooldown)
	}
}
