package elector

import (
	"hash/fnv"
	"log/slog"
	"time"

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
	return &Node{common: common{set: set, terms: terms, members: newMembers(), timing: newTiming(set.T)}, attendance: attendance{least: set.Absence}}
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

// Acked handles the report on an append: nil if the log has the record, or an error if the log may
// or may not have it.
func (n *Node) Acked(a Append, err error, now clock.Instant) {
	p, r := n.channels[a.Partition], &a.Record
	former := a.ID != p.id // of an incarnation that has ended: it says nothing about the present one
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
			if !former {
				p.unclaim(r, now)
			}
			n.note(slog.LevelDebug, "claim not confirmed", "partition", p.index, "error", err)
		}
	case lease.Ping:
		if err != nil && (r.Request != nil || r.To == lease.Everyone) {
			n.requests.failed(p.index, r, err, now)
		}
	case lease.Beat, lease.Pong:
	}
	if err != nil && !former {
		p.link.failed(r.Seq)
	}
	if err != nil {
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
		s.vacancies.addUp(now)
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
	willing := n.able(now)
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

// Ready is what the caller of a Node has to do: first of all to append, without delay. The order
// in which records reach the log does not matter.
type Ready struct {
	Append    []Append
	Notes     []Note
	Outcomes  []Outcome
	Verify    bool          // check whether the log is still the same
	Back      []int         // logs to read again from farther back
	Join      bool          // take part in the nominator's group
	Changed   bool          // Holder, Watch, Members or Busy may answer differently
	Requested bool          // there is a request for the application
	Finished  bool          // closing is complete
	WakeIn    time.Duration // Tick is due after this time, if nothing happens before
}

// Append is a record to be appended.
type Append struct {
	Partition int
	ID        string // of the incarnation of a small log
	Record    lease.Record
}

// Note is a line for the log file, which the caller writes without a lock.
type Note struct {
	Level slog.Level
	Text  string
	Args  []any
}

// lookEvery is the longest time between two Ticks. It limits how late a hung application is
// noticed.
const lookEvery = time.Second

// Ready returns what there is to do, and begins a new list.
func (n *Node) Ready(now clock.Instant) Ready {
	n.correspond(now)
	r := n.ready
	n.ready = Ready{}
	r.Changed = n.changed(now)
	r.Join = n.joins(now)
	r.WakeIn = n.wakeIn(now)
	return r
}

func (k *common) note(level slog.Level, text string, args ...any) {
	k.ready.Notes = append(k.ready.Notes, Note{level, text, args})
}

func (k *common) tell(notes []Note) { k.ready.Notes = append(k.ready.Notes, notes...) }

// wakeIn returns the time until the next Tick is due.
func (n *Node) wakeIn(now clock.Instant) time.Duration {
	next := lookEvery
	if len(n.shards) == 0 {
		return next
	}
	next = min(next, n.mover.lookAt.Sub(now.Mono))
	if !n.set.Observer && !n.announcer.over() {
		next = min(next, n.announceDue(now).Sub(now.Mono))
	}
	next = min(next, n.requests.due().Sub(now.Mono))
	if n.desired.Away > now.Mono {
		next = min(next, n.desired.Away.Sub(now.Mono))
	}
	if by := n.succeedBy(); n.timing.freeAt != 0 && now.Mono < by {
		next = min(next, by.Sub(now.Mono))
	}
	for _, p := range n.shards {
		next = min(next, p.dueAt.Sub(now.Mono))
	}
	next = max(next, 100*time.Microsecond)
	n.timing.due = now.Mono.Add(next)
	return next
}
