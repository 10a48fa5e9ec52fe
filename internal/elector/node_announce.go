package elector

import (
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
)

// catchUp notes that what was in a log when reading began was read.
func (c *channel) catchUp(now clock.Instant) {
	if !c.announcements.catchUp(c.log.Offset()+1 >= c.end, c.set.T, now) {
		return
	}
	c.shard.resize(now) // there may be vacancies to count
	if c.announcements.again {
		c.offerSnapshot(c.turn(uint64(c.index), now), now) // others look for one, too
	}
	c.ready.Changed = true
}

// caughtUp reports whether the logs that tell who holds some roles were read so far that
// what they call vacant is: all of one, or most of several.
func caughtUp(logs []*channel) bool {
	caught := 0
	for _, l := range logs {
		if l.announcements.caughtUp {
			caught++
		}
	}
	return caught > len(logs)/2
}

// listen draws the conclusions of what a record says, whatever it did to the lease.
func (n *Node) listen(p *channel, o int64, r *lease.Record, now clock.Instant) {
	id, live := r.Session.Process, o >= p.end
	if p.announcements.heard(snapshotEvery(p.log.Roles())) && r.Kind != lease.Snapshot {
		p.offerSnapshot(4*n.turn(uint64(o), now), now) // nobody waits for it
	}
	if r.Kind == lease.Hello && r.Hello.Leaving {
		n.announcer.parted(id == n.set.Process, now)
	}
	if id == n.set.Process {
		switch {
		case r.Kind != lease.Ping:
		case r.To == lease.Everyone || r.Request != nil:
			n.requests.back(p.index, o, r)
		default:
			p.shard.hands.pinged(p.index, o, r.To)
		}
		if r.Kind == lease.Snapshot {
			p.announcements.told(now)
		}
		return
	}
	if live {
		n.members.alive(id, now)
	}
	switch r.Kind {
	case lease.Hello:
		n.greeted(p, o, r, live, now)
	case lease.Ping:
		switch {
		case r.To == lease.Everyone:
			if live {
				n.announcer.called(n.set.Process, o, n.members.size(), now)
			}
		case r.To != n.set.Process || !live: // what was asked before this process came was asked of another
		case r.Request != nil:
			n.requested(p.index, o, r, now)
		default:
			p.pong(o, r, now)
		}
	case lease.Pong:
		if r.To == n.set.Process && !n.requests.replied(p.index, r, now) {
			p.shard.hands.ponged(p.index, r.Ping, r.Session.Process)
		}
	case lease.Snapshot:
		p.announcements.told(now)
	case lease.Beat, lease.Claim, lease.Release:
	}
}

// greeted takes note of another process's Hello. A newcomer is told at once who else is
// there, and who holds what.
func (n *Node) greeted(p *channel, o int64, r *lease.Record, live bool, now clock.Instant) {
	unknown, changed := n.members.announced(r.Session.Process, r.Name, r.Hello, live, now)
	if changed {
		n.planner.forget()
		n.mover.dirty = true
	}
	if r.Longest == lease.Unsaid && live {
		p.offerSnapshot(n.turn(uint64(o), now), now)
	}
	if !live {
		return
	}
	if !unknown {
		if !changed {
			n.announcer.with(n.members.size(), now)
		}
		return
	}
	n.showUp(now)
	if !n.set.Nominated {
		n.announcer.soon(n.members.size(), now)
		n.timing.newcomer(now)
	}
}

// showUp lets a newcomer know at once that this process leads what it leads. Where that
// would be many records, it waits for the next beat.
func (n *Node) showUp(now clock.Instant) {
	if len(n.shards) > fewHolders {
		return
	}
	for _, p := range n.shards {
		switch {
		case p.lease.Sessions() > fewHolders:
		default:
			p.beat(now, n.set.Every)
		}
	}
}

// fewHolders is how many holders may answer a newcomer with a beat each; with more members
// than that, a closing one waits before it names its successors.
const fewHolders = 8

// turn is how long this process leaves it to others to answer.
func (k *common) turn(key uint64, now clock.Instant) time.Duration {
	return k.members.turn(k.set.Process, key, k.desired.Closing, k.set.T, k.timing.roundTrip(), now)
}

// offerSnapshot lets a Snapshot be due after a while, unless another's is read first.
func (c *channel) offerSnapshot(after time.Duration, now clock.Instant) {
	if c.log.Known() && !c.set.Observer {
		c.announcements.offer(after, snapshotPause(c.log.Roles(), c.members.size(), c.set.T), now)
	}
}

// answer appends a Snapshot if one is due.
func (c *channel) answer(now clock.Instant) {
	behind := func() bool { return c.link.behind(now, c.set.T) }
	if c.announcements.answer(c.log.Asked, behind, c.set.T, now) {
		c.append(now, c.snapshot(now)...)
	}
}

