package elector

import (
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/announce"
	"github.com/goneli/neli/internal/elector/handover"
	"github.com/goneli/neli/internal/elector/link"
	"github.com/goneli/neli/internal/elector/vacancy"
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

	link          link.Link              // own records and their round trips
	pacing        vacancy.Pacing         // of own Claims
	announcements announce.Announcements // Hellos and Snapshots

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
	c.link.Reset()
	c.announcements.Reset(now)
}

// heard notes that something was read.
func (c *channel) heard(now clock.Instant) { c.readAt = now }

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
	if now.Mono < c.releaseAt || c.releasing > 0 || !c.log.Owing() {
		return
	}
	c.repeats = min(c.repeats+1, maxRepeats)
	if s.own.Len() > 0 {
		c.repeats = 0
	}
	c.releaseAt = now.Mono.Add(clock.Resend(c.set.T) << c.repeats)
	c.append(now, s.leases.Unreleased(c.index, now)...)
}

// maxRepeats limits the pause between Releases that do not come back to 2T.
const maxRepeats = 3

// append hands records over, and remembers those on which others depend.
func (c *channel) append(now clock.Instant, records ...lease.Record) {
	for _, r := range records {
		switch r.Kind {
		case lease.Release, lease.Snapshot:
			c.closing.Sent()
			if r.Kind == lease.Release {
				c.releasing++
			}
		case lease.Hello:
			if r.Hello.Leaving {
				c.closing.Sent()
			}
		case lease.Claim, lease.Beat, lease.Ping, lease.Pong:
		}
		if r.Kind == lease.Beat || r.Kind == lease.Claim {
			c.beatAt = now.Mono.Add(c.set.Every)
		}
		if r.Kind == lease.Beat || r.Kind == lease.Claim || r.Kind == lease.Hello {
			c.link.Sent(r.Kind, r.Seq, now)
		}
		c.ready.Append = append(c.ready.Append, Append{c.index, c.id, r})
	}
}

// ping asks a handover's successor whether it is there, in the log in which it is to claim or, of
// several, in one that works. The answer opens and warms up the connection that the claim needs,
// and a successor that is dead, cut off or deaf does not answer.
func (c *channel) ping(h *handover.Handover, now clock.Instant) {
	if !h.NeedsPing() {
		return
	}
	if logs := c.shard.logs; len(logs) > 1 {
		c = logs[c.reachable()]
	}
	h.Pinging(c.index)
	r := c.word(lease.Ping, now)
	r.To = h.Successor()
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
	if c.log.Offset()+1 >= c.end {
		c.announcements.ReachedEnd(now)
	}
	if now.Mono < c.lookBackAt(now) {
		return
	}
	c.announcements.GoBack()
	c.ready.Back = append(c.ready.Back, c.index)
}

// lookBackAt is when lookBack is due. Newcomers take turns: one that finds a Snapshot writes one
// for the others.
func (c *channel) lookBackAt(now clock.Instant) clock.Mono {
	if c.shallow || !c.announcements.MayGoBack() || c.log.Known() {
		return clock.Never
	}
	return c.announcements.BackAt(c.set.T).Add(c.turn(uint64(c.index), now))
}

// othersRead is how much longer others that started with this process may read the history. If
// reading took long, it may take them as long again, since processes that start together compete
// for the machine and the broker. Their shares are theirs until then, but no longer than T/2.
func (c *channel) othersRead(now clock.Instant) time.Duration {
	if c.history < c.startup.Length() {
		return 0
	}
	return max(0, c.caughtUpAt.Mono.Add(min(c.history, clock.Patience(c.set.T))).Sub(now.Mono))
}

// back handles an own record that was read back.
func (c *channel) back(r *lease.Record, sent, now clock.Instant) {
	if r.Kind == lease.Release {
		return // it has no stamp, so the time that it took is unknown
	}
	if !c.link.IsReading() {
		c.startup.OwnBack(now)
	}
	switch {
	case sent == (clock.Instant{}):
	case c.link.IsReading():
		sent = now
	case sent.Mono < c.caughtUpAt.Mono:
		sent = c.caughtUpAt // see link.caughtUp
	}
	stalled := c.link.IsStalled()
	c.link.Back(r.Seq, sent, now, c.set.T)
	if stalled && !c.link.IsStalled() && r.Kind != lease.Pong { // a Pong answers one holder; no jitter is needed
		c.pacing.Hold(now.Mono.Add(c.set.Random(clock.Behind(c.set.T) + 1)))
		c.startup.Anew(now) // all come back at the same time, and may have forgotten each other
		c.shard.reconsiderVacant(now)
	}
	c.trip.Back(sent, now)
	took := c.set.T // that long at least
	if sent != (clock.Instant{}) {
		took = now.Mono.Sub(sent.Mono)
	}
	c.counts.RoundTrips.Add(took, 1)
	if r.Kind == lease.Claim {
		c.pacing.Returned(sent != (clock.Instant{}), took, c.set.T, c.set.Random, now)
	}
}
