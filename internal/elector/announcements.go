package elector

import (
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/announce"
	"github.com/goneli/neli/internal/lease"
)

// catchUp notes that the records that were in the log when reading began are read.
func (c *channel) catchUp(now clock.Instant) {
	if !c.announcements.CatchUp(c.log.Offset()+1 >= c.end, c.set.T, now) {
		return
	}
	c.caughtUpAt, c.history = now, c.announcements.ReadFor(now)
	c.link.CaughtUp(now)
	c.shard.vacancyStats.Follow(c.shard.localRoles(), now) // they may begin to count
	switch {
	case c.meets():
		c.startup.Anew(now)
		if !c.link.Greeting() {
			c.hello(c.wants(now), now)
		}
		c.startup.Await(now) // then all vacant roles are reconsidered
	case c.shard.claims.IsPostponed() && caughtUp(c.shard.logs):
		c.shard.reconsiderVacant(now)
	}
	if c.announcements.WentBack() {
		c.offerSnapshot(func() time.Duration { return c.turn(uint64(c.index), now) }, now) // others look for one too
	}
}

// meets reports whether this process waits for others after the history. The wait for others that
// start too began with its Hello; if reading the history took longer than that wait, their Hellos
// lie behind the history, and an own Hello behind them shows when they are read. Reading from
// farther back is no reason: the records behind the history are known by then.
func (c *channel) meets() bool {
	return c.history >= c.startup.Length() && !c.announcements.WentBack() && !c.set.Nominated && !c.set.Observer && !c.desired.Closing
}

// caughtUp reports whether enough logs are caught up to believe that a role is vacant: one log, or
// a majority of several.
func caughtUp(logs []*channel) bool {
	caught := 0
	for _, c := range logs {
		if c.announcements.IsCaughtUp() {
			caught++
		}
	}
	return caught > len(logs)/2
}

// offerSnapshot schedules a Snapshot, which another process's Snapshot cancels.
func (c *channel) offerSnapshot(after func() time.Duration, now clock.Instant) {
	if c.log.Known() && !c.set.Observer {
		c.announcements.Offer(after, announce.SnapshotPause(c.log.Roles(), c.members.Size(), c.set.T), clock.Patience(c.set.T), now)
	}
}

// answer appends a Snapshot if one is due.
func (c *channel) answer(now clock.Instant) {
	behind := func() bool { return c.link.Behind(now, c.set.T) }
	c.announcements.Remind(c.log.Asked, now)
	if c.announcements.Answer(c.log.Asked, behind, c.set.T, now) {
		c.append(now, c.snapshot(now)...)
	}
}

// hello says Hello in one log. All members read all logs, so any log will do, except one that
// returns nothing.
func (c *channel) hello(wants []int, now clock.Instant) {
	if c.link.Clear() {
		c.announcer.Said(wants, c.members.Size(), now)
	}
	r := c.word(lease.Hello, now)
	r.Hello = c.announcement(wants)
	c.announcements.Hello(max(clock.Pause(c.set.T), 4*c.trip.Takes()), now)
	c.append(now, r)
	c.startup.Begin(now)
}

// probe says Hello to see whether it comes back, if no other probe is in flight.
func (c *channel) probe(now clock.Instant) {
	if now.Mono < c.announcements.NextHello() || c.link.Probing(now, c.set.T) || c.set.Observer {
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
	if c.shard.claims.LookAgain(now) {
		c.shard.noticeSilent(now)
	}
	if at, ok := c.greetDue(now); ok && now.Mono >= at {
		c.probe(now)
	}
}

func (c *channel) greetDue(now clock.Instant) (at clock.Mono, ok bool) {
	known, freeAt, probed := c.log.Known(), now.MonoOf(c.log.FreshAt()), clock.Mono(0)
	if known {
		freeAt = now.MonoOf(c.shard.claims.NextSilent())
	}
	if c.link.Probing(now, c.set.T) {
		probed = c.link.ProbeLostAt(c.set.T)
	}
	return c.announcements.GreetDue(announce.Greeting{Known: known, Read: c.log.Offset()+1 >= c.end, Spare: c.shard.localRoles() == 0,
		FreeAt: freeAt, Probed: probed, T: c.set.T, Every: c.set.Every,
		Unsure: func() bool {
			works := c.link.Check(now, c.set.T)
			return !works && c.shard.willing(now)
		}})
}

// talkDue reports when this process next has something to say in the log.
func (c *channel) talkDue(now clock.Instant, mono func(clock.Mono)) {
	mono(c.announcements.Due(c.set.T))
	mono(c.lookBackAt(now))
	if c.set.Observer || c.desired.Closing {
		return
	}
	if at, ok := c.greetDue(now); ok {
		mono(at)
	}
}
