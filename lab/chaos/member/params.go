// Package member is a member process: the runner's binary, executed again. It has one exclusive Neli, whose leaders write to the
// store, and one non-exclusive Neli. It samples its own leadership each millisecond, and reports everything to the runner by a
// pipe and by shared memory, never by the network that is being disturbed.
package member

import (
	"fmt"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/lab/chaos/history"
)

// Env makes the binary a member, a child of the runner; SentinelEnv makes it a sentinel, and has its Params.
const (
	Env         = "NELI_CHAOS_MEMBER"
	SentinelEnv = "NELI_CHAOS_SENTINEL"
)

// Group is the name of the group of all members in a mode.
func Group(mode int) string { return "chaos-" + history.ModeName(mode) }

// Topic is the name of a topic of exclusive mode.
func Topic(number int) string { return fmt.Sprintf("%s-%d.neli", Group(history.Exclusive), number) }

// TokenBase keeps the tokens of a topic above those of former topics.
func TokenBase(topic int) int64 { return int64(topic) << 40 }

// Params is what a member reads first.
type Params struct {
	Name        string // m1.1, m1.2, …
	Number      int64  // unique among all member processes, so that values are, too
	Seed        uint64
	Bootstrap   string
	Peers       map[string]string // in place of brokers: the addresses of the members' log hosts, by host name
	DSN         string
	Stores      []string // the kind of store that a role's leader writes to, by role
	Unfenced    bool     // store.Config
	Roles       int
	Nomination  neli.Nomination
	Timeout     time.Duration // T of exclusive mode
	Sentinel    string        // the path of its socket; empty for none
	Prepare     bool          // prepare roles, and stand by
	Logs        int           // of exclusive mode
	Topic       int           // number of exclusive mode's topic, from 0
	Writers     int           // of each role that is led
	WriteEvery  time.Duration // of each writer
	ReadEvery   time.Duration
	PauseOften  float64       // the fraction of writes that are delayed between the check and the write
	PauseAtMost time.Duration // the longest delay
}

// Command is what a member is told, one JSON value a line.
type Command struct{ Do string }

// DoClose closes all Nelis, reports it, and ends.
const DoClose = "close"

// Reports of a member, one JSON value a line. The member writes each line by one call, and lines
// are so short that the kernel takes them whole: SIGKILL neither loses nor cuts a report.
const (
	SayEvent  = "event"  // a barrier was called
	SayInvoke = "invoke" // an operation begins
	SayReturn = "return" // it has ended
	SayClosed = "closed" // Close has returned, for all Nelis
	SayEnded  = "ended"  // Lead has returned before Close
)

// Line is one report.
type Line struct {
	At    time.Duration
	Say   string
	Mode  int         `json:",omitempty"`
	Text  string      `json:",omitempty"` // event: acquired and so on, and why; closed, ended: the error
	Terms []neli.Term `json:",omitempty"`
	ID    int64       `json:",omitempty"` // of an operation
	Op    *history.Op `json:",omitempty"`
}
