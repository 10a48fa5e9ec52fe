package elector

import (
	"time"

	"github.com/goneli/neli/internal/clock"
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
