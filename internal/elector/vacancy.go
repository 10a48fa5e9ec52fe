package elector

import (
	"github.com/goneli/neli/internal/clock"
)

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
