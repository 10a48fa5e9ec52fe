package elector

import (
	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/term"
)

// follow acts on what a record did to the lease.
func (c *channel) follow(ev lease.Event, anew bool, r *lease.Record, now clock.Instant) {
	s := c.shard
	if ev.Known {
		s.learned(anew, now)
	}
	if ev.Evidence {
		if id := s.lease.As(r.Session); s.claims.revived(id) { // others were told that its roles are vacant
			roles := s.lease.RolesOf(id)
			s.watch(roles)
			s.vacancies.recountOf(roles, s.localRoles(), now)
		}
		s.unheard.heard(r.Session, c.log.Offset() >= c.end)
	}
	c.outlived(ev.Outlived, r, now)
	if len(ev.Changed) > 0 {
		s.watch(ev.Changed)
		s.vacancies.recountOf(ev.Changed, s.localRoles(), now)
		s.claims.designate(ev.Changed, r, s.set.Process)
	}
	s.sync(now)
	if anew {
		s.review(now)
	}
}

// watch looks for the silence of a holder when its lease ends. All roles are the same holder's.
func (s *shard) watch(roles []int32) {
	if len(roles) == 0 {
		return
	}
	if g, held := s.lease.Holder(roles[0]); held {
		s.claims.given(g.FreeAt)
	}
}

// outlived handles holders that another process has found to be silent before this process did:
// their roles have changed hands, so this process would not find out by itself.
func (c *channel) outlived(ids []lease.Session, r *lease.Record, now clock.Instant) {
	for _, id := range ids {
		switch {
		case id.Process == r.Session.Process: // it claims its own roles again
		case c.link.doubtful(now.Add(-c.set.T)):
		case len(c.shard.logs) > 1 && c.members.heardSince(id.Process, now.Add(-clock.Recent(c.set.T))): // it is cut off from this log only
		case c.members.suspect(id.Process):
			c.planner.forget()
		}
	}
}

// learned reviews everything after the fold has become known.
func (s *shard) learned(anew bool, now clock.Instant) {
	s.vacancies.recount(s.localRoles(), now)
	if !anew {
		return
	}
	s.claims.init()
	s.main.pacing.thinkAt = 0
	s.main.announcements.back = false
	s.standings.learned()
}

// sync compares roles that may have changed with the roles held here. It ends terms before it
// renews a line of V, and renews lines before it shifts terms to them, so that a term that goes on
// is led throughout. It is called after each record, so no log was lost and won again in between:
// until a term is shifted, its former line says no more than its new one.
func (s *shard) sync(now clock.Instant) {
	d := s.holds.compare(s.lease.Changed(), s.claims.isListed, now)
	s.end(d.superseded, term.Superseded)
	if len(d.lapsed) > 0 {
		s.end(d.lapsed, s.lapsed(now))
	}
	s.holds.renew()
	s.holds.shift(d.shifted)
	for _, w := range d.gained {
		s.gain(w, now)
	}
	s.claims.drop(d.taken)
	s.vacate(d.free, now)
}

// gain begins the terms of roles won by one Claim.
func (s *shard) gain(w won, now clock.Instant) {
	s.holds.gain(w, func(role int32) cause { return s.claims.causeOf(role, s.set.Process) }, now)
	s.wanted = false
	if s.main.beatAt < now.Mono {
		s.main.beatAt = now.Mono.Add(s.set.Every)
	}
}

// end ends the terms of roles that are no longer held.
func (s *shard) end(roles []int32, why term.Reason) {
	for _, role := range roles {
		s.hands.drop(role)
	}
	s.holds.end(roles, why)
}

// End ends all terms: the log has failed permanently, or this process has closed.
func (n *Node) End(why term.Reason) {
	for _, p := range n.shards {
		p.end(p.holds.roles(), why)
	}
}
