package elector

import (
	"log/slog"
	"slices"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/balance"
	"github.com/goneli/neli/internal/elector/handover"
	"github.com/goneli/neli/internal/elector/outside"
	"github.com/goneli/neli/internal/elector/roster"
	"github.com/goneli/neli/internal/elector/told"
	"github.com/goneli/neli/internal/elector/warm"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/placement"
	"github.com/goneli/neli/internal/term"
)

// planning knows what this process wants and who is there, and says who should lead what.
type planning struct {
	set     *Settings
	desired Desired
	shards  shards
	members roster.Members
	planner roster.Planner
	mover   balance.Mover
	warm    warm.Exchange
}

// Plan is as in Plans.
func (p *planning) Plan(expected bool, now clock.Instant) (plan *placement.Plan, me int) {
	steady := p.mover.IsSteady(roster.SteadyAfter, now)
	return p.planner.Plan(roster.Census{Members: &p.members, Quiet: p.shards.silentHolders(now), Cool: p.mover.Rests,
		Self:    placement.Candidate{ID: p.set.Process, Priority: p.desired.Priority, Roles: p.desired.Roles, Max: p.set.MaxRoles, Steady: steady, Soon: !steady},
		Willing: outside.Able(p.set, p.desired, now) && !p.set.Observer, Weights: p.desired.Weights}, expected, now)
}

// Assign is as in Plans.
func (p *planning) Assign(plan *placement.Plan, v roster.Vacant, now clock.Instant) []int32 {
	return p.planner.Assign(plan, v, p.set.T, now)
}

// Successors is as in Plans.
func (p *planning) Successors(roles []int32, now clock.Instant) []string {
	to := make([]string, len(roles))
	plan, me := p.Plan(false, now)
	if plan.Len() == 0 {
		return to
	}
	for i, c := range p.warm.Prefer(roles, plan.Assign(roles, p.Holders(plan, now)), plan) {
		if c >= 0 && int(c) != me {
			to[i] = plan.Candidate(int(c)).ID
		}
	}
	return to
}

func (p *planning) Full() bool { return balance.Full(p.shards.held(), p.set.MaxRoles) }

// Suspect is as in Plans.
func (p *planning) Suspect(process string) {
	if p.members.Suspect(process) {
		p.planner.Forget()
	}
}

// Revive is as in Plans.
func (p *planning) Revive(process string, lapsed bool, now clock.Instant) {
	if p.members.Revive(process, lapsed, now) {
		p.planner.Forget()
	}
}

// nameOf returns the name of a process; empty if it is unknown.
func (p *planning) nameOf(process string) string {
	if process == p.set.Process {
		return p.set.Name
	}
	return p.members.NameOf(process)
}

// Holders is as in Plans. Roles that no member can have do not count: a record that names one on one of
// many partitions would otherwise cost memory for all roles below it, on all partitions.
func (p *planning) Holders(plan *placement.Plan, now clock.Instant) []int32 {
	total := p.desired.Roles
	for _, s := range p.shards {
		if r := s.leases.Roles(); r > 0 {
			total = max(total, min(s.Role(r-1)+1, lease.MaxRoles))
		}
	}
	out := make([]int32, total)
	for i := range out {
		out[i] = placement.Nobody
	}
	for _, s := range p.shards {
		s.leases.Each(func(h lease.HolderState) int32 {
			if now.Raw >= h.FreeAt || p.members.Suspected(h.Session.Process) {
				return placement.Nobody
			}
			return int32(plan.Find(h.Session.Process))
		}, func(local, i int32) {
			if role := s.Role(local); role < len(out) {
				out[role] = i
			}
		})
		for _, h := range s.handovers.InProgress() {
			if h.Successor() == "" {
				continue
			}
			i := int32(plan.Find(h.Successor()))
			for local := range h.Each() {
				if role := s.Role(local); role < len(out) { // not if R is smaller by now and the log began again
					out[role] = i
				}
			}
		}
	}
	return out
}

// expected is Holders, except that a role released in favour of a process counts as its own: roles
// on their way to a process must not count as its free capacity.
func (p *planning) expected(plan *placement.Plan, now clock.Instant) []int32 {
	out := p.Holders(plan, now)
	for _, s := range p.shards {
		for local, process := range s.claims.Promises() {
			if role := s.Role(local); role < len(out) && out[role] == placement.Nobody && p.members.Takes(process) {
				out[role] = int32(plan.Find(process))
			}
		}
	}
	return out
}

// wants is what a Hello says that this process may claim; nil means everything.
func (p *planning) wants(now clock.Instant) []int {
	wants := []int{}
	switch {
	case p.desired.Closing:
	case !p.set.Nominated:
		if outside.Able(p.set, p.desired, now) {
			return nil
		}
	default:
		for _, s := range p.shards {
			if s.nomination.MayClaim() {
				wants = append(wants, s.Index)
			}
		}
	}
	return wants
}

func (p *planning) announcement(wants []int) *lease.Announcement {
	return &lease.Announcement{Priority: p.desired.Priority, Roles: p.desired.Roles, Wants: wants, Leaving: p.desired.Closing,
		Period: roster.HelloPeriod(p.members.Size()), Advertise: p.set.Advertise, Zone: p.set.Zone, Caps: true, MaxRoles: p.set.MaxRoles, Prepares: p.set.Prepares}
}

// Members returns the other processes that are present, and this one unless it is an observer.
func (p *planning) Members(now clock.Instant) []roster.Member {
	p.members.Expire(now, p.planner.Forget)
	out := p.members.All()
	if !p.set.Observer {
		out = append(out, p.self(p.mayClaim(now), now))
	}
	return out
}

