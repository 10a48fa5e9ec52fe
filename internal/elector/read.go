package elector

import (
	"iter"
	"log/slog"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/channel"
	"github.com/goneli/neli/internal/elector/request"
	"github.com/goneli/neli/internal/elector/told"
	"github.com/goneli/neli/internal/elector/warm"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/term"
)

// Read handles an entry of a log: a Reset, or a record that the caller has decoded (bad is its
// error if that failed). now must be read after the entry has arrived. Late entries of a former
// incarnation are ignored.
func (n *Node) Read(e Entry, r *lease.Record, bad error, now clock.Instant) {
	c, s := n.channels[e.Partition], n.shards.of(e.Partition)
	s.vacancyStats.AddUp(now)
	spent := false
	switch {
	case e.Reset:
		if c.Begun() && !c.Announcements.GoesBack() {
			n.counts.BeganAgain()
		}
		c.Enter(e.ID)
		n.origins.Read(c.Index, e, nil, nil, n.set.Process)
		out := s.leases.Read(c.Index, e, nil, nil, now)
		spent = out.Spent
		farther := c.Announcements.GoesBack()
		n.reset(s, c, out.Void, e.End, now)
		c.Announcements.BeganBack(farther, e.Whole)
	case e.ID != c.ID():
		return
	case e.Alive:
		spent = s.leases.Read(c.Index, e, nil, nil, now).Spent
		c.Heard(now)
		s.vacancyStats.Heard(now)
	default:
		n.counts.GotRecord(now)
		c.Heard(now)
		s.vacancyStats.Heard(now)
		s.nomination.Heard()
		spent = n.consume(s, c, e, r, bad, now)
	}
	if spent {
		n.ready.tell(n.reports.Exhausted(e))
	}
	n.step(s, now)
	n.conclude(now)
}

// conclude ends what waited for a record, or for the report on an append.
func (n *Node) conclude(now clock.Instant) {
	if n.mover.Waits() {
		n.resolveMoves(now)
	}
	n.finish(now)
}

// consume folds a record into the leases and acts on the result. It reports whether no further term can begin.
func (n *Node) consume(s *shard, c *channel.Channel, e Entry, r *lease.Record, bad error, now clock.Instant) (spent bool) {
	below := s.Count(n.desired.Roles)
	late := s.vacancyStats.Overtaking(r, below, now)
	n.origins.Read(c.Index, e, r, bad, n.set.Process)
	if bad == nil && r.Session.Process == n.set.Process && !c.Log.Known() {
		proven, _ := n.origins.Proven(c.Index)
		c.Log.Origin(proven)
	}
	out := s.leases.Read(c.Index, e, r, bad, now)
	ev, anew := out.Event, out.Void
	s.vacancyStats.Overtook(late, below, now)
	if bad != nil {
		n.counts.Skipped(bad)
		n.ready.tell(n.reports.Skipped(bad, e))
	}
	if ev.Rewound { // the log went back, or contradicts what this process has read
		n.ready.tell(n.reports.Rewound(ev, c.Index, e.Offset, n.counts.BeganAgain(), now))
		n.ready.verify()
		n.reset(s, c, anew, e.Offset+1, now)
		return out.Spent
	}
	if ev.Own {
		if len(s.logs) == 1 {
			s.vacancyStats.Proved(ev.Stamp.Raw)
		}
		n.back(s, c, r, ev.Stamp, now)
	}
	n.doubt(s, c, ev, e, r, now)
	n.do(now, func(in told.In, now clock.Instant) {
		s.follow(c, ev, anew, r, in, now)
		if ev.Origin && bad == nil { // there will be no fresh Claim from which others learn the fold
			c.OfferSnapshot(1, uint64(e.Offset), in.Takes, now)
		}
	})
	if bad != nil {
		return out.Spent
	}
	if ev.Known || len(ev.Changed) > 0 {
		n.warm.Changed()
	}
	n.listen(s, c, e.Offset, r, now)
	if r.Kind == lease.Beat && !ev.Own {
		n.do(now, func(told.In, clock.Instant) { s.beat(n.set.HeartbeatInterval/4, now) }) // in unison: one wake-up for all
	}
	return out.Spent
}

// back handles an own record that was read back.
func (n *Node) back(s *shard, c *channel.Channel, r *lease.Record, sent, now clock.Instant) {
	if r.Kind == lease.Release {
		return // it has no stamp, so the time that it took is unknown
	}
	if !c.Link.IsReading() {
		n.startup.OwnBack(now)
	}
	switch {
	case sent == (clock.Instant{}):
	case c.Link.IsReading():
		sent = now
	case sent.Mono < c.CaughtUpAt.Mono:
		sent = c.CaughtUpAt // see Link.CaughtUp
	}
	stalled := c.Link.IsStalled()
	c.Link.Back(r.Seq, sent, now, n.set.T)
	if stalled && !c.Link.IsStalled() && r.Kind != lease.Pong { // a Pong answers one holder; no jitter is needed
		c.Pacing.Hold(now.Mono.Add(n.set.Random(clock.Behind(n.set.T) + 1)))
		n.startup.Anew(now) // all come back at the same time, and may have forgotten each other
		n.do(now, s.reconsiderVacant)
	}
	n.trip.Back(sent, now)
	took := n.set.T // that long at least
	if sent != (clock.Instant{}) {
		took = now.Mono.Sub(sent.Mono)
	}
	n.counts.RoundTrips.Add(took, 1)
	if r.Kind == lease.Claim {
		c.Pacing.Returned(sent != (clock.Instant{}), took, n.set.T, n.set.Random, now)
	}
}

