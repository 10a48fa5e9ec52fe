package nonexclusive

import (
	"log/slog"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/kafkalog"
	"github.com/goneli/neli/internal/term"
	"github.com/goneli/neli/kafka"
)

// Stats is what an Arbiter has counted, and its state at the time of the call.
type Stats struct {
	Records      uint64 // read so far
	Appended     uint64
	AppendFailed uint64
	Terms        term.Counts
	Led          int           // roles that it leads
	Evidence     time.Duration // the age of the oldest V of a held partition; 0: none is held
	Read         clock.Instant // when a record was last read
	Now          clock.Instant // the time of the call
}

// Stats returns the counts so far, and the present state.
func (a *Arbiter) Stats() Stats {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.counts
	s.Now, s.Terms = a.set.Now(), a.table.Counts()
	for p := range a.assigned {
		if !a.held(p) {
			continue
		}
		v, _ := a.table.V(p)
		s.Evidence = max(s.Evidence, s.Now.Mono.Sub(v.Mono))
		if _, _, _, leads := a.table.Leads(p); leads && p < a.desired.Roles {
			m := len(a.assigned)
			s.Led += (a.desired.Roles - p + m - 1) / m // p, p + M, …
		}
	}
	return s
}

// count counts the outcome of a record.
func (a *Arbiter) count(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err == nil {
		a.counts.Appended++
	} else {
		a.counts.AppendFailed++
	}
}

// Settings are the fixed durations and names of an Arbiter. Package neli derives the durations,
// and says there how they depend on each other.
type Settings struct {
	Topic     string
	T         time.Duration // HeartbeatTimeout: a leader's V is younger
	Broadcast time.Duration // B, the time between broadcasts

	HandoverOverlap time.Duration // how long a leaving process leads on
	StarvedAfter    time.Duration // after this long without a record on an assigned partition, leave the group
	Absence         time.Duration // how long it then stays out
	GoneAfter       time.Duration // a member of which no record was received for this long is gone

	Alive  func(now clock.Instant) bool // whether the application makes progress; must not block
	Deaf   func(now clock.Instant) bool // whether it hears of a new term only much later; must not block. nil: never
	Now    func() clock.Instant
	Logger *slog.Logger
}

// Clients are the Kafka clients that an Arbiter uses, and closes when it ends.
type Clients struct {
	Topic    *kafkalog.Topic
	Producer kafka.Producer
	Member   *kafkalog.GroupMember
}
