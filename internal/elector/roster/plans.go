package roster

import (
	"cmp"
	"slices"
	"time"

	"github.com/goneli/neli/internal/byrole"
	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/placement"
)

// Planner keeps two plans of which process should lead which role: one with the members that were
// heard, and one that also includes members known from history only. A plan is made again only
// after Forget, or if its candidates or weights have changed.
type Planner struct {
	valid      [2]bool
	plans      [2]*placement.Plan
	who        [2][]placement.Candidate
	weights    [2]*placement.Weights
	fresh      bool               // a plan was made since Changed was last called
	prefs      map[string]opinion // Preference's results, by process
	forR       int                // the number of roles that prefs are for
	young      young
	assignment assignment // which process should claim which vacant role
}

// opinion is what Preference returned for each role, and the description of the member that it got.
type opinion struct {
	of     Member
	byRole []int32
}

// Census is the input from which a plan's candidates follow.
type Census struct {
	Members *Members
	Quiet   map[string]bool                      // holders that are silent and so probably dead
	Cool    func(id string, now clock.Mono) bool // the process gets nothing for now
	Self    placement.Candidate
	Willing bool // this process is a candidate itself
	Weights *placement.Weights
}

// Forget makes the next calls of Plan make the plans anew.
func (pl *Planner) Forget() { pl.valid = [2]bool{} }

// Free gives back memory that is needed only while roles are vacant.
func (pl *Planner) Free(t time.Duration, now clock.Instant) { pl.assignment.free(t, now) }

// Assign returns which candidate should claim each vacant role.
func (pl *Planner) Assign(plan *placement.Plan, v Vacant, t time.Duration, now clock.Instant) []int32 {
	return pl.assignment.with(plan, v, t, now)
}

// Changed reports whether a plan was made since the last call.
func (pl *Planner) Changed() bool {
	c := pl.fresh
	pl.fresh = false
	return c
}

// Plan returns the plan and the index of this process among its candidates, which is negative if
// it is no candidate. With expected, the plan includes members known from history only: when all
// start together, they are likely to be present.
func (pl *Planner) Plan(c Census, expected bool, now clock.Instant) (plan *placement.Plan, me int) {
	i := 0
	if expected {
		i = 1
	}
	who := pl.candidates(c, expected, now)
	if !pl.valid[i] || pl.weights[i] != c.Weights || !slices.EqualFunc(who, pl.who[i], sameCandidate) {
		pl.plans[i], pl.who[i], pl.weights[i], pl.valid[i] = placement.Weighted(who, c.Weights), who, c.Weights, true
		pl.fresh = true
	}
	return pl.plans[i], pl.plans[i].Find(c.Self.ID)
}

func sameCandidate(a, b placement.Candidate) bool {
	return a.ID == b.ID && a.Priority == b.Priority && a.Roles == b.Roles && a.Max == b.Max && a.Steady == b.Steady && a.Soon == b.Soon &&
		len(a.Prefs) == len(b.Prefs)
}

// candidates returns the processes that may claim. Caps count only if all of them know caps: a member of an
// older version would hand roles to a capped one, which would hand them on, to and fro.
func (pl *Planner) candidates(c Census, expected bool, now clock.Instant) []placement.Candidate {
	who, all := make([]placement.Candidate, 0, c.Members.Size()), true
	until := pl.gathered(c.Members, now)
	for id, m := range c.Members.by {
		if !m.nominated || m.suspect || !m.present && !expected || c.Quiet[id] {
			continue
		}
		all = all && m.caps
		cool := c.Cool(id, now.Mono)
		early := until != 0 && m.present && pl.level(c, id, m) && pl.young.early(id, m, until)
		steady := m.present && (early || now.Mono.Sub(m.since) >= SteadyAfter) && now.Mono.Sub(m.heard.Mono) < 2*max(m.period, HelloEvery) && !cool
		soon := !steady && m.present && !cool && m.staying(now)
		who = append(who, placement.Candidate{ID: id, Priority: m.priority, Roles: m.roles, Max: m.maxRoles, Steady: steady, Soon: soon, Prefs: pl.prefs[id].byRole})
	}
	if c.Willing {
		self := c.Self
		self.Prefs = pl.prefs[self.ID].byRole
		who = append(who, self)
	}
	for i := range who {
		if !all {
			who[i].Max = 0
		}
	}
	slices.SortFunc(who, func(a, b placement.Candidate) int { return cmp.Compare(a.ID, b.ID) })
	return who
}