// doubt handles a record that contradicts or confirms this process's fold. Processes that know a
// fold then write Snapshots, so that all can compare; the lease decides what follows.
func (n *Node) doubt(s *shard, c *channel.Channel, ev lease.Event, e Entry, r *lease.Record, now clock.Instant) {
	if ev.Differs {
		n.counts.Contradicted()
		c.Announcements.ContradictedBy(r.Session.Process)
	}
	if ev.Differs || ev.Confirmed {
		process := c.Announcements.Contradictor()
		n.ready.tell(n.reports.Doubt(ev, c.Index, e.Offset, r, process, n.nameOf(process), now))
	}
	if ev.Doubts && !n.set.Observer {
		c.Announcements.Speak(c.Turn(uint64(e.Offset), n.trip.Takes(), now), now)
	}
	if ev.Confirmed {
		n.counts.DivergedFrom(n.nameOf(c.Announcements.Contradictor()))
		n.do(now, s.reconsiderVacant)
	}
}

// reset forgets the state of a log that is read again and ends at end. If lost is true, it also
// ends all terms of the log's roles.
func (n *Node) reset(s *shard, c *channel.Channel, lost bool, end int64, now clock.Instant) {
	if lost {
		s.end(s.own.Roles(), term.LogReset)
		s.forget()
	}
	n.warm.Anew(c.Index, s.Index, lost)
	c.Restart(end, now)
	s.begun = true
	s.vacancyStats.Recount(s.Count(n.desired.Roles), now)
	n.planner.Forget()
}

// listen acts on what a record says about its sender, independently of the lease.
func (n *Node) listen(s *shard, c *channel.Channel, o int64, r *lease.Record, now clock.Instant) {
	id, live := r.Session.Process, c.IsNew(o)
	c.Count(o, r.Kind, n.trip.Takes(), now)
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
			n.requests.Back(c.Index, o, r)
		default:
			s.handovers.Pinged(c.Index, o, r.To, now)
		}
		if r.Kind == lease.Snapshot {
			c.Announcements.Told(now)
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
		case r.To != n.set.Process || !live: // it asks another process, or was sent before reading began
		case r.Request != nil:
			n.requested(c.Index, o, r, now)
		case n.warm.Offered(s.Index, c.Index, o, r, warm.WillOf(n.set, n.desired, now), s.leases.Holder, now):
		default:
			n.do(now, func(told.In, clock.Instant) { s.pong(c, o, r, now) })
		}
	case lease.Pong:
		if r.To == n.set.Process && !n.requests.Replied(c.Index, r, now) {
			s.handovers.Ponged(c.Index, r.Ping, r.Session.Process, now)
			n.warm.Answered(s.Index, r, now)
		}
	case lease.Snapshot:
		c.Announcements.Told(now)
	case lease.Beat, lease.Claim, lease.Release:
	}
}

// requested handles a request to this process.
func (n *Node) requested(log int, o int64, r *lease.Record, now clock.Instant) {
	if n.set.Observer {
		return
	}
	refused, why := n.requests.Requested(log, o, r, func() request.Tenure {
		if r.Request.Role >= n.desired.Roles {
			return request.Tenure{Takes: n.set.Requests, Nominated: n.set.Nominated, Token: -1}
		}
		home, local := n.shards.local(r.Request.Role)
		h := home.own.At(local)
		_, leads := home.leases.Leads(local, now)
		leads = leads && h != nil && home.handovers.Of(local) == nil
		// A late request may concern an earlier term: its sender had not read the Claim of this one.
		earlier := leads && home.traits.Earlier(log, home.main.Index, r.Read, h.Token)
		return request.Tenure{Takes: n.set.Requests, Nominated: n.set.Nominated, Known: true, Leads: leads, Earlier: earlier,
			Token: home.own.TokenOf(local)}
	}, now)
	if refused != nil {
		n.ready.note(slog.LevelInfo, "request refused", append(refused.Describe(), "error", why)...)
	}
	n.correspond(now)
	n.ready.Requested = n.ready.Requested || n.requests.Waits()
}

// greeted handles another process's Hello. A newcomer learns at once which members exist and who holds what.
func (n *Node) greeted(c *channel.Channel, o int64, r *lease.Record, live bool, now clock.Instant) {
	unknown, changed := n.members.Announced(r.Session.Process, r.Name, r.Hello, live, now)
	if changed {
		n.planner.Forget()
		n.orphan(r.Session.Process, now)
	}
	if r.Longest == lease.Unsaid && live && !r.Hello.Leaving {
		c.OfferSnapshot(1, uint64(o), n.trip.Takes(), now)
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
			n.do(now, func(in told.In, now clock.Instant) { s.vacate(roles, in, now) })
			s.dueAt = min(s.dueAt, now.Mono)
		}
	}
}

// showUp writes a beat at once, so that a newcomer learns that this process holds roles. If that
// would take many records, the next regular beat does it.
func (n *Node) showUp(now clock.Instant) {
	if len(n.shards) > told.FewHolders {
		return
	}
	for _, s := range n.shards {
		if !moreThan(told.FewHolders, s.leases.Holders()) {
			n.do(now, func(told.In, clock.Instant) { s.beat(n.set.HeartbeatInterval, now) })
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
