package elector

import (
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/term"
)

// History is K: how many records lie between two Snapshots, roughly. A log is read from
// 2K records before its end.
const History = 1000

// partition is one log, and what this process makes of it. Roles are numbered within
// it. That is more than a dozen fields because each belongs to a concern of its own, in
// the file that is named beside it.
type partition struct {
	index int
	lease holdings     // who holds what; nil of a small log
	log   *lease.Lease // of one log; nil for what stands for all small ones
	id    string       // of the incarnation of a small log
	begun bool         // reading has begun: before that nothing is said or claimed
	end   int64        // of the log when reading began: what lies before is of unknown age

	unheard map[lease.Session]bool // holders of whom only that is known

	holds         map[int32]*hold // what this process leads, or gives up (handover.go)
	hands         []*handover     // orderly ends under way (handover.go)
	claims        claims          // vacancies, and own Claims (claim.go)
	link          link            // own records and their round trips (link.go)
	announcements announcements   // Hellos and Snapshots
	nomination    nomination      // what the nominator says of it

	vacancyStats vacancyStats // for counters

	dueAt     clock.Mono // when time alone will give p something to do
	beatAt    clock.Mono
	releaseAt clock.Mono // when Releases are sent again
	repeats   int        // how often they were
	releasing int        // Releases that were neither acknowledged nor reported as failed
	sweepAt   clock.Mono // when all vacant roles are looked at again
	over      bool       // the application was told that terms have lapsed
	wanted    bool       // nothing that is held was given up since Desired changed
}

// hold is a role that this process holds.
type hold struct {
	token int64
	cause cause
	since clock.Mono
	hand  *handover // nil: it is kept
	line  int       // the line of V that its term follows
}

// cause tells how this process came by a role.
type cause int

const (
	claimed     cause = iota // when it was vacant, or left by somebody who went
	rebalanced               // handed over by somebody who could have kept it
	transferred              // and meant to stay
)

func newPartition(index int, l *lease.Lease, set *Settings, now clock.Instant) *partition {
	p := &partition{index: index, log: l, holds: map[int32]*hold{}}
	if l != nil {
		p.log.Begin(0, false, now) // until the log says where it begins
	}
	p.nomination.nominated = !set.Nominated && !set.Observer
	p.claims.init()
	return p
}

// forget forgets what was concluded of roles.
func (p *partition) forget() {
	p.hands = nil
	p.claims.init()
}

// reset forgets what was concluded from the log, which is read anew; end is where it
// ends now.
func (p *partition) reset(end int64, now clock.Instant) {
	p.begun, p.end = true, end
	p.link.reset()
	p.announcements.reset(now)
}

// released takes note that something was released: Releases that are lost are sent again.
func (p *partition) released(now clock.Instant, t time.Duration) {
	p.repeats, p.releaseAt = 0, now.Mono.Add(clock.Resend(t))
}

// maxRepeats bounds the pause between Releases that do not come back, to 2T.
const maxRepeats = 3

// follow draws the conclusions of what a record in a log did to the lease.
func (n *Node) follow(log *partition, ev lease.Event, r *lease.Record, now clock.Instant) {
	p := n.rolesOf(log)
	if ev.Known {
		n.learned(p, now)
	}
	if ev.Evidence {
		if id := p.lease.As(r.Session); p.claims.silent[id] != 0 { // it lives on: others were told that its roles are vacant
			delete(p.claims.silent, id)
			n.ready.Changed = true
			n.recountOf(p, p.lease.RolesOf(id), now)
		}
		switch live := log.log.Offset() >= log.end; {
		case !live && p.unheard != nil: // it may claim here what it holds from now on
			p.unheard[r.Session] = true
		case live && p.unheard[r.Session]: // others were told that nothing is known of its roles
			delete(p.unheard, r.Session)
			n.ready.Changed = true
		}
	}
	n.outlived(log, ev.Outlived, r, now)
	if len(ev.Changed) > 0 {
		n.ready.Changed = true
		n.recountOf(p, ev.Changed, now)
		n.designate(p, ev.Changed, r)
	}
	n.sync(p, now)
	if ev.Known && !p.lease.Outlasts() {
		n.review(p, now)
	}
}

// outlived takes note of holders that another process has found to be silent before this
// one did: nothing is left by which it would find out itself.
func (n *Node) outlived(p *partition, ids []lease.Session, r *lease.Record, now clock.Instant) {
	for _, id := range ids {
		switch {
		case id.Process == r.Session.Process: // it claims anew what it held
		case p.link.doubtful(now.Add(-n.set.T)):
		case n.rolesOf(p).lease.Outlasts() && n.members.heardSince(id.Process, now.Add(-clock.Recent(n.set.T))): // it is cut off from this log only
		case n.members.suspect(id.Process):
			n.planner.forget()
		}
	}
}

