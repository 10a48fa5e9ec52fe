package neli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goneli/neli/internal/term"
)

// Event is what a Barrier is told: LeaderAcquired, LeaderRevoked or
// LeaderFenced, each a struct used by value.
//
// Each role's LeaderAcquired is followed by exactly one LeaderRevoked or LeaderFenced
// for it, unless the process ends first.
type Event interface {
	fmt.Stringer
	kind() string // of the event, for people
	change() Change
}

// Barrier is a callback for changes of leadership. It runs on the goroutine that
// calls Pulse (or on that of Background or Lead, or on Close's when none of these
// is under way), never concurrently with itself nor with the Background task. It
// must not call Pulse, Lead, Background or Close of the same Neli; IsLeader,
// Token and the like are fine.
type Barrier func(Event)

// Term is one uninterrupted leadership of roles that live on one partition and have
// one token. There may be several of one partition, in one event or in several.
type Term struct {
	Partition int
	Roles     []int // ascending; those below the number of roles at the time
	// Token is the fencing token: strictly increasing over the successive leaders
	// of a role. −1 in non-exclusive mode, which has none.
	Token int64
}

// Change is what all events carry.
type Change struct {
	Terms  []Term // ascending by partition, then by token
	Reason Reason
}

// Partitions returns the partitions concerned, each once, ascending.
func (c Change) Partitions() []int {
	ps := make([]int, len(c.Terms))
	for i, t := range c.Terms {
		ps[i] = t.Partition
	}
	return slices.Compact(ps)
}

// Roles returns the roles concerned, ascending.
func (c Change) Roles() []int {
	var rs []int
	for _, t := range c.Terms {
		rs = append(rs, t.Roles...)
	}
	slices.Sort(rs)
	return rs
}

// Token returns the fencing token of role's term, and whether role is among
// those concerned.
func (c Change) Token(role int) (int64, bool) {
	for _, t := range c.Terms {
		if slices.Contains(t.Roles, role) {
			return t.Token, true
		}
	}
	return noToken, false
}

func (c Change) describe(what string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s):", what, c.Reason)
	for i, t := range c.Terms {
		if i == maxNamed {
			fmt.Fprintf(&b, " and %d more terms", len(c.Terms)-i)
			break
		}
		fmt.Fprintf(&b, " partition %d", t.Partition)
		if t.Token != noToken {
			fmt.Fprintf(&b, " token %d", t.Token)
		}
	}
	return b.String()
}

// maxNamed is how many terms of one change are shown to people one by one.
const maxNamed = 8

// attrs is the change as a log line has it. Of one term and one role it has the numbers; of
// several how many there are, with the partitions and tokens of the first terms.
func (c Change) attrs() []any {
	out := []any{"reason", c.Reason.String()}
	roles := 0
	for _, t := range c.Terms {
		roles += len(t.Roles)
	}
	if roles == 1 {
		out = append(out, "role", c.Roles()[0])
	} else {
		out = append(out, "roles", roles)
	}
	if len(c.Terms) == 1 {
		if t := c.Terms[0]; t.Token != noToken {
			return append(out, "partition", t.Partition, "token", t.Token)
		}
		return append(out, "partition", c.Terms[0].Partition)
	}
	var partitions []int
	var tokens []int64
	for _, t := range c.Terms[:min(maxNamed, len(c.Terms))] {
		partitions, tokens = append(partitions, t.Partition), append(tokens, t.Token)
	}
	return append(out, "terms", len(c.Terms), "partitions", partitions, "tokens", tokens)
}

// LeaderAcquired: this process now leads. IsLeader turns true as the event is
// handed over, not before. The application may initialise here what it needs to
// lead; for as long as the barrier blocks, Pulse does not return.
type LeaderAcquired struct{ Change }

// LeaderRevoked: this process is to give up its leadership in an orderly way.
//
// Exclusive mode: finish the work in hand. The lease is kept alive, and no
// successor is elected, until the barrier returns, but no longer than Deadline,
// which has a monotonic reading: time.Until is right however the wall clock is set.
// Work that goes on beyond the Deadline is the application's breach; fencing
// tokens are for that.
//
// Non-exclusive mode: leadership ended after the group had given the partition
// to another member; Deadline is zero, and blocking holds nobody back.
type LeaderRevoked struct {
	Change
	Deadline time.Time
}

// LeaderFenced: leadership is over already, and another leader may be at work.
// Stop at once. Blocking holds nobody back.
type LeaderFenced struct{ Change }

func (c Change) change() Change { return c }

func (LeaderAcquired) kind() string { return "leader acquired" }
func (LeaderRevoked) kind() string  { return "leader revoked" }
func (LeaderFenced) kind() string   { return "leader fenced" }

func (e LeaderAcquired) String() string { return e.describe(e.kind()) }
func (e LeaderRevoked) String() string  { return e.describe(e.kind()) }
func (e LeaderFenced) String() string   { return e.describe(e.kind()) }

// Reason tells why leadership changed. Its String is for people.
type Reason int

const (
	// ReasonElected: the only reason of LeaderAcquired.
	ReasonElected Reason = iota + 1
	// ReasonUnassigned: the group assigned the partition to another member.
	ReasonUnassigned
	// ReasonClosing: Close was called.
	ReasonClosing
	// ReasonRoles: SetRoles made the number of roles smaller.
	ReasonRoles
	// ReasonResigned: Lead returned, and nothing pulses any more.
	ReasonResigned
	// ReasonLapsed: V grew older than T. No evidence arrived in time: the process
	// was cut off, starved or suspended, or the broker was down.
	ReasonLapsed
	// ReasonNotPulsed: as ReasonLapsed, because the application had not called
	// Pulse for MaxPulseInterval.
	ReasonNotPulsed
	// ReasonSuperseded: another process's later claim was read.
	ReasonSuperseded
	// ReasonOverdue: the orderly end was not finished, or not even noticed, by its
	// Deadline.
	ReasonOverdue
	// ReasonLogReset: the log was truncated, or its head was deleted before it was
	// read, so that what was known of it is void.
	ReasonLogReset
	// ReasonUnhealthy: Config.Healthy said so.
	ReasonUnhealthy
	// ReasonSteppedDown: StepDown was called.
	ReasonSteppedDown
	// ReasonTransferred: Transfer was called.
	ReasonTransferred
	// ReasonRebalanced: another process gets its share, or is preferred.
	ReasonRebalanced
	// ReasonFatal: this Neli has failed for good; Pulse returns the error.
	ReasonFatal
)

// The numbers are those of package term, or this does not compile.
var _ = [1]struct{}{}[int(ReasonFatal)-int(term.Fatal)]

// String returns the reason in words, as events and log lines have it.
func (r Reason) String() string { return term.Reason(r).String() }

// MarshalText returns the reason in snake_case, as metrics and JSON have it: "not_pulsed",
// "roles_changed". The error is not nil if it is none of the constants.
func (r Reason) MarshalText() ([]byte, error) { return term.Reason(r).MarshalText() }
