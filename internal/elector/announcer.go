package elector

import (
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
)

// announcer decides when this process says Hello to all members, and tracks the closing of a
// group. It knows neither records nor logs, except the number of its home.
type announcer struct {
	home int // the log in which this process announces itself, if that log works

	at      clock.Mono // the next Hello
	saidAt  clock.Mono // the last one
	all     bool       // the last one said that this process wants every role
	wavered bool       // since then there was a moment when it did not

	closingAt clock.Mono // when this process began to close; 0: it has not
	bye       bool       // the goodbye, which is the last Hello, was said
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

// parted notes that a goodbye was read.
func (a *announcer) parted(now clock.Instant) { a.partedAt = now.Mono }

// ownBye notes that this process's goodbye was read.
func (a *announcer) ownBye() { a.byeBack = true }

// crowdedUntil returns until when a closing process names no successors: until it has read its own
// goodbye and then no other goodbye for as long as quiet, but no longer than patience.
func (a *announcer) crowdedUntil(patience, quiet time.Duration) clock.Mono {
	limit := a.closingAt.Add(patience)
	if !a.byeBack {
		return limit
	}
	return min(a.partedAt.Add(quiet), limit)
}

// admit returns what the next Hello says that this process wants (nil: everything). If there was a
// moment in which this process did not want everything, the next Hello says so even if the moment
// has passed, so that others do not take this process for steady. changed reports whether that
// differs from the last Hello.
func (a *announcer) admit(wants []int) (say []int, changed bool) {
	a.wavered = a.wavered || a.all && wants != nil
	if a.wavered && wants == nil {
		wants = []int{}
	}
	return wants, a.all != (wants == nil)
}

// said notes that a Hello was said in a group of that size.
func (a *announcer) said(wants []int, size int, now clock.Instant) {
	a.at, a.saidAt = now.Mono.Add(helloPeriod(size)), now.Mono
	a.all, a.wavered = wants == nil, false
}

// putOff delays the next Hello until a time.
func (a *announcer) putOff(until clock.Mono) { a.at = max(a.at, until) }

// soon brings the next Hello forward because there is news.
func (a *announcer) soon(size int, now clock.Instant) {
	a.at = min(a.at, max(now.Mono, a.saidAt.Add(helloGap(size))))
}

// with says the next Hello now if half of its period has passed, because another process's Hello
// without news was just read. All readers then wake up once for several Hellos, as with Beats.
// With less than half of the period, Hellos that are far apart would never come together. A Hello
// that was put off is not brought forward.
func (a *announcer) with(size int, now clock.Instant) {
	period := a.at.Sub(a.saidAt)
	if a.saidAt != 0 && period <= helloPeriod(size) && now.Mono.Sub(a.saidAt) >= period/2 {
		a.at = min(a.at, now.Mono)
	}
}

// called brings the next Hello forward because a process calls for announcements, by a record at
// offset o. A group of up to twenty answers at once. A larger group spreads its answers to twenty
// a second in all, however many processes call. A Hello that was put off is not brought forward.
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

// turn is how long this process waits for another one to answer first.
func (k *common) turn(key uint64, now clock.Instant) time.Duration {
	return k.members.turn(k.set.Process, key, k.desired.Closing, k.set.T, k.timing.roundTrip(), now)
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
	at, c := n.announcer.at, n.channels[n.reachable()]
	if !c.addressable() {
		return clock.Never
	}
	if c.link.probing(now, n.set.T) && !n.desired.Closing {
		at = max(at, c.link.hello.at.Add(n.set.T))
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
	m, rest := len(k.channels), k.announcer.home
	for i := range m {
		p := k.channels[(k.announcer.home+i)%m]
		if !p.addressable() {
			continue
		}
		if p.link.hello.seq == 0 && !p.link.stalled {
			return p.index
		}
		if r := k.channels[rest]; !r.addressable() || p.announcements.helloAt < r.announcements.helloAt {
			rest = p.index
		}
	}
	return rest
}
