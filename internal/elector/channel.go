package elector

import (
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
)

// channel is one log: what was read of it, what was appended to it and has not come back, and
// when the next record is due there.
type channel struct {
	*common
	index   int
	shard   *shard // of whose roles it tells
	log     *lease.Lease
	id      string // of the incarnation of a small log
	begun   bool   // reading has begun: before that nothing is said
	shallow bool   // nothing lies farther back than what is read at first
	end     int64  // where the log ended when reading began: what lies before is of unknown age

	link          link          // own records and their round trips
	pacing        pacing        // of own Claims
	announcements announcements // Hellos and Snapshots

	beatAt    clock.Mono
	releaseAt clock.Mono // when Releases are sent again
	repeats   int        // how often they were
	releasing int        // Releases that were neither acknowledged nor reported as failed
}

func newChannel(k *common, index int, l *lease.Lease, s *shard, now clock.Instant) *channel {
	c := &channel{common: k, index: index, log: l, shard: s}
	c.log.Begin(0, false, now) // until the log says where it begins
	return c
}

// restart forgets what was concluded from the log, which is read anew; end is where it ends
// now.
func (c *channel) restart(end int64, now clock.Instant) {
	c.begun, c.end = true, end
	c.link.reset()
	c.announcements.reset(now)
}

// released takes note that something was released: Releases that are lost are sent again.
func (c *channel) released(now clock.Instant) {
	c.repeats, c.releaseAt = 0, now.Mono.Add(clock.Resend(c.set.T))
}

// maxRepeats bounds the pause between Releases that do not come back, to 2T.
const maxRepeats = 3

// append hands over records, and remembers those that others are kept waiting for.
func (c *channel) append(now clock.Instant, records ...lease.Record) {
	for _, r := range records {
		switch r.Kind {
		case lease.Release, lease.Snapshot:
			c.timing.farewells++
			if r.Kind == lease.Release {
				c.releasing++
			}
		case lease.Hello:
			if r.Hello.Leaving {
				c.timing.farewells++
			}
		case lease.Claim, lease.Beat, lease.Ping, lease.Pong:
		}
		if r.Kind == lease.Beat || r.Kind == lease.Claim {
			c.beatAt = now.Mono.Add(c.set.Every)
		}
		if r.Kind == lease.Beat || r.Kind == lease.Claim || r.Kind == lease.Hello {
			c.link.sent(r.Kind, r.Seq, now)
		}
		c.ready.Append = append(c.ready.Append, Append{c.index, c.id, r})
	}
}

// pacing holds Claims in one log back: after an outage everybody would claim everything, and
// the log would never recover from that.
type pacing struct {
	tries     int        // k: Claims in a row that did not come back in time
	notBefore clock.Mono // no Claim before, for that reason
	thinkAt   clock.Mono // what others should have claimed is not thought of before
}

// maxTries bounds the pause between Claims that do not come back, to 8T · U(½, 3/2).
const maxTries = 6

// returned takes note of a Claim that has come back, in time or not. Others sent theirs at
// about the same time: what lies behind this one comes within about as long again.
func (p *pacing) returned(inTime bool, took time.Duration, set *Settings, now clock.Instant) {
	if inTime {
		p.tries, p.notBefore = 0, 0
		p.thinkAt = now.Mono.Add(took)
		return
	}
	p.late(set, now)
}

// late takes note of a Claim that did not come back in time.
func (p *pacing) late(set *Settings, now clock.Instant) {
	p.tries = min(p.tries+1, maxTries)
	p.notBefore = now.Mono.Add(backoff(p.tries, set))
}

// backoff is T/8 · 2^k · U(½, 3/2): with less, what is sent again keeps the log as busy as what
// did not come back.
func backoff(k int, set *Settings) time.Duration {
	d := clock.Pause(set.T) << k
	return d/2 + set.Random(d)
}

// lookBack asks for reading to begin again, farther back, where all that was there has been
// read and who holds what is not known from it: a Snapshot may lie before, or one that was
// found may tell of a time before reading began. The other members come first, as any of them
// answers a Hello with a Snapshot. Without an answer there is nobody to answer, and the wait
// for the longest lease that there may be is longer than the reading. It begins anew with each
// reset, by a few seconds in all.
func (c *channel) lookBack(now clock.Instant) {
	if c.shallow || c.log.Known() {
		return
	}
	if c.announcements.read == 0 && c.log.Offset()+1 >= c.end {
		c.announcements.read = now.Mono
	}
	if c.announcements.back || now.Mono < c.lookBackAt(now) {
		return
	}
	c.announcements.back = true
	c.ready.Back = append(c.ready.Back, c.index)
}

// lookBackAt is when that is due. Newcomers take turns: who has found a Snapshot writes one for
// the others.
func (c *channel) lookBackAt(now clock.Instant) clock.Mono {
	if c.shallow || c.announcements.read == 0 || c.announcements.back || c.log.Known() {
		return clock.Never
	}
	return c.announcements.read.Add(clock.Behind(c.set.T) + c.turn(uint64(c.index), now))
}

