package elector

import (
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/goneli/neli/internal/byrole"
	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/announce"
	"github.com/goneli/neli/internal/elector/link"
	"github.com/goneli/neli/internal/elector/observe"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/quorum"
)

// openShards opens the logs, and returns how many lines of V there are.
func (k *common) openShards(logs int, now clock.Instant) (lines int) {
	if k.set.Majority {
		return k.openSmall(logs, now)
	}
	k.openLogs(logs, now)
	return logs
}

// openLogs opens logs each of which is the only one with its roles.
func (k *common) openLogs(logs int, now clock.Instant) {
	rules := lease.Rules{Process: k.set.Process, Name: k.set.Name, T: k.set.T, Rho: k.set.Rho, History: announce.History}
	for i := range logs {
		l := lease.New(rules)
		s := newShard(k, byrole.Numbering{Index: i, Of: logs}, &oneLog{Lease: l, line: i, t: k.set.T, rho: k.set.Rho})
		s.main = newChannel(k, i, l, s, now)
		s.logs = channels{s.main}
		k.shards, k.channels = append(k.shards, s), append(k.channels, s.main)
	}
}

// openSmall opens small logs, which form one shard together. It returns how many lines of V there
// are.
func (k *common) openSmall(logs int, now clock.Instant) (lines int) {
	q := quorum.New(quorum.Rules{Logs: logs, Process: k.set.Process, Name: k.set.Name, T: k.set.T, Rho: k.set.Rho,
		History: announce.History, Random: k.set.Random})
	all := newShard(k, byrole.Numbering{Index: 0, Of: 1}, &majority{Lease: q})
	all.main = &channel{common: k, shard: all, link: link.TrustedLink()} // q delays Claims
	for i := range logs {
		c := newChannel(k, i, q.Log(i), all, now)
		c.shallow, c.link = true, link.TrustedLink()
		k.channels = append(k.channels, c)
	}
	all.logs = k.channels
	k.shards = []*shard{all}
	return q.Lines()
}

// oneLog is the leases of one log.
type oneLog struct {
	*lease.Lease
	line    int
	t       time.Duration
	rho     float64
	changed []int32

	version  uint64   // of the last change
	whole    uint64   // of the last change of all roles
	versions []uint64 // of the last change of each slice
}

func (l *oneLog) As(id lease.Session) lease.Session { return id }

func (l *oneLog) Held(local int32, now clock.Instant) bool {
	at, held := l.Until(local)
	return held && now.Raw < at
}

// Free: before anything is known, see FreshAt.
func (l *oneLog) Free(below int32, _ clock.Instant) []int32 {
	if !l.Known() {
		return nil
	}
	return l.Lease.Free(below)
}

func (l *oneLog) Vacant(local int32, _ clock.Instant) bool {
	_, _, held := l.Lease.Grant(local)
	return !held
}

func (l *oneLog) Owing(clock.Instant) bool { return l.Lease.Owing() }

func (l *oneLog) NewerUntil() clock.Raw {
	if at, newer := l.Newer(); newer {
		return clock.FreeAt(at.Raw, clock.Tmax, l.rho)
	}
	return 0
}

func (l *oneLog) Tenure(g lease.Grantee) int64 { return g.Token }

func (l *oneLog) Ours(g lease.Grantee, token int64) bool { return g.Token == token }

// Earlier: tokens of one log are offsets in it.
func (l *oneLog) Earlier(log int, read, token int64) bool { return log != l.line || read < token }

func (l *oneLog) Grant(local int32) (token int64, holder int32, ok bool) {
	if token, holder, ok = l.Lease.Grant(local); !ok {
		return observe.VacantToken, -1, true
	}
	return token, holder, true
}

func (l *oneLog) Begin(_ int, e Entry, now clock.Instant) (lost bool) {
	l.Lease.Begin(e.Offset, e.Whole, now)
	l.changed = nil
	l.changedAll()
	return true
}

