package elector

import (
	"errors"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/tally"
	"github.com/goneli/neli/internal/term"
)

// Counters only grow. All are moved where what they count is dealt with anyway, so that
// none costs anything for each role but the vacancies (vacancy.go), which cost a store.
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
	s := Stats{Now: now, Terms: n.terms.Counts(), Led: n.terms.Led(now, n.desired.Roles), Read: n.counts.read}
	for _, p := range n.shards {
		p.account(now)
		c := p.census(now)
		s.Held, s.Vacant, s.Unknown = s.Held+c[Held], s.Vacant+c[Vacant], s.Unknown+c[Unknown]
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

// census counts the roles of p below R by Status, as standing has it.
func (s *shard) census(now clock.Instant) (c [Held + 1]int) {
	below := s.localRoles()
	if !s.lease.Known() {
		c[Unknown] = int(below)
		return c
	}
	kind := func(h lease.HolderState) int {
		switch {
		case now.Raw >= h.FreeAt:
			return int(Vacant)
		case s.old(h.Last):
			return int(Unknown)
		}
		return int(Held)
	}
	s.lease.Tally(below, kind, c[:])
	c[Vacant] = int(below) - c[Held] - c[Unknown]
	if now.Raw < s.lease.NewerUntil() || !caughtUp(s.channels) {
		c[Unknown], c[Vacant] = c[Unknown]+c[Vacant], 0
	}
	return c
}
