package elector

import (
	"errors"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/observe"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/tally"
	"github.com/goneli/neli/internal/term"
)

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

// Stats looks at the holder of every role; it costs nothing while nobody calls it.
func (n *Node) Stats(now clock.Instant) Stats {
	var c headcount
	for n.headcount(&c, now) {
	}
	return n.stats(&c, now)
}

// stats is Stats with a headcount that was taken before.
func (n *Node) stats(c *headcount, now clock.Instant) Stats {
	out := Stats{Now: now, Terms: n.terms.Counts(), Led: n.terms.Led(now, n.desired.Roles), Read: n.counts.read,
		Held: c.of[observe.Held], Vacant: c.of[observe.Vacant], Unknown: c.of[observe.Unknown]}
	for _, s := range n.shards {
		s.vacancyStats.addUp(now)
		out.Silence = max(out.Silence, s.vacancyStats.silentFor(n.set.Every, now))
		out.CutOff = max(out.CutOff, s.vacancyStats.cutOff(now))
		out.Withheld = max(out.Withheld, s.main.link.WithheldFor(now))
		if v := s.own.evidence(now); v != (clock.Instant{}) && (out.Evidence == (clock.Instant{}) || now.Age(v) > now.Age(out.Evidence)) {
			out.Evidence = v
		}
	}
	if len(n.shards) == 0 {
		out.Unknown = n.desired.Roles
	}
	out.Members = n.members.Present()
	if !n.set.Observer {
		out.Members++
	}
	out.Counters = n.counts.Counters
	out.RequestsAccepted, out.RequestsRefused = n.requests.Decided()
	return out
}

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

// Stats are the counters, and the current state.
type Stats struct {
	Counters
	Terms term.Counts

	Led                   int // roles below R that the application leads
	Held, Vacant, Unknown int // roles below R, by Status; R in all
	Members               int // the length of what Members returns

	Withheld time.Duration // for how long this process has claimed nothing because own records come back late; 0: that is not so

	Now      clock.Instant
	Evidence clock.Instant // the oldest V of a held role; zero: none is held
	Read     clock.Instant // when a record was last read; zero: none was

	Silence time.Duration // for how long the role with the longest present time without a sign of a leader has had none
	CutOff  time.Duration // for how long this process has read nothing, although it should have
}