// link is what a process knows of its way to one log and back: own records that have
// not come back, and how long others took. A log that has stood still proves nothing
// against those who were silent meanwhile, and what is queued before it must not be
// added to.
type link struct {
	trusted bool // no own record has to show that it works: a small log says by itself that it can be reached

	beat  flight
	hello flight

	good      clock.Mono // when an own record last came back within T/4
	stalled   bool       // none does
	recovered clock.Mono // when that was over

	behindUntil clock.Mono // what this process reads is old until then, going by its last record
}

// flight is an own record on its way.
type flight struct {
	seq uint64 // 0: none
	at  clock.Mono
}

func (l *link) reset() { *l = link{trusted: l.trusted, recovered: l.recovered} }

// sent takes note of a record that is waited for.
func (l *link) sent(k lease.Kind, seq uint64, now clock.Instant) {
	switch k {
	case lease.Beat, lease.Claim:
		l.beat = flight{seq, now.Mono}
	case lease.Hello:
		l.hello = flight{seq, now.Mono}
	case lease.Release, lease.Snapshot, lease.Ping, lease.Pong:
	}
}

// failed takes note that a record will not come back, or is not known to: another one has
// to show that the log works.
func (l *link) failed(seq uint64) {
	l.stalled = true
	if l.beat.seq == seq {
		l.beat = flight{}
	}
	if l.hello.seq == seq {
		l.hello = flight{}
	}
}

// back takes note that an own record has come back, sent being its stamp (zero: longer
// than T ago).
func (l *link) back(seq uint64, sent, now clock.Instant, t time.Duration) {
	if l.beat.seq <= seq {
		l.beat = flight{}
	}
	if l.hello.seq <= seq {
		l.hello = flight{}
	}
	took := t // or longer
	if sent != (clock.Instant{}) {
		took = now.Mono.Sub(sent.Mono)
	}
	l.behindUntil = 0
	if took >= clock.Behind(t) {
		l.behindUntil = now.Mono.Add(min(took, t))
	}
	if sent == (clock.Instant{}) || now.Age(sent) >= clock.Stalled(t) {
		l.stalled = true
		return
	}
	l.good = now.Mono
	if l.stalled {
		l.stalled, l.recovered = false, now.Mono
	}
}

// beating reports whether a Beat, or a Claim in its place, is on its way: no other is
// sent meanwhile. After T it is given up.
func (l *link) beating(now clock.Instant, t time.Duration) bool {
	return l.beat.seq != 0 && now.Mono.Sub(l.beat.at) < t
}

// probing is the same for Hellos.
func (l *link) probing(now clock.Instant, t time.Duration) bool {
	return l.hello.seq != 0 && now.Mono.Sub(l.hello.at) < t
}

// check reports whether own records come back, as of now: none is overdue, and one has
// within T/2. Otherwise a probe has to show it first.
func (l *link) check(now clock.Instant, t time.Duration) bool {
	if l.beat.seq != 0 && now.Mono.Sub(l.beat.at) >= clock.Stalled(t) || l.hello.seq != 0 && now.Mono.Sub(l.hello.at) >= clock.Stalled(t) {
		l.stalled = true
	}
	return l.trusted || !l.stalled && l.good != 0 && now.Mono.Sub(l.good) < clock.Recent(t)
}

// behind reports whether this process is far behind the log's end, so that what it would
// say to all now others may have said already: an own record is on its way for T/20, or took
// that long and came back less than as long ago.
func (l *link) behind(now clock.Instant, t time.Duration) bool {
	for _, f := range []flight{l.beat, l.hello} {
		if age := now.Mono.Sub(f.at); f.seq != 0 && clock.Behind(t) <= age && age < t { // then it is given up
			return true
		}
	}
	return now.Mono < l.behindUntil
}

// doubtful reports whether the log has stood still since a holder was heard, by the
// monotonic clock: its silence says nothing of it, then.
func (l *link) doubtful(heard clock.Instant) bool { return l.stalled || heard.Mono <= l.recovered }

// back takes note of an own record that was read back.
func (c *channel) back(r *lease.Record, sent, now clock.Instant) {
	if r.Kind == lease.Release {
		return // it has no stamp: that says nothing of how long it took
	}
	stalled := c.link.stalled
	c.link.back(r.Seq, sent, now, c.set.T)
	if stalled && !c.link.stalled && r.Kind != lease.Pong { // who was asked by a holder is not one of a crowd
		c.pacing.notBefore = max(c.pacing.notBefore, now.Mono.Add(c.set.Random(clock.Behind(c.set.T)+1)))
		c.timing.settles = 0 // all are back at the same time, and may have forgotten each other
		c.timing.newcomer(now)
		c.shard.review(now)
	}
	c.timing.back(sent, now)
	took := c.set.T // that long at least
	if sent != (clock.Instant{}) {
		took = now.Mono.Sub(sent.Mono)
	}
	c.counts.RoundTrips.Add(took, 1)
	if r.Kind == lease.Claim {
		c.pacing.returned(sent != (clock.Instant{}), took, c.set, now)
		c.ready.Changed = true // StepDown may wait for it
	}
}
