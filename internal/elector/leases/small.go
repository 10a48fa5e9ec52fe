package leases

import (
	"errors"
	"iter"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/announce"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/quorum"
)

// Small is the leases of several small logs.
type Small struct {
	*quorum.Lease
	below int32  // the wanted roles are below it
	turns uint64 // see Turns
}

// SmallTraits are those of Small.
var SmallTraits = Traits{Together: true, Reminds: true}

// NewSmall returns the leases of small logs.
func NewSmall(rules quorum.Rules) *Small {
	rules.History = announce.History
	return &Small{Lease: quorum.New(rules)}
}

// NewerUntil is as in Fold.
func (m *Small) NewerUntil() clock.Raw { return m.FreeAt(m.Roles()) }

// Read is as in Session, but voids nothing: terms survive the loss of one log, and when one becomes known, the
// state of the others was handled already.
func (m *Small) Read(log int, e Entry, r *lease.Record, bad error, now clock.Instant) (out Outcome) {
	switch {
	case e.Reset:
		m.Begin(log, e.Offset, e.End, e.Top, now)
		m.turns++
	case e.Alive:
		m.Answered(log, now)
	default:
		out.Event = m.fold(log, e.Offset, r, bad, now)
	}
	out.Spent = m.Exhausted()
	return out
}

func (m *Small) fold(log int, o int64, r *lease.Record, bad error, now clock.Instant) (ev lease.Event) {
	of, newer := m.Log(log), errors.Is(bad, lease.ErrNewer)
	freshAt, doubtful := of.FreshAt(), of.Doubtful()
	switch {
	case bad == nil:
		ev = m.Lease.Read(log, o, r, now)
	case newer:
		ev = m.ReadNewer(log, o, r.Ballot, now)
	default:
		ev = m.Skip(log, o, now)
	}
	if ev.Rewound || len(ev.Changed) > 0 || newer || of.FreshAt() != freshAt || of.Doubtful() != doubtful {
		m.turns++
	}
	return ev
}

// Changed is as in Session, also if a term begins or ends without a record of its role.
func (m *Small) Changed() []int32 {
	changed := m.Lease.Changed()
	if len(changed) > 0 {
		m.turns++
	}
	return changed
}

// Turns is as in Fold.
func (m *Small) Turns() uint64 { return m.turns + m.Revived() }

// Term is as in Session.
func (m *Small) Term(local int32, now clock.Instant) Term {
	if token, line, led := m.Lease.Term(local); led {
		return Term{Led: true, Token: token, Line: line}
	}
	return Term{Vacant: m.Vacant(local, now)}
}

// Lines is as in Session.
func (m *Small) Lines() iter.Seq2[int, clock.Instant] {
	return func(yield func(int, clock.Instant) bool) {
		for line := range m.InUse() {
			if !yield(line, m.V(line)) {
				return
			}
		}
	}
}

// Tick is as in Session. Each term lapses by itself.
func (m *Small) Tick(below int32, trip time.Duration, now clock.Instant) Ticked {
	if below != m.below {
		m.below = below
		m.Want(below, func(int32) bool { return true })
	}
	m.RoundTrip(trip)
	return Ticked{Out: m.Lease.Tick(now), Reading: m.Reading()}
}

// Unreleased is as in Wire.
func (m *Small) Unreleased(log int, now clock.Instant) []lease.Record {
	return m.UnreleasedOn(log, now)
}
