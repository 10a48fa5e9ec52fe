package elector

import (
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
)

// channel is one log: what was read from it, which own records have not come back, and when the
// next record is due.
type channel struct {
	*common
	index   int
	shard   *shard // the shard with the log's roles
	log     *lease.Lease
	id      string // of the incarnation of a small log
	begun   bool   // reading has begun; nothing is appended before
	shallow bool   // no records lie farther back than the first ones read
	end     int64  // where the log ended when reading began; records before it are of unknown age

	caughtUpAt clock.Instant // when the records before end were read; zero: not yet
	history    time.Duration // how long reading them took
	readAt     clock.Instant // when something was last read

	link          link          // own records and their round trips
	pacing        pacing        // of own Claims
	announcements announcements // Hellos and Snapshots

	beatAt    clock.Mono
	releaseAt clock.Mono // when Releases are repeated
	repeats   int        // how often they were repeated
	releasing int        // Releases without a report yet
}

func newChannel(k *common, index int, l *lease.Lease, s *shard, now clock.Instant) *channel {
	c := &channel{common: k, index: index, log: l, shard: s}
	c.log.Begin(0, false, now) // until the log reports where it begins
	return c
}

// restart forgets the state of the log, which is read again and ends at end now.
func (c *channel) restart(end int64, now clock.Instant) {
	c.begun, c.end, c.caughtUpAt, c.history = true, end, clock.Instant{}, 0
	c.link.reset()
	c.announcements.reset(now)
}

// released notes that roles were released: lost Releases are repeated.
func (c *channel) released(now clock.Instant) {
	c.repeats, c.releaseAt = 0, now.Mono.Add(clock.Resend(c.set.T))
}

// repeat repeats Releases that have not come back, since they may be lost. As with Beats and
// Claims, none is sent while another one has no report: while the log stands still they would pile
// up, and keep it busy when it is back. If nothing is held any more, the intervals grow: all
// members have to read them, which may make them late, and the roles are free by T′ anyway. A
// session that still holds a role beats, so its released roles would not become free by
// themselves.
func (c *channel) repeat(now clock.Instant) {
	s := c.shard
	if now.Mono < c.releaseAt || c.releasing > 0 || !s.lease.Owes(c.index) {
		return
	}
	c.repeats = min(c.repeats+1, maxRepeats)
	if s.holds.len() > 0 {
		c.repeats = 0
	}
	c.releaseAt = now.Mono.Add(clock.Resend(c.set.T) << c.repeats)
	c.append(now, s.lease.Unreleased(c.index, now)...)
}

// maxRepeats limits the pause between Releases that do not come back to 2T.
const maxRepeats = 3

// append hands records over, and remembers those on which others depend.
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

// ping asks a handover's successor whether it is there, in the log in which it is to claim or, of
// several, in one that works. The answer opens and warms up the connection that the claim needs,
// and a successor that is dead, cut off or deaf does not answer.
func (c *channel) ping(h *handover, now clock.Instant) {
	if h.to == "" || h.pinged || h.asked {
		return
	}
	if logs := c.shard.logs; len(logs) > 1 {
		c = logs[c.reachable()]
	}
	h.pinged, h.on = true, c.index
	r := c.word(lease.Ping, now)
	r.To = h.to
	c.append(now, r)
}

// pong answers a Ping in the same log.
func (c *channel) pong(o int64, r *lease.Record, now clock.Instant) {
	if c.set.Nominated || c.set.Observer || c.desired.Closing || !c.shard.willing(now) {
		return
	}
	answer := c.word(lease.Pong, now)
	answer.To, answer.Ping, answer.Hello = r.Session.Process, o, c.announcement(c.wants(now))
	c.append(now, answer)
}

// pinged notes that an own Ping was read back at offset o, and ponged that it was answered. Other
// records of that member do not count, since it writes them without having read anything.
func (c *channel) pinged(o int64, to string, now clock.Instant) {
	for _, h := range c.shard.hands.all {
		if h.to == to && h.pinged && h.ping < 0 && h.on == c.index {
			h.ping, h.pingAt = o, now.Mono
		}
	}
}

func (c *channel) ponged(ping int64, by string, now clock.Instant) {
	for _, h := range c.shard.hands.all {
		if h.to == by && h.ping >= 0 && ping >= h.ping && h.on == c.index && !h.answered {
			h.answered, h.took = true, now.Mono.Sub(h.pingAt)
		}
	}
}

