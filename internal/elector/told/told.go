// Package told has what a shard and its channels know of their process, and what they want the Node to do.
package told

import (
	"log/slog"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/outside"
	"github.com/goneli/neli/internal/elector/report"
	"github.com/goneli/neli/internal/elector/roster"
	"github.com/goneli/neli/internal/elector/vacancy"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/placement"
)

// Process is what a shard and its channels know of their process for as long as it lasts. They change nothing of it,
// but say in Out what they want.
type Process struct {
	Set     *outside.Settings
	Desired *outside.Desired // what the application wants at present
	Members Roll
	Home    int // the log in which it announces itself
	Out     *Out
}

// In is what a shard gets for a step besides the time. The Node makes it, and no shard keeps it.
type In struct {
	Plans  Plans
	Takes  time.Duration // a round trip
	NameAt clock.Mono    // no successors are named before then
}

// ClaimTurn is the time that a process of higher rank has for its Claim; reading is how long it may
// read others' Claims.
func (in In) ClaimTurn(reading time.Duration) time.Duration { return 2*in.Takes + reading }

// Roll says who is there.
type Roll interface {
	Size() int
	MayTake(process string) bool
	Takes(process string) bool
	Wanting(process string, role int) bool
	Prepares(process string) (lease.Prepares, bool)
	Standbys() []string
	WantedBy(partition int, at clock.Instant) bool
	HeardSince(process string, at clock.Instant) bool
	Turn(process string, key uint64, closing bool, t, roundTrip time.Duration, now clock.Instant) time.Duration
}

// Plans says who should lead what, of all the process's shards.
type Plans interface {
	// Plan returns the current plan and the index of this process in it.
	Plan(expected bool, now clock.Instant) (plan *placement.Plan, me int)
	// Assign returns, by role, which candidate should claim it.
	Assign(plan *placement.Plan, v roster.Vacant, now clock.Instant) []int32
	// Holders returns the holder of each role, or its successor, as the index of a candidate.
	Holders(plan *placement.Plan, now clock.Instant) []int32
	// Successors returns, by role, which member should get it from this process; empty: none.
	Successors(roles []int32, now clock.Instant) []string
	// Full reports whether the process has as many roles as it wants.
	Full() bool
	// Suspect takes a member for dead. The next plan leaves it out.
	Suspect(process string)
	// Revive takes a member for alive again. lapsed: its lease may have been over.
	Revive(process string, lapsed bool, now clock.Instant)
}

// Out is what a shard wants its Node to do, in this order, and what it reports.
type Out struct {
	Records []Append
	Notes   []report.Note
	Back    []int
	Startup vacancy.Startup // the wait of the process's first claims. The Node puts it here, and takes it back
	Greeted bool            // a Hello is among the records, in a log that works
	Passed  bool            // vacancies were passed over, since this process could not lead
	Parted  bool            // roles were released
	Heirs   time.Duration   // the longest Wait of their Releases
	Drained []time.Duration // how long the application took to finish, for each handover
}

// Reset empties o, but keeps its memory for the next step.
func (o *Out) Reset() {
	clear(o.Records)
	*o = Out{Records: o.Records[:0], Notes: o.Notes[:0], Back: o.Back[:0], Drained: o.Drained[:0]}
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

// FewHolders is up to how many holders answer a newcomer with a beat each. In a larger group a
// closing process waits before it names its successors.
const FewHolders = 8
