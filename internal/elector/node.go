package elector

import (
	"hash/fnv"
	"log/slog"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/term"
)

// Node decides, for one process, what is appended to the logs and when. It is pure: its inputs are
// Open, Read, Acked, Nominate, Set and Tick, and after each the caller takes its output with
// Ready. It is not safe for concurrent use.
type Node struct {
	common
	codec      lease.Codec
	requests   requests
	attendance attendance
	shown      shown
}

// common is what the shards and channels of a process share: its settings, what it knows of the
// other members and of its own times, and the output for the caller.
type common struct {
	set       *Settings
	terms     *term.Table
	desired   Desired
	shards    []*shard
	channels  []*channel
	members   members
	planner   planner
	timing    timing
	mover     mover
	announcer announcer
	counts    counts
	reports   reports
	ready     Ready
	eager     bool // this process has passed over nothing vacant since it became willing
}

// New returns a Node that keeps its terms in the given table.
func New(set *Settings, terms *term.Table) *Node {
	return &Node{common: common{set: set, terms: terms, members: newMembers(), timing: newTiming(set.T)}}
}

// Open tells the Node how many logs there are, and their common id.
func (n *Node) Open(partitions int, id string, now clock.Instant) {
	n.codec = lease.Codec{Group: n.set.Group, Log: id}
	n.timing.opened = now.Mono
	h := fnv.New32a()
	_, _ = h.Write([]byte(n.set.Process))
	n.announcer.home = int(h.Sum32() % uint32(partitions))
	lines := n.openShards(partitions, now)
	n.members.open(len(n.shards))
	n.terms.Open(lines, len(n.shards))
}

// word makes a record of one kind for one log.
func (c *channel) word(k lease.Kind, now clock.Instant) lease.Record {
	return c.shard.lease.Word(c.index, k, now)
}

func (c *channel) snapshot(now clock.Instant) []lease.Record {
	return c.shard.lease.Snapshot(c.index, now)
}

// Codec returns the codec for this group's records in an incarnation of a small log or, with an
// empty id, in the logs that were opened. Call it only after Open.
func (n *Node) Codec(id string) lease.Codec {
	c := n.codec
	if id != "" {
		c.Log = id
	}
	return c
}

// Set changes what the application wants.
func (n *Node) Set(d Desired, now clock.Instant) {
	was := n.desired
	n.desired = d
	if len(n.shards) == 0 {
		return
	}
	if d.Roles != was.Roles {
		for _, p := range n.shards {
			p.vacancies.addUp(now)
			p.vacancies.follow(p.localRoles(), now)
		}
	}
	if d.Roles > was.Roles { // and others may do the same
		n.reviewAll(now)
		n.announcer.at, n.timing.settles = now.Mono, 0
		n.timing.newcomer(now)
	}
	for _, p := range n.shards {
		p.wanted = false
	}
	if d.Roles != was.Roles {
		n.planner.forget()
		n.announcer.soon(n.members.size(), now)
	}
	n.Tick(now)
}

// Read handles an entry of a log: a Reset, or a record that the caller has decoded (bad is its
// error if that failed). now must be read after the entry has arrived. Late entries of a former
// incarnation are ignored.
func (n *Node) Read(e Entry, r *lease.Record, bad error, now clock.Instant) {
	log := n.channels[e.Partition]
	p := log.shard
	p.vacancies.addUp(now)
	switch {
	case e.Reset:
		if log.begun && !log.announcements.back {
			n.counts.LogResets++
		}
		log.id = e.ID
		lost := p.lease.Begin(log.index, e, now)
		again := log.announcements.back
		n.reset(log, lost, e.End, now)
		log.announcements.back, log.announcements.again = e.Whole, again // a whole log has nothing farther back
	case e.ID != log.id:
		return
	case e.Alive:
		p.lease.Answered(log.index, now)
	default:
		n.counts.Records++
		n.counts.read = now
		p.nomination.heard()
		n.consume(log, e, r, bad, now)
	}
	p.step(now)
	n.conclude(now)
}

// conclude ends waits for what was read or acknowledged.
func (n *Node) conclude(now clock.Instant) {
	if len(n.mover.under) > 0 {
		n.resolveMoves(now)
	}
	n.finish(now)
}

// consume folds a record into the lease and acts on the result.
func (n *Node) consume(log *channel, e Entry, r *lease.Record, bad error, now clock.Instant) {
	p := log.shard
	ev, anew := p.lease.Read(log.index, e.Offset, r, bad, now)
	if bad != nil {
		n.counts.skipped(bad)
		n.tell(n.reports.skipped(bad, e))
	}
	if ev.Rewound {
		n.rewound(log, ev, anew, e, now)
		return
	}
	if ev.Own {
		log.back(r, ev.Stamp, now)
	}
	log.doubt(ev, e, r, now)
	log.follow(ev, anew, r, now)
	if bad != nil {
		return
	}
	n.listen(log, e.Offset, r, now)
	if r.Kind == lease.Beat && !ev.Own {
		p.beat(now, n.set.Every/4) // in unison: one wake-up for all
	}
}

