package elector

import (
	"cmp"
	"slices"

	"github.com/goneli/neli/internal/clock"
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
	sharing sharing            // who should claim what is vacant (shard_claims.go)
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
