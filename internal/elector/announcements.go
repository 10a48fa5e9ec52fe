package elector

import (
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
)

// announcements decides when this process writes Hellos and Snapshots in one log. Snapshots are
// for processes that do not know who holds what. Neither kind affects a lease.
type announcements struct {
	helloAt  clock.Mono // no Hello here before
	greeted  bool       // this process has said Hello since reading began
	begun    clock.Mono // when reading began
	read     clock.Mono // when the records of that time had been read; 0: not yet
	back     bool       // it has asked to read from farther back
	again    bool       // reading began here for that reason
	caughtUp bool       // the records that were in the log when reading began are read

	snapshotAt clock.Mono // when a Snapshot is due; 0: none is
	patience   clock.Mono // put off until then, since this process is behind; 0: not put off
	toldAt     clock.Mono // when a Snapshot was last read
	toldBefore clock.Mono // and when the one before was
	since      int        // records since then
	voice      bool       // it is for comparison: another process's Snapshot does not cancel it
	remindAt   clock.Mono // when another one for comparison is due, if the comparison is not decided by then; 0: none is

	releasedHere bool // this process has released a role here: write a Snapshot when it closes
	farewellLeft bool // that Snapshot was written

	contradicts string // the last process found to have another fold
}

func (a *announcements) reset(now clock.Instant) {
	*a = announcements{helloAt: now.Mono, begun: now.Mono}
}

// catchUp reports, once, that the records that were in the log when reading began are read. Before
// that, a later record may show a holder of a role that a Snapshot calls vacant. The end of a log
// may have gaps, so the wait is limited to T.
func (a *announcements) catchUp(read bool, t time.Duration, now clock.Instant) bool {
	if a.caughtUp || !read && now.Mono < a.catchUpUntil(t) {
		return false
	}
	a.caughtUp = true
	return true
}

func (a *announcements) catchUpUntil(t time.Duration) clock.Mono { return a.begun.Add(t) }

// heard counts a record, and reports whether there were enough since the newest Snapshot for
// another one.
func (a *announcements) heard(enough int) bool {
	a.since++
	return a.since >= enough
}

// told notes that a Snapshot was read, so that every process knows who holds what.
func (a *announcements) told(now clock.Instant) {
	a.since, a.toldBefore, a.toldAt = 0, a.toldAt, now.Mono
	if !a.voice {
		a.snapshotAt, a.patience = 0, 0
	}
}

// speak schedules a Snapshot for comparison. Another process's Snapshot does not replace it, and
// it is not put off if this process is behind, since a wrong fold would go on meanwhile.
func (a *announcements) speak(after time.Duration, now clock.Instant) {
	a.voice, a.snapshotAt = true, max(1, now.Mono.Add(after))
}

