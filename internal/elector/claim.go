package elector

import (
	"log/slog"
	"slices"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
)

// claims is what a process knows of vacant roles of one partition, and when it will
// claim them. The lease says which it may claim at all; all else is preference, and
// restraint: after an outage everybody would claim everything, and the log would never
// recover from that.
type claims struct {
	vacant     []*vacancy
	listed     []*vacancy                  // by role: which of them has it
	successors map[int32]successor         // roles released in somebody's favour
	silent     map[lease.Session]clock.Raw // whose silence was dealt with: when it was last heard; saidOnly
	silentAt   clock.Raw                   // when the next holder's lease will be over
	sharings   sharings                    // of what is vacant
	thinkAt    clock.Mono                  // what others should have claimed is not thought of before

	tries     int        // k: Claims in a row that did not come back in time
	notBefore clock.Mono // no Claim before, for that reason
}

func (c *claims) init() {
	*c = claims{successors: map[int32]successor{}, silent: map[lease.Session]clock.Raw{}, silentAt: clock.Never,
		tries: c.tries, notBefore: c.notBefore}
}

// causeOf tells how this process came by a role that it has just won.
func (c *claims) causeOf(role int32, self string) cause {
	h, ok := c.successors[role]
	delete(c.successors, role)
	if ok && h.process == self {
		return h.cause
	}
	return claimed
}

const (
	// maxTries bounds the pause between Claims that do not come back, to 8T · U(½, 3/2).
	maxTries = 6
	// settleFor is how long a process that starts waits for Hellos, before it claims its
	// share of several roles: so long for each newcomer, three times at most.
	settleFor = 100 * time.Millisecond
)

// willing reports whether this process would lead anything of p now.
func (n *Node) willing(p *partition, now clock.Instant) bool {
	return !n.set.Observer && p.nomination.nominated && n.desired.Willing(now) && n.set.Alive(now)
}

// claim claims what is due, all of it together.
func (n *Node) claim(p *partition, now clock.Instant) {
	if !n.willing(p, now) {
		return
	}
	c := &p.claims
	if !p.lease.Paces() && !p.lease.Known() && len(c.vacant) == 0 && now.Raw >= p.log.FreshAt() {
		n.placeFresh(p, now)
	}
	n.overdue(p, now)
	if at, ok := n.claimDue(p, now); !ok || now.Mono < at {
		return
	}
	if !p.lease.Paces() && !p.link.check(now, n.set.T) {
		p.nomination.claimed(now) // it would claim
		n.probe(p, now)
		return
	}
	due := c.take(now, n.localRoles(p))
	if len(due) == 0 {
		return
	}
	n.send(p, due, now)
}

// send appends Claims of those of the roles that may be claimed; the others are left to
// a later time if nobody holds them.
func (n *Node) send(p *partition, roles []int32, now clock.Instant) {
	fresh := !p.lease.Known()
	out := p.lease.Contest(roles, now)
	if len(out) > 0 {
		p.nomination.claimed(now)
	}
	n.appendAll(p, out, now)
	if fresh && len(out) > 0 {
		return // the rest follows when it has come back
	}
	// Never: this process may claim nothing before it knows whose fold is wrong, and then
	// all vacancies are reviewed.
	if later, at := p.lease.Later(roles, now); at != clock.Never {
		p.claims.add(now.MonoOf(at), later)
	}
}

// placeFresh plans the Claim of a process that knows nothing: of its share, or of any
// role if it has none, the later the more members there are before it.
func (n *Node) placeFresh(p *partition, now clock.Instant) {
	limit := n.localRoles(p)
	if limit == 0 {
		return
	}
	all := make([]int32, limit)
	for i := range all {
		all[i] = int32(i)
	}
	if n.set.Nominated {
		p.claims.add(now.Mono, all)
		return
	}
	plan, me := n.plan(true, now)
	shares := n.shares(plan, p, all, true, now)
	rank := plan.Rank(me, int(shares[n.role(p, 0)]), n.role(p, 0))
	share := slices.DeleteFunc(slices.Clone(all), func(role int32) bool { return int(shares[n.role(p, role)]) != me })
	if len(share) == 0 {
		share = all[:1]
	}
	p.claims.add(now.Mono.Add(2*n.timing.roundTrip()*time.Duration(rank)+n.set.Random(n.timing.roundTrip()+1)), share)
}