// rewound handles a log that went back or contradicts what this process has read.
func (n *Node) rewound(log *channel, ev lease.Event, lost bool, e Entry, now clock.Instant) {
	log.sayRewound(ev, e, now)
	n.ready.Verify = true
	n.reset(log, lost, e.Offset+1, now)
}

func (c *channel) sayRewound(ev lease.Event, e Entry, now clock.Instant) {
	c.counts.LogResets++
	c.tell(c.reports.rewound(ev, c.index, e.Offset, c.counts.LogResets, now))
}

// doubt handles a record whose sender has computed another fold of the same log. Every process
// that knows the fold writes a Snapshot, so that all can compare; the lease decides what follows.
func (c *channel) doubt(ev lease.Event, e Entry, r *lease.Record, now clock.Instant) {
	if ev.Differs {
		c.counts.Contradictions++
		c.tell(c.reports.contradicted(c.index, e.Offset, r, c.nameOf(r.Session.Process), now))
		c.announcements.contradicts = r.Session.Process
	}
	if ev.Doubts {
		if !c.set.Observer {
			c.announcements.speak(c.turn(uint64(e.Offset), now), now)
		}
	}
	if ev.Confirmed {
		c.counts.Diverged = c.nameOf(c.announcements.contradicts)
		c.tell(c.reports.confirm(c.index, e.Offset, c.announcements.contradicts, c.counts.Diverged, now))
		c.shard.review(now)
	}
}

// nameOf returns the name of a member; empty if it is unknown.
func (k *common) nameOf(process string) string {
	if m := k.members.by[process]; m != nil {
		return m.name
	}
	return ""
}

// reset forgets the state of a log that is read again and ends at end. If lost is true, it also
// ends all terms of the log's roles.
func (n *Node) reset(log *channel, lost bool, end int64, now clock.Instant) {
	p := log.shard
	if lost {
		p.end(p.holds.roles(), term.LogReset)
		p.forget()
	}
	log.restart(end, now)
	p.begun = true
	p.vacancies.recount(p.localRoles(), now)
	n.planner.forget()
}

// Acked handles the report on an append: nil if the log has the record, or an error if the log may
// or may not have it.
func (n *Node) Acked(a Append, err error, now clock.Instant) {
	p, r := n.channels[a.Partition], &a.Record
	switch r.Kind {
	case lease.Release:
		n.timing.farewells--
		p.releasing--
	case lease.Snapshot:
		n.timing.farewells--
	case lease.Hello:
		if r.Hello.Leaving {
			n.timing.farewells--
		}
	case lease.Claim:
		if err != nil {
			p.unclaim(r, now)
			n.note(slog.LevelDebug, "claim not confirmed", "partition", p.index, "error", err)
		}
	case lease.Ping:
		if err != nil && (r.Request != nil || r.To == lease.Everyone) {
			n.requests.failed(p.index, r, err, now)
		}
	case lease.Beat, lease.Pong:
	}
	if err != nil {
		p.link.failed(r.Seq)
		n.counts.AppendFailed++
	} else {
		n.counts.Appended++
	}
	p.shard.step(now)
	n.conclude(now)
}

// unclaim handles a Claim that may not be in the log.
func (c *channel) unclaim(r *lease.Record, now clock.Instant) {
	if roles := c.shard.lease.Failed(c.index, r, now); len(roles) > 0 {
		c.pacing.late(c.set, now)
		c.shard.vacate(roles, now)
	}
}

// Tick decides everything that follows from time alone or from a call of Set.
func (n *Node) Tick(now clock.Instant) {
	if len(n.shards) == 0 {
		return
	}
	n.sayWaiting(now)
	n.members.expire(now, n.planner.forget)
	if n.timing.late(now) {
		n.announcer.putOff(now.Mono.Add(n.set.RejoinWait))
	}
	if n.desired.Closing {
		n.announcer.close(now)
	}
	n.revive(now)
	for _, s := range n.shards {
		s.sweep(now)
	}
	n.rebalance(now)
	for _, s := range n.shards {
		s.step(now)
	}
	n.announce(now)
	n.requests.pursue(func(role int) (int64, lease.Grantee) {
		p, u := n.local(role)
		return p.standing(u, now)
	}, n.route, now)
	n.correspond(now)
	n.verify(now)
	n.finish(now)
}

// revive reviews all vacant roles when this process becomes willing again: after it had stepped
// down, or when its application has come back to life.
func (n *Node) revive(now clock.Instant) {
	willing := n.desired.Willing(now) && n.set.Alive(now)
	if willing && !n.eager {
		n.reviewAll(now)
	}
	n.eager = willing
}

// Delivered notes that the application was told of the end of terms.
func (n *Node) Delivered(units []int) {
	for _, unit := range units {
		p, role := n.local(unit)
		p.holds.delivered(role)
	}
}
