package elector

import (
	"errors"
	"iter"
	"log/slog"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/announce"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/term"
)

// Read handles an entry of a log: a Reset, or a record that the caller has decoded (bad is its
// error if that failed). now must be read after the entry has arrived. Late entries of a former
// incarnation are ignored.
func (n *Node) Read(e Entry, r *lease.Record, bad error, now clock.Instant) {
	c := n.channels[e.Partition]
	s := c.shard
	s.vacancyStats.AddUp(now)
	spent := false
	switch {
	case e.Reset:
		if c.begun && !c.announcements.GoesBack() {
			n.counts.BeganAgain()
		}
		c.id = e.ID
		out := s.leases.Read(c.index, e, nil, nil, now)
		spent = out.Spent
		farther := c.announcements.GoesBack()
		n.reset(c, out.Void, e.End, now)
		c.announcements.BeganBack(farther, e.Whole)
	case e.ID != c.id:
		return
	case e.Alive:
		spent = s.leases.Read(c.index, e, nil, nil, now).Spent
		c.heard(now)
		s.vacancyStats.Heard(now)
	default:
		n.counts.GotRecord(now)
		c.heard(now)
		s.vacancyStats.Heard(now)
		s.nomination.Heard()
		spent = n.consume(c, e, r, bad, now)
	}
	if spent {
		n.tell(n.reports.exhausted(e))
	}
	s.step(now)
	n.conclude(now)
}

// conclude ends waits for what was read or acknowledged.
func (n *Node) conclude(now clock.Instant) {
	if n.mover.Waits() {
		n.resolveMoves(now)
	}
	n.finish(now)
}

// consume folds a record into the leases and acts on the result. It reports whether no further term can
// begin.
func (n *Node) consume(c *channel, e Entry, r *lease.Record, bad error, now clock.Instant) (spent bool) {
	s := c.shard
	late := s.vacancyStats.Overtaking(r, s.localRoles(), now)
	out := s.leases.Read(c.index, e, r, bad, now)
	ev, anew := out.Event, out.Void
	s.vacancyStats.Overtook(late, s.localRoles(), now)
	if bad != nil {
		n.counts.Skipped(bad)
		n.tell(n.reports.skipped(bad, e))
	}
	if ev.Rewound {
		n.rewound(c, ev, anew, e, now)
		return out.Spent
	}
	if ev.Own {
		if len(s.logs) == 1 {
			s.vacancyStats.Proved(ev.Stamp.Raw)
		}
		c.back(r, ev.Stamp, now)
	}
	c.doubt(ev, e, r, now)
	c.follow(ev, anew, r, now)
	if bad != nil {
		return out.Spent
	}
	n.listen(c, e.Offset, r, now)
	if r.Kind == lease.Beat && !ev.Own {
		s.beat(now, n.set.Every/4) // in unison: one wake-up for all
	}
	return out.Spent
}

// rewound handles a log that went back or contradicts what this process has read.
func (n *Node) rewound(c *channel, ev lease.Event, lost bool, e Entry, now clock.Instant) {
	c.sayRewound(ev, e, now)
	n.ready.verify()
	n.reset(c, lost, e.Offset+1, now)
}

func (c *channel) sayRewound(ev lease.Event, e Entry, now clock.Instant) {
	c.tell(c.reports.rewound(ev, c.index, e.Offset, c.counts.BeganAgain(), now))
}

// doubt handles a record whose sender has computed another fold of the same log. Every process
// that knows the fold writes a Snapshot, so that all can compare; the lease decides what follows.
func (c *channel) doubt(ev lease.Event, e Entry, r *lease.Record, now clock.Instant) {
	if ev.Differs {
		c.counts.Contradicted()
		c.tell(c.reports.contradicted(c.index, e.Offset, r, c.nameOf(r.Session.Process), now))
		c.announcements.ContradictedBy(r.Session.Process)
	}
	if ev.Doubts {
		if !c.set.Observer {
			c.announcements.Speak(c.turn(uint64(e.Offset), now), now)
		}
	}
	if ev.Confirmed {
		process := c.announcements.Contradictor()
		name := c.nameOf(process)
		c.counts.DivergedFrom(name)
		c.tell(c.reports.confirm(c.index, e.Offset, process, name, now))
		c.shard.reconsiderVacant(now)
	}
}

// nameOf returns the name of a process; empty if it is unknown.
func (k *common) nameOf(process string) string {
	if process == k.set.Process {
		return k.set.Name
	}
	return k.members.NameOf(process)
}

// reset forgets the state of a log that is read again and ends at end. If lost is true, it also
// ends all terms of the log's roles.
func (n *Node) reset(c *channel, lost bool, end int64, now clock.Instant) {
	s := c.shard
	if lost {
		s.end(s.own.Roles(), term.LogReset)
		s.forget()
	}
	c.restart(end, now)
	s.begun = true
	s.vacancyStats.Recount(s.localRoles(), now)
	n.planner.Forget()
}

