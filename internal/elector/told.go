package elector

import (
	"log/slog"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/link"
	"github.com/goneli/neli/internal/elector/roster"
	"github.com/goneli/neli/internal/elector/vacancy"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/placement"
	"github.com/goneli/neli/internal/term"
)

// In is what a shard and its channels are told of their process, and of nothing else. The Node makes it for
// each step, and none of them keeps it.
type In struct {
	*Out
	now     clock.Instant
	set     *Settings
	desired Desired
	members Roll
	crowd   Crowd
	plans   Plans
	trip    link.RoundTrip
	startup *vacancy.Startup // the wait of the process's first claims
	home    int              // the log in which the process announces itself
}

// Roll says who is there.
type Roll interface {
	Size() int
	Departed() int
	MayTake(process string) bool
	Takes(process string) bool
	Wanting(process string, role int) bool
	WantedBy(partition int, at clock.Instant) bool
	HeardSince(process string, at clock.Instant) bool
	Turn(process string, key uint64, closing bool, t, roundTrip time.Duration, now clock.Instant) time.Duration
}

// Crowd says until when a closing process waits for others that close.
type Crowd interface {
	CrowdedUntil(patience, quiet time.Duration) clock.Mono
}

// Plans says who should lead what, of all the process's shards.
type Plans interface {
	// Plan returns the current plan and the index of this process in it.
	Plan(in *In, expected bool) (plan *placement.Plan, me int)
	// Assign returns, by role, which candidate should claim it.
	Assign(plan *placement.Plan, v roster.Vacant, in *In) []int32
	// Holders returns the holder of each role, as the index of a candidate.
	Holders(plan *placement.Plan, in *In) []int32
	// Full reports whether the process has as many roles as it wants.
	Full() bool
	// Suspect takes a member for dead. The next plan leaves it out.
	Suspect(process string)
}

func (in *In) plan(expected bool) (plan *placement.Plan, me int) { return in.plans.Plan(in, expected) }

// turn is how long this process waits for another one to answer first.
func (in *In) turn(key uint64) time.Duration {
	return in.members.Turn(in.set.Process, key, in.desired.Closing, in.set.T, in.trip.Takes(), in.now)
}

// able reports whether this process would lead a role that it won now.
func (in *In) able() bool { return able(in.set, in.desired, in.now) }

// lapsed returns why terms have lapsed.
func (in *In) lapsed() term.Reason {
	if !in.set.Alive(in.now) {
		return term.NotPulsed
	}
	return term.Lapsed
}

// nameAt is when successors are named. In a crowd, a closing process first waits (crowdedUntil)
// until it has read no goodbye for T/20. It waits for at most T/4, so that time is left for an
// answer; it leads meanwhile. If a whole crowd closes together, nobody is left to be named by then,
// although the members are busy and read the goodbyes late. Otherwise each of n members would ask
// all others and send each a Release: these n² records keep all readers busy, and a newcomer would
// find nothing else within its reach. A small group does not wait, nor does a process that nobody
// drives.
func (in *In) nameAt() clock.Mono {
	if !in.desired.Closing || !in.desired.Contend || in.members.Size()+in.members.Departed() <= fewHolders {
		return 0
	}
	quiet := max(2*in.trip.Takes(), clock.Behind(in.set.T))
	return in.crowd.CrowdedUntil(min(clock.Stalled(in.set.T), in.set.SuccessorWait*3/4), quiet)
}

// Out is what a shard wants its Node to do, in this order, and what it reports.
type Out struct {
	records []Append
	notes   []Note
	back    []int
	greeted bool            // a Hello without a word is among the records, in a log that works
	passed  bool            // vacancies were passed over, since this process could not lead
	parted  bool            // roles were released
	heirs   time.Duration   // the longest time that successors have to claim them
	drained []time.Duration // how long the application took to finish, for each handover
}

func (o *Out) append(a Append) { o.records = append(o.records, a) }

func (o *Out) note(level slog.Level, text string, args ...any) {
	o.notes = append(o.notes, Note{Level: level, Text: text, Args: args})
}

func (o *Out) goBack(log int)          { o.back = append(o.back, log) }
func (o *Out) passOver()               { o.passed = true }
func (o *Out) greet()                  { o.greeted = true }
func (o *Out) part()                   { o.parted = true }
func (o *Out) inherit(d time.Duration) { o.heirs = max(o.heirs, d) }
func (o *Out) finished(d time.Duration) {
	o.drained = append(o.drained, d)
}

// in returns what a shard is told now.
func (n *Node) in(now clock.Instant) *In {
	return &In{Out: &Out{}, now: now, set: n.set, desired: n.desired, members: &n.members, crowd: &n.announcer, plans: &n.planning,
		trip: n.trip, startup: &n.startup, home: n.announcer.HomeLog()}
}

// apply does what a shard wants.
func (n *Node) apply(o *Out, now clock.Instant) {
	for _, a := range o.records {
		r := &a.Record
		if (r.Kind == lease.Hello || r.Kind == lease.Pong) && r.Hello == nil {
			wants := n.wants(now)
			r.Hello = n.announcement(wants)
			if r.Kind == lease.Hello && o.greeted {
				n.announcer.Said(wants, n.members.Size(), now)
			}
		}
		if r.Kind == lease.Release || r.Kind == lease.Snapshot || r.Kind == lease.Hello && r.Hello.Leaving {
			n.closing.Sent()
		}
		n.ready.append(a)
	}
	n.ready.tell(o.notes)
	n.ready.goBack(o.back)
	n.eager = n.eager && !o.passed
	if o.parted {
		n.closing.Released(now)
		n.closing.Inherit(o.heirs)
	}
	for _, d := range o.drained {
		n.counts.Drains.Add(d, 1)
	}
}

// do lets a shard do something, and does what it wants.
func (n *Node) do(now clock.Instant, what func(in *In)) {
	in := n.in(now)
	what(in)
	n.apply(in.Out, now)
}
