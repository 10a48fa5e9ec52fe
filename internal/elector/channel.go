package elector

import (
	"cmp"
	"slices"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/announce"
	"github.com/goneli/neli/internal/elector/leases"
	"github.com/goneli/neli/internal/elector/link"
	"github.com/goneli/neli/internal/elector/told"
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

// append hands records over, and remembers those on which others depend.
func (c *channel) append(in *told.In, records ...lease.Record) {
	for _, r := range records {
		if r.Kind == lease.Release {
			c.releasing++
		}
		if r.Kind == lease.Beat || r.Kind == lease.Claim {
			c.beatAt = in.Now.Mono.Add(c.set.HeartbeatInterval)
		}
		if r.Kind == lease.Beat || r.Kind == lease.Claim || r.Kind == lease.Hello {
			c.link.Sent(r.Kind, r.Seq, in.Now)
		}
		in.Append(told.Append{Partition: c.index, ID: c.id, Record: r})
	}
}

// lookBack requests that reading begin again, farther back, if all records were read and do not
// show the holders: a Snapshot may lie before, or the Snapshot found may describe a time before
// reading began. Other members have a chance first, since any of them answers a Hello with a
// Snapshot. If none answers, there is none, and waiting for the longest possible lease would take
// longer than reading. Each Reset restarts that wait, by a few seconds in all. The first wait is
// short, since few records were read so far and few more are read next.
func (c *channel) lookBack(in *told.In) {
	if c.shallow || c.log.Known() {
		return
	}
	if c.log.Offset()+1 >= c.end {
		c.announcements.ReachedEnd(in.Now)
	}
	if in.Now.Mono < c.lookBackAt(in) {
		return
	}
	c.announcements.GoBack()
	in.GoBack(c.index)
}

// lookBackAt is when lookBack is due. Newcomers take turns: one that finds a Snapshot writes one
// for the others.
func (c *channel) lookBackAt(in *told.In) clock.Mono {
	if c.shallow || !c.announcements.MayGoBack() || c.log.Known() {
		return clock.Never
	}
	return c.announcements.BackAt(c.set.T).Add(in.Turn(uint64(c.index)))
}

// othersRead is how much longer others that started with this process may read the history. If
// reading took long, it may take them as long again, since processes that start together compete
// for the machine and the broker. Their shares are theirs until then, but no longer than T/2.
func (c *channel) othersRead(in *told.In) time.Duration {
	if c.history < in.Startup.Length() {
		return 0
	}
	return max(0, c.caughtUpAt.Mono.Add(min(c.history, clock.Patience(c.set.T))).Sub(in.Now.Mono))
}

// word makes a record of one kind for the log.
func (c *channel) word(k lease.Kind, now clock.Instant) lease.Record {
	return c.wire.Word(c.index, k, now)
}

func (c *channel) snapshot(now clock.Instant) []lease.Record { return c.wire.Snapshot(c.index, now) }

// channels are the logs of a shard.
type channels []*channel

// CaughtUp reports whether enough logs are caught up to believe that a role is vacant: one log, or
// a majority of several.
func (cs *channels) CaughtUp() bool {
	caught := 0
	for _, c := range *cs {
		if c.announcements.IsCaughtUp() {
			caught++
		}
	}
	return caught > len(*cs)/2
}

// reachable is the log in which this process announces itself: its home, or
// the next one where own records come back. If there is none, it is the one where it has said
// Hello least recently: each has its turn, since only a record can show that a log works again.
func (cs channels) reachable(home int) *channel {
	rest := cs[home%len(cs)] // of a partition there is one
	for i := range cs {
		c := cs[(home+i)%len(cs)]
		if !c.addressable() {
			continue
		}
		if c.link.Clear() {
			return c
		}
		if !rest.addressable() || c.announcements.NextHello() < rest.announcements.NextHello() {
			rest = c
		}
	}
	return rest
}

// claiming reports whether Claims are in flight.
func (cs channels) claiming() bool {
	return slices.ContainsFunc(cs, func(c *channel) bool { n, _ := c.log.Claiming(); return n > 0 })
}

// Old reports whether evidence at an offset was in the log before this process started, so that
// its age is unknown. Offsets of several logs say nothing.
func (cs *channels) Old(offset int64) bool {
	return len(*cs) == 1 && offset < (*cs)[0].end
}

// Read is when the logs that count were last read: the only one, or the majority that was read last.
func (cs *channels) Read() clock.Instant {
	if len(*cs) == 1 {
		return (*cs)[0].readAt
	}
	at := make([]clock.Instant, len(*cs))
	for i, c := range *cs {
		at[i] = c.readAt
	}
	slices.SortFunc(at, func(a, b clock.Instant) int { return cmp.Compare(b.Mono, a.Mono) })
	return at[len(at)/2]
}

// Deaf reports that a process which last read something at a time should have read more by now: an
// own record has not come back for T/4, or the majority of small logs was not heard for T/2.
func (cs *channels) Deaf(read, now clock.Instant) bool {
	c := (*cs)[0]
	if len(*cs) > 1 {
		return now.Mono.Sub(read.Mono) >= clock.Recent(c.set.T)
	}
	return !c.link.IsReading() && c.link.WaitsSince(read.Mono) <= now.Mono.Add(-clock.Stalled(c.set.T))
}

// offerSnapshot schedules a Snapshot, which another process's Snapshot cancels.
func (c *channel) offerSnapshot(after func() time.Duration, in *told.In) {
	if c.log.Known() && !c.set.Observer {
		c.announcements.Offer(after, announce.SnapshotPause(c.log.Roles(), in.Members.Size(), c.set.T), clock.Patience(c.set.T), in.Now)
	}
}

// answer appends a Snapshot if one is due.
func (c *channel) answer(in *told.In) {
	behind := func() bool { return c.link.Behind(in.Now, c.set.T) }
	c.announcements.Remind(c.log.Asked, in.Now)
	if c.announcements.Answer(c.log.Asked, behind, c.set.T, in.Now) {
		c.append(in, c.snapshot(in.Now)...)
	}
}

// hello says Hello in one log. All members read all logs, so any log will do, except one that
// returns nothing. The Node puts in what is said if that is nil.
func (c *channel) hello(say *lease.Announcement, in *told.In) {
	if c.link.Clear() {
		in.Greet()
	}
	r := c.word(lease.Hello, in.Now)
	r.Hello = say
	c.announcements.Hello(max(clock.Pause(c.set.T), 4*in.Trip.Takes()), in.Now)
	c.append(in, r)
	in.Wait((*vacancy.Startup).Begin)
}

// probe says Hello to see whether it comes back, if no other probe is in flight.
func (c *channel) probe(in *told.In) {
	if in.Now.Mono < c.announcements.NextHello() || c.link.Probing(in.Now, c.set.T) || c.set.Observer {
		return
	}
	c.hello(nil, in)
}

// addressable reports whether the log takes records. A small log takes only those for its present
// incarnation, which is unknown until reading begins.
func (c *channel) addressable() bool { return c.begun || !c.set.Majority }