// pacing delays Claims in one log. After an outage every process would otherwise claim everything,
// and the log would never recover from that.
type pacing struct {
	tries     int        // k: consecutive Claims that did not come back in time
	notBefore clock.Mono // no Claim before then, for that reason
	thinkAt   clock.Mono // roles that others should have claimed are not reconsidered before then
}

// maxTries limits the pause between Claims that do not come back to 8T · U(½, 3/2).
const maxTries = 6

// returned notes that a Claim has come back, in time or not. Others sent theirs at about the same
// time, so their Claims arrive within about as long again.
func (p *pacing) returned(inTime bool, took time.Duration, set *Settings, now clock.Instant) {
	if inTime {
		p.tries, p.notBefore = 0, 0
		p.thinkAt = now.Mono.Add(took)
		return
	}
	p.late(set, now)
}

// late notes that a Claim did not come back in time.
func (p *pacing) late(set *Settings, now clock.Instant) {
	p.tries = min(p.tries+1, maxTries)
	p.notBefore = now.Mono.Add(backoff(p.tries, set))
}

// backoff is T/8 · 2^k · U(½, 3/2). With less, repeated Claims would keep the log as busy as the
// lost ones did.
func backoff(k int, set *Settings) time.Duration {
	d := clock.Pause(set.T) << k
	return d/2 + set.Random(d)
}

// lookBack requests that reading begin again, farther back, if all records were read and do not
// show the holders: a Snapshot may lie before, or the Snapshot found may describe a time before
// reading began. Other members have a chance first, since any of them answers a Hello with a
// Snapshot. If none answers, there is none, and waiting for the longest possible lease would take
// longer than reading. Each Reset restarts that wait, by a few seconds in all. The first wait is
// short, since few records were read so far and few more are read next.
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

// lookBackAt is when lookBack is due. Newcomers take turns: one that finds a Snapshot writes one
// for the others.
func (c *channel) lookBackAt(now clock.Instant) clock.Mono {
	if c.shallow || c.announcements.read == 0 || c.announcements.back || c.log.Known() {
		return clock.Never
	}
	wait := clock.Behind(c.set.T)
	if !c.announcements.again {
		wait = clock.StartupWait(c.set.T)
	}
	return c.announcements.read.Add(wait + c.turn(uint64(c.index), now))
}

// link is what a process knows about its way to one log and back: own records in flight, and how
// long earlier ones took. If a log has stood still, the silence of other processes means nothing,
// and no more records may be queued for it.
type link struct {
	reading bool // the records that were in the log when reading began are not read yet
	trusted bool // no own record has to show that it works: a small log reports by itself that it can be reached

	beat  flight
	hello flight

	good      clock.Mono // when an own record last came back within T/4
	stalled   bool       // own records do not come back
	recovered clock.Mono // when they came back again

	took     time.Duration // how long the last own record took, T at most
	withheld clock.Mono    // since when this process would have claimed, had own records come back in time; 0: it does not withhold itself
	said     bool          // that was logged

	behindUntil clock.Mono // until then the records being read are old, judging by the last own record
}

// flight is an own record in flight.
type flight struct {
	seq uint64 // 0: none
	at  clock.Mono
}

func (l *link) reset() { *l = link{trusted: l.trusted, recovered: l.recovered, reading: true} }

// caughtUp notes that the records that were in the log when reading began are read. Own records
// in flight lie behind them, so their round trips begin now: reading a million roles' history takes
// a second or more, and says nothing about the log.
func (l *link) caughtUp(now clock.Instant) {
	l.reading = false
	for _, f := range []*flight{&l.beat, &l.hello} {
		if f.seq != 0 {
			f.at = now.Mono
		}
	}
}

// sent notes that an own record is in flight.
func (l *link) sent(k lease.Kind, seq uint64, now clock.Instant) {
	switch k {
	case lease.Beat, lease.Claim:
		l.beat = flight{seq, now.Mono}
	case lease.Hello:
		l.hello = flight{seq, now.Mono}
	case lease.Release, lease.Snapshot, lease.Ping, lease.Pong:
	}
}

// failed notes that an own record will not come back, or may not. Another one has to show that the
// log works.
func (l *link) failed(seq uint64) {
	l.stalled = true
	if l.beat.seq == seq {
		l.beat = flight{}
	}
	if l.hello.seq == seq {
		l.hello = flight{}
	}
}

// back notes that an own record has come back. sent is its stamp; zero means longer than T ago.
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
	l.took, l.behindUntil = took, 0
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

