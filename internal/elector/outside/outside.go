// Package outside is what an elector is told by its application, and what it needs of the logs.
package outside

import (
	"context"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/leases"
	"github.com/goneli/neli/internal/elector/prepare"
	"github.com/goneli/neli/internal/elector/roster"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/placement"
	"github.com/goneli/neli/internal/term"
)

// Settings configure a Node for its whole life. Times and randomness are passed in.
type Settings struct {
	Process           string                                    // random id of this process
	Name              string                                    // for people
	Group             string                                    // records of other groups are skipped
	T                 time.Duration                             // the lease
	Rho               float64                                   // ρ
	HeartbeatInterval time.Duration                             // between beats
	DrainTimeout      time.Duration                             // how long the application may take to finish
	SuccessorWait     time.Duration                             // how long a holder waits for its successor's answer
	RejoinWait        time.Duration                             // how long a nominator may take to tell a woken process that its session is lost
	Absence           time.Duration                             // how long a process must at least stay away before its nominator nominates others
	Nominated         bool                                      // a Nominator says which processes may claim; else any may
	Prepares          *lease.Prepares                           // how it prepares roles that others hand to it; nil: it takes them unprepared
	Prepare           func(ctx context.Context, role int) error // prepares a role, if Prepares is set
	PrepareEnds       func(prepare.Why) error                   // what context.Cause says of the end of Prepare's context
	Advertise         string                                    // for other processes and people, like Zone
	Zone              string
	Observer          bool    // it claims and announces nothing
	Majority          bool    // the logs are small logs: a role's leader holds it on a majority of them
	Lists             [][]int // the lists of small logs, as in quorum.Rules
	TokenBase         int64   // added to the tokens that the application gets
	MaxRoles          int     // how many roles this process wants to lead at most; 0: no limit
	Preference        func(roster.Member, int) int
	Rebalance         bool
	Requests          bool                              // the application decides on requests; else all are refused
	Random            func(time.Duration) time.Duration // in [0, d)
	Alive             func(clock.Instant) bool          // the application does something; must not block
	Deaf              func(clock.Instant) bool          // the application is too busy to be told of a new term soon; must not block. nil: it never is
	Opened            func(context.Context, string)     // called once, on its own goroutine, with the id of the logs; returns when ctx is done. nil: nobody asks
}

// Desired is what the application wants.
type Desired struct {
	Roles    int         // R: roles at or beyond it are not wanted
	Priority int         // of this process among the members
	Contend  bool        // this process wants to lead
	Closing  bool        // leave in an orderly way
	Why      term.Reason // the reason if Contend is false
	Weights  *placement.Weights

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

// Able reports whether a process would lead a role that it won now.
func Able(set *Settings, d Desired, now clock.Instant) bool {
	return d.Willing(now) && set.Alive(now) && !set.IsDeaf(now)
}

// IsDeaf reports whether the application is too busy to be told of a new term soon: it has long been at work on
// a former event.
func (s *Settings) IsDeaf(now clock.Instant) bool { return s.Deaf != nil && s.Deaf(now) }

// Log is the outside world of an elector: M totally ordered logs that records are appended to and
// read back from in order. Each log is the only one with its roles, as Kafka's partitions are; or,
// with Settings.Majority, they are small logs that all have all roles. One goroutine uses Next;
// the other methods may be called concurrently.
type Log interface {
	// Open waits until the extents of all logs are known, and chooses where to begin to read.
	// It returns M and an id, which no other logs with the same name ever have. Small logs need
	// no wait and have no id. The first entries of Next are Resets to the chosen offsets.
	Open(ctx context.Context) (partitions int, id string, err error)
	// Next returns the next entry, or false after timeout. An error is final.
	Next(ctx context.Context, timeout time.Duration) (leases.Entry, bool, error)
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
	// so far do not show the holders. Next calls wanted right before it goes back. If that returns
	// false, it does not go back; otherwise it returns a Reset. Nothing happens if nothing lies
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
