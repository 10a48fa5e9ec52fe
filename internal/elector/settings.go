package elector

import (
	"context"
	"log/slog"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/announce"
	"github.com/goneli/neli/internal/elector/balance"
	"github.com/goneli/neli/internal/elector/leases"
	"github.com/goneli/neli/internal/elector/link"
	"github.com/goneli/neli/internal/elector/observe"
	"github.com/goneli/neli/internal/elector/report"
	"github.com/goneli/neli/internal/elector/request"
	"github.com/goneli/neli/internal/elector/roster"
	"github.com/goneli/neli/internal/elector/stats"
	"github.com/goneli/neli/internal/elector/vacancy"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/placement"
	"github.com/goneli/neli/internal/term"
)

// Settings configure a Node for its whole life. Times and randomness are passed in.
type Settings struct {
	Process           string        // random id of this process
	Name              string        // for people
	Group             string        // records of other groups are skipped
	T                 time.Duration // the lease
	Rho               float64       // ρ
	HeartbeatInterval time.Duration // between beats
	DrainTimeout      time.Duration // how long the application may take to finish
	SuccessorWait     time.Duration // how long a holder waits for its successor's answer
	RejoinWait        time.Duration // how long a nominator may take to tell a woken process that its session is lost
	Absence           time.Duration // how long a process must at least stay away from a nominator that is to nominate others
	Nominated         bool          // a Nominator says which processes may claim; else any may
	Advertise         string        // for other processes and people, as Zone
	Zone              string
	Observer          bool  // it claims and announces nothing
	Majority          bool  // the logs are small logs: a role's leader holds it on a majority of them
	TokenBase         int64 // added to the tokens that the application gets
	MaxRoles          int   // that this process wants to lead; 0: no limit
	Preference        func(roster.Member, int) int
	Rebalance         bool
	Requests          bool                              // the application decides on requests; else all are refused
	Random            func(time.Duration) time.Duration // in [0, d)
	Alive             func(clock.Instant) bool          // the application does something; must not block
	Deaf              func(clock.Instant) bool          // the application cannot be told of a new term for long; must not block. nil: it can
	Opened            func(context.Context, string)     // called once, beside all else, with the id of the logs; returns when ctx is done. nil: nobody asks
}

// Desired is what the application wants.
type Desired struct {
	Roles    int         // R: roles at or beyond it are not wanted
	Priority int         // of this process among the members
	Contend  bool        // this process wants to lead
	Closing  bool        // leave in an orderly way
	Why      term.Reason // the reason if Contend is false

	Unhealthy bool       // Config.Healthy fails
	Away      clock.Mono // until then it has stepped down
}

// Willing reports whether this process would lead any role at time now.
func (d Desired) Willing(now clock.Instant) bool {
	return d.Contend && !d.Closing && !d.Unhealthy && now.Mono >= d.Away
}

// Reason returns why a role is not wanted at time now.
func (d Desired) Reason(role int, now clock.Instant) term.Reason {
	switch {
	case d.Closing:
		return term.Closing
	case !d.Contend:
		return d.Why
	case d.Unhealthy:
		return term.Unhealthy
	case now.Mono < d.Away:
		return term.SteppedDown
	case role >= d.Roles:
		return term.Roles
	}
	return term.Unassigned
}

// Log is the outside world of an elector: M totally ordered logs that records are appended to and
// read back from in order. Each log is the only one with its roles, as Kafka's partitions are; or,
// with Settings.Majority, they are small logs that all have all roles. One goroutine uses Next;
// the other methods may be called concurrently.
type Log interface {
	// Open waits until the extents of all logs are known, and chooses where to begin to read.
	// It returns M and an id, which no other logs with the same name ever have. The first
	// entries that Next returns are Resets to the chosen offsets.
	Open(ctx context.Context) (partitions int, id string, err error)
	// Next returns the next entry, or false after timeout. An error is final.
	Next(ctx context.Context, timeout time.Duration) (Entry, bool, error)
	// Append hands a record over without waiting. If it returns nil, report is called exactly
	// once, never from within Append; an error passed to report means that the record may or
	// may not be in the log. If it returns an error, the record was not handed over. Either
	// error is ErrDenied if this process may not append.
	Append(to Address, value []byte, report func(error)) error
	// Watch checks that the logs are still the same, until ctx is done. An error is final.
	Watch(ctx context.Context) error
	// Verify asks Watch to check soon.
	Verify()
	// Back requests that reading of a log begin again, farther back, because the records read
	// so far do not show the holders. Next calls wanted right before it goes back, and does not
	// if that returns false; otherwise it returns a Reset. Nothing happens if nothing lies
	// farther back, or if it has gone far enough already.
	Back(partition int, wanted func() bool)
	// Close ends reading and writing. All reports are made before it returns.
	Close()
}

// Address is where a record goes.
type Address struct {
	Partition int
	ID        string // small logs: the incarnation; no other one may take it
	Ballot    int64  // small logs: the record's, which they may remember
}

// Nominator decides on which partitions this process may claim roles.
type Nominator interface {
	// Run works until ctx is done, or returns a permanent error. It calls nominate with all
	// partitions for which this process is nominated, each time they change. lost means that
	// the nominations are not known any more: held roles may be kept, and none may be claimed.
	Run(ctx context.Context, nominate func(partitions []int, lost bool)) error
	// Join sets whether this process takes part. It is called under a lock, so it only notes that.
	Join(bool)
	// Close leaves permanently, after Run or instead of it.
	Close()
}

// Package neli and its logs use these types and errors of the packages below under this package's name.
type (
	Entry    = leases.Entry
	Member   = roster.Member
	Note     = report.Note
	Request  = request.Request
	Standing = observe.Standing
	Watcher  = observe.Watcher
	Stats    = stats.Stats
)

// NewWatcher returns a Watcher that was told nothing.
func NewWatcher() *Watcher { return observe.NewWatcher() }

// History is about the largest number of records between two Snapshots.
const History = announce.History

// Errors that package neli has public errors for, and that of a Log.
var (
	ErrNotLeader      = balance.ErrNotLeader
	ErrLeadsAlready   = balance.ErrLeadsAlready
	ErrNotTransferred = balance.ErrNotTransferred
	ErrNoMember       = roster.ErrNoMember
	ErrNoAnswer       = request.ErrNoAnswer
	ErrRefused        = request.ErrRefused
	ErrNotDone        = request.ErrNotDone
	ErrVacant         = request.ErrVacant
	ErrDenied         = request.ErrDenied
)

// Harmless returns text from another process in a form that people can safely view.
func Harmless(s string) string { return roster.Harmless(s) }

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

// reset empties o. What it has room for is used again.
func (o *Out) reset() {
	clear(o.records)
	*o = Out{records: o.records[:0], notes: o.notes[:0], back: o.back[:0], drained: o.drained[:0]}
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

// able reports whether a process would lead a role that it won now.
func able(set *Settings, d Desired, now clock.Instant) bool {
	return d.Willing(now) && set.Alive(now) && !set.deaf(now)
}

// deaf reports whether the application cannot be told of a new term for long: it is still at work on
// a former event.
func (s *Settings) deaf(now clock.Instant) bool { return s.Deaf != nil && s.Deaf(now) }

// fewHolders is how many holders may answer a newcomer with a beat each. In a larger group a
// closing process waits before it names its successors.
const fewHolders = 8

// lookEvery is the longest time between two Ticks. It limits how late a hung application is
// noticed.
const lookEvery = stats.Rest

// Append is a record to be appended.
type Append struct {
	Partition int
	ID        string // of the incarnation of a small log
	Record    lease.Record
}
