package roster

import (
	"time"

	"github.com/goneli/neli/internal/clock"
)

// young makes a process that was the first to lead anything in its group hand roles over sooner to
// members that start after it. Nothing has run for long there, and those members would otherwise
// lead nothing for SteadyAfter. It is for balance only, and once for each member, so that a member
// that flaps takes nothing over.
type young struct {
	decided bool                // whether this process was the first
	until   clock.Mono          // the group is young until then; 0: it is not
	given   map[string]presence // by name: the members that had this advantage
}

// presence is one uninterrupted time in which a process was there.
type presence struct {
	process string
	since   clock.Mono
}

// youngAfter is how long a young group must have had no new member. If it were shared out between two
// starts, roles would have to move again, and may not for balance.MinTenure.
const youngAfter = 1500 * time.Millisecond

// Undecided reports whether it is not known yet if this process was the first to lead anything.
func (pl *Planner) Undecided() bool { return !pl.young.decided }

// Decide notes whether this process was the first in its group to lead anything.
func (pl *Planner) Decide(first bool, now clock.Instant) {
	pl.young = young{decided: true}
	if first {
		pl.young.until, pl.young.given = now.Mono.Add(SteadyAfter), map[string]presence{}
	}
}

// settled reports whether the group is young, and no member is newer than youngAfter.
func (y *young) settled(ms *Members, now clock.Instant) bool {
	if now.Mono >= y.until {
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
	is := presence{id, m.since}
	if _, had := y.given[m.name]; !had {
		y.given[m.name] = is
	}
	return y.given[m.name] == is
}
