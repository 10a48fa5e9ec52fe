package elector

import (
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
)

// catchUp notes that what was in a log when reading began was read.
func (n *Node) catchUp(p *partition, now clock.Instant) {
	if !p.announcements.catchUp(p.log.Offset()+1 >= p.end, n.set.T, now) {
		return
	}
	n.resize(n.rolesOf(p), now) // there may be vacancies to count
	if p.announcements.again {
		n.offerSnapshot(p, n.turn(uint64(p.index), now), now) // others look for one, too
	}
	n.ready.Changed = true
}

// caughtUp reports whether the logs that tell who holds some roles were read so far that
// what they call vacant is: all of one, or most of several.
func caughtUp(logs []*partition) bool {
	caught := 0
	for _, l := range logs {
		if l.announcements.caughtUp {
			caught++
		}
	}
	return caught > len(logs)/2
}

// listen draws the conclusions of what a record says, whatever it did to the lease.
func (n *Node) listen(p *partition, o int64, r *lease.Record, now clock.Instant) {
	id, live := r.Session.Process, o >= p.end
	if p.announcements.heard(snapshotEvery(p.log.Roles())) && r.Kind != lease.Snapshot {
		n.offerSnapshot(p, 4*n.turn(uint64(o), now), now) // nobody waits for it
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
			n.pinged(p, o, r)
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
			n.requested(p, o, r, now)
		default:
			n.pong(p, o, r, now)
		}
	case lease.Pong:
		if r.To == n.set.Process && !n.requests.replied(p.index, r, now) {
			n.ponged(p, r)
		}
	case lease.Snapshot:
		p.announcements.told(now)
	case lease.Beat, lease.Claim, lease.Release:
	}
}

