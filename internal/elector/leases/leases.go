// Package leases says which process holds a shard's roles, and makes the records for their logs: the
// only log of these roles, or several small logs of which a majority decides. The Node has one path
// for both.
package leases

import (
	"errors"
	"iter"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/elector/observe"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/quorum"
)

// Leases are the leases of a shard's roles. Its methods take a log's number among all logs; an Out has the
// log's place among those of the shard.
type Leases interface {
	Fold
	Session
	Wire
}

// Fold says who holds what.
type Fold interface {
	observe.Fold
	// Free returns the roles below a number that nobody holds; on small logs, those that may be claimed.
	Free(below int32, now clock.Instant) []int32
}

// Session is this process's own terms, and how it gets them.
type Session interface {
	// Read handles an entry of a log. bad is the error of a record that could not be decoded.
	Read(log int, e Entry, r *lease.Record, bad error, now clock.Instant) Outcome
	// Failed notes that the append of a record was not confirmed.
	Failed(log int, r *lease.Record, now clock.Instant)
	// Changed returns, once, the roles that may have changed.
	Changed() []int32
	// Term returns this process's term of a role, lapsed or not.
	Term(local int32, now clock.Instant) Term
	Leads(local int32, now clock.Instant) (token int64, ok bool)
	// Lines yields the lines of V that terms follow, each with its V.
	Lines() iter.Seq2[int, clock.Instant]
	// Forget ends the leadership of roles. Their Releases are made afterwards.
	Forget(roles []int32)
	// Owing reports whether a Release has not come back yet; small logs out of reach do not count.
	Owing(now clock.Instant) bool

	// Tick handles the passing of time. Roles below a number are wanted; a record takes trip to come back.
	Tick(below int32, trip time.Duration, now clock.Instant) Ticked
	// Due is when Tick has something to do.
	Due(now clock.Instant) clock.Mono
	// Contest makes Claims of those roles that may be claimed.
	Contest(roles []int32, now clock.Instant) []quorum.Out
}

// Wire makes the records for a log. Unreleased repeats Releases that have not come back.
type Wire interface {
	Word(log int, k lease.Kind, now clock.Instant) lease.Record
	Snapshot(log int, now clock.Instant) []lease.Record
	Beat(log int, now clock.Instant) (lease.Record, bool)
	ReleaseOn(log int, roles []int32, now clock.Instant) []lease.Record
	Unreleased(log int, now clock.Instant) []lease.Record
}

// Outcome is what an entry did.
type Outcome struct {
	lease.Event
	Void  bool // the state of all roles is void: terms have ended, the log went back, or everything became known
	Spent bool // no further term can begin, since ballots are used up
}

// Term is this process's term of a role.
type Term struct {
	Led    bool
	Token  int64
	Line   int  // the line of V in the term table that the term follows
	Vacant bool // Free would return the role
}

// Ticked is what the passing of time has done.
type Ticked struct {
	Out    []quorum.Out
	Lapsed bool // all terms have lapsed
	// Reading is how long others may take to read the Claims of all wanted roles, beyond round
	// trips. It is 0 on one log: a process that claims before it has read another's Claim loses
	// without harm. On small logs each may win on some, and has to give all of that back.
	Reading time.Duration
}

// Traits are the differences that depend only on the kind of the logs.
type Traits struct {
	// Offsets: a term's token is the offset of its Claim in the only log, so all know it. Otherwise
	// only the holder knows its token.
	Offsets bool
	// Together: all sessions of a process count as one, with the number 1. Otherwise each lapses by
	// itself, and Tick ends this process's own one when it has lapsed.
	Together bool
	// Reminds: Changed repeats vacant roles, and returns roles whose holder's lease is over by the
	// clock or whose Claim failed.
	Reminds bool
	// OneClaim: no Claim is made while another one is in flight. Otherwise Claims are delayed and
	// given up for each log separately, if it answers slowly or not at all.
	OneClaim bool
}

// As returns the session under which Holders lists the sender of a record.
func (t Traits) As(id lease.Session) lease.Session {
	if t.Together {
		id.N = 1
	}
	return id
}

// Tenure identifies one uninterrupted time of holding a role.
func (t Traits) Tenure(g lease.Grantee) int64 {
	if t.Offsets {
		return g.Token
	}
	return quorum.Tenure(g)
}

// Ours reports whether a process holds a role in its term with a token. On several logs a role that
// is being given up has no token; it is the process's own until enough logs have released it.
func (t Traits) Ours(g lease.Grantee, process string, token int64) bool {
	if t.Offsets {
		return g.Token == token
	}
	return g.Session.Process == process
}

// Earlier reports whether a record's sender had perhaps not read a term's Claim, whose offset in the log home
// is token: the record is in another log, or its sender had read less. It is false without Offsets.
func (t Traits) Earlier(log, home int, read, token int64) bool {
	return t.Offsets && (log != home || read < token)
}

// Entry is a record, or a Reset: reading begins, or begins again, at Offset, and everything known
// of that log may be out of date. The records before End were in the log already, and nobody knows
// for how long.
type Entry struct {
	Partition int
	Offset    int64
	Value     []byte
	Reset     bool
	End       int64 // of a Reset
	Whole     bool  // of a Reset: Offset is 0, and no record was ever deleted before it

	// Origin says that all records of the log up to this one were read, or will be after a Reset, and
	// that the log had no earlier incarnation when they were appended.
	Origin bool
	Why    string // why not Origin; it may be empty

	// Of small logs only.
	ID    string // of the incarnation
	Alive bool   // no record: the log only shows that it can be reached
	Top   int64  // of a Reset: the largest ballot that the log was given, 0 if it does not report it
}

// Decode decodes the record. If it is of a newer version and in a small log, the ballot is returned with the error.
func (e Entry) Decode(c lease.Codec) (*lease.Record, error) {
	r, err := c.Decode(e.Value)
	if errors.Is(err, lease.ErrNewer) && e.ID != "" {
		r = &lease.Record{Ballot: c.Ballot(e.Value)}
	}
	return r, err
}
