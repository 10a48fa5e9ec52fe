package elector

import (
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/announce"
	"github.com/goneli/neli/internal/lease"
)

// catchUp notes that the records that were in the log when reading began are read.
func (s *shard) catchUp(c *channel, in *In) {
	if !c.announcements.CatchUp(c.log.Offset()+1 >= c.end, s.set.T, in.now) {
		return
	}
	c.caughtUpAt, c.history = in.now, c.announcements.ReadFor(in.now)
	c.link.CaughtUp(in.now)
	s.vacancyStats.Follow(s.Count(in.desired.Roles), in.now) // they may begin to count
	switch {
	case s.meets(c, in):
		in.startup.Anew(in.now)
		if !c.link.Greeting() {
			c.hello(nil, in)
		}
		in.startup.Await(in.now) // then all vacant roles are reconsidered
	case s.claims.IsPostponed() && s.logs.CaughtUp():
		s.reconsiderVacant(in)
	}
	if c.announcements.WentBack() {
		c.offerSnapshot(func() time.Duration { return in.turn(uint64(c.index)) }, in) // others look for one too
	}
}

// meets reports whether this process waits for others after the history. The wait for others that
// start too began with its Hello; if reading the history took longer than that wait, their Hellos
// lie behind the history, and an own Hello behind them shows when they are read. Reading from
// farther back is no reason: the records behind the history are known by then.
func (s *shard) meets(c *channel, in *In) bool {
	return c.history >= in.startup.Length() && !c.announcements.WentBack() && !s.set.Nominated && !s.set.Observer && !in.desired.Closing
}

// offerSnapshot schedules a Snapshot, which another process's Snapshot cancels.
func (c *channel) offerSnapshot(after func() time.Duration, in *In) {
	if c.log.Known() && !c.set.Observer {
		c.announcements.Offer(after, announce.SnapshotPause(c.log.Roles(), in.members.Size(), c.set.T), clock.Patience(c.set.T), in.now)
	}
}

// answer appends a Snapshot if one is due.
func (c *channel) answer(in *In) {
	behind := func() bool { return c.link.Behind(in.now, c.set.T) }
	c.announcements.Remind(c.log.Asked, in.now)
	if c.announcements.Answer(c.log.Asked, behind, c.set.T, in.now) {
		c.append(in, c.snapshot(in.now)...)
	}
}

// hello says Hello in one log. All members read all logs, so any log will do, except one that
// returns nothing. The Node puts in what is said if that is nil.
func (c *channel) hello(say *lease.Announcement, in *In) {
	if c.link.Clear() {
		in.greet()
	}
	r := c.word(lease.Hello, in.now)
	r.Hello = say
	c.announcements.Hello(max(clock.Pause(c.set.T), 4*in.trip.Takes()), in.now)
	c.append(in, r)
	in.startup.Begin(in.now)
}

// probe says Hello to see whether it comes back, if no other probe is in flight.
func (c *channel) probe(in *In) {
	if in.now.Mono < c.announcements.NextHello() || c.link.Probing(in.now, c.set.T) || c.set.Observer {
		return
	}
	c.hello(nil, in)
}

// greet says Hello when greetDue says so.
func (s *shard) greet(c *channel, in *In) {
	if s.set.Observer || in.desired.Closing {
		return
	}
	if at, ok := s.greetDue(c, in); !ok || in.now.Mono < at {
		return
	}
	if s.claims.LookAgain(in.now) {
		s.noticeSilent(in)
	}
	if at, ok := s.greetDue(c, in); ok && in.now.Mono >= at {
		c.probe(in)
	}
}

func (s *shard) greetDue(c *channel, in *In) (at clock.Mono, ok bool) {
	known, freeAt, probed := c.log.Known(), in.now.MonoOf(c.log.FreshAt()), clock.Mono(0)
	if known {
		freeAt = in.now.MonoOf(s.claims.NextSilent())
	}
	if c.link.Probing(in.now, s.set.T) {
		probed = c.link.ProbeLostAt(s.set.T)
	}
	return c.announcements.GreetDue(announce.Greeting{Known: known, Read: c.log.Offset()+1 >= c.end, Spare: s.Count(in.desired.Roles) == 0,
		FreeAt: freeAt, Probed: probed, T: s.set.T, HeartbeatInterval: s.set.HeartbeatInterval,
		Unsure: func() bool {
			works := c.link.Check(in.now, s.set.T)
			return !works && s.willing(in)
		}})
}

// talkDue reports when this process next has something to say in the log.
func (s *shard) talkDue(c *channel, in *In, mono func(clock.Mono)) {
	mono(c.announcements.Due(s.set.T))
	mono(c.lookBackAt(in))
	if s.set.Observer || in.desired.Closing {
		return
	}
	if at, ok := s.greetDue(c, in); ok {
		mono(at)
	}
}