// greeted takes note of another process's Hello. A newcomer is told at once who else is
// there, and who holds what.
func (n *Node) greeted(p *partition, o int64, r *lease.Record, live bool, now clock.Instant) {
	unknown, changed := n.members.announced(r.Session.Process, r.Name, r.Hello, live, now)
	if changed {
		n.planner.forget()
		n.mover.dirty = true
	}
	if r.Longest == lease.Unsaid && live {
		n.offerSnapshot(p, n.turn(uint64(o), now), now)
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
	if len(n.parts) > fewHolders {
		return
	}
	for _, p := range n.parts {
		switch {
		case p.lease.Sessions() > fewHolders:
		default:
			n.beat(p, now, n.set.Every)
		}
	}
}

// fewHolders is how many holders may answer a newcomer with a beat each; with more members
// than that, a closing one waits before it names its successors.
const fewHolders = 8

// turn is how long this process leaves it to others to answer.
func (n *Node) turn(key uint64, now clock.Instant) time.Duration {
	return n.members.turn(n.set.Process, key, n.desired.Closing, n.set.T, n.timing.roundTrip(), now)
}

// offerSnapshot lets a Snapshot be due after a while, unless another's is read first.
func (n *Node) offerSnapshot(p *partition, after time.Duration, now clock.Instant) {
	if p.log.Known() && !n.set.Observer {
		p.announcements.offer(after, snapshotPause(p.log.Roles(), n.members.size(), n.set.T), now)
	}
}

// answer appends a Snapshot if one is due.
func (n *Node) answer(p *partition, now clock.Instant) {
	behind := func() bool { return p.link.behind(now, n.set.T) }
	if p.announcements.answer(p.log.Asked, behind, n.set.T, now) {
		n.append(p, now, n.snapshot(p, now)...)
	}
}

// wants is what a Hello says that this process may claim; nil means everything.
func (n *Node) wants(now clock.Instant) []int {
	wants := []int{}
	switch {
	case n.desired.Closing:
	case !n.set.Nominated:
		if n.desired.Willing(now) && n.set.Alive(now) {
			return nil
		}
	default:
		for _, p := range n.parts {
			if p.nomination.nominated {
				wants = append(wants, p.index)
			}
		}
	}
	return wants
}

func (n *Node) announcement(wants []int) *lease.Announcement {
	return &lease.Announcement{Priority: n.set.Priority, Roles: n.desired.Roles, Wants: wants, Leaving: n.desired.Closing,
		Period: helloPeriod(n.members.size())}
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
	n.hello(n.logs[n.reachable()], wants, now)
}

// announceDue is when the next Hello may go out: not while another one has not come back
// from the log that it would go to, unless it is the last.
func (n *Node) announceDue(now clock.Instant) clock.Mono {
	at := n.announcer.at
	if link := &n.logs[n.reachable()].link; link.probing(now, n.set.T) && !n.desired.Closing {
		at = max(at, link.hello.at.Add(n.set.T))
	}
	return at
}

// hello says Hello in a log. All members read all logs, so each is as good as another,
// but for one from which nothing comes back.
func (n *Node) hello(p *partition, wants []int, now clock.Instant) {
	if p.link.hello.seq == 0 && !p.link.stalled {
		n.announcer.said(wants, n.members.size(), now)
	}
	r := n.word(p, lease.Hello, now)
	r.Hello = n.announcement(wants)
	p.announcements.hello(max(clock.Pause(n.set.T), 4*n.timing.roundTrip()), now)
	n.append(p, now, r)
	if n.timing.settles == 0 {
		n.timing.newcomer(now)
	}
}

// probe says Hello in a log to see whether it comes back. One at a time is enough.
func (n *Node) probe(p *partition, now clock.Instant) {
	if now.Mono < p.announcements.helloAt || p.link.probing(now, n.set.T) || n.set.Observer {
		return
	}
	n.hello(p, n.wants(now), now)
}

// greet says Hello in a log that this process has read to its end and does not know, so
// that somebody writes a Snapshot; and before a holder's lease is over, so that it is
// known by then whether the log works.
func (n *Node) greet(p *partition, now clock.Instant) {
	if n.set.Observer || n.desired.Closing {
		return
	}
	if at, ok := n.greetDue(p, now); !ok || now.Mono < at {
		return
	}
	n.heardSince(p, now)
	if at, ok := n.greetDue(p, now); ok && now.Mono >= at {
		n.probe(p, now)
	}
}

func (n *Node) greetDue(p *partition, now clock.Instant) (at clock.Mono, ok bool) {
	g := greeting{known: p.log.Known(), read: p.log.Offset()+1 >= p.end, t: n.set.T, every: n.set.Every}
	if g.known {
		g.freeAt = now.MonoOf(p.claims.silentAt)
	} else {
		g.freeAt = now.MonoOf(p.log.FreshAt())
	}
	g.unsure = func() bool {
		works := p.link.check(now, n.set.T)
		return !works && n.willing(p, now)
	}
	if p.link.probing(now, n.set.T) {
		g.probed = p.link.hello.at.Add(n.set.T)
	}
	return p.announcements.greetDue(g)
}

// pong answers a Ping, in the same log.
func (n *Node) pong(p *partition, o int64, r *lease.Record, now clock.Instant) {
	if n.set.Nominated || n.set.Observer || n.desired.Closing || !n.willing(p, now) {
		return
	}
	answer := n.word(p, lease.Pong, now)
	answer.To, answer.Ping, answer.Hello = r.Session.Process, o, n.announcement(n.wants(now))
	n.append(p, now, answer)
}

// talkDue tells when something has to be said in p.
func (n *Node) talkDue(p *partition, now clock.Instant, mono func(clock.Mono)) {
	if p.announcements.snapshotAt != 0 {
		mono(p.announcements.snapshotAt)
	}
	if !p.announcements.caughtUp {
		mono(p.announcements.catchUpUntil(n.set.T))
	}
	mono(n.lookBackAt(p, now))
	if n.set.Observer || n.desired.Closing {
		return
	}
	if at, ok := n.greetDue(p, now); ok {
		mono(at)
	}
}
