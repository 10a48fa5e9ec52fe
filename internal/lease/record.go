package lease

import "time"

// Kind is the kind of a record.
type Kind string

// The kinds of version 1. Only a Beat or Claim can be evidence.
const (
	Beat     Kind = "beat"     // the session is alive; only sent by a session that holds something
	Claim    Kind = "claim"    // the session wants roles
	Release  Kind = "release"  // the session gives roles back
	Snapshot Kind = "snapshot" // the sender's fold as of Read, or a part of it
	Hello    Kind = "hello"    // a process describes itself
	Ping     Kind = "ping"     // a process asks another one to answer
	Pong     Kind = "pong"     // the answer to a Ping
)

// Session is one incarnation of a process on one log: the random id of the process, and the
// number of the incarnation. A session that has ended never comes back.
type Session struct {
	Process string
	N       uint64
}

// Record is a record of any kind. The comment of each field names the kinds that have it.
type Record struct {
	Kind    Kind
	Session Session // the sender's. Release: the session that gives roles back, perhaps a former one of the sender
	Name    string  // of the sender, for people
	Read    int64   // the highest offset that the sender had consumed when it made the record; −1: none
	Seq     uint64  // the sender's number of the record

	Ballot int64 // on a majority of logs: the sender's, in a Snapshot the largest it knows; 0 on a single log

	T       time.Duration // Beat, Claim: the lease of the sender's session
	Longest time.Duration // the largest T of any holder by the sender's fold at Read; Unsaid without a fold

	Roles []int32 // Claim: ascending
	Fresh bool    // Claim: by a process that does not know the fold

	Ended  []Grant // Release: what is given back
	To     string  // Release: the process that is to claim next, if any; Ping, Pong: the addressee, or Everyone
	Pinned bool    // Release: the next holder is to keep the roles
	Moved  bool    // Release: they move for the sake of balance or preference

	// Release: others leave the roles to To for at least this long. It depends on how long To took to
	// answer a Ping. 0: not said, as in records of older releases.
	Wait time.Duration

	State *State        // Snapshot
	Hello *Announcement // Hello, Pong
	Ping  int64         // Pong: the offset of the Ping that it answers

	Request *Request // Ping: what the sender wants besides an answer; nil: nothing
	Answer  *Answer  // Pong: the answer to a Request

	Offer    *Offer    // Ping: what the addressee is to prepare; nil: not said
	Prepared *Prepared // Pong: how far the preparation is; nil: not said
}

// Everyone as To addresses a Ping to all members. It is no process's id, since ids are random
// text. A release that does not know it takes the Ping to be for another process.
const Everyone = "*"

// Unsaid is the Longest of a sender that does not know the fold.
const Unsaid = time.Duration(-1)

// Grant is a set of roles with one token, the offset of the Claim that won them.
type Grant struct {
	Token  int64
	Holder int32 // Snapshot: index into State.Holders
	Roles  []int32
}

// State is a fold at one offset, or a part of it.
type State struct {
	Part, Parts int    // Part counts from 0; all parts of one Snapshot have the same sender, Read and Hash
	Hash        uint64 // of the whole fold
	Newer       int64  // offset of the newest record of a newer version that no Claim has outlived; −1: none
	Holders     []Holder
	Grants      []Grant
}

// Holder is a session that holds something.
type Holder struct {
	Session Session
	Name    string
	T       time.Duration
	Last    int64 // offset of its newest evidence
}

// Announcement is a process's description of itself.
type Announcement struct {
	Priority int
	Roles    int           // R: it wants roles below this number
	Wants    []int         // partitions that it may claim; nil: all
	Leaving  bool          // it is about to close
	Period   time.Duration // the next Hello comes within this time

	Advertise string // the address that it is reached by, as CheckAdvertise allows; "": not said
	Zone      string // where it runs, as CheckZone allows; "": not said
	// Caps says that the process knows caps and respects those of others; older releases do not. MaxRoles
	// is its own cap; 0: none.
	Caps     bool
	MaxRoles int

	Prepares *Prepares // nil: it takes roles without preparing them
}

const (
	// MaxRoles is the largest number of roles of one log.
	MaxRoles = 1_000_000
	// MaxClaim is the largest number of roles that one Claim or one Grant may name, so that a
	// record stays below MaxRecord.
	MaxClaim = 10_000
	// MaxBallot bounds ballots, so that adding one, or a TokenBase, never overflows.
	MaxBallot = int64(1) << 61
	// MaxRecord is the largest size of a record, in bytes.
	MaxRecord = 64 << 10

	none = int64(-1)
)