func (l *oneLog) Answered(int, clock.Instant) {}

func (l *oneLog) Read(_ int, o int64, r *lease.Record, bad error, now clock.Instant) (ev lease.Event, anew bool) {
	switch {
	case bad == nil:
		ev = l.Lease.Read(o, r, now)
	case errors.Is(bad, lease.ErrNewer):
		ev = l.ReadNewer(o, now)
	default:
		ev = l.Skip(o, now)
	}
	switch {
	case ev.Rewound:
		l.changed = nil
		l.changedAll()
	case ev.Known:
		l.changedAll()
		l.Each(func(lease.HolderState) int32 { return 0 }, func(local, _ int32) { l.changed = append(l.changed, local) })
	case len(ev.Changed) > 0:
		l.changed = append(l.changed, ev.Changed...)
		l.changedSome(ev.Changed)
	}
	return ev, ev.Known || ev.Rewound
}

func (l *oneLog) changedAll() {
	l.version++
	l.whole = l.version
}

func (l *oneLog) changedSome(roles []int32) {
	l.version++
	for _, local := range roles {
		i := int(local / observe.SurveyRoles)
		for len(l.versions) <= i {
			l.versions = append(l.versions, 0)
		}
		l.versions[i] = l.version
	}
}

func (l *oneLog) Version(slice int) uint64 {
	if slice < len(l.versions) {
		return max(l.versions[slice], l.whole)
	}
	return l.whole
}

func (l *oneLog) Turns() uint64 { return l.version }

func (l *oneLog) Failed(_ int, r *lease.Record, _ clock.Instant) []int32 {
	l.Lease.Failed(r.Session, r.Seq)
	return r.Roles
}

func (l *oneLog) Changed() []int32 {
	changed := l.changed
	l.changed = nil
	return changed
}

func (l *oneLog) Term(local int32) (token int64, line int, ok bool) {
	token, ok = l.Mine(local)
	return token, l.line, ok
}

func (l *oneLog) Outdone(int32) bool { return true }

func (l *oneLog) InUse() iter.Seq[int] { return func(yield func(int) bool) { yield(l.line) } }

func (l *oneLog) V(int) clock.Instant { return l.Lease.V() }

func (l *oneLog) Tick(_ int32, _ time.Duration, now clock.Instant) (out []quorum.Out, lapsed bool) {
	if !l.Lapsed(now) {
		return nil, false
	}
	for _, r := range l.Lapse(now) {
		out = append(out, quorum.Out{Record: r})
	}
	return out, true
}

// Due uses the monotonic clock: a wall clock that is set forward is noticed at the next beat, or
// by the next check.
func (l *oneLog) Due(clock.Instant) clock.Mono {
	if l.Holding() == 0 {
		return clock.Never
	}
	return l.Lease.V().Mono.Add(clock.Hold(l.t))
}

