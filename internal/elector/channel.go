package elector

import (
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/announce"
	"github.com/goneli/neli/internal/elector/handover"
	"github.com/goneli/neli/internal/elector/leases"
	"github.com/goneli/neli/internal/elector/link"
	"github.com/goneli/neli/internal/elector/vacancy"
	"github.com/goneli/neli/internal/lease"
)

// channel is one log: what was read from it, which own records have not come back, and when the
// next record is due.
type channel struct {
	set     *Settings
	wire    leases.Wire
	index   int
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

func newChannel(set *Settings, index int, l *lease.Lease, w leases.Wire, now clock.Instant) *channel {
	c := &channel{set: set, wire: w, index: index, log: l}
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
func (s *shard) repeat(c *channel, in *In) {
	if in.now.Mono < c.releaseAt || c.releasing > 0 || !c.log.Owing() {
		return
	}
	c.repeats = min(c.repeats+1, maxRepeats)
	if s.own.Len() > 0 {
		c.repeats = 0
	}
	c.releaseAt = in.now.Mono.Add(clock.Resend(s.set.T) << c.repeats)
	c.append(in, s.leases.Unreleased(c.index, in.now)...)
}

// maxRepeats limits the pause between Releases that do not come back to 2T.
const maxRepeats = 3

// append hands records over, and remembers those on which others depend.
func (c *channel) append(in *In, records ...lease.Record) {
	for _, r := range records {
		if r.Kind == lease.Release {
			c.releasing++
		}
		if r.Kind == lease.Beat || r.Kind == lease.Claim {
			c.beatAt = in.now.Mono.Add(c.set.HeartbeatInterval)
		}
		if r.Kind == lease.Beat || r.Kind == lease.Claim || r.Kind == lease.Hello {
			c.link.Sent(r.Kind, r.Seq, in.now)
		}
		in.append(Append{c.index, c.id, r})
	}
}

// ping asks a handover's successor whether it is there, in the log in which it is to claim or, of
// several, in one that works. The answer opens and warms up the connection that the claim needs,
// and a successor that is dead, cut off or deaf does not answer.
func (s *shard) ping(h *handover.Handover, in *In) {
	if !h.NeedsPing() {
		return
	}
	c := s.main
	if len(s.logs) > 1 {
		c = s.logs.reachable(in.home)
	}
	h.Pinging(c.index)
	r := c.word(lease.Ping, in.now)
	r.To = h.Successor()
	c.append(in, r)
}

// pong answers a Ping in the same log. The Node puts in what the process says of itself.
func (s *shard) pong(c *channel, o int64, r *lease.Record, in *In) {
	if s.set.Nominated || s.set.Observer || in.desired.Closing || !s.willing(in) {
		return
	}
	answer := c.word(lease.Pong, in.now)
	answer.To, answer.Ping = r.Session.Process, o
	c.append(in, answer)
}

// lookBack requests that reading begin again, farther back, if all records were read and do not
// show the holders: a Snapshot may lie before, or the Snapshot found may describe a time before
// reading began. Other members have a chance first, since any of them answers a Hello with a
// Snapshot. If none answers, there is none, and waiting for the longest possible lease would take
// longer than reading. Each Reset restarts that wait, by a few seconds in all. The first wait is
// short, since few records were read so far and few more are read next.
func (c *channel) lookBack(in *In) {
	if c.shallow || c.log.Known() {
		return
	}
	if c.log.Offset()+1 >= c.end {
		c.announcements.ReachedEnd(in.now)
	}
	if in.now.Mono < c.lookBackAt(in) {
		return
	}
	c.announcements.GoBack()
	in.goBack(c.index)
}

// lookBackAt is when lookBack is due. Newcomers take turns: one that finds a Snapshot writes one
// for the others.
func (c *channel) lookBackAt(in *In) clock.Mono {
	if c.shallow || !c.announcements.MayGoBack() || c.log.Known() {
		return clock.Never
	}
	return c.announcements.BackAt(c.set.T).Add(in.turn(uint64(c.index)))
}

// othersRead is how much longer others that started with this process may read the history. If
// reading took long, it may take them as long again, since processes that start together compete
// for the machine and the broker. Their shares are theirs until then, but no longer than T/2.
func (c *channel) othersRead(in *In) time.Duration {
	if c.history < in.startup.Length() {
		return 0
	}
	return max(0, c.caughtUpAt.Mono.Add(min(c.history, clock.Patience(c.set.T))).Sub(in.now.Mono))
}

// word makes a record of one kind for the log.
func (c *channel) word(k lease.Kind, now clock.Instant) lease.Record {
	return c.wire.Word(c.index, k, now)
}

func (c *channel) snapshot(now clock.Instant) []lease.Record { return c.wire.Snapshot(c.index, now) }
