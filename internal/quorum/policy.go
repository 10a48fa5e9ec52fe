package quorum

import (
	"slices"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
)

// policy decides when to claim vacant roles and when to give back contested ones. Safety does not depend on it.
type policy struct {
	trip    time.Duration // a round trip
	reading time.Duration // how long it takes to read the Claims of all roles
	looks   []int32       // roles that decide has to look at
	lookAll bool          // decide has to look at all roles
	changed []int32       // roles that Changed will return
	waits   []wait
}

// wait is a set of roles to look at again at a given time.
type wait struct {
	at    clock.Mono
	roles []int32
}

const (
	// patienceTrips is how many round trips a contest may take: for the Claim, for a Beat that may
	// have to follow it, and for the others' Releases.
	patienceTrips = 4
	// maxFails bounds the pause after contests in vain to patience · 2^5, or T if that is shorter.
	maxFails = 5
	// maxTries bounds the pause after Claims that failed on a log, to T · U(½, 3/2).
	maxTries = 3
	// readThousand is how long a slow machine may take to read the Claims of a thousand roles
	// on all logs. Until it has read them, it takes decided contests for undecided ones.
	readThousand = 5 * time.Millisecond
)

func (p *policy) patience() time.Duration { return patienceTrips*p.trip + p.reading }

func (p *policy) tell(role int32) { p.changed = append(p.changed, role) }

func (p *policy) later(at clock.Mono, roles []int32) {
	if len(roles) > 0 {
		p.waits = append(p.waits, wait{at, roles})
	}
}

// Want sets the roles that this process wants: those below limit for which want is true. Tick gives
// back unwanted roles that are held without a term; the caller has to end terms.
func (q *Lease) Want(limit int32, want func(role int32) bool) {
	q.limit, q.want = limit, want
	q.policy.reading = min(time.Duration(limit/1000)*readThousand, clock.Stalled(q.rules.T))
	q.policy.lookAll = true
}

// Reading returns how long members may take to read the Claims of all wanted roles. Contests may
// take this much longer than their round trips, and a process that claims after others waits this
// much longer. It is zero below a thousand roles.
func (q *Lease) Reading() time.Duration { return q.policy.reading }

// RoundTrip sets how long a record takes to come back. Contests are timed by it.
func (q *Lease) RoundTrip(d time.Duration) { q.policy.trip = max(d, time.Microsecond) }

// Changed returns the roles that have changed since the last call, perhaps with repetitions. A
// term began, ended, or follows another line of V, or the role may have become vacant.
func (q *Lease) Changed() []int32 {
	changed := q.policy.changed
	q.policy.changed = nil
	return changed
}

// look makes the next Tick look at a role.
func (q *Lease) look(role int32) {
	if u := q.touch(role); !u.looked {
		u.looked = true
		q.policy.looks = append(q.policy.looks, role)
	}
}

// vacantOn reports whether a role may be claimed on a log that can be reached and is not paused.
func (q *Lease) vacantOn(log int, role int32, now clock.Instant) bool {
	v := q.logs[log]
	return v.begun && now.Mono >= v.claimAt && q.reachable(v, now) && v.lease.MayClaim(role, now)
}

// pause delays the next Claim on a log after a failed one, by T/8 · 2^k · U(½, 3/2). Otherwise a
// log that refuses Claims at once would get them in an endless loop.
func (q *Lease) pause(log int, now clock.Instant) {
	v := q.logs[log]
	v.tries = min(v.tries+1, maxTries)
	d := clock.Pause(q.rules.T) << v.tries
	v.claimAt = now.Mono.Add(d/2 + q.rules.Random(d))
}

// Vacant reports whether this process may contest role: it has no term of the role, neither a contest
// nor a pause goes on, and it holds the role or may claim it on a majority of the logs.
func (q *Lease) Vacant(role int32, now clock.Instant) bool {
	var u unit
	if p := q.unit(role); p != nil {
		u = *p
	}
	if u.token != 0 || now.Mono < u.notBefore {
		return false
	}
	vacant, under := logs(0), false
	for log, v := range q.logs {
		if u.mine.has(log) {
			continue
		}
		if q.vacantOn(log, role, now) {
			vacant = vacant.with(log)
		}
		under = under || v.lease.Under(role)
	}
	if under && now.Mono < u.tried.Add(q.policy.patience()) {
		return false
	}
	return vacant != 0 && q.enough(u.mine|vacant)
}