// follow acts on what a record did to the lease.
func (c *channel) follow(ev lease.Event, anew bool, r *lease.Record, now clock.Instant) {
	s := c.shard
	if ev.Known {
		s.learned(anew, now)
	}
	if ev.Evidence {
		if id := s.traits.As(r.Session); s.claims.Revived(id) { // others were told that its roles are vacant
			roles := s.HeldBy(map[lease.Session]bool{id: true})
			s.watch(roles)
			s.vacancyStats.RecountOf(roles, s.localRoles(), true, now)
		}
		s.Heard(r.Session, c.log.Offset() >= c.end)
	}
	c.outlived(ev.Outlived, r, now)
	if len(ev.Changed) > 0 {
		s.watch(ev.Changed)
		s.vacancyStats.RecountOf(ev.Changed, s.localRoles(), false, now)
		s.claims.Designate(ev.Changed, r, s.set.Process)
	}
	s.sync(now)
	if anew {
		s.reconsiderVacant(now)
	}
}

// watch looks for the silence of a holder when its lease ends. All roles are the same holder's.
func (s *shard) watch(roles []int32) {
	if len(roles) == 0 {
		return
	}
	if g, held := s.leases.Holder(roles[0]); held {
		s.claims.Given(g.FreeAt)
	}
}

// outlived handles holders that another process has found to be silent before this process did:
// their roles have changed hands, so this process would not find out by itself.
func (c *channel) outlived(ids []lease.Session, r *lease.Record, now clock.Instant) {
	for _, id := range ids {
		if id.Process != r.Session.Process { // else it claims its own roles again
			c.suspect(id.Process, now.Add(-c.set.T), now)
		}
	}
}

// suspect takes a holder for dead that was last heard at a time and whose lease is over, unless there
// is another explanation: the log has stood still since then, or the holder was heard in another log,
// so it has lost touch with some logs, or they have stopped.
func (c *channel) suspect(process string, heard, now clock.Instant) {
	switch {
	case c.link.Doubtful(heard):
	case len(c.shard.logs) > 1 && c.members.HeardSince(process, now.Add(-clock.Recent(c.set.T))):
	case c.members.Suspect(process):
		c.planner.Forget()
	}
}

// learned reconsiders everything after the fold has become known.
func (s *shard) learned(anew bool, now clock.Instant) {
	s.vacancyStats.Recount(s.localRoles(), now)
	if !anew {
		return
	}
	s.claims.Init()
	s.main.pacing.Think(0)
	s.main.announcements.MayGoBackAgain()
	s.Standings.Learned()
}

// listen acts on what a record says about its sender, independently of the lease.
func (n *Node) listen(c *channel, o int64, r *lease.Record, now clock.Instant) {
	id, live := r.Session.Process, o >= c.end
	if c.announcements.Heard(announce.SnapshotEvery(c.log.Roles())) && r.Kind != lease.Snapshot {
		c.offerSnapshot(func() time.Duration { return 4 * n.turn(uint64(o), now) }, now) // no process waits for it
	}
	if r.Kind == lease.Hello && r.Hello.Leaving {
		n.announcer.Parted(now)
		if id == n.set.Process {
			n.announcer.OwnBye()
		}
	}
	if id == n.set.Process {
		switch {
		case r.Kind != lease.Ping:
		case r.To == lease.Everyone || r.Request != nil:
			n.requests.Back(c.index, o, r)
		default:
			c.shard.handovers.Pinged(c.index, o, r.To, now)
		}
		if r.Kind == lease.Snapshot {
			c.announcements.Told(now)
		}
		return
	}
	if live {
		n.members.Alive(id, now)
	}
	switch r.Kind {
	case lease.Hello:
		n.greeted(c, o, r, live, now)
	case lease.Ping:
		switch {
		case r.To == lease.Everyone:
			if live {
				n.announcer.Called(n.set.Process, o, n.members.Size(), now)
			}
		case r.To != n.set.Process || !live: // it was sent before this process started, to a former one
		case r.Request != nil:
			n.requested(c.index, o, r, now)
		default:
			c.pong(o, r, now)
		}
	case lease.Pong:
		if r.To == n.set.Process && !n.requests.Replied(c.index, r, now) {
			c.shard.handovers.Ponged(c.index, r.Ping, r.Session.Process, now)
		}
	case lease.Snapshot:
		c.announcements.Told(now)
	case lease.Beat, lease.Claim, lease.Release:
	}
}

// greeted handles another process's Hello. A newcomer learns at once which members exist and who
// holds what.
func (n *Node) greeted(c *channel, o int64, r *lease.Record, live bool, now clock.Instant) {
	unknown, changed := n.members.Announced(r.Session.Process, r.Name, r.Hello, live, now)
	if changed {
		n.planner.Forget()
		n.orphan(r.Session.Process, now)
	}
	if r.Longest == lease.Unsaid && live && !r.Hello.Leaving {
		c.offerSnapshot(func() time.Duration { return n.turn(uint64(o), now) }, now)
	}
	if !live {
		return
	}
	if !unknown {
		if !changed {
			n.announcer.With(n.members.Size(), now)
		}
		return
	}
	n.showUp(now)
	if !n.set.Nominated {
		n.announcer.Soon(n.members.Size(), now)
		n.startup.Newcomer(now)
	}
}