// offer schedules a Snapshot after a while. Another process's Snapshot cancels it. There is none
// within pause after the newest one. The while is different at each process, and begins after the
// pause: otherwise all whom the pause holds back would write at its end. A crowd of newcomers
// makes the pause longer with each Snapshot: twice the time between the last two, as long as that
// is at most limit.
func (a *announcements) offer(after func() time.Duration, pause, limit time.Duration, now clock.Instant) {
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

// answer reports whether to write a Snapshot now. A Snapshot for comparison is needed only as long
// as others ask for it. A process that is behind may have missed another's Snapshot. It checks
// again for up to T/2 and then answers, since everyone may be behind.
func (a *announcements) answer(asked, behind func() bool, t time.Duration, now clock.Instant) bool {
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

// remind repeats the Snapshot for comparison if the comparison is not decided after T/2. A tie is
// decided only by a record that is read after that time. If nothing else is written in the log,
// this process would not claim there, and so write nothing, for ever.
func (a *announcements) remind(asked func() bool, now clock.Instant) {
	if a.remindAt == 0 || now.Mono < a.remindAt {
		return
	}
	if a.remindAt = 0; asked() {
		a.speak(0, now)
	}
}

// hello notes that this process has said Hello here. It says none here again within pause.
func (a *announcements) hello(pause time.Duration, now clock.Instant) {
	a.greeted, a.helloAt = true, now.Mono.Add(pause)
}

// greeting is the input of greetDue.
type greeting struct {
	known  bool        // this process knows who holds what
	read   bool        // the records that were in the log when reading began are read
	spare  bool        // no role below R lives in the log: as long as nobody claims there, nobody knows its fold
	freeAt clock.Mono  // when a role may become free to claim; Never: none will
	unsure func() bool // this process would claim it, and does not know whether the log works
	probed clock.Mono  // until then a Hello in flight is awaited
	t      time.Duration
	every  time.Duration // between Beats
}

// greetDue returns when to say Hello in one log. A process that has read the log to its end
// without learning the fold says it so that another one writes a Snapshot. A process that may soon
// claim says it before the holder's lease is over, to learn in time whether the log works.
func (a *announcements) greetDue(g greeting) (at clock.Mono, ok bool) {
	first := max(a.helloAt, g.freeAt.Add(-clock.Stalled(g.t)))
	switch {
	case g.known && g.freeAt != clock.Never && g.unsure():
		at = first
	case g.known, a.greeted && (g.spare || !g.read):
		return 0, false
	case a.greeted:
		// At growing intervals: a process that answers does so at once.
		at = a.helloAt.Add(max(clock.Patience(g.t), min(helloEvery, a.helloAt.Sub(a.begun)/2)))
		if g.unsure() { // in time for the first Claim
			at = min(at, first)
		}
	case !g.read:
		at = a.helloAt.Add(g.every) // the end may have gaps
	default:
		at = a.helloAt
	}
	return max(at, g.probed), true
}

// leastHistory is the least number of records between two Snapshots.
const leastHistory = 60

// snapshotEvery is the number of records between two Snapshots of a log with that many roles: K,
// or less where Snapshots are small. It serves processes that only read and cannot ask for one.
func snapshotEvery(roles int32) int { return min(History, max(leastHistory, int(roles)/8)) }

// snapshotPause is the least time between two Snapshots. All members read each one, and a hundred
// newcomers would ask for a hundred. Reading one takes about a tenth of a microsecond for each
// role, so with all members on one machine Snapshots take at most a quarter of a core. Where a
// Snapshot is cheap the pause is no longer than a round trip.
func snapshotPause(roles int32, members int, t time.Duration) time.Duration {
	return min(clock.Patience(t), time.Duration(int(roles)*(members+1))*400*time.Nanosecond)
}

// catchUp notes that the records that were in the log when reading began are read.
func (c *channel) catchUp(now clock.Instant) {
	if !c.announcements.catchUp(c.log.Offset()+1 >= c.end, c.set.T, now) {
		return
	}
	c.caughtUpAt, c.history = now, now.Mono.Sub(c.announcements.begun)
	c.link.caughtUp(now)
	c.shard.vacancies.follow(c.shard.localRoles(), now) // they may begin to count
	switch {
	case c.meets():
		c.timing.anew(now)
		if c.link.hello.seq == 0 {
			c.hello(c.wants(now), now)
		}
		c.timing.await(now) // then all is reviewed
	case c.shard.claims.deferred && caughtUp(c.shard.logs):
		c.shard.review(now)
	}
	if c.announcements.again {
		c.offerSnapshot(func() time.Duration { return c.turn(uint64(c.index), now) }, now) // others look for one too
	}
}

// meets reports whether this process waits for others after the history. The wait for others that
// start too began with its Hello; if reading the history took longer than that wait, their Hellos
// lie behind the history, and an own Hello behind them shows when they are read. Reading from
// farther back is no reason: the records behind the history are known by then.
func (c *channel) meets() bool {
	return c.history >= c.timing.startupWait() && !c.announcements.again && !c.set.Nominated && !c.set.Observer && !c.desired.Closing
}

// caughtUp reports whether enough logs are caught up to believe that a role is vacant: one log, or
// a majority of several.
func caughtUp(logs []*channel) bool {
	caught := 0
	for _, l := range logs {
		if l.announcements.caughtUp {
			caught++
		}
	}
	return caught > len(logs)/2
}

// offerSnapshot schedules a Snapshot, which another process's Snapshot cancels.
func (c *channel) offerSnapshot(after func() time.Duration, now clock.Instant) {
	if c.log.Known() && !c.set.Observer {
		c.announcements.offer(after, snapshotPause(c.log.Roles(), c.members.size(), c.set.T), clock.Patience(c.set.T), now)
	}
}

// answer appends a Snapshot if one is due.
func (c *channel) answer(now clock.Instant) {
	behind := func() bool { return c.link.behind(now, c.set.T) }
	c.announcements.remind(c.log.Asked, now)
	if c.announcements.answer(c.log.Asked, behind, c.set.T, now) {
		c.append(now, c.snapshot(now)...)
	}
}

// hello says Hello in one log. All members read all logs, so any log will do, except one that
// returns nothing.
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

// probe says Hello to see whether it comes back, if no other probe is in flight.
func (c *channel) probe(now clock.Instant) {
	if now.Mono < c.announcements.helloAt || c.link.probing(now, c.set.T) || c.set.Observer {
		return
	}
	c.hello(c.wants(now), now)
}

// greet says Hello when greetDue says so.
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
	g := greeting{known: c.log.Known(), read: c.log.Offset()+1 >= c.end, spare: c.shard.localRoles() == 0, t: c.set.T, every: c.set.Every}
	if g.known {
		g.freeAt = now.MonoOf(c.shard.claims.silentAt)
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

// talkDue reports when this process next has something to say in the log.
func (c *channel) talkDue(now clock.Instant, mono func(clock.Mono)) {
	if c.announcements.snapshotAt != 0 {
		mono(c.announcements.snapshotAt)
	}
	if c.announcements.remindAt != 0 {
		mono(c.announcements.remindAt)
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
