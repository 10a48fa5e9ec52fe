package member

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"testing"
	"time"
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

// changer is a Contender whose group must be told of new members.
type changer interface {
	Add(Voter) error
	Remove(Voter) error
}

// learner is a Contender that reports how it learnt who leads.
type learner interface{ Learnt() Learnt }

// checker is a Contender whose Leads asks more than one question.
type checker interface{ Check() bool }

type process struct {
	Contender
	sampler *sampler

	mu  sync.Mutex // one line after another
	out io.Writer
}

// Main runs a member. It ends after close, or when the parent ends.
func Main() error {
	in := bufio.NewScanner(os.Stdin)
	if !in.Scan() {
		return errors.New("no parameters")
	}
	var params Params
	if err := json.Unmarshal(in.Bytes(), &params); err != nil {
		return fmt.Errorf("reading parameters: %w", err)
	}
	open, ok := kinds[params.Kind]
	if !ok {
		return fmt.Errorf("unknown kind %q", params.Kind)
	}
	contender, err := open(params)
	if err != nil {
		return fmt.Errorf("starting to contend: %w", err)
	}
	p := &process{Contender: contender, out: os.Stdout}
	p.sampler = startSampler(contender, params.Every, p.tell)
	go func() {
		p.awaitReady()
		p.tell(Line{Say: SayReady})
	}()
	for in.Scan() {
		var c Command
		if err := json.Unmarshal(in.Bytes(), &c); err != nil {
			return fmt.Errorf("reading a command: %w", err)
		}
		answer := p.do(c)
		p.tell(answer)
		if c.Do == DoClose {
			return nil
		}
	}
	return errors.New("the parent is gone")
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
	case DoLearnt:
		if l, ok := p.Contender.(learner); ok {
			learnt := l.Learnt()
			answer.Learnt = &learnt
		}
	case DoReady:
		p.awaitReady()
	case DoAdd, DoRemove:
		g, ok := p.Contender.(changer)
		switch {
		case !ok:
			err = errors.New("the group needs not be told of members")
		case c.Do == DoAdd:
			err = g.Add(c.Voter)
		default:
			err = g.Remove(c.Voter)
		}
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
	ask := p.Leads
	if c, ok := p.Contender.(checker); ok {
		ask = c.Check
	}
	leads := ask()
	r := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			ask()
		}
	})
	return &Check{Leads: leads && ask(), Nanos: float64(r.T.Nanoseconds()) / float64(r.N),
		Allocs: r.AllocsPerOp(), Bytes: r.AllocedBytesPerOp()}
}

// tell writes one line in a single write, so that it survives SIGKILL.
func (p *process) tell(l Line) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.At == 0 {
		l.At = Now()
	}
	text, err := json.Marshal(l)
	if err == nil {
		_, err = p.out.Write(append(text, '\n'))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "telling:", err)
		os.Exit(1) // nobody listens
	}
}
