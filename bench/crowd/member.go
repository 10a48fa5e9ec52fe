package crowd

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/bench/clients"
	"github.com/goneli/neli/bench/member"
)

// Command is the subcommand that makes this program a process with several members.
const Command = "crowd"

// Params are what such a process is told, one line of JSON. Each further line asks
// what its members occupy.
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
	Lead       bool // by Lead, which asks nothing while nothing happens; else by Pulse, which costs no goroutine for each role
}

// Line is what it says when something has changed.
type Line struct {
	At           time.Duration
	Started      bool   // all members have begun
	Member       int    `json:",omitempty"` // number in the process
	Gained, Lost []int  `json:",omitempty"` // roles
	Fenced       int    `json:",omitempty"` // terms that ended otherwise than in good order
	Heap         uint64 `json:",omitempty"` // bytes in use after a collection, of all members
}

// pulse is the pause between two pulses, which is when events are delivered: what is
// measured is late by so much at most.
const pulse = 100 * time.Millisecond

// mouth says one line after another.
type mouth struct {
	mu  sync.Mutex
	out *json.Encoder
}

func (m *mouth) say(l Line) {
	l.At = member.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.out.Encode(l); err != nil {
		os.Exit(1) // nobody listens
	}
}

// tell says what an event changes.
func (m *mouth) tell(i int, e neli.Event) {
	switch e := e.(type) {
	case neli.LeaderAcquired:
		m.say(Line{Member: i, Gained: e.Roles()})
	case neli.LeaderRevoked:
		m.say(Line{Member: i, Lost: e.Roles()})
	case neli.LeaderFenced:
		m.say(Line{Member: i, Lost: e.Roles(), Fenced: len(e.Terms)})
	}
}

// Main is the life of a process, which ends with its parent's.
func Main() error {
	in := bufio.NewScanner(os.Stdin)
	var p Params
	if !in.Scan() {
		return errors.New("no parameters")
	}
	if err := json.Unmarshal(in.Bytes(), &p); err != nil {
		return fmt.Errorf("reading parameters: %w", err)
	}
	out := &mouth{out: json.NewEncoder(os.Stdout)}
	members := make([]*neli.Neli, p.Members)
	for i := range members {
		var err error
		if members[i], err = p.member(i, out); err != nil {
			return err
		}
	}
	out.say(Line{Started: true})
	if p.Lead {
		for _, n := range members {
			go lead(n)
		}
	} else {
		go drive(members)
	}
	for in.Scan() {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		out.say(Line{Heap: m.HeapAlloc})
	}
	return errors.Join(in.Err(), fmt.Errorf("the parent is gone: %w", io.EOF))
}

// member has everything as by default but for what the size says.
func (p *Params) member(i int, out *mouth) (*neli.Neli, error) {
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
	}, func(e neli.Event) { out.tell(i, e) })
}

func lead(n *neli.Neli) {
	err := n.Lead(context.Background(), func(ctx context.Context, _ neli.Leadership) error {
		<-ctx.Done()
		return nil
	})
	fmt.Fprintln(os.Stderr, "Lead has ended:", err)
	os.Exit(1)
}

// drive pulses for all members on one goroutine.
func drive(members []*neli.Neli) {
	tick := time.NewTicker(pulse)
	defer tick.Stop()
	for range tick.C {
		for _, n := range members {
			if _, err := n.Pulse(0); err != nil {
				fmt.Fprintln(os.Stderr, "Pulse:", err)
				os.Exit(1)
			}
		}
	}
}
