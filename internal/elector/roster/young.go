package roster

import (
	"slices"
	"time"

	"github.com/goneli/neli/internal/clock"
)

// young lets a process that was among the first to lead anything in its group hand roles over sooner to
// members that start after it. Nothing has run for long there, and these members would otherwise
// lead nothing for SteadyAfter. It is for balance only, and once for each member, so that a member
// that flaps takes nothing over.
type young struct {
	decided clock.Mono          // when it was known whether this process was the first; 0: not yet
	first   bool                // this process was the first
	given   map[string]presence // by name: the members that had this advantage
}

// presence is one uninterrupted time in which a process was there.
type presence struct {
	process string
	since   clock.Mono
}

// youngFor limits how long after the one before it a member may come and get its share early. Nothing is shared out by
// then: that takes youngAfter and a wait of 2 s in package balance. A member that comes later waits for SteadyAfter. If
// it had its share at once, some roles would move twice: where three start 10 s apart, the second has half of 64 roles
// by the time the third comes, so 10 of them would move on.
const youngFor = 3500 * time.Millisecond

// youngAfter is how long a young group must have had no new member before roles are shared out.
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

// gathered returns until when members have come to a young group, each soon after the one before. It is 0 if the group
// is not young, or if a member is newer than youngAfter.
func (pl *Planner) gathered(ms *Members, now clock.Instant) (until clock.Mono) {
	if !pl.IsYoung(now) {
		return 0
	}
	var came []clock.Mono
	for _, m := range ms.by {
		if !m.present || !m.nominated {
			continue
		}
		if now.Mono.Sub(m.since) < youngAfter {
			return 0
		}
		came = append(came, m.since)
	}
	slices.Sort(came)
	until = pl.young.decided
	for _, at := range came {
		if at.Sub(until) < youngFor {
			until = max(until, at)
		}
	}
	return until
}

// early reports whether a member of a young group gets its share before SteadyAfter.
func (y *young) early(id string, m *member, until clock.Mono) bool {
	if m.since > until {
		return false
	}
	is := presence{id, m.since}
	if _, had := y.given[m.name]; !had {
		y.given[m.name] = is
	}
	return y.given[m.name] == is
}