// self is what this process says of itself.
func (p *planning) self(nominated bool, now clock.Instant) roster.Member {
	return roster.Member{Name: p.set.Name, Process: p.set.Process, Self: true, Nominated: nominated, Priority: p.desired.Priority,
		Roles: p.desired.Roles, Advertise: p.set.Advertise, Zone: p.set.Zone, MaxRoles: p.set.MaxRoles, Heard: now}
}

// mayClaim reports whether this process may claim some roles.
func (p *planning) mayClaim(now clock.Instant) bool {
	wants := p.wants(now)
	return wants == nil || len(wants) > 0
}

// Unasked returns the members for which Preference was not called, and the number of roles. The
// caller calls Preference without a lock, since it is the user's code, and stores the results with
// planner.Preferred.
func (p *planning) Unasked() (ask []roster.Member, roles int) {
	if p.set.Preference == nil || p.set.Nominated {
		return nil, 0
	}
	return p.planner.Unasked(&p.members, p.self(false, clock.Instant{}), p.set.Observer, p.desired.Roles), p.desired.Roles
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
	n.do(now, func(told.In, clock.Instant) { s.begin(hand, local) })
	n.step(s, now)
	return id, nil
}

// rebalance hands over roles that exceed this process's share, or for which another member is preferred.
func (n *Node) rebalance(now clock.Instant) {
	m := &n.mover
	willing := !n.set.Nominated && !n.set.Observer && outside.Able(n.set, n.desired, now)
	m.Contend(willing, now)
	if m.Overfull(n.shards.held(), n.set.MaxRoles) {
		n.ready.note(slog.LevelWarn, "this process leads more roles than Config.MaxRoles, as others have none to spare", "roles", n.shards.held(), "maxRoles", n.set.MaxRoles)
	}
	n.resolveMoves(now)
	n.ready.ended(m.Shared(!willing)) // an unwilling process hands everything over anyway
	if !m.Looks(willing && (n.set.Rebalance || m.Sharing()), now) {
		return
	}
	if m.PutOff(n.shards.allBehind(now, n.set.T), now) {
		return
	}
	if n.planner.Undecided() {
		if first, leads := n.shards.first(); leads {
			n.planner.Decide(first && n.timing.OpenFor(now) < roster.SteadyAfter, now)
		}
	}
	plan, me := n.Plan(false, now)
	if m.Needless(n.planner.Changed(), n.shards.placed(n.terms.Counts().Told)) {
		return
	}
	var todo []placement.Move
	if me >= 0 {
		todo = m.Moves(n.warm.Toward(plan))(me, n.expected(plan, now), func(role int) bool {
			s, local := n.shards.local(role)
			h := s.own.At(local)
			return role < n.desired.Roles && h != nil && s.handovers.Of(local) == nil && h.Movable(now) && n.terms.Told(role) &&
				!n.warm.Rests(s.Index, local, now)
		}, balance.MaxBatch)
	}
	n.ready.ended(m.Shared(len(todo) == 0))
	for _, v := range m.Weigh(todo, func() bool { return n.shards.anyTenured(now) || n.warm.Offers.AnyRests(now) }, now) {
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

// first reports whether no other process led anything when this one learned who leads, and whether this
// process leads something. Processes that start together may all be first.
func (parts shards) first() (first, leads bool) {
	first = true
	for _, s := range parts {
		first, leads = first && s.leases.Known() && !s.joined, leads || s.own.Len() > 0
	}
	return first, leads
}

// move hands roles over to a process, one handover for each partition.
func (n *Node) move(to string, roles []int, now clock.Instant) {
	roles, prepared := warm.ForBalance(to, roles, &n.members, n.planner.IsYoung(now))
	byPartition := map[*shard][]int32{}
	for _, role := range roles {
		s, local := n.shards.local(role)
		byPartition[s] = append(byPartition[s], local)
	}
	for s, some := range byPartition {
		slices.Sort(some)
		hand, parts := warm.Hand(to, some, prepared, now)
		for part := range parts {
			n.mover.Await(balance.Move{Partition: s.Index, Role: part[0], Count: len(part), Token: s.own.At(part[0]).Token, To: to, Began: now.Mono})
		}
		n.do(now, func(told.In, clock.Instant) { s.begin(hand, some...) })
	}
}

// resolveMoves ends the handovers whose outcome is known.
func (n *Node) resolveMoves(now clock.Instant) {
	limit := n.set.SuccessorWait + n.set.DrainTimeout + 2*clock.Wait(n.set.T, n.set.Rho)
	ended, failed := n.mover.Resolve(func(v balance.Move) balance.Fate {
		s := n.shards[v.Partition]
		g, held := s.leases.Holder(v.Role)
		// A log that is read again tells of earlier terms first.
		held = held && s.logs.CaughtUp() && !s.traits.Earlier(s.main.Index, s.main.Index, g.Token, v.Token)
		longer, spared := n.warm.Spares(v.To, v.Partition, &n.members, now)
		return balance.Fate{Longer: longer, Spared: spared, Held: held, Ours: held && s.traits.Ours(g, n.set.Process, v.Token), By: g.Session.Process,
			Kept: s.own.At(v.Role) != nil && s.handovers.Of(v.Role) == nil}
	}, limit, now)
	n.ready.ended(ended)
	for _, v := range failed {
		n.planner.Forget()
		n.ready.note(slog.LevelInfo, "member did not claim what was handed to it: nothing more for a while",
			"partition", v.Partition, "member", v.To, "for", v.Cooldown)
	}
}
