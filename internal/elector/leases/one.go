package leases

import (
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/announce"
	"github.com/goneli/neli/internal/elector/observe"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/quorum"
)

// One is the leases of one log.
type One struct {
	*lease.Lease
	line    int
	rules   lease.Rules
	changed []int32

	version  uint64   // of the last change
	whole    uint64   // of the last change of all roles
	versions []uint64 // of the last change of each slice
}

// OneTraits are those of One.
var OneTraits = Traits{Offsets: true, OneClaim: true}

// NewOne returns the leases of a log, whose V is a line of the term table.
func NewOne(rules lease.Rules, line int) *One {
	rules.History = announce.History
	return &One{Lease: lease.New(rules), line: line, rules: rules}
}

// Held is as in Fold.
func (l *One) Held(local int32, now clock.Instant) bool {
	at, held := l.Until(local)
	return held && now.Raw < at
}

// Free returns nothing before anything is known: see FreshAt.
func (l *One) Free(below int32, _ clock.Instant) []int32 { return l.Lease.Free(below) }

// Owing is as in Session.
func (l *One) Owing(clock.Instant) bool { return l.Lease.Owing() }

// NewerUntil is as in Fold.
func (l *One) NewerUntil() clock.Raw {
	if at, newer := l.Newer(); newer {
		return clock.FreeAt(at.Raw, clock.Tmax, l.rules.Rho)
	}
	return 0
}

// Grant is as in observe.Short.
func (l *One) Grant(local int32) (token int64, holder int32) {
	token, holder, held := l.Lease.Grant(local)
	if !held {
		return observe.VacantToken, -1
	}
	return token, holder
}

// Read is as in Session. A log that begins anew has lost all terms.
func (l *One) Read(_ int, e Entry, r *lease.Record, bad error, now clock.Instant) (out Outcome) {
	switch {
	case e.Reset:
		l.Lease.Begin(e.Offset, e.Whole, now)
		l.changed = nil
		l.changedAll()
		return Outcome{Void: true}
	case e.Alive: // only small logs show that
		return out
	case bad == nil:
		out.Event = l.Lease.Read(e.Offset, r, now)
	case errors.Is(bad, lease.ErrNewer):
		out.Event = l.ReadNewer(e.Offset, now)
	default:
		out.Event = l.Skip(e.Offset, now)
	}
	switch {
	case out.Rewound:
		l.changed = nil
		l.changedAll()
	case out.Known:
		l.changedAll()
		l.Each(func(lease.HolderState) int32 { return 0 }, func(local, _ int32) { l.changed = append(l.changed, local) })
	case len(out.Changed) > 0:
		l.changed = append(l.changed, out.Changed...)
		l.changedSome(out.Changed)
	}
	out.Void = out.Known || out.Rewound
	return out
}

func (l *One) changedAll() {
	l.version++
	l.whole = l.version
}

func (l *One) changedSome(roles []int32) {
	l.version++
	for _, local := range roles {
		i := int(local / observe.SurveyRoles)
		for len(l.versions) <= i {
			l.versions = append(l.versions, 0)
		}
		l.versions[i] = l.version
	}
}

// Version is as in observe.Short.
func (l *One) Version(slice int) uint64 {
	if slice < len(l.versions) {
		return max(l.versions[slice], l.whole)
	}
	return l.whole
}

// Turns is as in Fold.
func (l *One) Turns() uint64 { return l.version }

// Failed is as in Session.
func (l *One) Failed(_ int, r *lease.Record, _ clock.Instant) { l.Lease.Failed(r.Session, r.Seq) }

// Changed is as in Session.
func (l *One) Changed() []int32 {
	changed := l.changed
	l.changed = nil
	return changed
}

// Term is as in Session. A role that has a holder is not vacant.
func (l *One) Term(local int32, _ clock.Instant) Term {
	if token, led := l.Mine(local); led {
		return Term{Led: true, Token: token, Line: l.line}
	}
	_, _, held := l.Lease.Grant(local)
	return Term{Vacant: !held}
}

// Lines is as in Session.
func (l *One) Lines() iter.Seq2[int, clock.Instant] {
	return func(yield func(int, clock.Instant) bool) { yield(l.line, l.V()) }
}

// Tick is as in Session.
func (l *One) Tick(_ int32, _ time.Duration, now clock.Instant) (t Ticked) {
	if !l.Lapsed(now) {
		return t
	}
	for _, r := range l.Lapse(now) {
		t.Out = append(t.Out, quorum.Out{Record: r})
	}
	t.Lapsed = true
	return t
}

// Due uses the monotonic clock: a wall clock that is set forward is noticed at the next beat, or by the next check.
func (l *One) Due(clock.Instant) clock.Mono {
	if l.Holding() == 0 {
		return clock.Never
	}
	return l.V().Mono.Add(clock.Hold(l.rules.T))
}

// Contest makes several Claims if one cannot hold all roles, but only one fresh Claim, since a
// second one would void the first. The rest follows when it has come back.
func (l *One) Contest(roles []int32, now clock.Instant) (out []quorum.Out) {
	fresh := !l.Known()
	for {
		r, ok := l.Claim(roles, now)
		if !ok {
			return out
		}
		out = append(out, quorum.Out{Record: r})
		if fresh {
			return out
		}
		after, _ := slices.BinarySearch(roles, r.Roles[len(r.Roles)-1]+1)
		roles = roles[after:]
	}
}

// Later returns those roles that may be claimed only once a newer record has lost its effect, and when.
func Later(l *lease.Lease, roles []int32, now clock.Instant) (free []int32, at clock.Raw) {
	if _, waits := l.Newer(); !waits { // a member of a newer version may hold any role
		return nil, clock.Never
	}
	for _, local := range roles {
		if g, held := l.Holder(local); (!held || now.Raw >= g.FreeAt) && !l.Under(local) {
			free = append(free, local)
		}
	}
	if len(free) == 0 {
		return nil, clock.Never
	}
	return free, l.FreeAt(free[0])
}

// Beat is as in Wire.
func (l *One) Beat(_ int, now clock.Instant) (lease.Record, bool) { return l.Lease.Beat(now) }

// Word is as in Wire.
func (l *One) Word(_ int, k lease.Kind, now clock.Instant) lease.Record { return l.Lease.Word(k, now) }

// Snapshot is as in Wire.
func (l *One) Snapshot(_ int, now clock.Instant) []lease.Record { return l.Lease.Snapshot(now) }

// ReleaseOn is as in Wire.
func (l *One) ReleaseOn(_ int, roles []int32, now clock.Instant) []lease.Record {
	return l.Release(roles, now)
}

// Unreleased is as in Wire.
func (l *One) Unreleased(_ int, now clock.Instant) []lease.Record { return l.Lease.Unreleased(now) }