// level reports whether a member deserves every role as much as this process, so that only balance
// moves roles between them.
func (pl *Planner) level(c Census, id string, m *member) bool {
	return m.priority == c.Self.Priority && pl.prefs[id].byRole == nil && pl.prefs[c.Self.ID].byRole == nil
}

// Unasked returns the members, and this process unless it is an observer, for which Preference was
// not called yet with that number of roles and their present description.
func (pl *Planner) Unasked(ms *Members, self Member, observer bool, roles int) (ask []Member) {
	if pl.forR != roles || pl.prefs == nil {
		pl.prefs, pl.forR = map[string]opinion{}, roles
	}
	for id := range pl.prefs {
		if ms.by[id] == nil && id != self.Process {
			delete(pl.prefs, id)
		}
	}
	for id, m := range ms.by {
		if of := described(m.public(id)); pl.prefs[id].of != of {
			ask = append(ask, of)
		}
	}
	if of := described(self); !observer && pl.prefs[self.Process].of != of {
		ask = append(ask, of)
	}
	return ask
}

// described is what Preference is told of a member: what is the same at every process.
func described(m Member) Member {
	return Member{Name: m.Name, Process: m.Process, Priority: m.Priority, Advertise: m.Advertise, Zone: m.Zone}
}

// Preferred stores a member's preferences by role, unless they are out of date: for another number of roles.
func (pl *Planner) Preferred(of Member, prefs []int32) {
	if len(prefs) == pl.forR {
		pl.prefs[of.Process] = opinion{of, prefs}
		pl.Forget()
	}
}

// assignment is which process should claim which role that nobody holds, computed for all partitions
// at once. Computed for each partition alone, the same processes would come first on all of them.
type assignment struct {
	plan  *placement.Plan
	fresh bool
	at    clock.Mono
	first []int32
}

// recent reports whether the result may still be used.
func (sh *assignment) recent(t time.Duration, now clock.Instant) bool {
	return now.Mono.Sub(sh.at) < clock.Behind(t)
}

// free gives the memory back once the result may no longer be used.
func (sh *assignment) free(t time.Duration, now clock.Instant) {
	if !sh.recent(t, now) {
		*sh = assignment{}
	}
}

// Uncovered marks a role that was not among those assigned.
const Uncovered = int32(-3)

// Vacant is vacant roles of a shard to be assigned.
type Vacant struct {
	Roles   []int32 // as the shard numbers them
	Of      byrole.Numbering
	Fresh   bool // assume that nobody holds anything
	Wanted  int  // R
	Holders func() []int32
}

// with returns which candidate should claim each role; it covers those of v.
func (sh *assignment) with(plan *placement.Plan, v Vacant, t time.Duration, now clock.Instant) []int32 {
	recent := sh.plan == plan && sh.fresh == v.Fresh && len(sh.first) == v.Wanted && sh.recent(t, now)
	if recent && !slices.ContainsFunc(v.Roles, func(local int32) bool { return sh.first[v.Of.Role(local)] == Uncovered }) {
		return sh.first
	}
	if !recent || v.Of.Of > 1 {
		*sh = assignment{plan: plan, fresh: v.Fresh, at: now.Mono, first: slices.Repeat([]int32{Uncovered}, v.Wanted)}
	}
	var holders []int32
	if !v.Fresh {
		holders = v.Holders()
	}
	open := v.Roles // with one partition these are the numbers of the roles
	if v.Of.Of > 1 {
		open = vacantOf(v.Wanted, holders)
	}
	for i, first := range plan.Assign(open, holders) {
		sh.first[open[i]] = first
	}
	return sh.first
}

// vacantOf returns which of the roles below a number nobody holds: all if holders is nil.
func vacantOf(roles int, holders []int32) (open []int32) {
	for role := range roles {
		if holders == nil || holders[role] == placement.Nobody {
			open = append(open, int32(role))
		}
	}
	return open
}
