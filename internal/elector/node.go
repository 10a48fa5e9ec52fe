package elector

import (
	"hash/fnv"
	"log/slog"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/quorum"
	"github.com/goneli/neli/internal/term"
)

// Node decides, for one process, what is appended to the logs and when. It is pure:
// inputs are Open, Read, Acked, Nominate, Set and Tick, and what the caller has to do is
// taken with Ready after each. It is not safe for concurrent use. It has more than a dozen
// fields because each is the whole of a concern that has a file of its own.
type Node struct {
	common
	codec      lease.Codec
	requests   requests
	attendance attendance
}

// common is what the shards and channels of a process share: what it was told, what it knows of
// the other members and of its own times, and what the caller has to do.
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
	eager     bool // nothing that was vacant has been passed over since this process was willing
}

// New returns a Node whose terms go into the given table.
func New(set *Settings, terms *term.Table) *Node {
	return &Node{common: common{set: set, terms: terms, members: newMembers(), timing: newTiming(set.T)}}
}

// Open says how many logs there are, and what tells them from all others.
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

// word and snapshot make records for one log.
func (c *channel) word(k lease.Kind, now clock.Instant) lease.Record {
	return c.shard.lease.Word(c.index, k, now)
}

func (c *channel) snapshot(now clock.Instant) []lease.Record {
	return c.shard.lease.Snapshot(c.index, now)
}

// appendAll hands over what the holdings of p have made.
func (s *shard) appendAll(out []quorum.Out, now clock.Instant) {
	logs := s.channels
	for _, o := range out {
		logs[o.Log].append(now, o.Record)
	}
}

// Codec writes and reads the records of this group, in an incarnation of a small log or,
// with no id, in the logs that were opened. It must not be used before Open.
func (n *Node) Codec(id string) lease.Codec {
	c := n.codec
	if id != "" {
		c.Log = id
	}
	return c
}

