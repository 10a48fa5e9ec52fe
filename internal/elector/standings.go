package elector

import (
	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/observe"
)

// shown is what Members and Busy depend on, and which roles there are.
type shown struct {
	shards, roles  int
	members        uint64
	mayClaim, busy bool
}

// changed reports whether Holder, Standings, Members or Busy may answer differently than at the
// last call. That follows from counters and states that are kept where these things change, so
// nobody who changes one of them can forget to announce it.
func (n *Node) changed(now clock.Instant) bool {
	is := shown{len(n.shards), n.desired.Roles, n.members.Changes(), n.mayClaim(now), n.Busy(now)}
	changed := n.observed.Changed(now) || is != n.shown
	n.shown = is
	return changed
}

// stats returns the counters and the state, with a headcount that was taken before.
func (n *Node) stats(c *observe.Headcount, now clock.Instant) Stats {
	for _, s := range n.shards {
		s.vacancyStats.AddUp(now)
	}
	accepted, refused := n.requests.Decided()
	out := Stats{Counters: n.counts, Now: now, Terms: n.terms.Counts(), Led: n.terms.Led(now, n.desired.Roles), Members: n.members.Present(),
		Held: c.Of[observe.Held], Vacant: c.Of[observe.Vacant], Unknown: c.Of[observe.Unknown], RequestsAccepted: accepted, RequestsRefused: refused}
	for _, s := range n.shards {
		out.Add(&s.vacancyStats, n.set.HeartbeatInterval, s.main.link.WithheldFor(now), s.own.Evidence(now))
	}
	if len(n.shards) == 0 {
		out.Unknown = n.desired.Roles
	}
	if !n.set.Observer {
		out.Members++
	}
	return out
}
