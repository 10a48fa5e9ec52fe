package member

import (
	"fmt"
	"testing"
	"time"

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
