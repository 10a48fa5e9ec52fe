package elector

import (
	"cmp"
	"slices"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/placement"
)

// planner keeps two plans of which process should lead which role: one with the members that were
// heard, and one that also includes members known from history only. A plan is made again only
// when its candidates have changed.
type planner struct {
	valid   [2]bool
	plans   [2]*placement.Plan
	who     [2][]placement.Candidate
	fresh   bool               // a plan was made since changed was last called
	prefs   map[string][]int32 // Preference's results, by process
	forR    int                // the number of roles that prefs are for
	sharing sharing            // which process should claim which vacant role
}

// census is the input from which a plan's candidates follow.
type census struct {
	members *members
	quiet   map[string]bool // holders that are silent and so probably dead
	cool    cooldowns       // processes that get nothing for now
	self    placement.Candidate
	willing bool // this process is a candidate itself
}

// forget makes the next plans be made again.
func (pl *planner) forget() { pl.valid = [2]bool{} }

// changed reports whether a plan was made since the last call.
func (pl *planner) changed() bool {
	c := pl.fresh
	pl.fresh = false
	return c
}

// plan returns the plan and the index of this process among its candidates, which is negative if
// it is no candidate. With expected, the plan includes members known from history only: when all
// start together, they are likely to be present.
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

// candidates returns the processes that may claim.
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

// unasked returns the members, and this process unless it is an observer, for which Preference was
// not called for that number of roles.
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

// preferred stores a member's preferences by role. Those for another number of roles are out of
// date.
func (pl *planner) preferred(process string, prefs []int32) {
	if len(prefs) == pl.forR {
		pl.prefs[process] = prefs
		pl.forget()
	}
}

// sharing is which process should claim which role that nobody holds, computed for all partitions
// at once. Computed for each partition alone, the same processes would come first on all of them.
type sharing struct {
	plan  *placement.Plan
	fresh bool
	at    clock.Mono
	first []int32
}

// recent reports whether the result may still be used.
func (sh *sharing) recent(t time.Duration, now clock.Instant) bool {
	return now.Mono.Sub(sh.at) < clock.Behind(t)
}

// free gives the memory back once the result may no longer be used.
func (sh *sharing) free(t time.Duration, now clock.Instant) {
	if !sh.recent(t, now) {
		*sh = sharing{}
	}
}

// uncovered marks a role that had a holder when vacant roles were shared out.
const uncovered = int32(-3)

// shares returns, by role, which of the plan's candidates should claim it if nobody holds it,
// including these roles of the shard; fresh assumes that nobody holds anything. With several
// partitions, roles that become vacant within T/20, such as those that a dead process held on
// many, are shared out together. With one partition only the given roles are: after an outage
// holders are found silent one after the other, and sharing out the roles of all takes long.
func (s *shard) shares(plan *placement.Plan, roles []int32, fresh bool, now clock.Instant) []int32 {
	sh := &s.planner.sharing
	recent := sh.plan == plan && sh.fresh == fresh && len(sh.first) == s.desired.Roles && sh.recent(s.set.T, now)
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
	open := roles // with one partition these are the numbers of the roles
	if len(s.shards) > 1 {
		open = vacantOf(s.desired.Roles, holders)
	}
	for i, first := range plan.Assign(open, holders) {
		sh.first[open[i]] = first
	}
	return sh.first
}

// vacantOf returns which of so many roles nobody holds; without holders that is all.
func vacantOf(roles int, holders []int32) (open []int32) {
	for role := range roles {
		if holders == nil || holders[role] == placement.Nobody {
			open = append(open, int32(role))
		}
	}
	return open
}

// plan returns the current plan and the index of this process in it.
func (k *common) plan(expected bool, now clock.Instant) (plan *placement.Plan, me int) {
	steady := k.mover.willing != 0 && now.Mono.Sub(k.mover.willing) >= steadyAfter
	return k.planner.plan(census{members: &k.members, quiet: silentHolders(k.shards, now), cool: k.mover.cool,
		self:    placement.Candidate{ID: k.set.Process, Priority: k.set.Priority, Roles: k.desired.Roles, Steady: steady, Soon: !steady},
		willing: k.able(now) && !k.set.Observer}, expected, now)
}

// silentHolders returns the holders from which nothing was read for half of their lease although
// the log works: they are probably dead.
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

// Unasked returns the members for which Preference was not called, and the number of roles. The
// caller calls it without a lock, since it is the user's code, and stores the results with
// planner.preferred.
func (n *Node) Unasked() (ask []Member, roles int) {
	if n.set.Preference == nil || n.set.Nominated {
		return nil, 0
	}
	self := Member{Name: n.set.Name, Process: n.set.Process, Priority: n.set.Priority}
	return n.planner.unasked(&n.members, self, n.set.Observer, n.desired.Roles), n.desired.Roles
}

// holders returns the holder of each role, as the index of a candidate of the plan. Roles that no
// member can have do not count: a record that names one on one of many partitions would otherwise
// cost memory for all that lie below it on the others.
func (k *common) holders(plan *placement.Plan, now clock.Instant) []int32 {
	total := k.desired.Roles
	for _, p := range k.shards {
		if r := p.lease.Roles(); r > 0 {
			total = max(total, min(p.role(r-1)+1, lease.MaxRoles))
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
		}, func(u, i int32) {
			if role := p.role(u); role < len(out) {
				out[role] = i
			}
		})
		for _, h := range p.hands.all {
			if h.to == "" {
				continue
			}
			i := int32(plan.Find(h.to))
			for u := range h.roles.all() {
				if role := p.role(u); role < len(out) { // not if R is smaller by now and the log began again
					out[role] = i
				}
			}
		}
	}
	return out
}

// expected returns, by role, the holder, or the process to which the role is being handed over:
// roles on their way to a process must not count as its free capacity.
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
