package elector

import (
	"errors"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/tally"
	"github.com/goneli/neli/internal/term"
)

// Counters only grow. Each is counted where its event is handled anyway, so none costs anything
// for each role, except the vacancies, which cost a store.
type Counters struct {
	Records, Foreign, Newer, Malformed uint64 // read

	RequestsAccepted uint64 // by the application
	RequestsRefused  uint64 // by the application, or without asking it

	LogResets      uint64 // how often reading of a log began again
	Contradictions uint64 // how often another process had another fold
	Diverged       string // name of the last process that the majority contradicted
	Appended       uint64 // acknowledged records
	AppendFailed   uint64 // others; they may be in the log or not
	RoundTrips     tally.Timing
	Drains         tally.Timing // one for each handover
	Steps          tally.Timing // for how long the Elector's lock was held
	Vacancies      tally.Timing // one for each role
	Leaderless     float64      // seconds, added up over roles
}

// counts are the counters, and what else Stats needs.
type counts struct {
	Counters
	read clock.Instant // when a record was last read
}

// skipped counts a skipped record.
func (c *counts) skipped(bad error) {
	switch {
	case errors.Is(bad, lease.ErrForeign), errors.Is(bad, lease.ErrOtherLog):
		c.Foreign++
	case errors.Is(bad, lease.ErrNewer):
		c.Newer++
	default:
		c.Malformed++
	}
}

// Stats are the counters, and the current state.
type Stats struct {
	Counters
	Terms term.Counts

	Led                   int // roles below R that the application leads
	Held, Vacant, Unknown int // roles below R, by Status; R in all
	Members               int // the length of what Members returns

	Now      clock.Instant
	Evidence clock.Instant // the oldest V of a held role; zero: none is held
	Read     clock.Instant // when a record was last read; zero: none was
}

// Stats looks at the holder of every role; it costs nothing while nobody calls it.
func (n *Node) Stats(now clock.Instant) Stats {
	var c headcount
	for n.headcount(&c, now) {
	}
	return n.stats(&c, now)
}

// stats is Stats with a headcount that was taken before.
func (n *Node) stats(c *headcount, now clock.Instant) Stats {
	s := Stats{Now: now, Terms: n.terms.Counts(), Led: n.terms.Led(now, n.desired.Roles), Read: n.counts.read,
		Held: c.of[Held], Vacant: c.of[Vacant], Unknown: c.of[Unknown]}
	for _, p := range n.shards {
		p.vacancies.addUp(now)
		if v := p.holds.evidence(now); v != (clock.Instant{}) && (s.Evidence == (clock.Instant{}) || now.Age(v) > now.Age(s.Evidence)) {
			s.Evidence = v
		}
	}
	if len(n.shards) == 0 {
		s.Unknown = n.desired.Roles
	}
	for _, m := range n.members.by {
		if m.present {
			s.Members++
		}
	}
	if !n.set.Observer {
		s.Members++
	}
	s.Counters = n.counts.Counters
	s.RequestsAccepted, s.RequestsRefused = n.requests.inbox.accepted, n.requests.inbox.refused
	return s
}

// vacancyStats is since when roles of one partition have been vacant (Status). It is for counters
// only and decides nothing. It is exact and costs a store for each role that becomes vacant or is
// won. Many roles may do so at once, so it uses neither timers nor maps.
type vacancyStats struct {
	since []clock.Raw // by role below R; 0: not vacant, or unknown
	count int         // vacant roles
	at    clock.Raw   // accounted for until then
}

// vacated notes that a role is vacant: from now on, unless it was before. Roles beyond R do not
// count.
func (v *vacancyStats) vacated(role, below int32, now clock.Instant) {
	if role >= below {
		return
	}
	if len(v.since) == 0 {
		v.since = make([]clock.Raw, below)
	}
	if v.since[role] == 0 {
		v.since[role] = now.Raw
		v.count++
	}
}

// occupied notes that a role has a holder. It returns since when the role was vacant; 0 if it was
// not.
func (v *vacancyStats) occupied(role int32) (since clock.Raw) {
	if v.count == 0 || int(role) >= len(v.since) {
		return 0
	}
	if since = v.since[role]; since != 0 {
		v.since[role] = 0
		v.count--
	}
	return since
}

// free gives the memory back while no role is vacant.
func (v *vacancyStats) free() {
	if v.count == 0 {
		v.since = nil
	}
}

// endedVacancies counts vacancies that end now. Most began together, and are counted together.
type endedVacancies struct {
	c     *Counters
	now   clock.Instant
	since clock.Raw
	n     int
}

func (e *endedVacancies) add(since clock.Raw) {
	if since != e.since {
		e.count()
		e.since = since
	}
	e.n++
}

func (e *endedVacancies) count() {
	e.c.Vacancies.Add(e.now.Raw.Sub(e.since), e.n)
	e.n = 0
}

// resize follows R. Roles at or beyond R do not count as vacant.
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

// account adds the time for which roles have been vacant to c. Time in which a member of a newer
// version may hold the vacant roles does not count. Call it before anything is read, since what is
// vacant now was vacant until now.
func (v *vacancyStats) account(newerUntil clock.Raw, c *Counters, now clock.Instant) {
	if v.count > 0 {
		if from := max(v.at, newerUntil); now.Raw > from {
			c.Leaderless += now.Raw.Sub(from).Seconds() * float64(v.count)
		}
	}
	v.at = now.Raw
}

// vacancyCount counts the vacancies of a shard from what is known of the holders. Only roles below
// a number are wanted.
type vacancyCount struct {
	vacancyStats
	of       *standings
	counters *Counters
}

// noticed handles that roles are vacant. That is not known before the records that were in the log
// when reading began are read.
func (v *vacancyCount) noticed(roles []int32, below int32, now clock.Instant) {
	if !caughtUp(v.of.logs) {
		return
	}
	for _, role := range roles {
		v.vacated(role, below, now)
	}
}

// follow follows R.
func (v *vacancyCount) follow(below int32, now clock.Instant) {
	v.resize(int(below))
	v.recount(below, now)
}

// recount looks at all roles, because a log has become known or is read again. Nothing counts
// while the fold is unknown.
func (v *vacancyCount) recount(below int32, now clock.Instant) {
	if !v.of.lease.Known() {
		v.vacancyStats = vacancyStats{at: now.Raw}
		return
	}
	c := v.begin(now)
	for role := range below {
		c.look(role, below)
	}
	c.over.count()
}

// recountOf looks at roles that a record has changed.
func (v *vacancyCount) recountOf(roles []int32, below int32, now clock.Instant) {
	if !v.of.lease.Known() {
		return
	}
	c := v.begin(now)
	for _, role := range roles {
		c.look(role, below)
	}
	c.over.count()
}

// recounting is a look at many roles at one instant.
type recounting struct {
	*vacancyCount
	now    clock.Instant
	caught bool // as in noticed
	over   endedVacancies
}

func (v *vacancyCount) begin(now clock.Instant) recounting {
	return recounting{v, now, caughtUp(v.of.logs), endedVacancies{c: v.counters, now: now}}
}

// look counts a role as vacant from now on, or its vacancy as ended.
func (c *recounting) look(role, below int32) {
	switch held := c.of.lease.Held(role, c.now); {
	case held:
		if since := c.occupied(role); since != 0 {
			c.over.add(since)
		}
	case c.caught:
		c.vacated(role, below, c.now)
	}
}

// addUp adds up for how long roles have been vacant.
func (v *vacancyCount) addUp(now clock.Instant) {
	v.account(v.of.lease.NewerUntil(), v.counters, now)
}