// claimDue is when something may be claimed, by the monotonic clock.
func (n *Node) claimDue(p *partition, now clock.Instant) (at clock.Mono, ok bool) {
	c := &p.claims
	if !n.willing(p, now) {
		return 0, false
	}
	if p.lease.Paces() {
		if len(c.vacant) == 0 {
			return 0, false
		}
		return max(c.next(), n.timing.settled(n.desired.Roles, false)), true
	}
	if under, _ := p.lease.Claiming(); under > 0 {
		return 0, false
	}
	if !p.lease.Known() && len(c.vacant) == 0 {
		if n.localRoles(p) == 0 {
			return 0, false
		}
		at = now.MonoOf(p.log.FreshAt())
	} else {
		if len(c.vacant) == 0 {
			return 0, false
		}
		at = c.next()
	}
	return max(at, c.notBefore, n.timing.settled(n.desired.Roles, n.set.Nominated), n.probing(p, now)), true
}

// probing is until when a Claim waits for a probe to come back, if one has to.
func (n *Node) probing(p *partition, now clock.Instant) clock.Mono {
	if p.link.check(now, n.set.T) {
		return 0
	}
	if p.link.probing(now, n.set.T) {
		return p.link.hello.at.Add(n.set.T)
	}
	return p.announcements.helloAt
}

// claimFailed takes note that a Claim may or may not be in the log.
func (n *Node) claimFailed(p *partition, roles []int32, now clock.Instant) {
	p.claims.late(n.backoff, now)
	n.vacate(p, roles, now)
	n.ready.Changed = true
}

// returned takes note of a Claim that has come back, in time or not. Others sent theirs at
// about the same time: what lies behind this one comes within about as long again.
func (c *claims) returned(inTime bool, took time.Duration, backoff func(int) time.Duration, now clock.Instant) {
	if inTime {
		c.tries, c.notBefore = 0, 0
		c.thinkAt = now.Mono.Add(took)
		return
	}
	c.late(backoff, now)
}

func (c *claims) late(backoff func(int) time.Duration, now clock.Instant) {
	c.tries = min(c.tries+1, maxTries)
	c.notBefore = now.Mono.Add(backoff(c.tries))
}

// backoff is T/8 · 2^k · U(½, 3/2): with less, what is sent again keeps the log as busy
// as what did not come back.
func (n *Node) backoff(k int) time.Duration {
	d := clock.Pause(n.set.T) << k
	return d/2 + n.set.Random(d)
}

// giveUpClaims forgets Claims of which nothing was heard for as long as a lease lasts:
// the log has lost them, or reading has stopped.
func (n *Node) giveUpClaims(p *partition, now clock.Instant) {
	if p.lease.Paces() {
		return // it gives them up by itself
	}
	under, oldest := p.lease.Claiming()
	limit := max(2*n.set.T, 10*time.Second)
	if !n.desired.Willing(now) {
		limit = closeTail // nothing is lost
	}
	if under == 0 || now.Mono.Sub(oldest.Mono) < limit {
		return
	}
	if n.reports.claims.due(now) { // where reading stands still, it is all partitions
		n.note(slog.LevelWarn, "claim did not come back: given up", "partition", p.index, "after", limit)
	}
	p.log.GiveUpClaims(now.Add(-limit))
	p.claims.late(n.backoff, now)
	n.review(p, now)
	n.ready.Changed, n.ready.Verify = true, true
}
