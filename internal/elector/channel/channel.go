// Package channel is one log: what was read from it, which own records have not come back, and when the next record
// is due. A channel knows neither its shard nor the Node.
package channel

import (
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/announce"
	"github.com/goneli/neli/internal/elector/leases"
	"github.com/goneli/neli/internal/elector/link"
	"github.com/goneli/neli/internal/elector/told"
	"github.com/goneli/neli/internal/elector/vacancy"
	"github.com/goneli/neli/internal/lease"
)

// Channel is one log.
type Channel struct {
	Index         int
	Log           *lease.Lease
	Link          link.Link              // own records and their round trips
	Pacing        vacancy.Pacing         // of own Claims
	Announcements announce.Announcements // Hellos and Snapshots
	CaughtUpAt    clock.Instant          // when all records that were there when reading began were read; zero: not yet
	History       time.Duration          // how long reading them took
	BeatAt        clock.Mono             // when the next Beat is due

	told.Process
	wire    leases.Wire
	id      string // of the incarnation of a small log
	small   bool   // one of several small logs
	begun   bool   // reading has begun; nothing is appended before
	shallow bool   // no records lie farther back than the first ones read
	end     int64  // where the log ended when reading began; records before it are of unknown age
	readAt  clock.Instant

	releaseAt clock.Mono // when Releases are repeated
	repeats   int        // how often the pause was doubled
	releasing int        // Releases without a report yet
}

// New returns the channel of a log that is the only one with its roles.
func New(p told.Process, index int, l *lease.Lease, w leases.Wire, now clock.Instant) *Channel {
	c := &Channel{Process: p, wire: w, Index: index, Log: l}
	c.Log.Begin(0, false, now) // until the log reports where it begins
	return c
}

// NewSmall returns the channel of a small log, which says by itself that it can be reached.
func NewSmall(p told.Process, index int, l *lease.Lease, w leases.Wire, now clock.Instant) *Channel {
	c := New(p, index, l, w, now)
	c.small, c.shallow, c.Link = true, true, link.TrustedLink()
	return c
}

// NewOfAll returns what stands for all small logs together. It delays no Claim.
func NewOfAll(p told.Process) *Channel { return &Channel{Process: p, Link: link.TrustedLink()} }

// ID is the incarnation of a small log that is read, and Enter notes that reading of another one begins.
func (c *Channel) ID() string      { return c.id }
func (c *Channel) Enter(id string) { c.id = id }

// Begun reports whether reading has begun. Nothing is appended before.
func (c *Channel) Begun() bool { return c.begun }

// Restart forgets the log's state before it is read again. end is its present end.
func (c *Channel) Restart(end int64, now clock.Instant) {
	c.begun, c.end, c.CaughtUpAt, c.History = true, end, clock.Instant{}, 0
	c.Link.Reset()
	c.Announcements.Reset(now)
}

// Heard notes that something was read.
func (c *Channel) Heard(now clock.Instant) { c.readAt = now }

// IsNew reports whether a record at an offset came after reading began, so that its age is known.
func (c *Channel) IsNew(offset int64) bool { return offset >= c.end }

// IsRead reports whether all records that were there when reading began are read.
func (c *Channel) IsRead() bool { return c.Log.Offset()+1 >= c.end }

// CatchUp notes and reports, once, that these records are read, or not waited for any more.
func (c *Channel) CatchUp(now clock.Instant) bool {
	if !c.Announcements.CatchUp(c.IsRead(), c.Set.T, now) {
		return false
	}
	c.CaughtUpAt, c.History = now, c.Announcements.ReadFor(now)
	c.Link.CaughtUp(now)
	return true
}

// Wins notes that roles were won: an overdue Beat is put off by an interval.
func (c *Channel) Wins(now clock.Instant) {
	if c.BeatAt < now.Mono {
		c.BeatAt = now.Mono.Add(c.Set.HeartbeatInterval)
	}
}

// Released sets the next repetition of Releases to T/4 from now.
func (c *Channel) Released(now clock.Instant) {
	c.repeats, c.releaseAt = 0, now.Mono.Add(clock.Resend(c.Set.T))
}

// Reported notes that there is a report on a Release.
func (c *Channel) Reported() { c.releasing-- }

// RepeatAt is when Releases that have not come back are repeated, since they may be lost. None is repeated while
// another one has no report: while the log stands still they would pile up, and keep it busy when it is back.
func (c *Channel) RepeatAt() clock.Mono {
	if c.releasing > 0 || !c.Log.Owing() {
		return clock.Never
	}
	return c.releaseAt
}

// Repeat repeats these Releases if that is due. If nothing is held any more, the intervals grow: reading Releases may
// make members late, and the roles are free by W(T) anyway. A session that still holds a role beats, so its released
// roles would not become free by themselves.
func (c *Channel) Repeat(holds bool, unreleased func(log int, now clock.Instant) []lease.Record, now clock.Instant) {
	if now.Mono < c.RepeatAt() {
		return
	}
	c.repeats = min(c.repeats+1, maxRepeats)
	if holds {
		c.repeats = 0
	}
	c.releaseAt = now.Mono.Add(clock.Resend(c.Set.T) << c.repeats)
	c.Append(now, unreleased(c.Index, now)...)
}

// maxRepeats limits to 2T the pause between Releases that do not come back.
const maxRepeats = 3

