package elector

import (
	"hash/fnv"
	"log/slog"
	"time"

	"github.com/goneli/neli/internal/byrole"
	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/announce"
	"github.com/goneli/neli/internal/elector/channel"
	"github.com/goneli/neli/internal/elector/handover"
	"github.com/goneli/neli/internal/elector/leases"
	"github.com/goneli/neli/internal/elector/link"
	"github.com/goneli/neli/internal/elector/nominate"
	"github.com/goneli/neli/internal/elector/observe"
	"github.com/goneli/neli/internal/elector/outside"
	"github.com/goneli/neli/internal/elector/pace"
	"github.com/goneli/neli/internal/elector/report"
	"github.com/goneli/neli/internal/elector/request"
	"github.com/goneli/neli/internal/elector/roster"
	"github.com/goneli/neli/internal/elector/stats"
	"github.com/goneli/neli/internal/elector/told"
	"github.com/goneli/neli/internal/elector/vacancy"
	"github.com/goneli/neli/internal/elector/warm"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/quorum"
	"github.com/goneli/neli/internal/term"
)

// Node decides, for one process, what is appended to the logs and when. It is pure: its inputs are
// Open, Read, Acked, Nominate, Set, Tick and calls, and the caller takes its output with Ready. It is
// not safe for concurrent use.
type Node struct {
	planning
	terms      *term.Table
	channels   channel.Channels
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
	timing     pace.Timing
	ready      Ready
	eager      bool     // this process was willing at the last Tick, and has passed over no vacancy since
	out        told.Out // what shards and channels want in the present step; each step uses it again
}

// New returns a Node that keeps its terms in the given table.
func New(set *Settings, terms *term.Table) *Node {
	n := &Node{planning: planning{set: set, members: roster.NewMembers()}, terms: terms, trip: link.NewRoundTrip(set.T),
		startup: vacancy.NewStartup(set.T), attendance: nominate.NewAttendance(set.Absence)}
	n.warm = warm.NewExchange(set, &n.members, &n.planning, &n.trip)
	return n
}

// Open tells the Node how many logs there are, and their common id.
func (n *Node) Open(partitions int, id string, now clock.Instant) {
	n.codec = lease.Codec{Group: n.set.Group, Log: id}
	n.timing.Open(now)
	n.origins = make(leases.Origins, partitions)
	h := fnv.New32a()
	_, _ = h.Write([]byte(n.set.Process))
	n.announcer.SetHome(int(h.Sum32() % uint32(partitions)))
	var lines int
	p := told.Process{Set: n.set, Desired: &n.desired, Members: &n.members, Home: n.announcer.HomeLog(), Out: &n.out}
	n.shards, n.channels, lines = openShards(p, n.terms, &n.warm, &n.counts, partitions, now)
	for _, s := range n.shards {
		n.observed = append(n.observed, &s.Standings)
	}
	n.members.Open(len(n.shards))
	n.terms.Open(lines, len(n.shards))
}

