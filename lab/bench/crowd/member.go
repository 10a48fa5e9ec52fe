package crowd

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/goneli/neli"
	"github.com/goneli/neli/lab/child"
	"github.com/goneli/neli/lab/clients"
	"github.com/goneli/neli/lab/witness"
)

// Command is the subcommand that makes this program a process with several members.
const Command = "crowd"

// Params are such a process's parameters.
type Params struct {
	Servers    string
	Client     string // "" for the default
	Group      string
	Name       string
	Members    int
	Partitions int
	Roles      int
	T          time.Duration
	Priority   int
	Lead       bool // drive members by Lead, which is idle while nothing happens; otherwise by Pulse, which needs no goroutine for each role
}

// Commands of such a process: report the members' memory and steps; close all members, and end.
const (
	askAll   = "ask"
	closeAll = "close"
)

// Line is what a process reports when something has changed.
type Line struct {
	At           time.Duration
	Started      bool     // all members have begun
	Member       int      `json:",omitempty"` // number in the process
	Gained, Lost []int    `json:",omitempty"` // roles
	Fenced       int      `json:",omitempty"` // terms that did not end in good order
	Heap         uint64   `json:",omitempty"` // bytes in use after a collection, of all members
	Watched      *Watched `json:",omitempty"` // of all members, since they began
}

// pulse is the pause between two pulses. Events are delivered at pulses, so measured times are late
// by at most this.
const pulse = 100 * time.Millisecond

// mouth reports lines.
type mouth struct{ *child.Self }

func (m mouth) say(l Line) {
	l.At = witness.Now()
	m.Tell(l)
}

// tell reports what an event changes.
func (m mouth) tell(i int, e neli.Event) {
	switch e := e.(type) {
	case neli.LeaderAcquired:
		m.say(Line{Member: i, Gained: e.Roles()})
	case neli.LeaderRevoked:
		m.say(Line{Member: i, Lost: e.Roles()})
	case neli.LeaderFenced:
		m.say(Line{Member: i, Lost: e.Roles(), Fenced: len(e.Terms)})
	}
}

// Main runs such a process, until it is told to close or its parent is gone.
func Main() error {
	var p Params
	self, err := child.Begin(&p)
	if err != nil {
		return err
	}
	out := mouth{self}
	members, checkers := make([]*neli.Neli, p.Members), make([]*checker, p.Members)
	for i := range members {
		checkers[i] = newChecker(p.Roles)
		if members[i], err = p.member(i, checkers[i], out); err != nil {
			return err
		}
	}
	out.say(Line{Started: true})
	closing, driven := make(chan struct{}), make(chan struct{})
	if p.Lead {
		for _, n := range members {
			go lead(n)
		}
	} else {
		go func() { defer close(driven); drive(members, checkers, closing) }()
	}
	return child.Obey(self, func(command string) (last bool, err error) {
		if command == closeAll {
			close(closing)
			<-driven // Close delivers the events from now on
			return true, p.close(members, checkers, out)
		}
		watched := watchedOf(members, checkers, p.T)
		out.say(Line{Heap: heap(), Watched: &watched})
		return false, nil
	})
}

// heap collects garbage twice. The first collection keeps what pools hold, such as the encoder's
// buffers of long lines, which do not belong to the members.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// close closes all members at once, and reports what was observed of them until then.
func (p *Params) close(members []*neli.Neli, checkers []*checker, out mouth) error {
	var all errgroup.Group
	for _, n := range members {
		all.Go(n.Close)
	}
	err := all.Wait()
	watched := watchedOf(members, checkers, p.T)
	out.say(Line{Watched: &watched})
	return err
}

// member returns a Neli with defaults for everything that the size does not determine.
func (p *Params) member(i int, check *checker, out mouth) (*neli.Neli, error) {
	provider, err := clients.Named(p.Client)
	if err != nil {
		return nil, err
	}
	return neli.New(neli.Config{
		Provider:         provider,
		KafkaConfig:      neli.KafkaConfigMap{"bootstrap.servers": p.Servers},
		LeaderGroupID:    p.Group,
		Name:             fmt.Sprintf("%s.%d", p.Name, i),
		Partitions:       p.Partitions,
		Roles:            p.Roles,
		Priority:         p.Priority,
		HeartbeatTimeout: p.T,
		Logger:           slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}, func(e neli.Event) {
		check.tell(e)
		out.tell(i, e)
	})
}

func lead(n *neli.Neli) {
	err := n.Lead(context.Background(), func(ctx context.Context, _ neli.Leadership) error {
		<-ctx.Done()
		return nil
	})
	fmt.Fprintln(os.Stderr, "Lead has ended:", err)
	os.Exit(1)
}

// drive pulses all members on one goroutine, until they are to be closed. Before each pulse, which
// delivers events, it calls the member's check.
func drive(members []*neli.Neli, checkers []*checker, closing <-chan struct{}) {
	tick := time.NewTicker(pulse)
	defer tick.Stop()
	for {
		select {
		case <-closing:
			return
		case <-tick.C:
		}
		for i, n := range members {
			checkers[i].look(n.IsLeaderOf)
			if _, err := n.Pulse(0); err != nil {
				fmt.Fprintln(os.Stderr, "Pulse:", err)
				os.Exit(1)
			}
		}
	}
}
