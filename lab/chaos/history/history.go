// Package history has the record of a run for the checks: which members said that they led, the operations on the store, and
// the faults. All times are by the machine's CLOCK_MONOTONIC.
package history

import (
	"time"

	"github.com/goneli/neli/lab/witness"
)

// Modes. Every member has one Neli of each mode, and samples name the mode by this number.
const (
	Exclusive = iota
	NonExclusive
	Modes
)

// ModeName names a mode in reports.
func ModeName(mode int) string { return [...]string{"exclusive", "non-exclusive"}[mode] }

// Life is what is known of one incarnation of a member.
type Life struct {
	Host   string // m1, m2, …
	Member string // m1.1, m1.2, …: one incarnation
	Born   time.Duration
	Died   time.Duration // witness.Never if it lives
	Killed bool          // it did not end by itself
	Runs   witness.Runs
	Stops  []witness.Span // the times for which it was suspended
}

// Kinds of an Op.
const (
	Write = "write"
	Read  = "read"
	Fence = "fence" // the claim of a term: from then on the store must refuse all earlier ones
)

// Outcomes of an Op. It is Unknown if no result was ever reported.
const (
	Accepted = "accepted" // a write or fence that was taken; a read that was answered
	Rejected = "rejected" // a write or fence whose token was too low
	NotSent  = "not sent" // without effect
	Unknown  = "unknown"
)

// Op is one operation on the store.
type Op struct {
	Member   string
	Kind     string
	Role     int
	Token    int64         // the token of the write, or the one that was read
	Value    int64         // no two writes have the same
	Checked  time.Duration // of a write: when leadership was checked
	Invoked  time.Duration
	Returned time.Duration // witness.Never if Unknown
	Outcome  string
}

// Fault is one disturbance, from its beginning to its repair.
type Fault struct {
	Step    int    // faults of one step belong together
	Kind    string // of the step
	Sort    string // of this fault: killed, stopped, cut off and so on
	Label   string
	Targets []string // hosts
	Span    witness.Span
	Crash   bool // members died
	Gone    bool // the member sends nothing more: the others must take over
	Pair    bool // two brokers do not reach each other, but both reach all others
	Cluster bool // some broker was disturbed, or all members were stopped
	Calm    bool // when it began, groups were whole and roles were led
}

// Record is everything that the oracle checks.
type Record struct {
	Start, End time.Duration // of the time under chaos, healing included
	Roles      int
	Lives      []Life
	Ops        []Op
	Log        ElectionLog
	Faults     []Fault
}

// Claim is a valid claim in the election's log. Its offset is the token.
type Claim struct {
	Member string
	Role   int
	Offset int64
}

// ElectionLog is the content of the election's topic at the end.
type ElectionLog struct {
	Claims []Claim
	From   []int64  // by role: the offset from which on all valid claims are known
	Faults []string // rules that the records show to be broken
	Proof  string   // what the records show, for people
}
