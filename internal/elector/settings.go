package elector

import (
	"context"
	"errors"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/term"
)

// Settings are what a Node is told once: as many as the Config that they come from has for
// it. Times and randomness are given to it.
type Settings struct {
	Process    string        // random: this process among all
	Name       string        // for people
	Group      string        // records of others are skipped
	T          time.Duration // the lease
	Rho        float64       // ρ
	Every      time.Duration // between beats
	Drain      time.Duration // how long the application may take to finish
	AnswerWait time.Duration // how long a holder waits for the one that is to lead next
	RejoinWait time.Duration // how long a nominator may take to tell a woken process of its lost session
	Nominated  bool          // a Nominator says who may claim; else any process may
	Observer   bool          // claims and says nothing
	Majority   bool          // the logs are small ones, and a role is led by whoever holds it on most of them
	TokenBase  int64         // added to the tokens that the application is told
	Priority   int
	Preference func(Member, int) int
	Rebalance  bool
	Requests   bool                              // the application decides on requests; else all are refused
	Random     func(time.Duration) time.Duration // in [0, d)
	Alive      func(clock.Instant) bool          // the application does something; must not block
	Opened     func(context.Context, string)     // called once, beside all else, with the id of the logs; returns when ctx is done. nil: nobody asks
}

// Desired is what the application wants from now on.
type Desired struct {
	Roles   int         // R: roles at or beyond it are not wanted
	Contend bool        // somebody drives this process: it wants to lead
	Closing bool        // leave; finish in order
	Why     term.Reason // of Contend == false

	Unhealthy bool       // the application says that it should not lead
	Away      clock.Mono // until then it has stepped down
}

// Willing reports whether this process would lead anything at time now.
func (d Desired) Willing(now clock.Instant) bool {
	return d.Contend && !d.Closing && !d.Unhealthy && now.Mono >= d.Away
}

// Reason tells why a role is not wanted at time now.
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

// Log is what an elector needs of the outside world: M totally ordered logs, appended
// to and read back in order. Each is the only one that has its roles, as Kafka's partitions
// are; or, with Settings.Majority, they are small logs that all have all roles. Next is used by one
// goroutine; the others may be called concurrently.
type Log interface {
	// Open waits until every log says where it begins and ends, chooses where to read
	// from, and returns M and the id that tells these logs from all others that had or
	// will have their name. The first entries that Next returns are resets to these
	// places.
	Open(ctx context.Context) (partitions int, id string, err error)
	// Next returns the next entry, or false after timeout. An error is final.
	Next(ctx context.Context, timeout time.Duration) (Entry, bool, error)
	// Append hands over a record without waiting. After a nil error report is called
	// exactly once, never from within Append; an error given to it means that the
	// record may or may not be in the log. After a non-nil error the record was not
	// handed over. Either is an ErrDenied if this process may not append.
	Append(to Address, value []byte, report func(error)) error
	// Watch checks that the log is still the same one, until ctx is done or it is
	// not. An error is final.
	Watch(ctx context.Context) error
	// Verify asks Watch to check soon.
	Verify()
	// Back asks for reading of a log to begin again, farther back than it did: what was read
	// does not tell who holds anything. Next calls wanted right before it does so, and leaves
	// it if that says false; then it returns a reset. Nothing happens if there is nothing
	// farther back, or if it has been far enough.
	Back(partition int, wanted func() bool)
	// Close ends reading and writing; reports of what was on its way are made before
	// it returns.
	Close()
}

// ErrDenied is for a log that takes no records from this process.
var ErrDenied = errors.New("this process may not write")

// Address is where a record is to go.
type Address struct {
	Partition int
	ID        string // small logs: the incarnation; no other one may take it
	Ballot    int64  // small logs: the record's, which they may remember
}

// Entry is a record, or the news that reading begins, or begins again, at Offset:
// whatever was known of that log before may be out of date. The records before End were
// in the log already, for nobody knows how long.
type Entry struct {
	Partition int
	Offset    int64
	Value     []byte
	Reset     bool
	End       int64 // of a reset
	Whole     bool  // of a reset: Offset is 0, and nothing was ever deleted before it

	// Of small logs only.
	ID    string // of the incarnation that says so
	Alive bool   // it has nothing to say but that it can be reached
	Top   int64  // of a reset: the largest ballot that it was given, 0 if it does not say
}

// Nominator says which partitions this process may claim roles of.
type Nominator interface {
	// Run works until ctx is done, or returns the error that ended it for good. It
	// calls nominate with all partitions that this process is nominated for, each time
	// these change; lost instead means that nothing is known any more: what is held may
	// be kept, nothing new be claimed.
	Run(ctx context.Context, nominate func(partitions []int, lost bool)) error
	// Join says whether to take part.
	Join(bool)
	// Close leaves for good, after Run or instead of it.
	Close()
}