// Set says what is wanted from now on.
func (n *Node) Set(d Desired, now clock.Instant) {
	was := n.desired
	n.desired = d
	if len(n.shards) == 0 {
		return
	}
	if d.Roles != was.Roles {
		for _, p := range n.shards {
			p.account(now)
			p.resize(now)
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
		n.ready.Changed = true // there is more to tell, or less
	}
	n.Tick(now)
}

// Read takes an entry of a log: a reset, or a record, which the caller has decoded (bad
// tells why it could not). now was read after the entry was in hand. What a former incarnation
// of a log said late is not looked at.
func (n *Node) Read(e Entry, r *lease.Record, bad error, now clock.Instant) {
	log := n.channels[e.Partition]
	p := log.shard
	p.account(now)
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

// conclude finds out whether somebody waits for what was read or acknowledged.
func (n *Node) conclude(now clock.Instant) {
	if len(n.mover.under) > 0 {
		n.resolveMoves(now)
	}
	n.finish(now)
}

// consume folds a record of a log, and draws the conclusions.
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

// rewound deals with a log that went back, or that contradicts what is known of it.
func (n *Node) rewound(log *channel, ev lease.Event, lost bool, e Entry, now clock.Instant) {
	log.sayRewound(ev, e, now)
	n.ready.Verify = true
	n.reset(log, lost, e.Offset+1, now)
}

func (c *channel) sayRewound(ev lease.Event, e Entry, now clock.Instant) {
	c.counts.LogResets++
	c.tell(c.reports.rewound(ev, c.index, e.Offset, c.counts.LogResets, now))
}

// doubt deals with a record that shows that somebody's fold is another one. Everybody who
// knows the fold writes a Snapshot, so that all can compare; the lease says what follows.
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

// nameOf is the name of a member, empty if it has said none.
func (k *common) nameOf(process string) string {
	if m := k.members.by[process]; m != nil {
		return m.name
	}
	return ""
}

// reset forgets what was concluded from a log that is read anew, and which ends at end now; of
// roles, too, if all terms are lost thereby.
func (n *Node) reset(log *channel, lost bool, end int64, now clock.Instant) {
	p := log.shard
	if lost {
		p.endAll(term.LogReset)
		p.forget()
	}
	log.restart(end, now)
	p.begun = true
	p.recount(now)
	n.planner.forget()
	n.ready.Changed = true
}

// Acked takes the log's word on a record: nil, or that it may or may not be there.
func (n *Node) Acked(a Append, err error, now clock.Instant) {
	p, r := n.channels[a.Partition], &a.Record
	switch r.Kind {
	case lease.Release:
		n.timing.farewells--
		p.releasing--
		n.ready.Changed = true // StepDown may wait for it
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

// unclaim takes note that a Claim may not be in the log.
func (c *channel) unclaim(r *lease.Record, now clock.Instant) {
	if roles := c.shard.lease.Failed(c.index, r, now); len(roles) > 0 {
		c.shard.claimFailed(roles, now)
	}
}

// Tick lets everything be decided that time alone, or a wish, gives reason to.
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
	if n.timing.farewells > 0 && now.Mono.Sub(n.timing.parted) >= closeTail {
		n.ready.Changed = true // StepDown waits no longer
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

// sayWaiting tells once, soon after the start, for how long this process claims nothing
// because there may be leases that it has not heard of.
func (n *Node) sayWaiting(now clock.Instant) {
	t := &n.timing
	if t.waits || n.set.Observer || now.Mono.Sub(t.opened) < min(clock.SayWaiting(n.set.T), lookEvery/2) {
		return
	}
	longest := time.Duration(0)
	for _, p := range n.channels {
		if !p.begun {
			return
		}
		if at := p.log.FreshAt(); at != clock.Never {
			longest = max(longest, at.Sub(now.Raw))
		}
	}
	if t.waits = true; longest > 0 {
		n.note(slog.LevelInfo, "waiting for the leases of others", "at_most", longest.Round(100*time.Millisecond))
	}
}

// revive looks at all that is vacant when this process is willing again: the time for
// which it had stepped down is over, or its application does something.
func (n *Node) revive(now clock.Instant) {
	willing := n.desired.Willing(now) && n.set.Alive(now)
	if willing && !n.eager {
		n.reviewAll(now)
	}
	n.eager = willing
}

// sweep looks at all that is vacant once in a while. Every way in which a role becomes
// vacant is followed by a claim of somebody's; this is for a claim that has got lost.
func (s *shard) sweep(now clock.Instant) {
	if now.Mono < s.sweepAt {
		return
	}
	s.sweepAt = now.Mono.Add(max(s.set.T, sweepEvery))
	under, _ := s.lease.Claiming()
	if !s.begun || under > 0 || len(s.claims.vacant) > 0 {
		return
	}
	if len(s.claims.silent) > 0 || len(s.lease.Free(s.localRoles(), now)) > 0 {
		s.review(now)
	}
}

// sweepEvery is how often all vacant roles are looked at, at most.
const sweepEvery = 5 * time.Second

// step lets one partition decide. The order matters: what is over ends before anything
// else is decided, and what is given up is given up before anything is claimed.
func (s *shard) step(now clock.Instant) {
	if !s.begun {
		s.dueAt = clock.Never
		return
	}
	if s.timing.settling && now.Mono >= s.timing.settleAt {
		s.timing.settling = false
		s.reviewAll(now) // by now it is known who else is there
	}
	logs := s.channels
	for _, log := range logs {
		if log.begun {
			log.catchUp(now)
		}
	}
	s.lapse(now)
	s.giveUp(now)
	s.advance(now)
	s.repeat(now)
	s.beat(now, 0)
	s.silence(now)
	s.claim(now)
	s.sync(now)
	for _, log := range logs {
		if log.begun {
			log.greet(now)
			log.lookBack(now)
			log.answer(now)
		}
	}
	s.dueAt = s.due(now)
}

// lapse ends what leads nothing any more, by the clock or because the application was told
// so.
func (s *shard) lapse(now clock.Instant) {
	if len(s.over) > 0 {
		s.dropDelivered(now)
	}
	below := int32(0)
	if s.willing(now) {
		below = s.localRoles()
	}
	out, lapsed := s.lease.Tick(below, s.timing.roundTrip(), now)
	if lapsed {
		s.endAll(s.lapsed(now))
	}
	s.sync(now)
	s.appendAll(out, now)
	if lapsed {
		s.main.released(now)
		s.review(now) // what the former session had claimed is nobody's business any more
	}
}

// lapsed tells why terms have lapsed at time now.
func (k *common) lapsed(now clock.Instant) term.Reason {
	if !k.set.Alive(now) {
		return term.NotPulsed
	}
	return term.Lapsed
}

// dropDelivered gives up the roles that the application was told are over: they must
// not be led again, whatever the clocks say now.
func (s *shard) dropDelivered(now clock.Instant) {
	var roles []int32
	for _, role := range s.over {
		if s.terms.Over(s.role(role)) {
			roles = append(roles, role)
		}
	}
	s.over = nil
	s.giveBack(roles, nil, term.Lapsed, now)
}

// Delivered says that the application was told that terms of units have ended.
func (n *Node) Delivered(units []int) {
	for _, unit := range units {
		if p, role := n.local(unit); p.holds.has(role) {
			p.over = append(p.over, role)
		}
	}
}

// beat appends a Beat to each log of p on which something is held, if one is due there or will
// be within early. A log from which nothing comes back is left alone: what is sent there piles
// up.
func (s *shard) beat(now clock.Instant, early time.Duration) {
	for _, log := range s.channels {
		if !s.lease.Keeps(log.index, s.holds.len() > 0) || now.Mono < log.beatAt.Add(-early) ||
			log.link.beating(now, s.set.T) || !s.set.Alive(now) {
			continue
		}
		if r, ok := s.lease.Beat(log.index, now); ok {
			log.append(now, r)
		}
	}
}

// repeat sends Releases again that have not come back: they may be lost. As with Beats
// and Claims, none is sent while another has not been answered: while the log stands
// still they would pile up, and keep it busy when it is back. And more and more seldom where
// nothing is held any more: all members have to read them, who may be late because of that, and
// by T′ it is free anyway. A session that holds something else beats, so that it is not.
func (s *shard) repeat(now clock.Instant) {
	for _, log := range s.channels {
		if now.Mono < log.releaseAt || log.releasing > 0 || !s.lease.Owes(log.index) {
			continue
		}
		log.repeats = min(log.repeats+1, maxRepeats)
		if s.holds.len() > 0 {
			log.repeats = 0
		}
		log.releaseAt = now.Mono.Add(clock.Resend(s.set.T) << log.repeats)
		log.append(now, s.lease.Unreleased(log.index, now)...)
	}
}

// role is the role that has this number on a partition: j = p + M·u.
func (s *shard) role(local int32) int { return s.index + len(s.shards)*int(local) }

// local is where a role lives.
func (k *common) local(role int) (*shard, int32) {
	return k.shards[role%len(k.shards)], int32(role / len(k.shards))
}

// localRoles is how many of the first R roles live on a partition.
func (s *shard) localRoles() int32 {
	m := len(s.shards)
	return int32((max(0, s.desired.Roles-s.index) + m - 1) / m)
}

// units are the roles of these numbers on a partition.
func (s *shard) units(local []int32) []int {
	out := make([]int, len(local))
	for i, u := range local {
		out[i] = s.role(u)
	}
	return out
}
