package elector

import (
	"hash/fnv"
	"log/slog"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/announce"
	"github.com/goneli/neli/internal/elector/handover"
	"github.com/goneli/neli/internal/elector/leases"
	"github.com/goneli/neli/internal/elector/link"
	"github.com/goneli/neli/internal/elector/nominate"
	"github.com/goneli/neli/internal/elector/observe"
	"github.com/goneli/neli/internal/elector/report"
	"github.com/goneli/neli/internal/elector/request"
	"github.com/goneli/neli/internal/elector/roster"
	"github.com/goneli/neli/internal/elector/stats"
	"github.com/goneli/neli/internal/elector/vacancy"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/term"
)

// Node decides, for one process, what is appended to the logs and when. It is pure: its inputs are
// Open, Read, Acked, Nominate, Set and Tick, and after each the caller takes its output with
// Ready. It is not safe for concurrent use.
type Node struct {
	planning
	terms      *term.Table
	channels   channels
	observed   observe.Shards
	codec      lease.Codec
	trip       link.RoundTrip
	startup    vacancy.Startup
	closing    handover.Closing
	announcer  announce.Announcer
	requests   request.Requests
	attendance nominate.Attendance
	counts     stats.Counters
	reports    report.Reports
	shown      shown
	origins    leases.Origins
	timing     timing
	ready      Ready
	eager      bool // this process has passed over nothing vacant since it became willing
}

// New returns a Node that keeps its terms in the given table.
func New(set *Settings, terms *term.Table) *Node {
	return &Node{planning: planning{set: set, members: roster.NewMembers()}, terms: terms, trip: link.NewRoundTrip(set.T),
		startup: vacancy.NewStartup(set.T), attendance: nominate.NewAttendance(set.Absence)}
}

// Open tells the Node how many logs there are, and their common id.
func (n *Node) Open(partitions int, id string, now clock.Instant) {
	n.codec = lease.Codec{Group: n.set.Group, Log: id}
	n.timing.open(now)
	n.origins = make(leases.Origins, partitions)
	h := fnv.New32a()
	_, _ = h.Write([]byte(n.set.Process))
	n.announcer.SetHome(int(h.Sum32() % uint32(partitions)))
	var lines int
	n.shards, n.channels, lines = openShards(n.set, n.terms, &n.counts, partitions, now)
	for _, s := range n.shards {
		n.observed = append(n.observed, &s.Standings)
	}
	n.members.Open(len(n.shards))
	n.terms.Open(lines, len(n.shards))
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
		for _, s := range n.shards {
			s.vacancyStats.AddUp(now)
			s.vacancyStats.Follow(s.Count(d.Roles), now)
		}
	}
	if d.Roles > was.Roles { // and others may do the same
		n.reconsiderAllVacant(now)
		n.announcer.SayNow(now)
		n.startup.Again(now)
	}
	for _, s := range n.shards {
		s.wanted = false
	}
	if d.Roles != was.Roles || d.Priority != was.Priority {
		n.planner.Forget()
		n.announcer.Soon(n.members.Size(), now)
	}
	n.Tick(now)
}

// Acked handles the report on an append: nil if the log has the record, or an error if the log may
// or may not have it.
func (n *Node) Acked(a Append, err error, now clock.Instant) {
	c, s, r := n.channels[a.Partition], n.shards.of(a.Partition), &a.Record
	former := a.ID != c.id // of an incarnation that has ended: it says nothing about the present one
	switch r.Kind {
	case lease.Release:
		n.closing.Reported()
		c.releasing--
	case lease.Snapshot:
		n.closing.Reported()
	case lease.Hello:
		if r.Hello.Leaving {
			n.closing.Reported()
		}
	case lease.Claim:
		if err != nil {
			if !former {
				n.do(now, func(in *In) { s.unclaim(c, r, in) })
			}
			n.ready.note(slog.LevelDebug, "claim not confirmed", "partition", c.index, "error", err)
		}
	case lease.Ping:
		if err != nil && (r.Request != nil || r.To == lease.Everyone) {
			n.requests.Failed(c.index, r, err, now)
		}
	case lease.Beat, lease.Pong:
	}
	if err != nil && !former {
		c.link.Failed(r.Seq)
	}
	n.counts.Acked(err)
	n.step(s, now)
	n.conclude(now)
}

// unclaim handles a Claim that may not be in the log.
func (s *shard) unclaim(c *channel, r *lease.Record, in *In) {
	s.leases.Failed(c.index, r, in.now)
	if !s.traits.Reminds {
		c.pacing.Late(s.set.T, s.set.Random, in.now)
		s.vacate(r.Roles, in)
	}
}