// learned looks at everything, which was not known before.
func (n *Node) learned(p *partition, now clock.Instant) {
	n.recount(p, now)
	n.ready.Changed = true
	if p.lease.Outlasts() {
		return // what is known of the other logs has been concluded
	}
	p.claims.init()
	p.announcements.back = false
	p.unheard = map[lease.Session]bool{}
	for h := range p.lease.Holders() {
		if h.Last < p.end {
			p.unheard[h.Session] = true
		}
	}
}

// sync compares roles that may have changed with what is held here. What has ended is
// ended before a line of V is renewed, and lines are renewed before terms are shifted to them: a
// term that goes on is found led all the while. It is called after each record, so that no
// log was lost and won again since: until it is shifted, a term's former line says no more
// than its new one.
func (n *Node) sync(p *partition, now clock.Instant) {
	var lapsed, superseded, free, taken, shifted []int32
	gained := map[int64][]int32{}
	for _, role := range p.lease.Changed() {
		token, line, led := p.lease.Term(role)
		h := p.holds[role]
		switch {
		case h != nil && (!led || h.token != token):
			if p.lease.Outdone(role) {
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
			gained[token] = append(gained[token], role)
			taken = append(taken, role)
		case led || !p.lease.Vacant(role, now):
			taken = append(taken, role)
		case !p.lease.Paces() || !p.claims.isListed(role):
			free = append(free, role)
		}
	}
	n.end(p, superseded, term.Superseded, false)
	if len(lapsed) > 0 {
		n.end(p, lapsed, n.lapsed(now), false)
	}
	n.renew(p)
	n.shift(p, shifted)
	for token, roles := range gained {
		n.gain(p, roles, token, now)
	}
	p.claims.drop(taken)
	n.vacate(p, free, now)
	if len(taken) > 0 || len(free) > 0 {
		n.ready.Changed, n.mover.dirty = true, true
	}
}

// renew publishes V of all lines that terms follow. What ended was withdrawn before.
func (n *Node) renew(p *partition) {
	for line := range p.lease.InUse() {
		v := p.lease.V(line)
		if at, ok := n.terms.V(line); v != (clock.Instant{}) && (!ok || at != v) {
			n.terms.Renew(line, v)
		}
	}
}

// shift lets terms follow the lines of V that are theirs now.
func (n *Node) shift(p *partition, roles []int32) {
	byLine := map[int][]int{}
	for _, role := range roles {
		h := p.holds[role]
		if _, line, led := p.lease.Term(role); led && h != nil && h.line != line {
			h.line = line
			byLine[line] = append(byLine[line], n.role(p, role))
		}
	}
	for line, units := range byLine {
		n.terms.Shift(units, line)
	}
}

// gain begins the terms of roles that were won by one Claim.
func (n *Node) gain(p *partition, roles []int32, token int64, now clock.Instant) {
	units := make([]int, 0, len(roles))
	for _, role := range roles {
		if p.holds[role] != nil {
			continue
		}
		p.holds[role] = &hold{token: token, cause: p.claims.causeOf(role, n.set.Process), since: now.Mono, line: p.index}
		units = append(units, n.role(p, role))
	}
	p.wanted = false
	n.terms.Start(units, token, n.set.TokenBase+token)
	n.shift(p, roles)
	if p.beatAt < now.Mono {
		p.beatAt = now.Mono.Add(n.set.Every)
	}
}

// end forgets roles that are held no more.
func (n *Node) end(p *partition, roles []int32, why term.Reason, graceful bool) {
	if len(roles) == 0 {
		return
	}
	for _, role := range roles {
		if h := p.holds[role]; h != nil {
			if h.hand != nil {
				h.hand.drop(role)
			}
			delete(p.holds, role)
		}
	}
	n.terms.End(n.units(p, roles), why, graceful)
	n.ready.Changed = true
}

func (n *Node) endAll(p *partition, why term.Reason) {
	roles := make([]int32, 0, len(p.holds))
	for role := range p.holds {
		roles = append(roles, role)
	}
	n.end(p, roles, why, false)
}

// End ends all terms: the log has failed for good, or this process has closed.
func (n *Node) End(why term.Reason) {
	for _, p := range n.parts {
		n.endAll(p, why)
	}
}

// due is when p will have something to do, if nothing is read: by the monotonic clock.
func (n *Node) due(p *partition, now clock.Instant) clock.Mono {
	next := p.lease.Due(now)
	mono := func(t clock.Mono) { next = min(next, t) }
	for _, h := range p.hands {
		if !h.named {
			mono(n.nameAt())
		}
		mono(h.due(n.set.AnswerWait))
		mono(h.releaseAt(n.timing.roundTrip()))
	}
	if at, ok := n.claimDue(p, now); ok {
		mono(at)
	}
	mono(now.MonoOf(p.claims.silentAt))
	for _, log := range n.logsOf(p) {
		if !log.begun {
			continue
		}
		if p.lease.Keeps(log.index, len(p.holds) > 0) && n.set.Alive(now) && !log.link.beating(now, n.set.T) {
			mono(log.beatAt)
		}
		if p.lease.Owes(log.index) && log.releasing == 0 {
			mono(log.releaseAt)
		}
		n.talkDue(log, now, mono)
	}
	return next
}
