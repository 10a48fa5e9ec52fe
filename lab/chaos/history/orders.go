package history

import (
	"time"

	"github.com/goneli/neli/lab/witness"
)

// Ail is a time for which a member's health check failed or hung.
type Ail struct {
	witness.Span
	Hangs bool // the check did not return; otherwise it failed
}

// Kinds of an Order.
const (
	Transfer = "transfer"
	StepDown = "step down"
)

// Results of orders. Other results are texts of unexpected errors.
const (
	Done           = "done" // no error
	NotLeader      = "not the leader"
	NoMember       = "no such member"
	NoAnswer       = "no answer"
	NotTransferred = "another was first"
	GaveUp         = "gave up waiting"
	Closed         = "closed"
	Unheard        = "" // no result was reported
)

// Order is a call of Transfer or StepDown that a member was told to make.
type Order struct {
	Member   string
	Kind     string
	Role     int
	To       string        // of a transfer: the name of the member
	Token    int64         // of a transfer: the role's token just before
	Invoked  time.Duration // when it was called
	Returned time.Duration // witness.Never if Unheard
	Outcome  string
}

// Claim is a record in the election's log by which a member claimed a role. If the claim is valid,
// its offset is the token.
type Claim struct {
	Member string
	Role   int
	Offset int64
	At     time.Duration // when it was handed to the producer, as the record says
}

// ElectionLog is the content of the election's topic at the end.
type ElectionLog struct {
	Claims []Claim
	From   []int64 // by role: the first offset that is still there
}
