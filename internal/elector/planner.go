package elector

import (
	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/balance"
	"github.com/goneli/neli/internal/elector/roster"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/placement"
)

// assignments returns, by role, which of the plan's candidates should claim it if nobody holds it,
// including these roles of the shard; fresh assumes that nobody holds anything. With several
// partitions, roles that become vacant within T/20, such as those that a dead process held on
// many, are assigned together. With one partition only the given roles are: after an outage
// holders are found silent one after the other, and assigning the roles of all takes long.
func (s *shard) assignments(plan *placement.Plan, roles []int32, fresh bool, in *In) []int32 {
	v := roster.Vacant{Roles: roles, Of: s.Numbering, Fresh: fresh, Wanted: in.desired.Roles,
		Holders: func() []int32 { return in.plans.Holders(plan, in) }}
	return in.plans.Assign(plan, v, in)
}

// planning knows what this process wants and who is there, and says who should lead what.
type planning struct {
	set     *Settings
	desired Desired
	shards  shards
	members roster.Members
	planner roster.Planner
	mover   balance.Mover
}

// Plan is as in Plans.
func (p *planning) Plan(in *In, expected bool) (plan *placement.Plan, me int) {
	steady := p.mover.IsSteady(roster.SteadyAfter, in.now)
	return p.planner.Plan(roster.Census{Members: &p.members, Quiet: p.shards.silentHolders(in.now), Cool: p.mover.Rests,
		Self:    placement.Candidate{ID: p.set.Process, Priority: in.desired.Priority, Roles: in.desired.Roles, Max: p.set.MaxRoles, Steady: steady, Soon: !steady},
		Willing: in.able() && !p.set.Observer}, expected, in.now)
}

// Assign is as in Plans.
func (p *planning) Assign(plan *placement.Plan, v roster.Vacant, in *In) []int32 {
	return p.planner.Assign(plan, v, p.set.T, in.now)
}

func (p *planning) Full() bool { return balance.Full(p.shards.held(), p.set.MaxRoles) }

// Suspect is as in Plans.
func (p *planning) Suspect(process string) {
	if p.members.Suspect(process) {
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

// silentHolders returns the holders from which nothing was read for half of their lease although
// the log works: they are probably dead.
func (parts shards) silentHolders(now clock.Instant) map[string]bool {
	var silent map[string]bool
	for _, s := range parts {
		if s.main.link.IsStalled() {
			continue
		}
		for h := range s.leases.Holders() {
			whole := h.FreeAt.Sub(h.Heard.Raw)
			if now.Raw.Sub(h.Heard.Raw) > whole/2 && !s.main.link.Doubtful(h.Heard) {
				if silent == nil {
					silent = map[string]bool{}
				}
				silent[h.Session.Process] = true
			}
		}
	}
	return silent
}

// Holders returns the holder of each role, as the index of a candidate of the plan. Roles that no
// member can have do not count: a record that names one on one of many partitions would otherwise
// cost memory for all that lie below it on the others.
func (p *planning) Holders(plan *placement.Plan, in *In) []int32 {
	total := in.desired.Roles
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
			if in.now.Raw >= h.FreeAt || p.members.Suspected(h.Session.Process) {
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

// expected returns, by role, the holder, or the process to which the role is being handed over:
// roles on their way to a process must not count as its free capacity.
func (p *planning) expected(plan *placement.Plan, in *In) []int32 {
	out := p.Holders(plan, in)
	for _, s := range p.shards {
		for local, process := range s.claims.Promises() {
			if role := s.Role(local); role < len(out) && out[role] == placement.Nobody && p.members.Takes(process) {
				out[role] = int32(plan.Find(process))
			}
		}
	}
	return out
}
