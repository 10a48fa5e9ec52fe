package elector

import (
	"cmp"
	"slices"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/placement"
)

// planner keeps two plans of who should lead what: one that reckons with the members that
// were heard, and one that also reckons with those of which only history tells. A plan is
// made anew only when its candidates have changed.
type planner struct {
	valid   [2]bool
	plans   [2]*placement.Plan
	who     [2][]placement.Candidate
	fresh   bool               // a plan was made since changed was last asked
	prefs   map[string][]int32 // Preference's words, by process
	forR    int                // the number of roles that prefs are for
	sharing sharing            // who should claim what is vacant
}

// census is what the candidates of a plan follow from.
type census struct {
	members *members
	quiet   map[string]bool // processes that are probably dead: they hold something, and are silent
	cool    cooldowns       // processes to which nothing is handed over for now
	self    placement.Candidate
	willing bool // this process is a candidate itself
}

// forget lets the next plans be made anew.
func (pl *planner) forget() { pl.valid = [2]bool{} }

// changed reports whether there is another plan than when it was last asked.
func (pl *planner) changed() bool {
	c := pl.fresh
	pl.fresh = false
	return c
}

// plan returns the plan, and the index of this process among its candidates, which is
// negative if it is none of them. With expected it reckons with members of whom only history tells: when all start
// together, they are likely to be there. Otherwise it reckons with those that were heard.
func (pl *planner) plan(c census, expected bool, now clock.Instant) (plan *placement.Plan, me int) {
	i := 0
	if expected {
		i = 1
	}
	who := pl.candidates(c, expected, now)
	if !pl.valid[i] || !slices.EqualFunc(who, pl.who[i], sameCandidate) {
		pl.plans[i], pl.who[i], pl.valid[i] = placement.New(who), who, true
		pl.fresh = true
	}
	return pl.plans[i], pl.plans[i].Find(c.self.ID)
}

func sameCandidate(a, b placement.Candidate) bool {
	return a.ID == b.ID && a.Priority == b.Priority && a.Roles == b.Roles && a.Steady == b.Steady && a.Soon == b.Soon &&
		len(a.Prefs) == len(b.Prefs)
}

// candidates are the processes that may claim.
func (pl *planner) candidates(c census, expected bool, now clock.Instant) []placement.Candidate {
	who := make([]placement.Candidate, 0, c.members.size())
	for id, m := range c.members.by {
		if !m.nominated || m.suspect || !m.present && !expected || c.quiet[id] {
			continue
		}
		cool := c.cool.leaves(id, now.Mono)
		steady := m.present && now.Mono.Sub(m.since) >= steadyAfter && now.Mono.Sub(m.heard.Mono) < 2*max(m.period, helloEvery) && !cool
		soon := !steady && m.present && !cool && m.staying(now)
		who = append(who, placement.Candidate{ID: id, Priority: m.priority, Roles: m.roles, Steady: steady, Soon: soon, Prefs: pl.prefs[id]})
	}
	if c.willing {
		self := c.self
		self.Prefs = pl.prefs[self.ID]
		who = append(who, self)
	}
	slices.SortFunc(who, func(a, b placement.Candidate) int { return cmp.Compare(a.ID, b.ID) })
	return who
}

// unasked returns the members, and this process if it is not an observer, whose Preference
// is not known for so many roles.
func (pl *planner) unasked(ms *members, self Member, observer bool, roles int) (ask []Member) {
	if pl.forR != roles || pl.prefs == nil {
		pl.prefs, pl.forR = map[string][]int32{}, roles
	}
	for id := range pl.prefs {
		if ms.by[id] == nil && id != self.Process {
			delete(pl.prefs, id)
		}
	}
	for id, m := range ms.by {
		if pl.prefs[id] == nil {
			ask = append(ask, Member{Name: m.name, Process: id, Priority: m.priority})
		}
	}
	if pl.prefs[self.Process] == nil && !observer {
		ask = append(ask, self)
	}
	return ask
}

// preferred says how much a member is wanted, by role. What was asked for another number
// of roles is out of date.
func (pl *planner) preferred(process string, prefs []int32) {
	if len(prefs) == pl.forR {
		pl.prefs[process] = prefs
		pl.forget()
	}
}

// sharing is who should claim what nobody holds, by role, worked out for all partitions
// at once: for each by itself, the same processes would come first on all of them.
type sharing struct {
	plan  *placement.Plan
	fresh bool
	at    clock.Mono
	first []int32
}

// uncovered stands for a role that was held when vacant ones were shared out.
const uncovered = int32(-3)

// shares says, by role, which of the plan's candidates should claim it if nobody holds
// it, these roles of p among them; fresh reckons with nobody holding anything. With several
// partitions, what becomes vacant within T/20, such as what a dead process held on many, is
// shared out once. With one, only what is asked for is: after an outage holders are found to
// be silent one after the other, and what all of them held takes long to share out.
func (s *shard) shares(plan *placement.Plan, roles []int32, fresh bool, now clock.Instant) []int32 {
	sh := &s.planner.sharing
	recent := sh.plan == plan && sh.fresh == fresh && len(sh.first) == s.desired.Roles && now.Mono.Sub(sh.at) < clock.Behind(s.set.T)
	if recent && !slices.ContainsFunc(roles, func(role int32) bool { return sh.first[s.role(role)] == uncovered }) {
		return sh.first
	}
	if !recent || len(s.shards) > 1 {
		*sh = sharing{plan: plan, fresh: fresh, at: now.Mono, first: slices.Repeat([]int32{uncovered}, s.desired.Roles)}
	}
	var holders []int32
	if !fresh {
		holders = s.holders(plan, now)
	}
	open := s.open(roles, holders)
	for i, first := range plan.Assign(open, holders) {
		sh.first[open[i]] = first
	}
	return sh.first
}

// open are the roles, ascending, that are shared out together with these of p.
func (s *shard) open(roles, holders []int32) []int32 {
	var open []int32
	if len(s.shards) == 1 {
		for _, role := range roles {
			open = append(open, int32(s.role(role)))
		}
		return open
	}
	for role := range s.desired.Roles {
		if holders == nil || holders[role] == placement.Nobody {
			open = append(open, int32(role))
		}
	}
	return open
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
		for _, h := range p.hands.all {
			if h.to == "" {
				continue
			}
			i := int32(plan.Find(h.to))
			for role := range h.roles.all() {
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
		for u, s := range p.claims.successors.all() {
			if role := p.role(u); role < len(out) && out[role] == placement.Nobody && k.members.takes(s.process) {
				out[role] = int32(plan.Find(s.process))
			}
		}
	}
	return out
}
