package announce

import (
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/roster"
)

// Announcements decides when this process writes Hellos and Snapshots in one log. Snapshots are
// for processes that do not know who holds what. Neither kind affects a lease.
type Announcements struct {
	helloAt  clock.Mono // no probe is sent here before then
	greeted  bool       // this process has said Hello since reading began
	begun    clock.Mono // when reading began
	read     clock.Mono // when its end at that time was reached; 0: not yet, or the fold was known
	back     bool       // going back was asked for, or nothing lies farther back
	again    bool       // reading began farther back than before
	caughtUp bool       // the records that were in the log when reading began are read

	snapshotAt clock.Mono // when a Snapshot is due; 0: none is
	patience   clock.Mono // put off until then, since this process is behind; 0: not put off
	toldAt     clock.Mono // when a Snapshot was last read
	toldBefore clock.Mono // when the Snapshot before that was read
	since      int        // records since the newest Snapshot
	voice      bool       // the Snapshot due is for comparison: another process's Snapshot does not cancel it
	remindAt   clock.Mono // when another one for comparison is due, if the comparison is not decided by then; 0: none is

	releasedHere bool // this process has released a role here: write a Snapshot when it closes
	farewellLeft bool // that Snapshot was written

	contradicts string // the last process found to have another fold
}

func (a *Announcements) Reset(now clock.Instant) {
	*a = Announcements{helloAt: now.Mono, begun: now.Mono}
}

// CatchUp reports, once, that the records that were in the log when reading began are read. Before
// that, a later record may show a holder of a role that a Snapshot calls vacant. The end of a log
// may have gaps, so the wait is limited to T.
func (a *Announcements) CatchUp(read bool, t time.Duration, now clock.Instant) bool {
	if a.caughtUp || !read && now.Mono < a.catchUpUntil(t) {
		return false
	}
	a.caughtUp = true
	return true
}

// IsCaughtUp reports whether CatchUp has reported that.
func (a *Announcements) IsCaughtUp() bool { return a.caughtUp }

// Answers reports whether this process is to write a Snapshot.
func (a *Announcements) Answers() bool { return a.snapshotAt != 0 }

// ReadFor is for how long the log has been read.
func (a *Announcements) ReadFor(now clock.Instant) time.Duration { return now.Mono.Sub(a.begun) }

// Due is when Answer, Remind or CatchUp has something to do.
func (a *Announcements) Due(t time.Duration) clock.Mono {
	next := clock.Mono(clock.Never)
	if a.snapshotAt != 0 {
		next = min(next, a.snapshotAt)
	}
	if a.remindAt != 0 {
		next = min(next, a.remindAt)
	}
	if !a.caughtUp {
		next = min(next, a.catchUpUntil(t))
	}
	return next
}

// ReachedEnd notes that all records that were in the log when reading began are read.
func (a *Announcements) ReachedEnd(now clock.Instant) {
	if a.read == 0 {
		a.read = now.Mono
	}
}

// GoBack notes that reading is to begin farther back.
func (a *Announcements) GoBack() { a.back = true }

// MayGoBack reports whether reading may begin farther back: the log was read to its end, more lies
// before, and going back was not asked for yet.
func (a *Announcements) MayGoBack() bool { return a.read != 0 && !a.back }

// BackAt is when to go back, apart from the wait for this process's turn. The first wait is short,
// since few records were read so far and few more are read next.
func (a *Announcements) BackAt(t time.Duration) clock.Mono {
	if a.again {
		return a.read.Add(clock.Behind(t))
	}
	return a.read.Add(clock.StartupWait(t))
}

// WentBack reports whether reading began here because the records read before did not show the holders.
func (a *Announcements) WentBack() bool { return a.again }

// GoesBack reports whether reading is to begin farther back.
func (a *Announcements) GoesBack() bool { return a.back }

// BeganBack notes why reading has begun again: farther back, or not. Nothing lies farther back than
// the beginning of a whole log.
func (a *Announcements) BeganBack(farther, whole bool) { a.back, a.again = whole, farther }

// MayGoBackAgain allows that reading begin farther back again.
func (a *Announcements) MayGoBackAgain() { a.back = false }

// Released notes that this process has released a role here: it writes a Snapshot when it closes.
func (a *Announcements) Released() { a.releasedHere = true }

// OwesFarewell reports whether a last Snapshot is to be written, and LeaveFarewell notes that it was.
func (a *Announcements) OwesFarewell() bool { return a.releasedHere && !a.farewellLeft }

func (a *Announcements) LeaveFarewell() { a.farewellLeft = true }

// ContradictedBy notes that a process was found to have another fold.
func (a *Announcements) ContradictedBy(process string) { a.contradicts = process }

// Contradictor is the last process found to have another fold.
func (a *Announcements) Contradictor() string { return a.contradicts }

// NextHello is the earliest time of the next probe here.
func (a *Announcements) NextHello() clock.Mono { return a.helloAt }

func (a *Announcements) catchUpUntil(t time.Duration) clock.Mono { return a.begun.Add(t) }

// Heard counts a record, and reports whether there were enough since the newest Snapshot for another one.
func (a *Announcements) Heard(enough int) bool {
	a.since++
	return a.since >= enough
}

// Told notes that a Snapshot was read, so that every process knows who holds what.
func (a *Announcements) Told(now clock.Instant) {
	a.since, a.toldBefore, a.toldAt = 0, a.toldAt, now.Mono
	if !a.voice {
		a.snapshotAt, a.patience = 0, 0
	}
}

