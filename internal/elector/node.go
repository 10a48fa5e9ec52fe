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
	set        *Settings
	terms      *term.Table
	codec      lease.Codec
	parts      []*partition  // where roles are held: each a log, or one that stands for all small ones
	logs       []*partition  // the logs: the same as parts, unless they are small ones
	quorum     *quorum.Lease // what the small logs say together; nil: there are none
	desired    Desired
	members    members
	planner    planner
	timing     timing
	mover      mover
	counts     counts
	requests   requests
	announcer  announcer
	reports    reports
	attendance attendance
	eager      bool // nothing that was vacant has been passed over since this process was willing
	ready      Ready
}

// New returns a Node whose terms go into the given table.
func New(set *Settings, terms *term.Table) *Node {
	return &Node{set: set, terms: terms, members: newMembers(), timing: newTiming(set.T)}
}

// Open says how many logs there are, and what tells them from all others.
func (n *Node) Open(partitions int, id string, now clock.Instant) {
	n.codec = lease.Codec{Group: n.set.Group, Log: id}
	n.timing.opened = now.Mono
	h := fnv.New32a()
	_, _ = h.Write([]byte(n.set.Process))
	n.announcer.home = int(h.Sum32() % uint32(partitions))
	lines := partitions
	if n.set.Majority {
		lines = n.openSmall(partitions, now)
	} else {
		n.openLogs(partitions, now)
	}
	n.members.open(len(n.parts))
	n.terms.Open(lines)
}

// openLogs opens logs of which each is the only one that has its roles.
func (n *Node) openLogs(logs int, now clock.Instant) {
	rules := lease.Rules{Process: n.set.Process, Name: n.set.Name, T: n.set.T, Rho: n.set.Rho, History: History}
	for i := range logs {
		l := lease.New(rules)
		p := newPartition(i, l, n.set, now)
		p.lease = &oneLog{Lease: l, line: i, t: n.set.T, rho: n.set.Rho}
		n.parts = append(n.parts, p)
	}
	n.logs = n.parts
}

// openSmall opens small logs. One partition stands for all of them: it has what this process
// holds, gives up and means to claim. The logs have what is said in each, and how it comes
// back. It returns how many lines of V there are.
func (n *Node) openSmall(logs int, now clock.Instant) (lines int) {
	n.quorum = quorum.New(quorum.Rules{Logs: logs, Process: n.set.Process, Name: n.set.Name, T: n.set.T, Rho: n.set.Rho,
		History: History, Random: n.set.Random})
	all := newPartition(0, nil, n.set, now)
	all.lease = &majority{Lease: n.quorum}
	n.parts = []*partition{all}
	for i := range logs {
		n.logs = append(n.logs, newPartition(i, n.quorum.Log(i), n.set, now))
	}
	return n.quorum.Lines()
}

// logsOf are the logs in which it is said what becomes of the roles of a partition, and
// rolesOf is the partition of the roles of which a log tells.
func (n *Node) logsOf(p *partition) []*partition {
	if len(n.parts) < len(n.logs) {
		return n.logs
	}
	return n.logs[p.index : p.index+1]
}

func (n *Node) rolesOf(log *partition) *partition { return n.parts[log.index%len(n.parts)] }

// word and snapshot make records for one log.
func (n *Node) word(log *partition, k lease.Kind, now clock.Instant) lease.Record {
	return n.rolesOf(log).lease.Word(log.index, k, now)
}

func (n *Node) snapshot(log *partition, now clock.Instant) []lease.Record {
	return n.rolesOf(log).lease.Snapshot(log.index, now)
}

