package history

import (
	"time"

	"github.com/goneli/neli/testkit/witness"
)

// Ail is a time for which a member's health check did not say that all is well.
type Ail struct {
	witness.Span
	Hangs bool // it did not return; or else it failed
}

// Kinds of an Order.
const (
	Transfer = "transfer"
	StepDown = "step down"
)

// What orders came to, besides texts of errors that are not to be expected.
const (
	Done           = "done" // no error
	NotLeader      = "not the leader"
	NoMember       = "no such member"
	NoAnswer       = "no answer"
	NotTransferred = "another was first"
	GaveUp         = "gave up waiting"
	Closed         = "closed"
	Unheard        = "" // nothing was heard of it again
)

// Order is what a member was told to do with its leadership.
type Order struct {
	Member   string
	Kind     string
	Role     int
	To       string        // of a transfer: the name of the member
	Token    int64         // of a transfer: what the role was led under just before
	Invoked  time.Duration // when it was called
	Returned time.Duration // witness.Never if Unheard
	Outcome  string
}

// Claim is a record of the election's log by which a member claimed a role. If it is
// a valid one its offset is the token.
type Claim struct {
	Member string
	Role   int
	Offset int64
	At     time.Duration // when it was handed to the producer, by its own word
}

// ElectionLog is what the election's topic holds at the end.
type ElectionLog struct {
	Claims []Claim
	From   []int64 // by role: the first offset that is still there
}
