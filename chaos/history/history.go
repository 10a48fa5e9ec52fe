// Package history is what a run leaves behind for the checks: who said that it
// led, what was done to the store, what happened to whom, all by one clock, the
// machine's CLOCK_MONOTONIC.
package history

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Now reads the machine's monotonic clock, the same one for all processes and the
// one that Go's time package reads.
func Now() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(fmt.Sprintf("reading the monotonic clock: %v", err))
	}
	return time.Duration(ts.Nano())
}

// Never is later than everything.
const Never = time.Duration(1<<63 - 1)

// Window is where a sample lies: between two readings of the clock.
type Window struct{ Before, After time.Duration }

// Span is a closed interval of the clock; empty if To < From.
type Span struct{ From, To time.Duration }

// Length is 0 for an empty span.
func (s Span) Length() time.Duration { return max(0, s.To-s.From) }

// Contains reports whether an instant lies within.
func (s Span) Contains(at time.Duration) bool { return s.From <= at && at <= s.To }

// Modes: every member has one Neli of each.
const (
	Exclusive = iota
	NonExclusive
	Modes
)

// ModeName names a mode in reports.
func ModeName(mode int) string { return [...]string{"exclusive", "non-exclusive"}[mode] }

// Answers of a sample that are no token.
const (
	No      = int64(-2) // does not lead
	NoToken = int64(-1) // leads, in non-exclusive mode
)

// Run is what a member saw of one role for as long as the answer stayed the same
// and sampling did not pause.
type Run struct {
	Mode, Role  int
	Answer      int64
	First, Last Window
	Samples     int64
	Gap         time.Duration // the longest time between two samples
}

// Proven is when the answer held for certain: a term is one uninterrupted time of
// leading, so between two true samples of the same term it was led throughout.
func (r Run) Proven() Span { return Span{r.First.After, r.Last.Before} }

// Life is what is known of one incarnation of a member.
type Life struct {
	Host   string // m1, m2, …
	Member string // m1.1, m1.2, …: its incarnations
	Born   time.Duration
	Died   time.Duration // Never if it lives
	Killed bool          // it did not end by itself
	Runs   []Run
	Stops  []Span // while it was suspended
	Ails   []Ail  // while its health check failed, or hung
}

// Kinds of an Op.
const (
	Write = "write"
	Read  = "read"
)

// Outcomes of an Op. One that was never heard of again is Unknown.
const (
	Accepted = "accepted" // a write that was taken; a read that was answered
	Rejected = "rejected" // a write whose token was too low
	NotSent  = "not sent" // without effect
	Unknown  = "unknown"
)

// Op is one operation on the store.
type Op struct {
	Member   string
	Kind     string
	Role     int
	Token    int64         // of the write, or that was read
	Value    int64         // unique among writes
	Checked  time.Duration // of a write: when leadership was checked
	Invoked  time.Duration
	Returned time.Duration // Never if Unknown
	Outcome  string
}

// Fault is something that was done, from its beginning to its repair.
type Fault struct {
	Step    int    // faults of one step belong together
	Kind    string // of the step
	Sort    string // of this fault: killed, stopped, cut off and so on
	Label   string
	Targets []string // hosts
	Span    Span
	Crash   bool // members died
	Cluster bool // brokers were not all well
	Order   bool // members were told to hand over: nothing kept them from anything
	Calm    bool // all was well when it began: groups were whole, roles led
}

// Record is everything that is judged.
type Record struct {
	Start, End time.Duration // of the time under chaos, healing included
	Roles      int
	Lives      []Life
	Ops        []Op
	Orders     []Order
	Log        ElectionLog
	Faults     []Fault
}