// appendAll hands over what the holdings of p have made.
func (n *Node) appendAll(p *partition, out []quorum.Out, now clock.Instant) {
	logs := n.logsOf(p)
	for _, o := range out {
		n.append(logs[o.Log], now, o.Record)
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
	if len(n.parts) == 0 {
		return
	}
	if d.Roles != was.Roles {
		for _, p := range n.parts {
			n.account(p, now)
			n.resize(p, now)
		}
	}
	if d.Roles > was.Roles { // and others may do the same
		n.reviewAll(now)
		n.announcer.at, n.timing.settles = now.Mono, 0
		n.timing.newcomer(now)
	}
	for _, p := range n.parts {
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
	log := n.logs[e.Partition]
	p := n.rolesOf(log)
	n.account(p, now)
	switch {
	case e.Reset:
		if log.begun && !log.announcements.back {
			n.counts.LogResets++
		}
		log.id = e.ID
		p.lease.Begin(log.index, e, now)
		again := log.announcements.back
		n.reset(log, e.End, now)
		log.announcements.back, log.announcements.again = e.Whole, again // a whole log has nothing farther back
	case e.ID != log.id:
		return
	case e.Alive:
		p.lease.Answered(log.index, now)
	default:
		n.counts.Records++
		n.counts.read = now
		log.nomination.heard()
		n.consume(log, e, r, bad, now)
	}
	n.step(p, now)
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
func (n *Node) consume(log *partition, e Entry, r *lease.Record, bad error, now clock.Instant) {
	p := n.rolesOf(log)
	ev := p.lease.Read(log.index, e.Offset, r, bad, now)
	if bad != nil {
		n.counts.skipped(bad)
		n.tell(n.reports.skipped(bad, e.Partition, e.Offset, n.set.Majority))
	}
	if ev.Rewound {
		n.rewound(log, ev, e, now)
		return
	}
	if ev.Own {
		n.back(log, r, ev.Stamp, now)
	}
	n.doubt(log, ev, e, r, now)
	n.follow(log, ev, r, now)
	if bad != nil {
		return
	}
	n.listen(log, e.Offset, r, now)
	if r.Kind == lease.Beat && !ev.Own {
		n.beat(p, now, n.set.Every/4) // in unison: one wake-up for all
	}
}

// rewound deals with a log that went back, or that contradicts what is known of it.
func (n *Node) rewound(log *partition, ev lease.Event, e Entry, now clock.Instant) {
	n.sayRewound(log, ev, e, now)
	n.ready.Verify = true
	n.reset(log, e.Offset+1, now)
}

func (n *Node) sayRewound(p *partition, ev lease.Event, e Entry, now clock.Instant) {
	n.counts.LogResets++
	n.tell(n.reports.rewound(ev, p.index, e.Offset, n.counts.LogResets, now))
}

// doubt deals with a record that shows that somebody's fold is another one. Everybody who
// knows the fold writes a Snapshot, so that all can compare; the lease says what follows.
func (n *Node) doubt(p *partition, ev lease.Event, e Entry, r *lease.Record, now clock.Instant) {
	if ev.Differs {
		n.counts.Contradictions++
		n.tell(n.reports.contradicted(p.index, e.Offset, r, n.nameOf(r.Session.Process), now))
		p.announcements.contradicts = r.Session.Process
	}
	if ev.Doubts {
		if !n.set.Observer {
			p.announcements.speak(n.turn(uint64(e.Offset), now), now)
		}
	}
	if ev.Confirmed {
		n.counts.Diverged = n.nameOf(p.announcements.contradicts)
		n.tell(n.reports.confirm(p.index, e.Offset, p.announcements.contradicts, n.counts.Diverged, now))
		n.review(n.rolesOf(p), now)
	}
}

// nameOf is the name of a member, empty if it has said none.
func (n *Node) nameOf(process string) string {
	if m := n.members.by[process]; m != nil {
		return m.name
	}
	return ""
}

// reset forgets what was concluded from a log that is read anew, and which ends at end now.
func (n *Node) reset(log *partition, end int64, now clock.Instant) {
	p := n.rolesOf(log)
	if !p.lease.Outlasts() {
		n.endAll(p, term.LogReset)
		p.forget()
	}
	log.reset(end, now)
	p.begun = true
	n.recount(p, now)
	n.planner.forget()
	n.ready.Changed = true
}

// Acked takes the log's word on a record: nil, or that it may or may not be there.
func (n *Node) Acked(a Append, err error, now clock.Instant) {
	p, r := n.logs[a.Partition], &a.Record
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
			n.unclaim(p, r, now)
			n.note(slog.LevelDebug, "claim not confirmed", "partition", p.index, "error", err)
		}
	case lease.Ping:
		if err != nil && (r.Request != nil || r.To == lease.Everyone) {
			n.requests.failed(p.index, r, err)
		}
	case lease.Beat, lease.Pong:
	}
	if err != nil {
		p.link.failed(r.Seq)
		n.counts.AppendFailed++
	} else {
		n.counts.Appended++
	}
	n.stepOf(p, now)
	n.conclude(now)
}

// unclaim takes note that a Claim may not be in the log.
func (n *Node) unclaim(log *partition, r *lease.Record, now clock.Instant) {
	p := n.rolesOf(log)
	p.lease.Failed(log.index, r, now)
	if !p.lease.Paces() {
		n.claimFailed(p, r.Roles, now)
	}
}

// Tick lets everything be decided that time alone, or a wish, gives reason to.
func (n *Node) Tick(now clock.Instant) {
	if len(n.parts) == 0 {
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
	n.sweep(now)
	if n.timing.farewells > 0 && now.Mono.Sub(n.timing.parted) >= closeTail {
		n.ready.Changed = true // StepDown waits no longer
	}
	n.rebalance(now)
	for _, p := range n.parts {
		n.stepOf(p, now)
	}
	n.announce(now)
	n.requests.pursue(func(role int) (int64, lease.Grantee) {
		p, u := n.local(role)
		return n.standing(p, u, now)
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
	for _, p := range n.logs {
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
func (n *Node) sweep(now clock.Instant) {
	for _, p := range n.parts {
		if now.Mono < p.sweepAt {
			continue
		}
		p.sweepAt = now.Mono.Add(max(n.set.T, sweepEvery))
		under, _ := p.lease.Claiming()
		if !p.begun || under > 0 || len(p.claims.vacant) > 0 {
			continue
		}
		if len(p.claims.silent) > 0 || len(p.lease.Free(n.localRoles(p), now)) > 0 {
			n.review(p, now)
		}
	}
}

// sweepEvery is how often all vacant roles are looked at, at most.
const sweepEvery = 5 * time.Second

// stepOf lets those decide whom a log concerns.
func (n *Node) stepOf(log *partition, now clock.Instant) { n.step(n.rolesOf(log), now) }

// step lets one partition decide. The order matters: what is over ends before anything
// else is decided, and what is given up is given up before anything is claimed.
func (n *Node) step(p *partition, now clock.Instant) {
	if !p.begun {
		p.dueAt = clock.Never
		return
	}
	if n.timing.settling && now.Mono >= n.timing.settleAt {
		n.timing.settling = false
		n.reviewAll(now) // by now it is known who else is there
	}
	logs := n.logsOf(p)
	for _, log := range logs {
		if log.begun {
			n.catchUp(log, now)
		}
	}
	n.lapse(p, now)
	n.giveUp(p, now)
	n.advance(p, now)
	n.repeat(p, now)
	n.beat(p, now, 0)
	n.silence(p, now)
	n.claim(p, now)
	n.sync(p, now)
	for _, log := range logs {
		if log.begun {
			n.greet(log, now)
			n.lookBack(log, now)
			n.answer(log, now)
		}
	}
	p.dueAt = n.due(p, now)
}

// lapse ends what leads nothing any more, by the clock or because the application was told
// so.
func (n *Node) lapse(p *partition, now clock.Instant) {
	if p.over {
		p.over = false
		n.dropDelivered(p, now)
	}
	below := int32(0)
	if n.willing(p, now) {
		below = n.localRoles(p)
	}
	out, lapsed := p.lease.Tick(below, n.timing.roundTrip(), now)
	if lapsed {
		n.endAll(p, n.lapsed(now))
	}
	n.sync(p, now)
	n.appendAll(p, out, now)
	if lapsed {
		p.released(now, n.set.T)
		n.review(p, now) // what the former session had claimed is nobody's business any more
	}
}

// lapsed tells why terms have lapsed at time now.
func (n *Node) lapsed(now clock.Instant) term.Reason {
	if !n.set.Alive(now) {
		return term.NotPulsed
	}
	return term.Lapsed
}

// dropDelivered gives up the roles that the application was told are over: they must
// not be led again, whatever the clocks say now.
func (n *Node) dropDelivered(p *partition, now clock.Instant) {
	var roles []int32
	for role := range p.holds {
		if n.terms.Over(n.role(p, role)) {
			roles = append(roles, role)
		}
	}
	n.giveBack(p, roles, nil, term.Lapsed, now)
}

// Delivered says that the application was told that terms have lapsed.
func (n *Node) Delivered() {
	for _, p := range n.parts {
		p.over = len(p.holds) > 0
	}
}

// beat appends a Beat to each log of p on which something is held, if one is due there or will
// be within early. A log from which nothing comes back is left alone: what is sent there piles
// up.
func (n *Node) beat(p *partition, now clock.Instant, early time.Duration) {
	for _, log := range n.logsOf(p) {
		if !p.lease.Keeps(log.index, len(p.holds) > 0) || now.Mono < log.beatAt.Add(-early) ||
			log.link.beating(now, n.set.T) || !n.set.Alive(now) {
			continue
		}
		if r, ok := p.lease.Beat(log.index, now); ok {
			n.append(log, now, r)
		}
	}
}

// repeat sends Releases again that have not come back: they may be lost. As with Beats
// and Claims, none is sent while another has not been answered: while the log stands
// still they would pile up, and keep it busy when it is back. And more and more seldom where
// nothing is held any more: all members have to read them, who may be late because of that, and
// by T′ it is free anyway. A session that holds something else beats, so that it is not.
func (n *Node) repeat(p *partition, now clock.Instant) {
	for _, log := range n.logsOf(p) {
		if now.Mono < log.releaseAt || log.releasing > 0 || !p.lease.Owes(log.index) {
			continue
		}
		log.repeats = min(log.repeats+1, maxRepeats)
		if len(p.holds) > 0 {
			log.repeats = 0
		}
		log.releaseAt = now.Mono.Add(clock.Resend(n.set.T) << log.repeats)
		n.append(log, now, p.lease.Unreleased(log.index, now)...)
	}
}

// role is the role that has this number on a partition: j = p + M·u.
func (n *Node) role(p *partition, local int32) int { return p.index + len(n.parts)*int(local) }

// local is where a role lives.
func (n *Node) local(role int) (*partition, int32) {
	return n.parts[role%len(n.parts)], int32(role / len(n.parts))
}

// localRoles is how many of the first R roles live on a partition.
func (n *Node) localRoles(p *partition) int32 {
	m := len(n.parts)
	return int32((max(0, n.desired.Roles-p.index) + m - 1) / m)
}

// units are the roles of these numbers on a partition.
func (n *Node) units(p *partition, local []int32) []int {
	out := make([]int, len(local))
	for i, u := range local {
		out[i] = n.role(p, u)
	}
	return out
}
