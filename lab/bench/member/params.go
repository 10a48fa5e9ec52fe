// Package member is one candidate of an election, in a process of its own: the program executed again. It contends as
// its parameters say, checks continuously whether it leads, and reports every change of the answer.
package member

import (
	"time"

	"github.com/goneli/neli/lab/bench/measure"
)

// Kinds of candidates.
const (
	Neli = "neli"
	Etcd = "etcd"
	Raft = "raft"
)

// Params is the first line of a member's standard input, as JSON.
type Params struct {
	Kind    string
	Name    string
	Group   string   // the topic and group, the key, …
	Servers []string // host:port
	// Lease is T, a session's TTL, a key's expiry, or raft's timeouts; 0 for the
	// default.
	Lease    time.Duration
	Client   string  // neli; "" for the default
	Node     *Node   // raft
	Hosts    []Voter // neli: log hosts, in place of Kafka
	Host     string  // neli: which of them is inside this member; "": none
	Sentinel string  // neli: the socket of the sentinel beside it; "": none

	Every time.Duration // between samples
}

// Node is what a raft node needs beside its timeouts.
type Node struct {
	Dir    string // of its log
	Addr   string
	Voters []Voter // of the first configuration
}

// Voter is another node, or the node itself.
type Voter struct{ ID, Addr string }

// Commands.
const (
	DoClose  = "close"  // give up in an orderly way, say so, and end
	DoCheck  = "check"  // measure the check of leadership
	DoSample = "sample" // change Every; 0 for never
	DoReady  = "ready"  // wait until ready
)

// Command is a line of a member's standard input after the first.
type Command struct {
	Do    string
	Every time.Duration `json:",omitempty"`
}

// Reports of a member. Every command is answered by a Done line, close by a Closing line as well.
const (
	SaySample  = "sample"
	SayReady   = "ready" // able to take over, or leading; said once
	SayClosing = "closing"
	SayDone    = "done"
)

// Line is a line of a member's standard output.
type Line struct {
	Say    string
	At     time.Duration
	Sample *measure.Sample `json:",omitempty"`
	Check  *Check          `json:",omitempty"`
	Error  string          `json:",omitempty"`
}

// Check is what asking once costs.
type Check struct {
	Leads  bool
	Nanos  float64
	Allocs int64
	Bytes  int64
}
