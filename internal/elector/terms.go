package elector

import (
	"slices"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/term"
)

// hold is what roles that this process holds by one Claim have in common. It does not change.
type hold struct {
	token int64
	cause cause
	since clock.Mono
	line  int // the line of V that the term follows
}

// cause is how this process got a role.
type cause int

const (
	claimed     cause = iota // it was vacant, or its holder left
	rebalanced               // its holder handed it over for balance
	transferred              // its holder handed it over by a Transfer: it stays
)

// follow acts on what a record did to the lease.
func (c *channel) follow(ev lease.Event, anew bool, r *lease.Record, now clock.Instant) {
	s := c.shard
	if ev.Known {
		s.learned(anew, now)
	}
	if ev.Evidence {
		if id := s.lease.As(r.Session); s.claims.revived(id) { // others were told that its roles are vacant
			s.recountOf(s.lease.RolesOf(id), now)
		}
		s.unheard.heard(r.Session, c.log.Offset() >= c.end)
	}
	c.outlived(ev.Outlived, r, now)
	if len(ev.Changed) > 0 {
		s.recountOf(ev.Changed, now)
		s.claims.designate(ev.Changed, r, s.set.Process)
	}
	s.sync(now)
	if anew {
		s.review(now)
	}
}

// outlived handles holders that another process has found to be silent before this process did:
// their roles have changed hands, so this process would not find out by itself.
func (c *channel) outlived(ids []lease.Session, r *lease.Record, now clock.Instant) {
	for _, id := range ids {
		switch {
		case id.Process == r.Session.Process: // it claims its own roles again
		case c.link.doubtful(now.Add(-c.set.T)):
		case len(c.shard.channels) > 1 && c.members.heardSince(id.Process, now.Add(-clock.Recent(c.set.T))): // it is cut off from this log only
		case c.members.suspect(id.Process):
			c.planner.forget()
		}
	}
}

// learned reviews everything after the fold has become known.
func (s *shard) learned(anew bool, now clock.Instant) {
	s.recount(now)
	if !anew {
		return
	}
	s.claims.init()
	s.main.pacing.thinkAt = 0
	s.main.announcements.back = false
	s.unheard.begin(s.lease.Holders(), s.old)
}

// sync compares roles that may have changed with the roles held here. It ends terms before it
// renews a line of V, and renews lines before it shifts terms to them, so that a term that goes on
// is led throughout. It is called after each record, so no log was lost and won again in between:
// until a term is shifted, its former line says no more than its new one.
func (s *shard) sync(now clock.Instant) {
	var lapsed, superseded, free, taken, shifted []int32
	var gained wins
	for _, role := range s.lease.Changed() {
		token, line, led := s.lease.Term(role)
		h := s.holds.at(role)
		switch {
		case h != nil && (!led || h.token != token):
			if s.lease.Outdone(role) {
				superseded = append(superseded, role)
			} else {
				lapsed = append(lapsed, role)
			}
			h = nil
		case h != nil && h.line != line:
			shifted = append(shifted, role)
		}
		switch {
		case led && h == nil:
			gained.add(token, role)
			taken = append(taken, role)
		case led || !s.lease.Vacant(role, now):
			taken = append(taken, role)
		case !s.lease.Reminds() || !s.claims.isListed(role):
			free = append(free, role)
		}
	}
	s.end(superseded, term.Superseded, false)
	if len(lapsed) > 0 {
		s.end(lapsed, s.lapsed(now), false)
	}
	s.renew()
	s.shift(shifted)
	for _, w := range gained {
		s.gain(w.roles, w.token, now)
	}
	s.claims.drop(taken)
	s.vacate(free, now)
	if len(taken) > 0 || len(free) > 0 {
		s.mover.dirty = true
	}
}

// wins are roles that were won, by token.
type wins []won

type won struct {
	token int64
	roles []int32
}

// add adds a role. Most roles have the same token as the one before.
func (w *wins) add(token int64, role int32) {
	i := len(*w) - 1
	if i < 0 || (*w)[i].token != token {
		if i = slices.IndexFunc(*w, func(x won) bool { return x.token == token }); i < 0 {
			i = len(*w)
			*w = append(*w, won{token: token})
		}
	}
	(*w)[i].roles = append((*w)[i].roles, role)
}

// renew publishes V of all lines that terms follow. Ended terms were withdrawn before.
func (s *shard) renew() {
	for line := range s.lease.InUse() {
		v := s.lease.V(line)
		if at, ok := s.terms.V(line); v != (clock.Instant{}) && (!ok || at != v) {
			s.terms.Renew(line, v)
		}
	}
}

// shift lets terms follow their current lines of V.
func (s *shard) shift(roles []int32) {
	byLine := map[int][]int{}
	var from, to *hold
	for _, role := range roles {
		h := s.holds.at(role)
		if _, line, led := s.lease.Term(role); led && h != nil && h.line != line {
			if from != h || to.line != line {
				moved := *h
				moved.line = line
				from, to = h, &moved
			}
			s.holds.set(role, to)
			byLine[line] = append(byLine[line], s.role(role))
		}
	}
	for line, units := range byLine {
		s.terms.Shift(units, line)
	}
}

// gain begins the terms of roles won by one Claim.
func (s *shard) gain(roles []int32, token int64, now clock.Instant) {
	units := make([]int, 0, len(roles))
	var of *hold
	for _, role := range roles {
		if s.holds.has(role) {
			continue
		}
		if why := s.claims.causeOf(role, s.set.Process); of == nil || of.cause != why {
			of = &hold{token: token, cause: why, since: now.Mono, line: s.index}
		}
		s.holds.set(role, of)
		units = append(units, s.role(role))
	}
	s.wanted = false
	s.terms.Start(units, token, s.set.TokenBase+token)
	s.shift(roles)
	if s.main.beatAt < now.Mono {
		s.main.beatAt = now.Mono.Add(s.set.Every)
	}
}

// end ends the terms of roles that are no longer held.
func (s *shard) end(roles []int32, why term.Reason, graceful bool) {
	if len(roles) == 0 {
		return
	}
	for _, role := range roles {
		if s.holds.at(role) != nil {
			s.hands.drop(role)
			s.holds.remove(role)
		}
	}
	s.terms.End(s.units(roles), why, graceful)
}

func (s *shard) endAll(why term.Reason) {
	s.end(s.holds.roles(), why, false)
}

// End ends all terms: the log has failed permanently, or this process has closed.
func (n *Node) End(why term.Reason) {
	for _, p := range n.shards {
		p.endAll(why)
	}
}
