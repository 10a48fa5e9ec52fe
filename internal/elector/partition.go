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
	lease ledger       // who holds what
	log   *lease.Lease // of one log; nil for what stands for all small ones
	id    string       // of the incarnation of a small log
	begun bool         // reading has begun: before that nothing is said or claimed
	end   int64        // of the log when reading began: what lies before is of unknown age

	unheard map[lease.Session]bool // holders of whom only that is known
	v       clock.Instant

	holds  map[int32]*hold // what this process leads, or gives up (handover.go)
	hands  []*handover     // orderly ends under way (handover.go)
	claims claims          // vacancies, and own Claims (claim.go)
	link   link            // own records and their round trips (link.go)
	talk   talk            // Hellos and Snapshots (announce.go)
	group  group           // what the nominator says of it (nominate.go)

	vacancies vacancies // for counters (vacancy.go)

	dueAt     clock.Time // monotonic: when time alone will give p something to do
	beatAt    clock.Time // monotonic
	releaseAt clock.Time // monotonic: when Releases are sent again
	repeats   int        // how often they were
	releasing int        // Releases that were neither acknowledged nor reported as failed
	sweepAt   clock.Time // monotonic: when all vacant roles are looked at again
	over      bool       // the application was told that terms have lapsed
	wanted    bool       // nothing that is held was given up since Desired changed
}

// hold is a role that this process holds.
type hold struct {
	token int64
	cause cause
	since clock.Time // monotonic
	hand  *handover  // nil: it is kept
	line  int        // on small logs: the line of V that it follows
}

// cause tells how this process came by a role.
type cause int

const (
	claimed     cause = iota // when it was vacant, or left by somebody who went
	rebalanced               // handed over by somebody who could have kept it
	transferred              // and meant to stay
)

func newPartition(index int, l *lease.Lease, set *Settings, now clock.Instant) *partition {
	p := &partition{index: index, lease: l, log: l, holds: map[int32]*hold{}}
	if l != nil {
		p.log.Begin(0, false, now) // until the log says where it begins
	}
	p.group.nominated = !set.Nominated && !set.Observer
	p.claims.init()
	return p
}

// reset forgets what was concluded from the log, which is read anew; end is where it
// ends now.
func (p *partition) reset(end int64, now clock.Instant) {
	p.begun, p.end = true, end
	p.v = clock.Instant{}
	p.hands = nil
	p.vacancies = vacancies{at: now.Raw}
	p.claims.init()
	p.link.reset()
	p.talk.reset(now)
}

// released takes note that something was released: Releases that are lost are sent again.
func (p *partition) released(now clock.Instant, t time.Duration) {
	p.repeats, p.releaseAt = 0, now.Mono.Add(t/4)
}

// maxRepeats bounds the pause between Releases that do not come back, to 2T.
const maxRepeats = 3

// follow draws the conclusions of what a record did to the lease.
func (n *Node) follow(p *partition, ev lease.Event, r *lease.Record, now clock.Instant) {
	if ev.Known {
		n.learned(p, now)
		return
	}
	if ev.Evidence {
		if _, was := p.claims.silent[r.Session]; was { // it lives on: others were told that its roles are vacant
			delete(p.claims.silent, r.Session)
			n.ready.Changed = true
			n.occupied(p, p.log.RolesOf(r.Session), now)
		}
		switch live := p.log.Offset() >= p.end; {
		case !live && p.unheard != nil: // it may claim here what it holds from now on
			p.unheard[r.Session] = true
		case live && p.unheard[r.Session]: // others were told that nothing is known of its roles
			delete(p.unheard, r.Session)
			n.ready.Changed = true
		}
	}
	if len(ev.Changed) == 0 {
		n.renew(p)
		return
	}
	n.outlived(p, ev.Outlived, r, now)
	n.designate(p, ev.Changed, r)
	n.sync(p, ev.Changed, now)
}

// outlived takes note of holders that another process has found to be silent before this
// one did: nothing is left by which it would find out itself.
func (n *Node) outlived(p *partition, ids []lease.Session, r *lease.Record, now clock.Instant) {
	for _, id := range ids {
		switch {
		case id.Process == r.Session.Process: // it claims anew what it held
		case p.link.doubtful(now.Add(-n.set.T)):
		case n.quorum != nil && n.members.heardSince(id.Process, now.Add(-n.set.T/2)): // it is cut off from this log only
		case n.members.suspect(id.Process):
			n.planner.forget()
		}
	}
}

// learned looks at everything, which was not known before.
func (n *Node) learned(p *partition, now clock.Instant) {
	p.claims.init()
	p.talk.back = false
	var all []int32
	p.lease.Each(func(h lease.HolderState) int32 { return 0 }, func(role, _ int32) { all = append(all, role) })
	p.unheard = map[lease.Session]bool{}
	for h := range p.lease.Holders() {
		if h.Last < p.end {
			p.unheard[h.Session] = true
		}
	}
	n.sync(p, all, now)
	n.vacated(p, p.log.Free(n.localRoles(p)), now)
	n.review(p, now)
	n.ready.Changed = true
}

// sync compares roles that may have changed with what is held here.
func (n *Node) sync(p *partition, roles []int32, now clock.Instant) {
	var lost, free, taken []int32
	gained := map[int64][]int32{}
	for _, role := range roles {
		token, mine := p.lease.Mine(role)
		h := p.holds[role]
		if h != nil && (!mine || h.token != token) {
			lost = append(lost, role)
			h = nil
		}
		if mine && h == nil {
			gained[token] = append(gained[token], role)
		} else if _, held := p.lease.Holder(role); !held {
			free = append(free, role)
			continue
		}
		taken = append(taken, role)
	}
	n.end(p, lost, term.Superseded, false)
	n.renew(p)
	for token, roles := range gained {
		n.gain(p, roles, token, now)
	}
	n.occupied(p, taken, now)
	n.vacated(p, free, now)
	p.claims.drop(taken)
	n.vacate(p, free, now)
	n.ready.Changed = true
	n.moves.dirty = true
}

// renew publishes V. What ended was withdrawn before.
func (n *Node) renew(p *partition) {
	if v := p.log.V(); v != p.v && v != (clock.Instant{}) {
		p.v = v
		n.terms.Renew(p.index, v)
	}
}

// gain begins the terms of roles that were won by one Claim.
func (n *Node) gain(p *partition, roles []int32, token int64, now clock.Instant) {
	units := make([]int, 0, len(roles))
	for _, role := range roles {
		if p.holds[role] != nil {
			continue
		}
		p.holds[role] = &hold{token: token, cause: p.claims.causeOf(role, n.set.Process), since: now.Mono}
		units = append(units, n.role(p, role))
	}
	p.wanted = false
	n.terms.Start(units, token, n.set.TokenBase+token)
	if n.quorum != nil {
		n.shiftSmall(p, roles)
	}
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
func (n *Node) due(p *partition, now clock.Instant) clock.Time {
	next := clock.Mono(clock.Never)
	mono := func(t clock.Time) { next = min(next, t) }
	raw := func(t clock.Raw) { mono(now.MonoOf(t)) }
	if len(p.holds) > 0 {
		// By the monotonic clock; a wall clock that is set forward is noticed at the next
		// beat, or by whoever looks at it.
		mono(p.v.Mono.Add(clock.Hold(n.set.T)))
		if n.set.Alive(now) && !p.link.beating(now, n.set.T) {
			mono(p.beatAt)
		}
	}
	if n.owing(p, now) && p.releasing == 0 {
		mono(p.releaseAt)
	}
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
	raw(p.claims.silentAt)
	n.talkDue(p, now, mono)
	return next
}
