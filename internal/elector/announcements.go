package elector

import (
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
)

// announcements is what this process says in one log that has no part in the rules of the
// lease, and when: Hellos, and Snapshots for processes that do not know who holds what.
type announcements struct {
	helloAt  clock.Mono // when this process may say Hello here again
	greeted  bool       // it has, since it read this log anew
	begun    clock.Mono // since when it reads it
	read     clock.Mono // when it had read what was there then; 0: not yet
	back     bool       // and asked for more, farther back
	again    bool       // reading began here because of that
	caughtUp bool       // it has read what was there then

	snapshotAt clock.Mono // when a Snapshot is due; 0: none is
	patience   clock.Mono // until when it is put off as this process is behind; 0: it was not
	toldAt     clock.Mono // when one was read
	since      int        // records since the newest Snapshot
	voice      bool       // it is for others to compare: theirs do not call it off

	releasedHere bool // something was released here: leave a Snapshot behind
	farewellLeft bool // it was left

	contradicts string // the process that was last found to have another fold
}

func (a *announcements) reset(now clock.Instant) {
	*a = announcements{helloAt: now.Mono, begun: now.Mono}
}

// catchUp reports, once, that what was in the log when reading began was read. Up to then a
// role that a Snapshot calls vacant may be held by a later record. The end of a log may have
// gaps, which are waited for no longer than T.
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

// told notes that a Snapshot was read, so that everybody knows who holds what.
func (a *announcements) told(now clock.Instant) {
	a.since, a.toldAt = 0, now.Mono
	if !a.voice {
		a.snapshotAt, a.patience = 0, 0
	}
}

// speak lets a Snapshot be due with which others compare theirs. Another process's Snapshot
// does not stand for it, and a process that is behind does not wait: meanwhile a wrong fold
// would go on.
func (a *announcements) speak(after time.Duration, now clock.Instant) {
	a.voice, a.snapshotAt = true, max(1, now.Mono.Add(after))
}

// offer lets a Snapshot be due after a while, unless another process's is read first; none
// is due within pause of the newest.
func (a *announcements) offer(after, pause time.Duration, now clock.Instant) {
	if a.snapshotAt != 0 {
		return
	}
	a.snapshotAt = max(1, now.Mono.Add(after))
	if a.toldAt != 0 {
		a.snapshotAt = max(a.snapshotAt, a.toldAt.Add(pause))
	}
}

// answer reports whether a Snapshot has to be written now. One for others to compare is
// needed only as long as they ask for it. A process that is behind may have missed another's
// Snapshot. It checks again for up to T/2 and then answers, since everyone may be behind.
func (a *announcements) answer(asked, behind func() bool, t time.Duration, now clock.Instant) bool {
	if a.snapshotAt == 0 || now.Mono < a.snapshotAt {
		return false
	}
	if a.voice && !asked() {
		a.voice, a.snapshotAt = false, 0 // it is decided, or enough have said so
		return false
	}
	if a.patience == 0 {
		a.patience = now.Mono.Add(clock.Patience(t))
	}
	if !a.voice && behind() && now.Mono < a.patience {
		a.snapshotAt = now.Mono.Add(clock.Behind(t))
		return false
	}
	a.snapshotAt, a.patience, a.since, a.voice = 0, 0, 0, false
	return true
}

// hello notes that this process has said Hello here; it does not again before pause is over.
func (a *announcements) hello(pause time.Duration, now clock.Instant) {
	a.greeted, a.helloAt = true, now.Mono.Add(pause)
}

// greeting is what decides when a Hello is due in one log.
type greeting struct {
	known  bool        // this process knows who holds what
	read   bool        // it has read what was in the log when reading began
	freeAt clock.Mono  // when something may become free to claim; Never: nothing will
	unsure func() bool // it would claim that, and does not know whether the log works
	probed clock.Mono  // until when a Hello that is on its way is waited for
	t      time.Duration
	every  time.Duration // between Beats
}

// greetDue is when to say Hello in a log that this process has read to its end and does not
// know, so that somebody writes a Snapshot; and before a holder's lease is over, so that it
// is known by then whether the log works.
func (a *announcements) greetDue(g greeting) (at clock.Mono, ok bool) {
	first := max(a.helloAt, g.freeAt.Add(-clock.Stalled(g.t)))
	switch {
	case g.known && g.freeAt != clock.Never && g.unsure():
		at = first
	case g.known, a.greeted && !g.read:
		return 0, false
	case a.greeted:
		// More and more seldom: whoever answers at all does so at once.
		at = a.helloAt.Add(max(clock.Patience(g.t), min(helloEvery, a.helloAt.Sub(a.begun)/2)))
		if g.unsure() { // soon enough for the first Claim
			at = min(at, first)
		}
	case !g.read:
		at = a.helloAt.Add(g.every) // there are gaps at the end, perhaps
	default:
		at = a.helloAt
	}
	return max(at, g.probed), true
}

// leastHistory is how many records lie between two Snapshots at least.
const leastHistory = 60

// snapshotEvery is how many records lie between two Snapshots of a log with so many roles: K,
// or less where Snapshots are small, for processes that only read and cannot ask for one.
func snapshotEvery(roles int32) int { return min(History, max(leastHistory, int(roles)/8)) }

// snapshotPause is how long after a Snapshot there is no other one: everybody has to read
// it, and a hundred newcomers would ask for a hundred. To read it takes each about a tenth
// of a microsecond a role, so that with all members on one machine a quarter of a core is
// busy with Snapshots at most. Where a Snapshot is cheap that is no longer than a round trip.
func snapshotPause(roles int32, members int, t time.Duration) time.Duration {
	return min(clock.Patience(t), time.Duration(int(roles)*(members+1))*400*time.Nanosecond)
}

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
