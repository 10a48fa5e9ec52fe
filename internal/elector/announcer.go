package elector

import (
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/roster"
	"github.com/goneli/neli/internal/lease"
)

// turn is how long this process waits for another one to answer first.
func (k *common) turn(key uint64, now clock.Instant) time.Duration {
	return k.members.Turn(k.set.Process, key, k.desired.Closing, k.set.T, k.trip.Takes(), now)
}

// wants is what a Hello says that this process may claim; nil means everything.
func (k *common) wants(now clock.Instant) []int {
	wants := []int{}
	switch {
	case k.desired.Closing:
	case !k.set.Nominated:
		if k.able(now) {
			return nil
		}
	default:
		for _, s := range k.shards {
			if s.nomination.MayClaim() {
				wants = append(wants, s.Index)
			}
		}
	}
	return wants
}

func (k *common) announcement(wants []int) *lease.Announcement {
	return &lease.Announcement{Priority: k.desired.Priority, Roles: k.desired.Roles, Wants: wants, Leaving: k.desired.Closing,
		Period: roster.HelloPeriod(k.members.Size()), Advertise: k.set.Advertise, Zone: k.set.Zone}
}

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
	n.channels[n.reachable()].hello(wants, now)
}

// announceDue is when the next Hello may go out: not while another one has not come back
// from the log that it would go to, unless it is the last.
func (n *Node) announceDue(now clock.Instant) clock.Mono {
	at, c := n.announcer.Due(), n.channels[n.reachable()]
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

// reachable is the partition in whose log this process announces itself: its home, or
// the next one where own records come back. If there is none, it is the one where it has said
// Hello least recently: each has its turn, since only a record can show that a log works again.
func (k *common) reachable() int {
	m, home := len(k.channels), k.announcer.HomeLog()
	rest := home
	for i := range m {
		c := k.channels[(home+i)%m]
		if !c.addressable() {
			continue
		}
		if c.link.Clear() {
			return c.index
		}
		if r := k.channels[rest]; !r.addressable() || c.announcements.NextHello() < r.announcements.NextHello() {
			rest = c.index
		}
	}
	return rest
}