// Contest makes several Claims if one cannot hold all roles, but only one fresh Claim, since a
// second one would void the first. The rest follows when it has come back.
func (l *oneLog) Contest(roles []int32, now clock.Instant) (out []quorum.Out) {
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

func (l *oneLog) Later(roles []int32, now clock.Instant) (free []int32, at clock.Raw) {
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

func (l *oneLog) Keeps(_ int, led bool) bool { return led }

func (l *oneLog) Beat(_ int, now clock.Instant) (lease.Record, bool) { return l.Lease.Beat(now) }

func (l *oneLog) Word(_ int, k lease.Kind, now clock.Instant) lease.Record {
	return l.Lease.Word(k, now)
}

func (l *oneLog) Snapshot(_ int, now clock.Instant) []lease.Record { return l.Lease.Snapshot(now) }

func (l *oneLog) ReleaseOn(_ int, roles []int32, now clock.Instant) []lease.Record {
	return l.Release(roles, now)
}

func (l *oneLog) Owes(int) bool { return l.Lease.Owing() }

func (l *oneLog) Unreleased(_ int, now clock.Instant) []lease.Record { return l.Lease.Unreleased(now) }

func (l *oneLog) Waits() bool {
	inFlight, _ := l.Claiming()
	return inFlight > 0
}

func (l *oneLog) GiveUp(sent clock.Instant) { l.GiveUpClaims(sent) }

func (l *oneLog) Lapses(id lease.Session) bool { return id == l.Session() }

func (l *oneLog) Reminds() bool { return false }

// Exhausted: tokens are offsets.
func (l *oneLog) Exhausted() bool { return false }

func (l *oneLog) Reading() time.Duration { return 0 }

// majority is the leases of several small logs.
type majority struct {
	*quorum.Lease
	below int32  // the wanted roles are below it
	turns uint64 // see Turns
}

func (m *majority) As(id lease.Session) lease.Session {
	return lease.Session{Process: id.Process, N: m.Session().N}
}

func (m *majority) RolesOf(id lease.Session) (roles []int32) {
	m.Each(func(h lease.HolderState) int32 {
		if h.Session == id {
			return 1
		}
		return 0
	}, func(local, yes int32) {
		if yes == 1 {
			roles = append(roles, local)
		}
	})
	return roles
}

func (m *majority) NewerUntil() clock.Raw { return m.FreeAt(m.Roles()) } // for roles without a known holder

func (m *majority) Tenure(g lease.Grantee) int64 { return quorum.Tenure(g) }

// Ours: a role that is being given up has no token; it is ours until enough logs have released it.
func (m *majority) Ours(g lease.Grantee, _ int64) bool { return g.Session == m.Session() }

func (m *majority) Earlier(int, int64, int64) bool { return false }

// Grant cannot tell: the logs of a majority have no common token.
func (m *majority) Grant(int32) (token int64, holder int32, ok bool) { return 0, 0, false }

func (m *majority) Version(int) uint64 { return 0 }

// Begin loses nothing: terms survive the loss of one log.
func (m *majority) Begin(log int, e Entry, now clock.Instant) (lost bool) {
	m.Lease.Begin(log, e.Offset, e.End, e.Top, now)
	m.turns++
	return false
}

// Read: the state of the other logs was handled already.
func (m *majority) Read(log int, o int64, r *lease.Record, bad error, now clock.Instant) (ev lease.Event, anew bool) {
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
	return ev, false
}

// Changed: also terms that begin or end without a record of that role.
func (m *majority) Changed() []int32 {
	changed := m.Lease.Changed()
	if len(changed) > 0 {
		m.turns++
	}
	return changed
}

func (m *majority) Turns() uint64 { return m.turns + m.Revived() }

func (m *majority) Failed(log int, r *lease.Record, now clock.Instant) []int32 {
	m.Lease.Failed(log, r, now)
	return nil
}

func (m *majority) Outdone(local int32) bool {
	g, held := m.Holder(local)
	return held && g.Session != m.Session()
}

func (m *majority) Tick(below int32, trip time.Duration, now clock.Instant) (out []quorum.Out, lapsed bool) {
	if below != m.below {
		m.below = below
		m.Want(below, func(int32) bool { return true })
	}
	m.RoundTrip(trip)
	return m.Lease.Tick(now), false
}

func (m *majority) Later([]int32, clock.Instant) ([]int32, clock.Raw) { return nil, clock.Never }

// Keeps: grants on a log are kept alive there, with or without a term.
func (m *majority) Keeps(log int, _ bool) bool { return m.Log(log).Holding() > 0 }

func (m *majority) Owes(log int) bool { return m.Log(log).Owing() }

func (m *majority) Unreleased(log int, now clock.Instant) []lease.Record {
	return m.UnreleasedOn(log, now)
}

func (m *majority) FreshAt() clock.Raw { return clock.Never }

func (m *majority) Waits() bool { return false }

func (m *majority) GiveUp(clock.Instant) {}

func (m *majority) Lapses(lease.Session) bool { return false }

func (m *majority) Reminds() bool { return true }
