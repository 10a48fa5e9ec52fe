package elector

import (
	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/offer"
	"github.com/goneli/neli/internal/elector/outside"
	"github.com/goneli/neli/internal/elector/told"
	"github.com/goneli/neli/internal/elector/warm"
	"github.com/goneli/neli/internal/lease"
)

// offer sends the offers that are due.
func (n *Node) offer(now clock.Instant) {
	if n.offers.IsIdle() {
		return
	}
	n.offers.Review(func(to offer.From, local int32) (offered, given bool) {
		s := n.shards[to.Shard]
		g, held := s.leases.Holder(local)
		return warm.Offered(s.handovers.Of(local), to.Process, s.own.At(local) != nil, held && g.Session.Process == n.set.Process)
	})
	for _, o := range n.offers.Sends(!n.desired.Willing(now), now) {
		n.do(now, func(in *told.In) {
			c := n.shards[o.To.Shard].logs.talks(in)
			r := c.word(lease.Ping, now)
			r.To, r.Offer = o.To.Process, &o.Offer
			c.append(in, r)
		})
	}
}

// offered handles an offer to this process, and reports whether the record has one.
func (n *Node) offered(s *shard, c *channel, o int64, r *lease.Record, now clock.Instant) bool {
	if n.preparer == nil || r.Offer == nil {
		return false
	}
	n.ready.end(n.preparer.Offered(offer.From{Process: r.Session.Process, Shard: s.Index}, c.index, o, r.Offer, n.desired.Willing(now), func(local int32) bool {
		g, held := s.leases.Holder(local)
		return held && g.Session.Process == r.Session.Process
	}, now))
	n.prepare(now)
	return true
}

// prepare begins and ends what is to be prepared, and says how far that is.
func (n *Node) prepare(now clock.Instant) {
	p := n.preparer
	if p == nil || p.IsIdle() {
		return
	}
	if n.desired.Willing(now) {
		n.ready.end(p.Review(n.holding))
	} else {
		n.ready.end(p.Quit())
	}
	do := p.Step(outside.Able(n.set, n.desired, now), func(at offer.Place) bool { return n.holding(at).Mine }, now)
	n.ready.end(do.End)
	for _, b := range do.Begin {
		n.ready.Begin = append(n.ready.Begin, offer.Task{Begin: b, Role: n.shards[b.Shard].Role(b.Local)})
	}
	for _, say := range do.Say {
		n.do(now, func(in *told.In) {
			c := n.channels[say.Log]
			r := c.word(lease.Pong, now)
			r.To, r.Ping, r.Prepared = say.To.Process, say.Offset, &say.State
			c.append(in, r)
		})
	}
}

// holding is what this process knows of who holds a role.
func (n *Node) holding(at offer.Place) offer.Holding {
	s := n.shards[at.Shard]
	g, held := s.leases.Holder(at.Local)
	h := offer.Holding{Own: s.own.At(at.Local) != nil, Unwanted: s.Role(at.Local) >= n.desired.Roles,
		Mine: s.claims.Favours(at.Local, n.set.Process) || s.claims.IsListed(at.Local) || s.logs.claiming()}
	if held {
		h.Process = g.Session.Process
	}
	return h
}

// Prepared notes that a call of the application's Prepare has returned.
func (n *Node) Prepared(b offer.Begin, ok bool, now clock.Instant) {
	n.ready.end(n.preparer.Returned(b, ok))
	n.prepare(now)
}
