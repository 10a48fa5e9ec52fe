package quorum

import (
	"slices"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
)

// unit is this process's state of one role.
type unit struct {
	token  int64 // of its term; 0: it has none
	mine   logs  // the logs on which the present session holds it and has not forgotten it
	counts logs  // those of mine from which a ballot of at least token was read back
	looked bool  // it is in policy.looks
	place  int32 // index in its group

	fails     uint8      // contests in a row that ended without a term
	tried     clock.Mono // when it was last contested; 0: never, or its term has begun since
	notBefore clock.Mono // when it may be contested again
}

// kind is what the units of a group have in common. They begin and end their terms together. A
// step visits only the groups that it changes, which keeps it cheap.
type kind struct {
	mine, counts logs
	led          bool
}

type group struct {
	kind
	roles []int32
}

// unit returns the state of a role, or nil.
func (q *Lease) unit(role int32) *unit {
	if role < 0 || int(role) >= len(q.units) {
		return nil
	}
	return &q.units[role]
}

// touch returns the state of a role, and creates it if necessary.
func (q *Lease) touch(role int32) *unit {
	if n := int(role) + 1; n > len(q.units) {
		q.units = append(q.units, make([]unit, max(n, len(q.units)+len(q.units)/2)-len(q.units))...)
	}
	return &q.units[role]
}

func (u *unit) kind() kind { return kind{u.mine, u.counts, u.token != 0} }

// set changes a unit and moves it to the group of its new kind.
func (q *Lease) set(role int32, token int64, mine, counts logs) {
	u := q.touch(role)
	if u.mine != 0 {
		g := q.byKind[u.kind()]
		last := len(g.roles) - 1
		g.roles[u.place] = g.roles[last]
		q.units[g.roles[u.place]].place = u.place
		g.roles = g.roles[:last]
	}
	if token != u.token || token != 0 && counts != u.counts {
		q.policy.tell(role)
	}
	u.token, u.mine, u.counts = token, mine, counts
	if u.mine == 0 {
		return
	}
	g := q.byKind[u.kind()]
	if g == nil {
		g = &group{kind: u.kind()}
		q.byKind[g.kind] = g
		q.groups = append(q.groups, g)
	}
	u.place = int32(len(g.roles))
	g.roles = append(g.roles, role)
}

// each calls f for all units of the wanted kinds. f may change a unit's group.
func (q *Lease) each(wanted func(kind) bool, f func(role int32, u *unit)) {
	var found []int32
	for _, g := range q.groups {
		if len(g.roles) > 0 && wanted(g.kind) {
			found = append(found, g.roles...)
		}
	}
	for _, role := range found {
		f(role, &q.units[role])
	}
}

// refresh updates a role's unit from the fold of a log.
func (q *Lease) refresh(log int, role int32) {
	v := q.logs[log]
	_, mine := v.lease.Mine(role)
	u := q.unit(role)
	switch had := u != nil && u.mine.has(log); {
	case mine && !had:
		u = q.touch(role)
		counts := u.counts
		if u.token != 0 && v.back >= u.token {
			counts = counts.with(log)
		}
		q.set(role, u.token, u.mine.with(log), counts)
	case had && !mine:
		q.drop(log, role)
	}
	q.look(role)
}

// drop removes a log from a unit. With the last log its term ends at once, otherwise check decides.
func (q *Lease) drop(log int, role int32) {
	u := &q.units[role]
	q.set(role, u.token, u.mine.minus(log), u.counts.minus(log))
	if u.mine == 0 && u.token != 0 {
		q.end(role)
	}
}

// dropAll removes a log from all units.
func (q *Lease) dropAll(log int) {
	q.each(func(k kind) bool { return k.mine.has(log) }, func(role int32, _ *unit) {
		q.drop(log, role)
		q.look(role)
	})
}

// raise notes that a larger ballot was read back from a log.
func (q *Lease) raise(log int) {
	back := q.logs[log].back
	q.each(func(k kind) bool { return k.led && k.mine.has(log) && !k.counts.has(log) }, func(role int32, u *unit) {
		if back >= u.token {
			q.set(role, u.token, u.mine, u.counts.with(log))
		}
	})
}

// check ends the terms that are no longer led at time now. It runs first for every input:
// evidence that arrives later must not revive a term that has lapsed.
func (q *Lease) check(now clock.Instant) {
	var young logs
	for i, looked := 0, false; i < len(q.groups); i++ {
		g := q.groups[i]
		if !g.led || len(g.roles) == 0 {
			continue
		}
		if !looked {
			young, looked = q.young(now), true
		}
		if !q.enough(g.counts & young) {
			for _, role := range slices.Clone(g.roles) {
				q.end(role)
				q.look(role)
			}
		}
	}
}

// end ends a term. No later term of this process has the same token.
func (q *Lease) end(role int32) {
	u := &q.units[role]
	q.lift(u.token + 1)
	q.set(role, 0, u.mine, 0)
}

// settle begins the terms of the wanted roles that a majority of the logs of each list sustains
// with the present ballot.
func (q *Lease) settle(now clock.Instant) {
	if q.bal == 0 || q.bal >= lease.MaxBallot {
		return // a new token would equal the one before: ballots are exhausted
	}
	var given logs
	for i, v := range q.logs {
		if v.back >= q.bal {
			given = given.with(i)
		}
	}
	able := given & q.young(now)
	if !q.enough(able) {
		return
	}
	q.each(func(k kind) bool { return !k.led && q.enough(k.mine&able) }, func(role int32, u *unit) {
		if !q.wants(role) {
			return
		}
		q.set(role, q.bal, u.mine, u.mine&given)
		u.fails, u.tried, u.notBefore = 0, 0, 0
		q.look(role) // other logs may be claimed at once
	})
}

func (q *Lease) wants(role int32) bool { return role < q.limit && q.want(role) }