// Tick decides everything that follows from time alone or from a call of Set.
func (n *Node) Tick(now clock.Instant) {
	if len(n.shards) == 0 {
		return
	}
	n.sayWaiting(now)
	n.members.Expire(now, n.planner.Forget)
	if n.timing.late(now) {
		n.announcer.PutOff(now.Mono.Add(n.set.RejoinWait))
	}
	if n.desired.Closing {
		n.announcer.Close(now)
	}
	willing := able(n.set, n.desired, now)
	if willing && !n.eager { // it had stepped down, or its application has come back to life
		n.reconsiderAllVacant(now)
	}
	n.eager = willing
	for _, s := range n.shards {
		s.vacancyStats.AddUp(now)
		if now.Mono >= s.recheckAt {
			n.planner.Free(n.set.T, now)
			n.do(now, s.recheckVacant)
		}
	}
	n.rebalance(now)
	for _, s := range n.shards {
		n.step(s, now)
	}
	n.announce(now)
	n.requests.Pursue(func(role int) (g lease.Grantee, held, known bool) {
		s, local := n.shards.local(role)
		token, g := s.Standing(local, now)
		return g, token >= 0, token != observe.UnknownToken
	}, n.route, now)
	n.correspond(now)
	n.verify(now)
	n.finish(now)
}

// step lets a shard decide. When the wait for others that start is over, all vacant roles are reconsidered
// first: by now the other members are known.
func (n *Node) step(s *shard, now clock.Instant) {
	if s.begun && n.startup.Over(now) {
		n.reconsiderAllVacant(now)
	}
	n.do(now, s.step)
}

func (n *Node) reconsiderAllVacant(now clock.Instant) {
	for _, s := range n.shards {
		n.do(now, s.reconsiderVacant)
	}
}

// Delivered notes that the application was told of the end of terms.
func (n *Node) Delivered(units []int) {
	for _, unit := range units {
		s, local := n.shards.local(unit)
		s.own.Delivered(local)
	}
}

// Ready is what the caller of a Node has to do: first of all to append, without delay. The order
// in which records reach the log does not matter.
type Ready struct {
	Append    []Append
	Notes     []Note
	Outcomes  []request.Outcome
	Verify    bool          // check whether the log is still the same
	Back      []int         // logs to read again from farther back
	Join      bool          // take part in the nominator's group
	Changed   bool          // Holder, Watch, Members or Busy may answer differently
	Requested bool          // there is a request for the application
	Finished  bool          // closing is complete
	WakeIn    time.Duration // Tick is due after this time, if nothing happens before
}

func (r *Ready) tell(notes []Note)                { r.Notes = append(r.Notes, notes...) }
func (r *Ready) ended(outcomes []request.Outcome) { r.Outcomes = append(r.Outcomes, outcomes...) }
func (r *Ready) note(level slog.Level, text string, args ...any) {
	r.tell([]Note{{Level: level, Text: text, Args: args}})
}
func (r *Ready) append(a Append)   { r.Append = append(r.Append, a) }
func (r *Ready) goBack(logs []int) { r.Back = append(r.Back, logs...) }
func (r *Ready) verify()           { r.Verify = true }

// Append is a record to be appended.
type Append struct {
	Partition int
	ID        string // of the incarnation of a small log
	Record    lease.Record
}

// lookEvery is the longest time between two Ticks. It limits how late a hung application is
// noticed.
const lookEvery = stats.Rest

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

// wakeIn returns the time until the next Tick is due.
func (n *Node) wakeIn(now clock.Instant) time.Duration {
	next := lookEvery
	if len(n.shards) == 0 {
		return next
	}
	next = min(next, n.mover.LooksAt().Sub(now.Mono))
	if !n.set.Observer && !n.announcer.Over() {
		next = min(next, n.announceDue(now).Sub(now.Mono))
	}
	next = min(next, n.requests.Due().Sub(now.Mono))
	if n.desired.Away > now.Mono {
		next = min(next, n.desired.Away.Sub(now.Mono))
	}
	next = min(next, n.closing.Succession(vacancy.HeadStart(2*n.trip.Takes()), now).Sub(now.Mono))
	for _, s := range n.shards {
		next = min(next, s.dueAt.Sub(now.Mono))
	}
	next = max(next, 100*time.Microsecond)
	n.timing.next(now.Mono.Add(next))
	return next
}
