package roster

import (
	"time"

	"github.com/goneli/neli/internal/clock"
)

// young makes a process that was among the first to lead anything in its group hand roles over sooner to
// members that start after it. Nothing has run for long there, and those members would otherwise
// lead nothing for SteadyAfter. It is for balance only, and once for each member, so that a member
// that flaps takes nothing over.
type young struct {
	decided clock.Mono          // when it was known whether this process was the first; 0: not yet
	first   bool                // it was
	given   map[string]presence // by name: the members that had this advantage
}

// presence is one uninterrupted time in which a process was there.
type presence struct {
	process string
	since   clock.Mono
}

// Members that come within youngFor get their share early. One that comes later waits for SteadyAfter, and
// room is kept for it: what moved early may not move on for balance.MinTenure.
const youngFor = 4 * time.Second

// youngAfter is how long a young group must have had no new member before it is shared out.
const youngAfter = 1500 * time.Millisecond

// Undecided reports whether it is not known yet if this process was the first to lead anything.
func (pl *Planner) Undecided() bool { return pl.young.decided == 0 }

// Decide notes whether this process was the first in its group to lead anything.
func (pl *Planner) Decide(first bool, now clock.Instant) {
	pl.young = young{decided: now.Mono, first: first, given: map[string]presence{}}
}

// IsYoung reports whether this process was the first to lead anything, not long ago.
func (pl *Planner) IsYoung(now clock.Instant) bool {
	return pl.young.first && now.Mono.Sub(pl.young.decided) < SteadyAfter
}

// settled reports whether the group is young, and no member is newer than youngAfter.
func (y *young) settled(ms *Members, now clock.Instant) bool {
	if !y.first || now.Mono.Sub(y.decided) >= SteadyAfter {
		return false
	}
	for _, m := range ms.by {
		if m.present && m.nominated && now.Mono.Sub(m.since) < youngAfter {
			return false
		}
	}
	return true
}

// early reports whether a member of a young group gets its share before SteadyAfter.
func (y *young) early(id string, m *member) bool {
	if m.since.Sub(y.decided) >= youngFor {
		return false
	}
	is := presence{id, m.since}
	if _, had := y.given[m.name]; !had {
		y.given[m.name] = is
	}
	return y.given[m.name] == is
}