// Append hands records over, and remembers Beats, Claims, Hellos and Releases.
func (c *Channel) Append(now clock.Instant, records ...lease.Record) {
	for _, r := range records {
		if r.Kind == lease.Release {
			c.releasing++
		}
		if r.Kind == lease.Beat || r.Kind == lease.Claim {
			c.BeatAt = now.Mono.Add(c.Set.HeartbeatInterval)
		}
		if r.Kind == lease.Beat || r.Kind == lease.Claim || r.Kind == lease.Hello {
			c.Link.Sent(r.Kind, r.Seq, now)
		}
		c.Out.Append(told.Append{Partition: c.Index, ID: c.id, Record: r})
	}
}

// LookBack requests that reading begin again, farther back, if all records were read and do not
// show the holders: a Snapshot may lie before, or the Snapshot found may describe a time before
// reading began. Other members have a chance first, since any of them answers a Hello with a
// Snapshot. If none answers, none knows the fold, and waiting for the longest possible lease would
// take longer than reading. Each Reset restarts that wait, which costs a few seconds in all. The first
// time members have little time, since few records were read so far and few more are read next.
func (c *Channel) LookBack(takes time.Duration, now clock.Instant) {
	if c.shallow || c.Log.Known() {
		return
	}
	if c.IsRead() {
		c.Announcements.ReachedEnd(now)
	}
	if now.Mono < c.LookBackAt(takes, now) {
		return
	}
	c.Announcements.GoBack()
	c.Out.GoBack(c.Index)
}

// LookBackAt is when LookBack is due. Newcomers take turns: one that finds a Snapshot writes one for the others.
func (c *Channel) LookBackAt(takes time.Duration, now clock.Instant) clock.Mono {
	if c.shallow || !c.Announcements.MayGoBack() || c.Log.Known() {
		return clock.Never
	}
	return c.Announcements.BackAt(c.Set.T).Add(c.Turn(uint64(c.Index), takes, now))
}

// Turn is how long this process waits for another one to answer first.
func (c *Channel) Turn(key uint64, takes time.Duration, now clock.Instant) time.Duration {
	return c.Members.Turn(c.Set.Process, key, c.Desired.Closing, c.Set.T, takes, now)
}

// OthersRead is how much longer others that started with this process may read the history. If
// reading took long, it may take them as long again, since processes that start together compete
// for the machine and the broker. Their shares stay reserved until then, but for T/2 at most.
func (c *Channel) OthersRead(now clock.Instant) time.Duration {
	if c.History < vacancy.StartupWait(c.Set.T) {
		return 0
	}
	return max(0, c.CaughtUpAt.Mono.Add(min(c.History, clock.Patience(c.Set.T))).Sub(now.Mono))
}

// Word makes a record of one kind for the log.
func (c *Channel) Word(k lease.Kind, now clock.Instant) lease.Record {
	return c.wire.Word(c.Index, k, now)
}

func (c *Channel) Snapshot(now clock.Instant) []lease.Record { return c.wire.Snapshot(c.Index, now) }

// Count counts a record that was read. After SnapshotEvery without a Snapshot it offers one; nobody waits for it.
func (c *Channel) Count(offset int64, k lease.Kind, takes time.Duration, now clock.Instant) {
	if c.Announcements.Heard(announce.SnapshotEvery(c.Log.Roles())) && k != lease.Snapshot {
		c.OfferSnapshot(4, uint64(offset), takes, now)
	}
}

// OfferSnapshot schedules a Snapshot after some turns, which another process's Snapshot cancels.
func (c *Channel) OfferSnapshot(turns time.Duration, key uint64, takes time.Duration, now clock.Instant) {
	if c.Log.Known() && !c.Set.Observer {
		after := func() time.Duration { return turns * c.Turn(key, takes, now) }
		c.Announcements.Offer(after, announce.SnapshotPause(c.Log.Roles(), c.Members.Size(), c.Set.T), clock.Patience(c.Set.T), now)
	}
}

// Answer appends a Snapshot if one is due.
func (c *Channel) Answer(now clock.Instant) {
	behind := func() bool { return c.Link.Behind(now, c.Set.T) }
	c.Announcements.Remind(c.Log.Asked, now)
	if c.Announcements.Answer(c.Log.Asked, behind, c.Set.T, now) {
		c.Append(now, c.Snapshot(now)...)
	}
}

// Hello says Hello in this log. All members read all logs, so it counts as an announcement unless the log
// returns nothing. If say is nil, the Node puts in what the process says of itself.
func (c *Channel) Hello(say *lease.Announcement, takes time.Duration, now clock.Instant) {
	if c.Link.Clear() {
		c.Out.Greet()
	}
	r := c.Word(lease.Hello, now)
	r.Hello = say
	c.Announcements.Hello(max(clock.Pause(c.Set.T), 4*takes), now)
	c.Append(now, r)
	c.Out.Startup.Begin(now)
}

// Probe says Hello to see whether it comes back, unless one is in flight or was just said.
func (c *Channel) Probe(takes time.Duration, now clock.Instant) {
	if now.Mono < c.Announcements.NextHello() || c.Link.Probing(now, c.Set.T) || c.Set.Observer {
		return
	}
	c.Hello(nil, takes, now)
}

// Addressable reports whether the log takes records. A small log takes only those for its present
// incarnation, which is unknown until reading begins.
func (c *Channel) Addressable() bool { return c.begun || !c.Set.Majority }
