package neli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goneli/neli/internal/ranges"
	"github.com/goneli/neli/internal/term"
)

// Event is what a Barrier receives: LeaderAcquired, LeaderRevoked or LeaderFenced, each by value.
//
// Each role's LeaderAcquired is followed by exactly one LeaderRevoked or LeaderFenced for that
// role, unless the process ends first.
type Event interface {
	fmt.Stringer
	kind() string // of the event, for people
	change() Change
}

// Barrier is a callback for changes of leadership. It runs on the goroutine that calls Pulse or Lead,
// on Background's own goroutine, or on Close's if none of these is in progress; never concurrently
// with itself or with the task of Background. It must not call Pulse, PulseCtx, Lead, Background,
// Close, Transfer, StepDown, Rebalance or Ask of the same Neli. It may call IsLeader, Token and the
// other methods that only look.
//
// While the barrier is at work, the application counts as alive, without a limit: the library cannot
// tell a barrier that loads for long from one that hangs. Config.Healthy can, and takes the roles away
// when it returns an error. At two thirds of MaxPulseInterval, and whenever that time has doubled, a
// warning is logged, and Stats.Barrier says how long it has lasted. No further event can be delivered
// meanwhile. So after HeartbeatTimeout (MaxPulseInterval if that is shorter) this process claims nothing
// and gives back roles of which the application was not told. A role to be given up is released by the Deadline.
type Barrier func(Event)

// Term is one uninterrupted leadership of roles that share a partition and a token. A partition
// may have several Terms, in one event or in several.
type Term struct {
	Partition int
	Roles     []int // ascending; in non-exclusive mode those below R (the former R if R now leaves the partition none)
	// Token is the fencing token: strictly increasing over the successive leaders
	// of a role. −1 in non-exclusive mode, which has none.
	Token int64
}

// Change is the part that all events have in common.
type Change struct {
	Terms  []Term // ascending by partition, then by token
	Reason Reason
}

// Roles returns the roles of the change, ascending.
func (c Change) Roles() []int {
	var rs []int
	for _, t := range c.Terms {
		rs = append(rs, t.Roles...)
	}
	slices.Sort(rs)
	return rs
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

// maxNamed limits how many terms of one change a log line or String lists.
const maxNamed = 8

// maxRanges limits how many ranges of roles a log line has.
const maxRanges = 20

// attrs returns the change as attributes of a log line. A change of one role has the role's
// number; a larger one has its roles as ranges and their number, and the partitions and tokens of
// its first terms.
func (c Change) attrs() []any {
	out := []any{"reason", c.Reason.String()}
	if roles := c.Roles(); len(roles) == 1 {
		out = append(out, "role", roles[0])
	} else {
		out = append(out, "roles", ranges.Of(roles, maxRanges), "count", len(roles))
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

// LeaderAcquired: this process now leads. IsLeader turns true when the barrier is called, not
// before. The application may initialise here what it needs to lead, however long that takes: it
// counts as alive and keeps its roles meanwhile. Pulse does not return until the barrier does.
type LeaderAcquired struct{ Change }

// LeaderRevoked: this process is to give up its leadership in an orderly way.
//
// Exclusive mode: finish the work in hand. The lease is renewed, and no successor is elected,
// until the barrier returns or Deadline has passed. The process's other roles are not affected, even
// if the barrier runs past Deadline. Deadline is DrainTimeout away, or as little as half of it if
// successors had time to prepare before (Config.Prepare). It has a monotonic reading, so
// time.Until is right even if the wall clock is set. Work that goes on beyond Deadline may overlap
// with the successor's; fencing tokens guard against that.
//
// Non-exclusive mode: leadership has ended in an orderly way. Reason says why: mostly the group had
// given the partition to another member. Deadline is zero, and blocking delays nobody.
type LeaderRevoked struct {
	Change
	Deadline time.Time
}

// LeaderFenced: leadership is over already, and another leader may be at work. Stop at once. Blocking delays nobody.
type LeaderFenced struct{ Change }

func (c Change) change() Change { return c }

func (LeaderAcquired) kind() string { return "leader acquired" }
func (LeaderRevoked) kind() string  { return "leader revoked" }
func (LeaderFenced) kind() string   { return "leader fenced" }

// String returns the event's kind, reason and terms, for people.
func (e LeaderAcquired) String() string { return e.describe(e.kind()) }

// String returns the event's kind, reason and terms, for people.
func (e LeaderRevoked) String() string { return e.describe(e.kind()) }

// String returns the event's kind, reason and terms, for people.
func (e LeaderFenced) String() string { return e.describe(e.kind()) }

// Reason says why leadership changed.
type Reason int

const (
	// elected is the only reason of LeaderAcquired.
	elected Reason = iota + 1
	// ReasonUnassigned: the group assigned the partition to another member.
	ReasonUnassigned
	// ReasonClosing: Close was called.
	ReasonClosing
	// ReasonRolesChanged: SetRoles reduced the number of roles.
	ReasonRolesChanged
	// ReasonResigned: Lead or Background has ended, and the application does not pulse any more.
	ReasonResigned
	// ReasonLapsed: no evidence arrived within HeartbeatTimeout. The process was cut off, starved
	// or suspended, or the broker was down.
	ReasonLapsed
	// ReasonNotPulsed: the lease lapsed because the application did not call Pulse for
	// MaxPulseInterval; or the barrier was at work on an earlier event for HeartbeatTimeout, and this
	// process gave back the role before the application was told of it.
	ReasonNotPulsed
	// ReasonSuperseded: this process has read a later claim by another process.
	ReasonSuperseded
	// ReasonOverdue: the application did not finish by the Deadline of LeaderRevoked, or did not pulse to receive it.
	ReasonOverdue
	// ReasonLogReset: this process lost its place in the log, and no longer knows its state
	// (Stats.LogResets has the causes).
	ReasonLogReset
	// ReasonUnhealthy: Config.Healthy returned an error or hangs.
	ReasonUnhealthy
	// ReasonSteppedDown: StepDown was called.
	ReasonSteppedDown
	// ReasonTransferred: Transfer was called.
	ReasonTransferred
	// ReasonRebalanced: another process is due this role by its share or by preference.
	ReasonRebalanced
	// ReasonFatal: this Neli has failed permanently; Pulse returns the error.
	ReasonFatal
)

// The constants equal those of package term, or this does not compile.
var _ = [1]struct{}{}[int(ReasonFatal)-int(term.Fatal)]

// String returns the reason as in log lines, metrics and JSON: "not_pulsed", "roles_changed".
func (r Reason) String() string { return term.Reason(r).String() }

// MarshalText returns String. It returns an error if r is none of the constants.
func (r Reason) MarshalText() ([]byte, error) { return term.Reason(r).MarshalText() }
