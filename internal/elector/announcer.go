package elector

import (
	"github.com/goneli/neli/internal/clock"
)

// announce says Hello if it is time, in the log that is this process's home, or in another
// one if that cannot be reached.
func (n *Node) announce(now clock.Instant) {
	a := &n.announcer
	if n.set.Observer || a.Over() {
		return
	}
	if n.desired.Closing {
		a.SayBye(now)
	}
	wants, changed := a.Admit(n.wants(now))
	if changed && !n.set.Nominated {
		a.Soon(n.members.Size(), now)
	}
	if now.Mono < n.announceDue(now) {
		return
	}
	a.Said(wants, n.members.Size(), now)
	n.do(now, func(in *In) { n.channels.reachable(in.home).hello(n.announcement(wants), in) })
}

// announceDue is when the next Hello may go out: not while another one has not come back
// from the log that it would go to, unless it is the last.
func (n *Node) announceDue(now clock.Instant) clock.Mono {
	at, c := n.announcer.Due(), n.channels.reachable(n.announcer.HomeLog())
	if !c.addressable() {
		return clock.Never
	}
	if c.link.Probing(now, n.set.T) && !n.desired.Closing {
		at = max(at, c.link.ProbeLostAt(n.set.T))
	}
	return at
}

// addressable reports whether the log takes records. A small log takes only those for its present
// incarnation, which is unknown until reading begins.
func (c *channel) addressable() bool { return c.begun || !c.set.Majority }