// Codec returns the codec for this group's records in an incarnation of a small log or, with an
// empty id, in the logs that were opened. Call it only after Open.
func (n *Node) Codec(id string) lease.Codec {
	return n.codec.Of(id)
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
	if d.Roles > was.Roles { // other processes may want more roles now, too
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
	former := a.ID != c.ID() // of an incarnation that has ended: it says nothing about the present one
	switch r.Kind {
	case lease.Release:
		n.closing.Reported()
		c.Reported()
	case lease.Snapshot:
		n.closing.Reported()
	case lease.Hello:
		if r.Hello.Leaving {
			n.closing.Reported()
		}
	case lease.Claim:
		if err != nil {
			if !former {
				n.do(now, func(in told.In, now clock.Instant) { s.unclaim(c, r, in, now) })
			}
			n.ready.note(slog.LevelDebug, "claim not confirmed", "partition", c.Index, "error", err)
		}
	case lease.Ping:
		if err != nil && (r.Request != nil || r.To == lease.Everyone) {
			n.requests.Failed(c.Index, r, err, now)
		}
	case lease.Beat, lease.Pong:
	}
	if err != nil && !former {
		c.Link.Failed(r.Seq)
	}
	n.counts.Acked(err)
	n.step(s, now)
	n.conclude(now)
}

// Tick decides everything that follows from time alone or from a call of Set.
func (n *Node) Tick(now clock.Instant) {
	if len(n.shards) == 0 {
		return
	}
	n.sayWaiting(now)
	n.members.Expire(now, n.planner.Forget)
	if n.timing.Late(now) {
		n.announcer.PutOff(now.Mono.Add(n.set.RejoinWait))
	}
	if n.desired.Closing {
		n.announcer.Close(now)
	}
	willing := outside.Able(n.set, n.desired, now)
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

// Ready is what the caller of a Node has to do. The records are appended without delay, in any order.
type Ready struct {
	Append    []Append
	Notes     []Note
	Outcomes  []request.Outcome
	Verify    bool          // check whether the log is still the same
	Back      []int         // logs to read again from farther back
	Join      bool          // take part in the nominator's group
	Changed   bool          // Holder, Watch, Members or Busy may answer differently
	Requested bool          // there is a request for the application
	Prepare   warm.Do       // what is to be prepared, and what not any more
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

// Ready returns what there is to do, and begins a new list.
func (n *Node) Ready(now clock.Instant) Ready {
	n.correspond(now)
	r := n.ready
	n.ready = Ready{}
	r.Prepare = n.warm.Take(len(n.shards))
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
	next = min(next, n.warm.Due(warm.WillOf(n.set, n.desired, now)).Sub(now.Mono))
	if n.desired.Away > now.Mono {
		next = min(next, n.desired.Away.Sub(now.Mono))
	}
	next = min(next, n.closing.Succession(vacancy.HeadStart(2*n.trip.Takes()), now).Sub(now.Mono))
	for _, s := range n.shards {
		next = min(next, s.dueAt.Sub(now.Mono))
	}
	next = max(next, 100*time.Microsecond)
	n.timing.Next(now.Mono.Add(next))
	return next
}

// shown is what the answers of Members and Busy depend on, and how many roles there are.
type shown struct {
	shards, roles  int
	members        uint64
	mayClaim, busy bool
}

// changed reports whether Holder, Standings, Members or Busy may answer differently than at the
// last call. That follows from counters and states that are kept where these things change, so
// nobody who changes one of them can forget to announce it.
func (n *Node) changed(now clock.Instant) bool {
	is := shown{len(n.shards), n.desired.Roles, n.members.Changes(), n.mayClaim(now), n.Busy(now)}
	changed := n.observed.Changed(now) || is != n.shown
	n.shown = is
	return changed
}

// stats returns the counters and the state, with a headcount that was taken before.
func (n *Node) stats(c *observe.Headcount, now clock.Instant) Stats {
	for _, s := range n.shards {
		s.vacancyStats.AddUp(now)
	}
	accepted, refused := n.requests.Decided()
	calls, roles := n.mover.Shares()
	out := Stats{Counters: n.counts, Now: now, Terms: n.terms.Counts(), Led: n.terms.Led(now, n.desired.Roles), Members: n.members.Present(),
		Held: c.Of[observe.Held], Vacant: c.Of[observe.Vacant], Unknown: c.Of[observe.Unknown], RequestsAccepted: accepted, RequestsRefused: refused, Rebalances: calls, RolesRebalanced: roles}
	out.Prepares, out.Given = n.warm.Counts(now)
	for _, s := range n.shards {
		out.Add(&s.vacancyStats, n.set.HeartbeatInterval, s.main.Link.WithheldFor(now), s.own.Evidence(now))
	}
	if len(n.shards) == 0 {
		out.Unknown = n.desired.Roles
	}
	if !n.set.Observer {
		out.Members++
	}
	return out
}

// in returns what a shard gets for a step. In a crowd, a closing process first waits (CrowdedUntil)
// until it has read no goodbye for T/20 or two round trips. It waits for at most T/4, so that time is left for an
// answer; it leads meanwhile. If a whole crowd closes together, nobody is left to be named by then,
// although the members are busy and read the goodbyes late. Without the wait each of n members would
// ask all others and send each a Release: these n² records keep all readers busy, and a newcomer
// would find nothing else within its reach. A small group does not wait, nor does a process that
// nobody drives.
func (n *Node) in() told.In {
	in := told.In{Plans: &n.planning, Takes: n.trip.Takes()}
	if n.desired.Closing && n.desired.Contend && n.members.Size()+n.members.Departed() > told.FewHolders {
		quiet := max(2*in.Takes, clock.Behind(n.set.T))
		in.NameAt = n.announcer.CrowdedUntil(min(clock.Stalled(n.set.T), n.set.SuccessorWait*3/4), quiet)
	}
	return in
}

// apply does what a shard wants.
func (n *Node) apply(o *told.Out, now clock.Instant) {
	for _, a := range o.Records {
		r := &a.Record
		if (r.Kind == lease.Hello || r.Kind == lease.Pong) && r.Hello == nil {
			wants := n.wants(now)
			r.Hello = n.announcement(wants)
			if r.Kind == lease.Hello && o.Greeted {
				n.announcer.Said(wants, n.members.Size(), now)
			}
		}
		if r.Kind == lease.Release || r.Kind == lease.Snapshot || r.Kind == lease.Hello && r.Hello.Leaving {
			n.closing.Sent()
		}
		n.ready.append(a)
	}
	n.ready.tell(o.Notes)
	n.ready.goBack(o.Back)
	n.startup = o.Startup
	n.eager = n.eager && !o.Passed
	if o.Parted {
		n.closing.Released(now)
		n.closing.Inherit(o.Heirs)
	}
	for _, d := range o.Drained {
		n.counts.Drains.Add(d, 1)
	}
	o.Reset()
}

// do lets a shard act, and then does what the shard wants.
func (n *Node) do(now clock.Instant, what func(in told.In, now clock.Instant)) {
	n.out.Startup = n.startup
	what(n.in(), now)
	n.apply(&n.out, now)
}

// openShards makes the shards and channels of the logs. It also returns how many lines of V there are.
func openShards(p told.Process, terms *term.Table, x *warm.Exchange, counts *stats.Counters, logs int, now clock.Instant) (parts shards, all channel.Channels, lines int) {
	set := p.Set
	open := func(i, of int, l leases.Leases, short observe.Short, t leases.Traits) *shard {
		return newShard(p, terms, x, counts, byrole.Numbering{Index: i, Of: of}, l, short, t)
	}
	if set.Majority { // small logs, which form one shard together
		q := leases.NewSmall(quorum.Rules{Logs: logs, Lists: set.Lists, Process: set.Process, Name: set.Name, T: set.T, Rho: set.Rho,
			Random: set.Random})
		s := open(0, 1, q, nil, leases.SmallTraits)
		s.main = channel.NewOfAll(p) // q delays Claims
		for i := range logs {
			s.logs = append(s.logs, channel.NewSmall(p, i, q.Log(i), q, now))
		}
		return shards{s}, s.logs, q.Lease.Lines()
	}
	rules := lease.Rules{Process: set.Process, Name: set.Name, T: set.T, Rho: set.Rho}
	for i := range logs { // each log is the only one with its roles
		l := leases.NewOne(rules, i)
		s := open(i, logs, l, l, leases.OneTraits)
		s.main = channel.New(p, i, l.Lease, l, now)
		s.logs = channel.Channels{s.main}
		parts, all = append(parts, s), append(all, s.main)
	}
	return parts, all, logs
}
