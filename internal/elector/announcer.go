package elector

import (
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
)

// announcer decides when this process says Hello to all, and remembers how a group closes.
// It knows no records and no logs but the number of its home.
type announcer struct {
	home int // the log in which this process announces itself, if it can

	at      clock.Mono // the next Hello
	saidAt  clock.Mono // the last one
	all     bool       // it said that this process wants all it can have
	wavered bool       // there was a moment since then when this process did not

	closingAt clock.Mono // since when this process is closing; 0: it is not
	bye       bool       // the last Hello of all was said
	byeBack   bool       // and read back
	partedAt  clock.Mono // when the last goodbye was read, of any process
}

// over reports whether this process has nothing more to announce.
func (a *announcer) over() bool { return a.closingAt != 0 && a.bye }

// close notes that this process is closing.
func (a *announcer) close(now clock.Instant) {
	if a.closingAt == 0 {
		a.closingAt = now.Mono
	}
}

// parted notes that a goodbye was read; own tells that it is this process's.
func (a *announcer) parted(own bool, now clock.Instant) {
	a.partedAt, a.byeBack = now.Mono, a.byeBack || own
}

// crowdedUntil is until when a process that closes in a crowd names no successors: until it
// has read its own goodbye back, and then no other goodbye for two round trips, but no longer
// than patience.
func (a *announcer) crowdedUntil(patience, roundTrip time.Duration) clock.Mono {
	limit := a.closingAt.Add(patience)
	if !a.byeBack {
		return limit
	}
	return min(a.partedAt.Add(2*roundTrip), limit)
}

// admit returns what the next Hello says that this process wants (nil: everything). A moment
// in which it did not want everything is admitted though it has passed: others must not take
// this process for steady. changed tells that the last Hello said otherwise.
func (a *announcer) admit(wants []int) (say []int, changed bool) {
	a.wavered = a.wavered || a.all && wants != nil
	if a.wavered && wants == nil {
		wants = []int{}
	}
	return wants, a.all != (wants == nil)
}

// said notes that a Hello was said, in a group of size.
func (a *announcer) said(wants []int, size int, now clock.Instant) {
	a.at, a.saidAt = now.Mono.Add(helloPeriod(size)), now.Mono
	a.all, a.wavered = wants == nil, false
}

// putOff lets no Hello go out before a time.
func (a *announcer) putOff(until clock.Mono) { a.at = max(a.at, until) }

// soon lets the next Hello come earlier, as there is news.
func (a *announcer) soon(size int, now clock.Instant) {
	a.at = min(a.at, max(now.Mono, a.saidAt.Add(helloGap(size))))
}

// with lets a Hello of which half the period has passed go out when another process's is
// read that has no news. As with Beats, that wakes all readers once for all Hellos. If it
// took less than half the period, groups of Hellos that are far enough apart would stay so.
// A Hello that was put off on purpose waits.
func (a *announcer) with(size int, now clock.Instant) {
	period := a.at.Sub(a.saidAt)
	if a.saidAt != 0 && period <= helloPeriod(size) && now.Mono.Sub(a.saidAt) >= period/2 {
		a.at = min(a.at, now.Mono)
	}
}

// called lets the next Hello come earlier because a process asks who is there, by a call at
// an offset. A group of up to twenty answers at once. A larger one spreads its answers, so
// that all together say twenty a second, however many processes call and however often. A
// Hello that was put off on purpose waits.
func (a *announcer) called(process string, o int64, size int, now clock.Instant) {
	if a.at.Sub(a.saidAt) > helloPeriod(size) {
		return
	}
	at := a.saidAt.Add(helloGap(size))
	if size > 20 {
		at = max(at, now.Mono.Add(time.Duration(hash(process, uint64(o))%uint64(helloGap(size)))))
	}
	a.at = min(a.at, max(at, now.Mono))
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

// reachable is the partition in whose log this process announces itself: its home, or
// the next one where own records come back.
func (k *common) reachable() int {
	m := len(k.channels)
	for i := range m {
		p := k.channels[(k.announcer.home+i)%m]
		if p.link.hello.seq == 0 && !p.link.stalled {
			return p.index
		}
	}
	return k.announcer.home
}