// wants is what a Hello says that this process may claim; nil means everything.
func (k *common) wants(now clock.Instant) []int {
	wants := []int{}
	switch {
	case k.desired.Closing:
	case !k.set.Nominated:
		if k.desired.Willing(now) && k.set.Alive(now) {
			return nil
		}
	default:
		for _, p := range k.shards {
			if p.nomination.nominated {
				wants = append(wants, p.index)
			}
		}
	}
	return wants
}

func (k *common) announcement(wants []int) *lease.Announcement {
	return &lease.Announcement{Priority: k.set.Priority, Roles: k.desired.Roles, Wants: wants, Leaving: k.desired.Closing,
		Period: helloPeriod(k.members.size())}
}

// announce says Hello if it is time, in the log that is this process's home, or in another
// one if that cannot be reached.
func (n *Node) announce(now clock.Instant) {
	a := &n.announcer
	if n.set.Observer || a.over() {
		return
	}
	if n.desired.Closing {
		a.bye, a.at = true, now.Mono
	}
	wants, changed := a.admit(n.wants(now))
	if changed && !n.set.Nominated {
		a.soon(n.members.size(), now)
	}
	if now.Mono < n.announceDue(now) {
		return
	}
	a.said(wants, n.members.size(), now)
	n.channels[n.reachable()].hello(wants, now)
}

// announceDue is when the next Hello may go out: not while another one has not come back
// from the log that it would go to, unless it is the last.
func (n *Node) announceDue(now clock.Instant) clock.Mono {
	at := n.announcer.at
	if link := &n.channels[n.reachable()].link; link.probing(now, n.set.T) && !n.desired.Closing {
		at = max(at, link.hello.at.Add(n.set.T))
	}
	return at
}

// hello says Hello in a log. All members read all logs, so each is as good as another,
// but for one from which nothing comes back.
func (c *channel) hello(wants []int, now clock.Instant) {
	if c.link.hello.seq == 0 && !c.link.stalled {
		c.announcer.said(wants, c.members.size(), now)
	}
	r := c.word(lease.Hello, now)
	r.Hello = c.announcement(wants)
	c.announcements.hello(max(clock.Pause(c.set.T), 4*c.timing.roundTrip()), now)
	c.append(now, r)
	if c.timing.settles == 0 {
		c.timing.newcomer(now)
	}
}

// probe says Hello in a log to see whether it comes back. One at a time is enough.
func (c *channel) probe(now clock.Instant) {
	if now.Mono < c.announcements.helloAt || c.link.probing(now, c.set.T) || c.set.Observer {
		return
	}
	c.hello(c.wants(now), now)
}

// greet says Hello in a log that this process has read to its end and does not know, so
// that somebody writes a Snapshot; and before a holder's lease is over, so that it is
// known by then whether the log works.
func (c *channel) greet(now clock.Instant) {
	if c.set.Observer || c.desired.Closing {
		return
	}
	if at, ok := c.greetDue(now); !ok || now.Mono < at {
		return
	}
	if c.shard.claims.lookAgain(now) {
		c.shard.silence(now)
	}
	if at, ok := c.greetDue(now); ok && now.Mono >= at {
		c.probe(now)
	}
}

func (c *channel) greetDue(now clock.Instant) (at clock.Mono, ok bool) {
	g := greeting{known: c.log.Known(), read: c.log.Offset()+1 >= c.end, t: c.set.T, every: c.set.Every}
	if g.known {
		g.freeAt = clock.Never
		if c.shard.main == c {
			g.freeAt = now.MonoOf(c.shard.claims.silentAt)
		}
	} else {
		g.freeAt = now.MonoOf(c.log.FreshAt())
	}
	g.unsure = func() bool {
		works := c.link.check(now, c.set.T)
		return !works && c.shard.willing(now)
	}
	if c.link.probing(now, c.set.T) {
		g.probed = c.link.hello.at.Add(c.set.T)
	}
	return c.announcements.greetDue(g)
}

// pong answers a Ping, in the same log.
func (c *channel) pong(o int64, r *lease.Record, now clock.Instant) {
	if c.set.Nominated || c.set.Observer || c.desired.Closing || !c.shard.willing(now) {
		return
	}
	answer := c.word(lease.Pong, now)
	answer.To, answer.Ping, answer.Hello = r.Session.Process, o, c.announcement(c.wants(now))
	c.append(now, answer)
}

// talkDue tells when something has to be said in p.
func (c *channel) talkDue(now clock.Instant, mono func(clock.Mono)) {
	if c.announcements.snapshotAt != 0 {
		mono(c.announcements.snapshotAt)
	}
	if !c.announcements.caughtUp {
		mono(c.announcements.catchUpUntil(c.set.T))
	}
	mono(c.lookBackAt(now))
	if c.set.Observer || c.desired.Closing {
		return
	}
	if at, ok := c.greetDue(now); ok {
		mono(at)
	}
}