// Contest claims those of the given roles (ascending) that are wanted and vacant, on each log on
// which they may be claimed.
func (q *Lease) Contest(roles []int32, now clock.Instant) []Out {
	lists := make([][]int32, len(q.logs))
	var tried []int32
	for _, role := range roles {
		if !q.wants(role) || !q.Vacant(role, now) {
			continue
		}
		for log := range q.logs {
			if u := q.unit(role); (u == nil || !u.mine.has(log)) && q.vacantOn(log, role, now) {
				lists[log] = append(lists[log], role)
			}
		}
		q.touch(role).tried = now.Mono
		tried = append(tried, role)
	}
	q.policy.later(now.Mono.Add(q.policy.patience()), tried)
	q.policy.later(now.Mono.Add(4*q.policy.patience()), tried)
	return q.claim(lists, now)
}

// Tick does everything else that is due: it ends sessions that have lapsed, gives back roles
// that too few logs support, claims led roles on the logs that lack them, and sends the Beat
// that a term waits for to begin.
func (q *Lease) Tick(now clock.Instant) []Out {
	q.check(now)
	out := q.Lapse(now)
	q.notice(now)
	out = append(out, q.decide(now)...)
	out = append(out, q.beatSoon(now)...)
	q.settle(now)
	return out
}

// decide looks at the roles that have changed.
func (q *Lease) decide(now clock.Instant) []Out {
	fill := make([][]int32, len(q.logs))
	var drop []int32
	for _, role := range q.takeLooks() {
		u := &q.units[role]
		u.looked = false
		switch {
		case u.token != 0:
			for log := range q.logs {
				if !u.mine.has(log) && q.wants(role) && q.vacantOn(log, role, now) {
					fill[log] = append(fill[log], role)
				}
			}
			continue
		case u.mine != 0 && (!q.wants(role) || q.yields(role, now)):
			drop = append(drop, role)
		}
		q.policy.tell(role)
	}
	out := q.giveBack(drop, now)
	return append(out, q.claim(fill, now)...)
}

// takeLooks returns the roles to look at, ascending, and forgets them.
func (q *Lease) takeLooks() []int32 {
	p := &q.policy
	roles := p.looks
	p.looks = nil
	if p.lookAll {
		p.lookAll = false
		if q.limit > 0 {
			q.touch(q.limit - 1)
		}
		roles = make([]int32, len(q.units))
		for role := range roles {
			roles[role] = int32(role)
		}
	}
	slices.Sort(roles)
	return roles
}

// yields reports whether to give back a role that too few logs support: the contest for it
// is decided, or takes too long. The process that holds the role on the lowest of the
// contested logs waits longer, so that not all processes give way.
func (q *Lease) yields(role int32, now clock.Instant) bool {
	u := &q.units[role]
	under := logs(0)
	for log, v := range q.logs {
		if !u.mine.has(log) && v.lease.Under(role) {
			under = under.with(log)
		}
	}
	patience := q.policy.patience()
	if q.enough(u.mine) || under != 0 && q.enough(u.mine|under) && now.Mono < u.tried.Add(patience) {
		return false
	}
	return now.Mono >= u.tried.Add(4*patience) || !q.first(role, now)
}

// first reports whether this process holds role on the lowest log on which a lease of it still runs.
func (q *Lease) first(role int32, now clock.Instant) bool {
	for log, v := range q.logs {
		if q.units[role].mine.has(log) {
			return true
		}
		if h, held := v.lease.HolderOf(role); held && now.Raw < h.FreeAt {
			return false
		}
	}
	return false
}

// giveBack releases roles that were contested in vain, and delays the next contest.
func (q *Lease) giveBack(roles []int32, now clock.Instant) []Out {
	if len(roles) == 0 {
		return nil
	}
	q.Forget(roles)
	fails := uint8(0)
	for _, role := range roles {
		u := &q.units[role]
		fails = max(fails, u.fails)
		u.fails = min(u.fails+1, maxFails)
	}
	at := now.Mono.Add(q.rules.Random(min(q.policy.patience()<<fails, q.rules.T)))
	for _, role := range roles {
		q.units[role].notBefore = at
	}
	q.policy.later(at, roles)
	return q.Release(roles, now)
}

