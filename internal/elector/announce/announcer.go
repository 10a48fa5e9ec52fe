package announce

import (
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/roster"
)

// Announcer decides when this process says Hello to all members, and tracks the closing of a
// group. It knows neither records nor logs, except the number of its home.
type Announcer struct {
	home int // the log in which this process announces itself, if that log works

	at      clock.Mono // when the next Hello is due
	saidAt  clock.Mono // when the last Hello was said
	all     bool       // the last Hello said that this process wants every role
	wavered bool       // since then this process did not want every role for a moment

	closingAt clock.Mono // when this process began to close; 0: it has not
	bye       bool       // the goodbye, which is the last Hello, was made due
	byeBack   bool       // the goodbye was read back
	partedAt  clock.Mono // when the last goodbye was read, of any process
}

// SetHome sets the home.
func (a *Announcer) SetHome(home int) { a.home = home }

// HomeLog is the log in which this process announces itself, if that log works.
func (a *Announcer) HomeLog() int { return a.home }

// Due is when the next Hello is due.
func (a *Announcer) Due() clock.Mono { return a.at }

// SayNow makes the next Hello due.
func (a *Announcer) SayNow(now clock.Instant) { a.at = now.Mono }

// SayBye makes the next Hello due now. It is the goodbye.
func (a *Announcer) SayBye(now clock.Instant) { a.bye, a.at = true, now.Mono }

// Over reports whether this process has nothing more to announce.
func (a *Announcer) Over() bool { return a.closingAt != 0 && a.bye }

// Close notes that this process is closing.
func (a *Announcer) Close(now clock.Instant) {
	if a.closingAt == 0 {
		a.closingAt = now.Mono
	}
}

// Parted notes that a goodbye was read.
func (a *Announcer) Parted(now clock.Instant) { a.partedAt = now.Mono }

// OwnBye notes that this process's goodbye was read.
func (a *Announcer) OwnBye() { a.byeBack = true }

// CrowdedUntil returns until when a closing process names no successors: until it has read its own
// goodbye and then no other goodbye for as long as quiet, but no longer than patience.
func (a *Announcer) CrowdedUntil(patience, quiet time.Duration) clock.Mono {
	limit := a.closingAt.Add(patience)
	if !a.byeBack {
		return limit
	}
	return min(a.partedAt.Add(quiet), limit)
}

// Admit returns what the next Hello says that this process wants (nil: everything). If the last one
// said everything, and for a moment since then that was wrong, the next one says so even if the
// moment has passed, so that others do not take this process for steady. changed reports whether
// only one of these two Hellos says everything.
func (a *Announcer) Admit(wants []int) (say []int, changed bool) {
	a.wavered = a.wavered || a.all && wants != nil
	if a.wavered && wants == nil {
		wants = []int{}
	}
	return wants, a.all != (wants == nil)
}

// Said notes that a Hello was said in a group of that size.
func (a *Announcer) Said(wants []int, size int, now clock.Instant) {
	a.at, a.saidAt = now.Mono.Add(roster.HelloPeriod(size)), now.Mono
	a.all, a.wavered = wants == nil, false
}

// PutOff delays the next Hello until a time.
func (a *Announcer) PutOff(until clock.Mono) { a.at = max(a.at, until) }

// Soon brings the next Hello forward because there is news.
func (a *Announcer) Soon(size int, now clock.Instant) {
	a.at = min(a.at, max(now.Mono, a.saidAt.Add(roster.HelloGap(size))))
}

// With makes the next Hello due now if half of its period has passed: another process's Hello
// without news was just read. All readers then wake up once for several Hellos, as with Beats.
// If less than half of it could be skipped, Hellos far apart would never come together. A Hello
// that was put off is not brought forward.
func (a *Announcer) With(size int, now clock.Instant) {
	period := a.at.Sub(a.saidAt)
	if a.saidAt != 0 && period <= roster.HelloPeriod(size) && now.Mono.Sub(a.saidAt) >= period/2 {
		a.at = min(a.at, now.Mono)
	}
}

// Called brings the next Hello forward because a record at offset o calls for announcements. Up to
// twenty members answer at once, or a second after their last Hello. More spread their answers to
// twenty a second in all, however many processes call. A Hello that was put off is not brought forward.
func (a *Announcer) Called(process string, o int64, size int, now clock.Instant) {
	if a.at.Sub(a.saidAt) > roster.HelloPeriod(size) {
		return
	}
	at := a.saidAt.Add(roster.HelloGap(size))
	if size > 20 {
		at = max(at, now.Mono.Add(time.Duration(roster.Hash(process, uint64(o))%uint64(roster.HelloGap(size)))))
	}
	a.at = min(a.at, max(at, now.Mono))
}