// beating reports whether a Beat, or a Claim in its place, is in flight. No other is sent
// meanwhile. After T it counts as lost.
func (l *link) beating(now clock.Instant, t time.Duration) bool {
	return l.beat.seq != 0 && now.Mono.Sub(l.beat.at) < t
}

// probing is the same for Hellos.
func (l *link) probing(now clock.Instant, t time.Duration) bool {
	return l.hello.seq != 0 && now.Mono.Sub(l.hello.at) < t
}

// waitsSince is since when an own record should have come back although nothing was read since a
// time; Never if there is none.
func (l *link) waitsSince(read clock.Mono) clock.Mono {
	since := clock.Mono(clock.Never)
	if l.stalled {
		since = read
	}
	for _, f := range []flight{l.beat, l.hello} {
		if f.seq != 0 {
			since = min(since, max(read, f.at))
		}
	}
	return since
}

// check reports whether own records come back: none is overdue, and one came back within T/2.
// Otherwise a probe must show it first.
func (l *link) check(now clock.Instant, t time.Duration) bool {
	overdue := l.beat.seq != 0 && now.Mono.Sub(l.beat.at) >= clock.Stalled(t) || l.hello.seq != 0 && now.Mono.Sub(l.hello.at) >= clock.Stalled(t)
	if overdue && !l.reading {
		l.stalled = true
	}
	return l.trusted || !l.stalled && l.good != 0 && now.Mono.Sub(l.good) < clock.Recent(t)
}

// withhold notes that this process does not claim what it would claim, since no probe has come back
// in time. It reports, once, that this has lasted for T although records come back: no role becomes
// this process's then, and nothing else would say why.
func (l *link) withhold(now clock.Instant, t time.Duration) (say bool) {
	if l.withheld == 0 {
		l.withheld = now.Mono
	}
	say = !l.said && now.Mono.Sub(l.withheld) >= t && l.took >= clock.Stalled(t)
	l.said = l.said || say
	return say
}

// claims notes that this process withholds nothing, because it claims or because nothing is vacant.
func (l *link) claims() { l.withheld, l.said = 0, false }

// behind reports whether this process is far behind the log's end, so that others may already have
// written what it is about to write: an own record has been in flight for T/20, or took that long
// and came back less than that ago.
func (l *link) behind(now clock.Instant, t time.Duration) bool {
	for _, f := range []flight{l.beat, l.hello} {
		if age := now.Mono.Sub(f.at); f.seq != 0 && clock.Behind(t) <= age && age < t { // after that it counts as lost
			return true
		}
	}
	return now.Mono < l.behindUntil
}

// probedUntil is until when a Claim waits for a probe to come back; helloAt is when the next probe
// may be sent.
func (l *link) probedUntil(helloAt clock.Mono, now clock.Instant, t time.Duration) clock.Mono {
	switch {
	case l.check(now, t):
		return 0
	case l.probing(now, t):
		return l.hello.at.Add(t)
	}
	return helloAt
}

// doubtful reports whether the log has stood still since a holder was heard, by the monotonic
// clock. The holder's silence then means nothing.
func (l *link) doubtful(heard clock.Instant) bool { return l.stalled || heard.Mono <= l.recovered }

// othersRead is how much longer others that started with this process may read the history. If
// reading took long, it may take them as long again, since processes that start together compete
// for the machine and the broker. Their shares are theirs until then, but no longer than T/2.
func (c *channel) othersRead(now clock.Instant) time.Duration {
	if c.history < c.timing.startupWait() {
		return 0
	}
	return max(0, c.caughtUpAt.Mono.Add(min(c.history, clock.Patience(c.set.T))).Sub(now.Mono))
}

// back handles an own record that was read back.
func (c *channel) back(r *lease.Record, sent, now clock.Instant) {
	if r.Kind == lease.Release {
		return // it has no stamp, so the time that it took is unknown
	}
	if c.timing.awaits && !c.link.reading {
		c.timing.anew(now)
	}
	switch {
	case sent == (clock.Instant{}):
	case c.link.reading:
		sent = now
	case sent.Mono < c.caughtUpAt.Mono:
		sent = c.caughtUpAt // see link.caughtUp
	}
	stalled := c.link.stalled
	c.link.back(r.Seq, sent, now, c.set.T)
	if stalled && !c.link.stalled && r.Kind != lease.Pong { // a Pong answers one holder; no jitter is needed
		c.pacing.notBefore = max(c.pacing.notBefore, now.Mono.Add(c.set.Random(clock.Behind(c.set.T)+1)))
		c.timing.anew(now) // all come back at the same time, and may have forgotten each other
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
	}
}
