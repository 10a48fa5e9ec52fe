// Package member is one candidate of an election, in a process of its own: the program executed again. It contends as
// its parameters say, checks continuously whether it leads, and reports every change of the answer.
package member

import (
	"fmt"
	"testing"
	"time"

	"github.com/goneli/neli/lab/bench/measure"
	"github.com/goneli/neli/lab/child"
	"github.com/goneli/neli/lab/witness"
)

// A Contender takes part in an election.
type Contender interface {
	// Leads is the cheapest honest check of leadership that the system offers to its
	// users. It is called from several goroutines.
	Leads() bool
	// Ready reports whether it leads, or would take over if the leader failed now.
	Ready() bool
	// Close gives up leadership as the system's documentation recommends. Leads is false when it returns.
	Close() error
}

type process struct {
	Contender
	self    *child.Self
	sampler *sampler
}

// Main runs a member. It ends after close, or when the parent ends.
func Main() error {
	var params Params
	self, err := child.Begin(&params)
	if err != nil {
		return err
	}
	open, ok := kinds[params.Kind]
	if !ok {
		return fmt.Errorf("unknown kind %q", params.Kind)
	}
	contender, err := open(params)
	if err != nil {
		return fmt.Errorf("starting to contend: %w", err)
	}
	p := &process{Contender: contender, self: self}
	p.sampler = startSampler(contender, params.Every, p.tell)
	go func() {
		p.awaitReady()
		p.tell(Line{Say: SayReady})
	}()
	return child.Obey(self, func(c Command) (last bool, err error) {
		p.tell(p.do(c))
		return c.Do == DoClose, nil
	})
}

var kinds = map[string]func(Params) (Contender, error){
	Neli: newNeli, Etcd: newEtcd, Raft: newRaft,
}

func (p *process) do(c Command) Line {
	answer := Line{Say: SayDone}
	var err error
	switch c.Do {
	case DoClose:
		p.tell(Line{Say: SayClosing})
		err = p.Close()
		p.sampler.pass() // the last report must say that it does not lead
	case DoCheck:
		answer.Check = p.check()
	case DoSample:
		p.sampler.set(c.Every)
	case DoReady:
		p.awaitReady()
	default:
		err = fmt.Errorf("unknown command %q", c.Do)
	}
	if err != nil {
		answer.Error = err.Error()
	}
	return answer
}

func (p *process) awaitReady() {
	tick := time.NewTicker(50 * time.Millisecond) // sixty processes that ask more often would alone keep a small machine busy
	defer tick.Stop()
	for !p.Ready() {
		<-tick.C
	}
}

// check measures Leads with Go's own benchmark runner, for about a second.
func (p *process) check() *Check {
	leads := p.Leads()
	r := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			p.Leads()
		}
	})
	return &Check{Leads: leads && p.Leads(), Nanos: float64(r.T.Nanoseconds()) / float64(r.N),
		Allocs: r.AllocsPerOp(), Bytes: r.AllocedBytesPerOp()}
}

func (p *process) tell(l Line) {
	if l.At == 0 {
		l.At = witness.Now()
	}
	p.self.Tell(l)
}

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
	// Lease is T, a session's TTL, or raft's timeouts; 0 for the default.
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

// Voter is a raft node or a log host.
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
