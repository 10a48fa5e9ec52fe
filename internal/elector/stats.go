package elector

import (
	"errors"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/tally"
	"github.com/goneli/neli/internal/term"
)

// Counters only grow. All are moved where what they count is dealt with anyway, so that
// none costs anything for each role but the vacancies, which cost a store.
type Counters struct {
	Records, Foreign, Newer, Malformed uint64 // read

	RequestsAccepted uint64 // by the application
	RequestsRefused  uint64 // by it, or without asking it

	LogResets      uint64 // logs whose place was lost, and which were begun anew
	Contradictions uint64 // how often another process was found to have another fold
	Diverged       string // name of the process that most others contradict, as was last found
	Appended       uint64 // records that the log has confirmed
	AppendFailed   uint64 // and those that it has not: they may be there or not
	RoundTrips     tally.Timing
	Drains         tally.Timing // one for each handover
	Steps          tally.Timing // for how long the Elector's lock was held
	Vacancies      tally.Timing // one for each role
	Leaderless     float64      // seconds, added up over roles
}

// counts is what has been counted so far.
type counts struct {
	Counters
	read clock.Instant // when a record was last read
}

// skipped counts a record that plays no part.
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

// Stats is what was counted so far, and how things are at this instant.
type Stats struct {
	Counters
	Terms term.Counts

	Led                   int // roles below R that the application leads
	Held, Vacant, Unknown int // roles below R, by Status; R in all
	Members               int // as Members returns them

	Now      clock.Instant
	Evidence clock.Instant // the oldest V of what is held; zero: nothing is held
	Read     clock.Instant // when a record was last read; zero: none was
}

// Stats costs a look at the fold's holders of every role, and nothing while nobody asks.
func (n *Node) Stats(now clock.Instant) Stats {
	var c headcount
	for n.headcount(&c, now) {
	}
	return n.stats(&c, now)
}

// stats is Stats with a census that was made before.
func (n *Node) stats(c *headcount, now clock.Instant) Stats {
	s := Stats{Now: now, Terms: n.terms.Counts(), Led: n.terms.Led(now, n.desired.Roles), Read: n.counts.read,
		Held: c.of[Held], Vacant: c.of[Vacant], Unknown: c.of[Unknown]}
	for _, p := range n.shards {
		p.account(now)
		if v := p.evidence(now); v != (clock.Instant{}) && (s.Evidence == (clock.Instant{}) || now.Age(v) > now.Age(s.Evidence)) {
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

// evidence is the oldest V of what is held on p; zero: nothing is held. It is that of the lines
// that the terms follow, as the check has them.
func (s *shard) evidence(now clock.Instant) (oldest clock.Instant) {
	if s.holds.len() == 0 {
		return clock.Instant{}
	}
	for line := range s.lease.InUse() {
		if v, ok := s.terms.V(line); ok && (oldest == (clock.Instant{}) || now.Age(v) > now.Age(oldest)) {
			oldest = v
		}
	}
	return oldest
}

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

// vacated notes that roles are vacant. Nobody knows that before the log was read to where it
// ended when reading began.
func (s *shard) vacated(roles []int32, now clock.Instant) {
	if !caughtUp(s.channels) {
		return
	}
	s.vacancyStats.vacated(roles, s.localRoles(), now)
}

// occupied notes that roles have a holder.
func (s *shard) occupied(roles []int32, now clock.Instant) {
	s.vacancyStats.occupied(roles, &s.counts.Counters, now)
}

// resize follows R.
func (s *shard) resize(now clock.Instant) {
	s.vacancyStats.resize(int(s.localRoles()))
	s.recount(now)
}

// recount looks at all roles: a log has become known, or begins anew, so that others may hold
// them, or nobody. Nothing is counted while it is not known who holds anything.
func (s *shard) recount(now clock.Instant) {
	if !s.lease.Known() {
		s.vacancyStats = vacancyStats{at: now.Raw}
		return
	}
	all := make([]int32, s.localRoles())
	for role := range all {
		all[role] = int32(role)
	}
	s.recountOf(all, now)
}

// recountOf looks at roles of which a log says something new.
func (s *shard) recountOf(roles []int32, now clock.Instant) {
	if !s.lease.Known() {
		return
	}
	var held, free []int32
	for _, role := range roles {
		if s.lease.Held(role, now) {
			held = append(held, role)
		} else {
			free = append(free, role)
		}
	}
	s.occupied(held, now)
	s.vacated(free, now)
}

// account adds up for how long roles of p have been vacant.
func (s *shard) account(now clock.Instant) {
	s.vacancyStats.account(s.lease.NewerUntil(), &s.counts.Counters, now)
}