// Speak schedules a Snapshot for comparison. Another process's Snapshot does not replace it, and
// it is not put off if this process is behind, since a wrong fold would go on meanwhile.
func (a *Announcements) Speak(after time.Duration, now clock.Instant) {
	a.voice, a.snapshotAt = true, max(1, now.Mono.Add(after))
}

// Offer schedules a Snapshot, which another process's Snapshot cancels. None is written within pause
// after the newest one. After the pause each process waits for a time of its own (after): otherwise
// all processes that the pause holds back would write at its end. A crowd of newcomers makes the
// pause longer with each Snapshot: twice the time between the last two, as long as that is at most
// limit.
func (a *Announcements) Offer(after func() time.Duration, pause, limit time.Duration, now clock.Instant) {
	if a.snapshotAt != 0 {
		return // for a crowd after is called once: it looks at all members
	}
	from := now.Mono
	if a.toldAt != 0 {
		if longer := 2 * a.toldAt.Sub(a.toldBefore); a.toldBefore != 0 && longer <= limit {
			pause = max(pause, longer)
		}
		from = max(from, a.toldAt.Add(pause))
	}
	a.snapshotAt = max(1, from.Add(after()))
}

// Answer reports whether to write a Snapshot now. A Snapshot for comparison is needed only as long
// as others ask for it. A process that is behind may have missed another's Snapshot. It checks
// again for up to T/2 and then answers, since everyone may be behind.
func (a *Announcements) Answer(asked, behind func() bool, t time.Duration, now clock.Instant) bool {
	if a.snapshotAt == 0 || now.Mono < a.snapshotAt {
		return false
	}
	if a.voice && !asked() {
		a.voice, a.snapshotAt = false, 0 // the comparison is decided, or enough processes have spoken
		return false
	}
	if a.patience == 0 {
		a.patience = now.Mono.Add(clock.Patience(t))
	}
	if !a.voice && behind() && now.Mono < a.patience {
		a.snapshotAt = now.Mono.Add(clock.Behind(t))
		return false
	}
	if a.voice {
		a.remindAt = now.Mono.Add(clock.Patience(t))
	}
	a.snapshotAt, a.patience, a.since, a.voice = 0, 0, 0, false
	return true
}

// Remind repeats the Snapshot for comparison if the comparison is not decided after T/2. A tie is
// decided only by a record that is read after that time. If nothing else is written in the log,
// this process would not claim there, and so write nothing, for ever.
func (a *Announcements) Remind(asked func() bool, now clock.Instant) {
	if a.remindAt == 0 || now.Mono < a.remindAt {
		return
	}
	if a.remindAt = 0; asked() {
		a.Speak(0, now)
	}
}

// Hello notes that this process has said Hello here. It sends no probe here within pause.
func (a *Announcements) Hello(pause time.Duration, now clock.Instant) {
	a.greeted, a.helloAt = true, now.Mono.Add(pause)
}

// Greeting is the input of GreetDue.
type Greeting struct {
	Known             bool        // this process knows who holds what
	Read              bool        // the records that were in the log when reading began are read
	Spare             bool        // no role below R lives in the log: as long as nobody claims there, nobody knows its fold
	FreeAt            clock.Mono  // when a role may become free to claim; Never: none will
	Unsure            func() bool // this process would claim it, and does not know whether the log works
	Probed            clock.Mono  // until then a Hello in flight is awaited
	T                 time.Duration
	HeartbeatInterval time.Duration // between Beats
}

// GreetDue returns when to say Hello in one log. A process that has read the log to its end
// without learning the fold says Hello so that another one writes a Snapshot. A process that may
// soon claim says Hello before the holder's lease is over, to learn in time whether the log works.
func (a *Announcements) GreetDue(g Greeting) (at clock.Mono, ok bool) {
	first := max(a.helloAt, g.FreeAt.Add(-clock.Stalled(g.T)))
	switch {
	case g.Known && g.FreeAt != clock.Never && g.Unsure():
		at = first
	case g.Known, a.greeted && (g.Spare || !g.Read):
		return 0, false
	case a.greeted:
		// At growing intervals: a process that answers does so at once.
		at = a.helloAt.Add(max(clock.Patience(g.T), min(roster.HelloEvery, a.helloAt.Sub(a.begun)/2)))
		if g.Unsure() { // in time for the first Claim
			at = min(at, first)
		}
	case !g.Read:
		at = a.helloAt.Add(g.HeartbeatInterval) // the end may have gaps
	default:
		at = a.helloAt
	}
	return max(at, g.Probed), true
}

// leastHistory is the least that SnapshotEvery returns.
const leastHistory = 60

// SnapshotEvery is after how many records without a Snapshot one is due with that many roles: K,
// or less where Snapshots are small. It serves processes that only read and cannot ask for one.
func SnapshotEvery(roles int32) int { return min(History, max(leastHistory, int(roles)/8)) }

// SnapshotPause is the least time between two Snapshots, at most T/2. All members read each one, and
// a hundred newcomers would ask for a hundred. Reading one takes about 0.1 µs for each role, so a
// pause below T/2 leaves Snapshots a quarter of a core, with all members on one machine. Where a
// Snapshot is cheap the pause is no longer than a round trip.
func SnapshotPause(roles int32, members int, t time.Duration) time.Duration {
	return min(clock.Patience(t), time.Duration(int(roles)*(members+1))*400*time.Nanosecond)
}
