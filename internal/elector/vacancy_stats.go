package elector

import (
	"github.com/goneli/neli/internal/clock"
)

// vacancyStats is since when roles of one partition have been vacant, as others are told
// (Status). It is for counters only: nothing is decided by it. It is exact, and costs a store
// for each role that becomes vacant or is won: many roles may do so at once, so there are
// neither timers nor maps.
type vacancyStats struct {
	since []clock.Raw // by role below R: 0: it is not vacant, or nobody knows
	count int         // how many are vacant
	at    clock.Raw   // until when they are accounted for
}

// vacated notes that roles below R are vacant, from now on if they were not before.
func (v *vacancyStats) vacated(roles []int32, below int32, now clock.Instant) {
	for _, role := range roles {
		if role >= below {
			continue
		}
		if len(v.since) == 0 {
			v.since = make([]clock.Raw, below)
		}
		if v.since[role] == 0 {
			v.since[role] = now.Raw
			v.count++
		}
	}
}

// occupied notes that roles have a holder, and adds to c for how long they were vacant.
func (v *vacancyStats) occupied(roles []int32, c *Counters, now clock.Instant) {
	if v.count == 0 {
		return
	}
	won, since := 0, clock.Raw(0) // mostly all were vacated together
	for _, role := range roles {
		if int(role) >= len(v.since) || v.since[role] == 0 {
			continue
		}
		if v.since[role] != since {
			c.Vacancies.Add(now.Raw.Sub(since), won)
			won, since = 0, v.since[role]
		}
		won++
		v.since[role] = 0
		v.count--
	}
	c.Vacancies.Add(now.Raw.Sub(since), won)
}

// resize follows R. Nobody waits any more for roles that are not below it.
func (v *vacancyStats) resize(below int) {
	for _, since := range v.since[min(below, len(v.since)):] {
		if since != 0 {
			v.count--
		}
	}
	if len(v.since) > 0 {
		v.since = append(v.since[:min(below, len(v.since))], make([]clock.Raw, max(0, below-len(v.since)))...)
	}
}

// account adds to c for how long roles have been vacant until now. While a newer version may
// hold whatever is vacant, it does not count. It has to be called before anything is read:
// what is vacant was so until then.
func (v *vacancyStats) account(newerUntil clock.Raw, c *Counters, now clock.Instant) {
	if v.count > 0 {
		if from := max(v.at, newerUntil); now.Raw > from {
			c.Leaderless += now.Raw.Sub(from).Seconds() * float64(v.count)
		}
	}
	v.at = now.Raw
}