// orphan assigns at once what was left to a process that has said that it will not lead.
func (n *Node) orphan(id string, now clock.Instant) {
	if n.members.MayTake(id) {
		return
	}
	for _, s := range n.shards {
		if roles := s.claims.LeftTo(id); len(roles) > 0 {
			s.claims.Drop(roles)
			s.vacate(roles, now)
			s.dueAt = min(s.dueAt, now.Mono)
		}
	}
}

// showUp writes a beat at once, so that a newcomer learns that this process holds roles. If that
// would take many records, the next regular beat does it.
func (n *Node) showUp(now clock.Instant) {
	if len(n.shards) > fewHolders {
		return
	}
	for _, s := range n.shards {
		if !moreThan(fewHolders, s.leases.Holders()) {
			s.beat(now, n.set.Every)
		}
	}
}

// moreThan reports whether there are more holders than a number.
func moreThan(number int, holders iter.Seq[lease.HolderState]) bool {
	for range holders {
		if number--; number < 0 {
			return true
		}
	}
	return false
}

// fewHolders is how many holders may answer a newcomer with a beat each. In a larger group a
// closing process waits before it names its successors.
const fewHolders = 8

// reports decides which trouble with records is logged. Repeated trouble must not fill the log:
// each kind of odd record is logged once, everything else at most once in ten seconds.
type reports struct {
	malformed, newer, copied, spent           bool
	resets, lost, claims                      limiter
	contradictions, confirmed, outvoted, tied limiter
}

// limiter lets one line in ten seconds pass.
type limiter struct {
	next clock.Mono
}

// due reports whether another line may be logged.
func (l *limiter) due(now clock.Instant) bool {
	if now.Mono < l.next {
		return false
	}
	l.next = now.Mono.Add(10 * time.Second)
	return true
}

// line returns a line, or nothing if the limiter stops it.
func (l *limiter) line(now clock.Instant, level slog.Level, text string, args ...any) []Note {
	if !l.due(now) {
		return nil
	}
	return []Note{{level, text, args}}
}

func once(said *bool, level slog.Level, text string, args ...any) []Note {
	if *said {
		return nil
	}
	*said = true
	return []Note{{level, text, args}}
}

// skipped reports a skipped record. A record of another incarnation of a small log was in flight
// when that incarnation ended, and is not reported.
func (r *reports) skipped(bad error, e Entry) []Note {
	switch {
	case errors.Is(bad, lease.ErrForeign):
		return nil
	case errors.Is(bad, lease.ErrOtherLog):
		if e.ID != "" {
			return nil
		}
		return once(&r.copied, slog.LevelWarn, "skipping records of another topic; logged once", "partition", e.Partition, "offset", e.Offset)
	case errors.Is(bad, lease.ErrNewer):
		return once(&r.newer, slog.LevelWarn, "records of a newer version read: claiming nothing for about a minute after the newest",
			"partition", e.Partition, "offset", e.Offset)
	}
	return once(&r.malformed, slog.LevelWarn, "skipping malformed records; logged once", "partition", e.Partition, "offset", e.Offset, "error", bad)
}

// rewound reports a log that went back or contradicts what this process has read; resets is how
// often logs did so.
func (r *reports) rewound(ev lease.Event, partition int, offset int64, resets uint64, now clock.Instant) []Note {
	switch {
	case ev.Outvoted:
		return r.outvoted.line(now, slog.LevelError, "own state contradicts that of most others: rejoining", "partition", partition, "offset", offset)
	case ev.Tied:
		return r.tied.line(now, slog.LevelError, "own state is contradicted, and as many have another one: rejoining, and not believing their snapshots for now",
			"partition", partition, "offset", offset)
	case ev.Missing > 0:
		return r.lost.line(now, slog.LevelWarn, "records of a small log were lost on their way: rejoining",
			"log", partition, "offset", offset, "missing", ev.Missing, "resets", resets)
	}
	return r.resets.line(now, slog.LevelWarn, "leader log rewound: rejoining", "partition", partition, "offset", offset, "resets", resets)
}

// exhausted reports that an entry has used up the ballots.
func (r *reports) exhausted(e Entry) []Note {
	return once(&r.spent, slog.LevelError, "ballots of the small logs are used up: no term can begin any more", "log", e.Partition, "offset", e.Offset)
}

// contradicted reports a record whose sender has another fold.
func (r *reports) contradicted(partition int, offset int64, rec *lease.Record, name string, now clock.Instant) []Note {
	return r.contradictions.line(now, slog.LevelError, "state of another process contradicts the own one: snapshots of all will tell who has to rejoin",
		"partition", partition, "offset", offset, "by_name", name, "process", rec.Session.Process, "record", rec.Kind)
}

// confirm reports that the Snapshots of others have confirmed this process's fold.
func (r *reports) confirm(partition int, offset int64, process, name string, now clock.Instant) []Note {
	return r.confirmed.line(now, slog.LevelError, "own state is confirmed by others: the process that contradicts it has to rejoin",
		"partition", partition, "offset", offset, "by_name", name, "process", process)
}