// beatSoon sends a Beat on each log on which the session holds a role without a term, unless it
// has already sent this ballot there. The log counts for the term only once that ballot was read
// back.
func (q *Lease) beatSoon(now clock.Instant) []Out {
	var waiting logs
	for _, g := range q.groups {
		if !g.led && len(g.roles) > 0 {
			waiting |= g.mine
		}
	}
	var out []Out
	for log, v := range q.logs {
		if waiting.has(log) && v.back < q.bal && v.said < q.bal {
			if r, ok := q.Beat(log, now); ok {
				out = append(out, Out{log, r})
			}
		}
	}
	return out
}

// notice finds the roles to look at because of time alone.
func (q *Lease) notice(now clock.Instant) {
	p := &q.policy
	p.waits = slices.DeleteFunc(p.waits, func(w wait) bool {
		if now.Mono < w.at {
			return false
		}
		for _, role := range w.roles {
			if q.touch(role).token == 0 {
				q.look(role)
			}
		}
		return true
	})
	for log, v := range q.logs {
		if !v.begun {
			continue
		}
		if n, oldest := v.lease.Claiming(); n > 0 && now.Mono.Sub(oldest.Mono) >= q.rules.T {
			q.GiveUpClaims(log, now.Add(-q.rules.T), now)
		}
		if v.claimAt != 0 && now.Mono >= v.claimAt {
			v.claimAt, p.lookAll = 0, true
		}
		if at := q.wholeAt(v); at != 0 && now.Raw >= at && v.freshAt != at {
			v.freshAt, p.lookAll = at, true
		}
		if now.Raw >= v.overAt {
			q.silence(v, now)
		}
	}
}

// wholeAt returns when any role may be claimed on a log whose fold is not known, or on which a
// newer version may hold roles. It is 0 for all other logs.
func (q *Lease) wholeAt(v *logView) clock.Raw {
	if !v.lease.Known() {
		return v.lease.FreshAt()
	}
	if at, newer := v.lease.Newer(); newer {
		return clock.FreeAt(at.Raw, q.rules.T, q.rules.Rho)
	}
	return 0
}

// silence looks at the roles of the sessions whose leases are now over by any clock.
func (q *Lease) silence(v *logView, now clock.Instant) {
	v.overAt = clock.Never
	if v.over == nil {
		v.over = map[lease.Session]clock.Raw{}
	}
	for id := range v.over {
		if v.lease.HeldBy(id) == 0 {
			delete(v.over, id)
		}
	}
	v.lease.Each(func(h lease.HolderState) int32 {
		switch {
		case h.Session == v.lease.Session() || v.over[h.Session] == h.Heard.Raw:
		case now.Raw < h.FreeAt:
			v.overAt = min(v.overAt, h.FreeAt)
		default:
			v.over[h.Session] = h.Heard.Raw
			return 1
		}
		return 0
	}, func(role, over int32) {
		if over == 1 {
			q.look(role)
		}
	})
}

// Due returns when Tick next has something to do, if nothing is read until then.
func (q *Lease) Due(now clock.Instant) clock.Mono {
	next := clock.Mono(clock.Never)
	mono := func(t clock.Mono) { next = min(next, t) }
	raw := func(t clock.Raw) {
		if t != 0 {
			mono(now.MonoOf(t))
		}
	}
	if q.policy.lookAll || len(q.policy.looks) > 0 {
		return now.Mono
	}
	for _, w := range q.policy.waits {
		mono(w.at)
	}
	for _, v := range q.logs {
		if !v.begun {
			continue
		}
		if v.lease.Holding() > 0 {
			mono(v.lease.V().Mono.Add(clock.Hold(q.rules.T)))
		}
		if n, oldest := v.lease.Claiming(); n > 0 {
			mono(oldest.Mono.Add(q.rules.T))
		}
		if v.claimAt != 0 {
			mono(v.claimAt)
		}
		if at := q.wholeAt(v); at != v.freshAt {
			raw(at)
		}
		raw(v.overAt)
	}
	return next
}
