// Package told is what a shard and its channels are told of their process, and what they want it to do.
package told

import (
	"log/slog"
	"time"

	"github.com/goneli/neli/internal/byrole"
	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/link"
	"github.com/goneli/neli/internal/elector/offer"
	"github.com/goneli/neli/internal/elector/outside"
	"github.com/goneli/neli/internal/elector/report"
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
	Now     clock.Instant
	Set     *outside.Settings
	Desired outside.Desired
	Members Roll
	Crowd   Crowd
	Plans   Plans
	Offers  *offer.Offers // what is offered to members that prepare roles
	Warmth  Warmth
	Trip    link.RoundTrip
	Startup vacancy.Startup // the wait of the process's first claims
	Home    int             // the log in which the process announces itself
}

// Roll says who is there.
type Roll interface {
	Size() int
	Departed() int
	MayTake(process string) bool
	Takes(process string) bool
	Wanting(process string, role int) bool
	Prepares(process string) (lease.Prepares, bool)
	Standbys() []string
	WantedBy(partition int, at clock.Instant) bool
	HeardSince(process string, at clock.Instant) bool
	Turn(process string, key uint64, closing bool, t, roundTrip time.Duration, now clock.Instant) time.Duration
}

// Warmth says what this process has prepared.
type Warmth interface {
	// Prefer gives roles to members that stand by for them, instead of to others.
	Prefer(roles, to []int32, plan *placement.Plan) []int32
	// Sort sorts roles of a shard: those that this process has prepared, those for which another one stands by,
	// and others.
	Sort(n byrole.Numbering, roles []int32, holder func(local int32) (lease.Grantee, bool)) (ready, theirs, others []int32)
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
	// Revive takes it for alive again. lapsed: its lease may have been over.
	Revive(process string, lapsed bool, now clock.Instant)
}

func (in *In) Plan(expected bool) (plan *placement.Plan, me int) { return in.Plans.Plan(in, expected) }

// Turn is how long this process waits for another one to answer first.
func (in *In) Turn(key uint64) time.Duration {
	return in.Members.Turn(in.Set.Process, key, in.Desired.Closing, in.Set.T, in.Trip.Takes(), in.Now)
}

// Wait changes the wait of the first claims. The present step sees that at once, and the Node hears of it.
func (in *In) Wait(change func(*vacancy.Startup, clock.Instant)) {
	change(&in.Startup, in.Now)
	in.Waits = append(in.Waits, change)
}

// Able reports whether this process would lead a role that it won now.
func (in *In) Able() bool { return outside.Able(in.Set, in.Desired, in.Now) }

// Lapsed returns why terms have lapsed.
func (in *In) Lapsed() term.Reason {
	if !in.Set.Alive(in.Now) {
		return term.NotPulsed
	}
	return term.Lapsed
}

// NameAt is when successors are named. In a crowd, a closing process first waits (crowdedUntil)
// until it has read no goodbye for T/20. It waits for at most T/4, so that time is left for an
// answer; it leads meanwhile. If a whole crowd closes together, nobody is left to be named by then,
// although the members are busy and read the goodbyes late. Otherwise each of n members would ask
// all others and send each a Release: these n² records keep all readers busy, and a newcomer would
// find nothing else within its reach. A small group does not wait, nor does a process that nobody
// drives.
func (in *In) NameAt() clock.Mono {
	if !in.Desired.Closing || !in.Desired.Contend || in.Members.Size()+in.Members.Departed() <= FewHolders {
		return 0
	}
	quiet := max(2*in.Trip.Takes(), clock.Behind(in.Set.T))
	return in.Crowd.CrowdedUntil(min(clock.Stalled(in.Set.T), in.Set.SuccessorWait*3/4), quiet)
}

// Out is what a shard wants its Node to do, in this order, and what it reports.
type Out struct {
	Records []Append
	Notes   []report.Note
	Back    []int
	Greeted bool                                    // a Hello without a word is among the records, in a log that works
	Passed  bool                                    // vacancies were passed over, since this process could not lead
	Parted  bool                                    // roles were released
	Heirs   time.Duration                           // the longest time that successors have to claim them
	Drained []time.Duration                         // how long the application took to finish, for each handover
	Waits   []func(*vacancy.Startup, clock.Instant) // what changes the wait of the first claims
}

// Reset empties o. What it has room for is used again.
func (o *Out) Reset() {
	clear(o.Records)
	*o = Out{Records: o.Records[:0], Notes: o.Notes[:0], Back: o.Back[:0], Drained: o.Drained[:0], Waits: o.Waits[:0]}
}

func (o *Out) Append(a Append) { o.Records = append(o.Records, a) }

func (o *Out) Note(level slog.Level, text string, args ...any) {
	o.Notes = append(o.Notes, report.Note{Level: level, Text: text, Args: args})
}

func (o *Out) GoBack(log int) { o.Back = append(o.Back, log) }

func (o *Out) PassOver() { o.Passed = true }

func (o *Out) Greet() { o.Greeted = true }

func (o *Out) Part() { o.Parted = true }

func (o *Out) Inherit(d time.Duration) { o.Heirs = max(o.Heirs, d) }

func (o *Out) Finish(d time.Duration) {
	o.Drained = append(o.Drained, d)
}

// Append is a record to be appended.
type Append struct {
	Partition int
	ID        string // of the incarnation of a small log
	Record    lease.Record
}

// FewHolders is how many holders may answer a newcomer with a beat each. In a larger group a
// closing process waits before it names its successors.
const FewHolders = 8
