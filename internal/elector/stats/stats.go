package stats

import (
	"errors"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/offer"
	"github.com/goneli/neli/internal/elector/prepare"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/tally"
	"github.com/goneli/neli/internal/term"
)

// Counters only grow. Each is counted where its event is handled anyway. Only the vacancies cost
// something for each role: a store.
type Counters struct {
	Records, Foreign, Newer, Malformed uint64 // records that were read: all, and those that were skipped

	Read           clock.Instant // when a record was last read; zero: none was
	LogResets      uint64        // how often reading of a log began anew; going back does not count
	Contradictions uint64        // how often another process had another fold
	Diverged       string        // name of the last process that the majority contradicted
	Appended       uint64        // acknowledged records
	AppendFailed   uint64        // records whose append was not confirmed; they may be in the log or not
	RoundTrips     tally.Timing
	Drains         tally.Timing // one for each handover
	Steps          tally.Timing // for how long the Elector's lock was held
	Vacancies      tally.Timing // one for each role
	Leaderless     float64      // seconds, added up over roles
}

// GotRecord counts a record that was read.
func (c *Counters) GotRecord(now clock.Instant) { c.Records, c.Read = c.Records+1, now }

// Skipped counts a skipped record.
func (c *Counters) Skipped(bad error) {
	switch {
	case errors.Is(bad, lease.ErrForeign), errors.Is(bad, lease.ErrOtherLog):
		c.Foreign++
	case errors.Is(bad, lease.ErrNewer):
		c.Newer++
	default:
		c.Malformed++
	}
}

// BeganAgain counts that reading of a log began anew, and returns how often that happened.
func (c *Counters) BeganAgain() uint64 {
	c.LogResets++
	return c.LogResets
}

// Acked counts the report on an append.
func (c *Counters) Acked(err error) {
	if err != nil {
		c.AppendFailed++
	} else {
		c.Appended++
	}
}

// Contradicted counts a record whose sender had another fold.
func (c *Counters) Contradicted() { c.Contradictions++ }

// DivergedFrom notes that the majority has contradicted a process.
func (c *Counters) DivergedFrom(name string) { c.Diverged = name }

// Stats are the counters, and the current state.
type Stats struct {
	Counters
	Terms term.Counts

	RequestsAccepted            uint64 // by the application
	Rebalances, RolesRebalanced uint64 // calls of Rebalance, and roles that moved during them
	RequestsRefused             uint64 // by the application, or without asking it
	Prepares                    prepare.Counts
	Given                       offer.Given

	Led                   int // roles below R that the application leads
	Held, Vacant, Unknown int // roles below R, by Status; R in all
	Members               int // the length of what Members returns

	Withheld time.Duration // for how long this process has claimed nothing because own records are late; 0: no

	Now      clock.Instant
	Evidence clock.Instant // the oldest V of a held role; zero: none is held

	Silence time.Duration // the longest time for which a role has shown no sign of a leader until now
	CutOff  time.Duration // for how long this process has read nothing, although it should have
}

// Add adds a shard whose vacancies are added up until Now. beat is this process's heartbeat interval, evidence
// the oldest V of its held roles.
func (s *Stats) Add(v *Vacancies, beat, withheld time.Duration, evidence clock.Instant) {
	s.Silence = max(s.Silence, v.SilentFor(beat, s.Now))
	s.CutOff = max(s.CutOff, v.CutOff(s.Now))
	s.Withheld = max(s.Withheld, withheld)
	if none := (clock.Instant{}); evidence != none && (s.Evidence == none || s.Now.Age(evidence) > s.Now.Age(s.Evidence)) {
		s.Evidence = evidence
	}
}
