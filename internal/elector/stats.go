package elector

import (
	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/observe"
)

// Stats looks at the holder of every role; it costs nothing while nobody calls it.
func (n *Node) Stats(now clock.Instant) Stats {
	var c headcount
	for n.headcount(&c, now) {
	}
	return n.stats(&c, now)
}

// stats is Stats with a headcount that was taken before.
func (n *Node) stats(c *headcount, now clock.Instant) Stats {
	for _, s := range n.shards {
		s.vacancyStats.AddUp(now)
	}
	accepted, refused := n.requests.Decided()
	out := Stats{Counters: n.counts, Now: now, Terms: n.terms.Counts(), Led: n.terms.Led(now, n.desired.Roles), Members: n.members.Present(),
		Held: c.of[observe.Held], Vacant: c.of[observe.Vacant], Unknown: c.of[observe.Unknown], RequestsAccepted: accepted, RequestsRefused: refused}
	for _, s := range n.shards {
		out.Add(&s.vacancyStats, n.set.Every, s.main.link.WithheldFor(now), s.own.evidence(now))
	}
	if len(n.shards) == 0 {
		out.Unknown = n.desired.Roles
	}
	if !n.set.Observer {
		out.Members++
	}
	return out
}
