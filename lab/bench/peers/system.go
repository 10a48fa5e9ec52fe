// Package peers has the systems that are compared: their servers, and the parameters of their candidates.
package peers

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/goneli/neli/lab/bench/member"
	"github.com/goneli/neli/lab/child"
	"github.com/goneli/neli/lab/kafkatest"
	"github.com/goneli/neli/lab/nursery"
)

// Place has the directory and the processes of servers and members.
type Place struct {
	*nursery.Nursery
	Dir string // for data and logs
}

// Self returns a command that executes this program again.
func Self(args ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return exec.Command(self, args...), nil
}

// Child starts this program again with a subcommand.
func (p Place) Child(command, name string, params any, hear func([]byte) error) (*child.Process, error) {
	cmd, err := Self(command)
	if err != nil {
		return nil, err
	}
	return child.New(cmd, params, child.Options{Nursery: p.Nursery, Dir: p.Dir, Name: name, Hear: hear})
}

// serve starts a child, and waits for its first line, which says that it is ready.
func (p Place) serve(ctx context.Context, command, name string, params any) (*child.Process, error) {
	ready := make(chan struct{}, 1)
	process, err := p.Child(command, name, params, func([]byte) error {
		select {
		case ready <- struct{}{}:
		default:
		}
		return nil
	})
	if process == nil {
		return nil, err
	}
	if err == nil {
		select {
		case <-ready:
			return process, nil
		case <-process.Done():
			err = fmt.Errorf("it has ended; see %s.stderr", name)
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	process.Kill()
	return nil, fmt.Errorf("%s %s: %w", command, name, err)
}

// Servers are the running servers that candidates talk to.
type Servers interface {
	Pids() []int // none if the candidates are the servers
	Version() string
	Stop()
}

// A Bed is a choice of servers, on which several systems are measured in turn.
type Bed struct {
	Name    string // as tables show it
	Family  string
	Start   func(context.Context, Place) (Servers, error)
	Systems []System
}

// Kind is a kind of trial.
type Kind string

// Kinds of trials.
const (
	First   Kind = "first leader"
	Restart Kind = "restart" // all members close, and one (Inside: all) starts again
	Kill    Kind = "SIGKILL"
	Stop    Kind = "SIGSTOP"
	Hand    Kind = "Close"
)

// common are the trials of all systems.
var common = []Kind{Kill, Stop, First, Hand}

// A System is one way to elect a leader, with its settings.
type System struct {
	Family  string
	Bed     string
	Setting string
	Client  string        // of Kafka; "" for the library's default
	Lease   time.Duration // nominal; no other member leads for about this long after a crash
	Beat    time.Duration // faults are spread evenly over one beat
	Settle  time.Duration // how long a member's return may disturb the group
	Inside  bool          // the members are the servers: one alone is no majority, and a crash takes a server, too
	Few     bool          // its lease is so long that it is measured less often
	Idle    bool          // its cost without faults is measured, too
	Kinds   []Kind        // of trials

	Sentinel bool // beside the members of each group

	Members func(s Servers, group string) Group
}

// Name is unique.
func (s System) Name() string { return fmt.Sprintf("%s, %s, %s", s.Family, s.Bed, s.Setting) }

// A Group has the parameters of the members of one election. Seats are numbered from 0, and one process at a time takes a
// seat.
type Group interface {
	Params(seat, incarnation int) (member.Params, error)
}

// plain is a group whose members need only its name and the servers.
type plain struct{ params member.Params }

func (g plain) Params(seat, incarnation int) (member.Params, error) {
	p := g.params
	p.Name = fmt.Sprintf("m%d.%d", seat, incarnation)
	return p, nil
}

// Size of a group.
const Size = 3

// On returns the beds with more systems: this library's systems on Kafka again, with another Kafka client.
func On(beds []Bed, client string) []Bed {
	for i, bed := range beds {
		for _, s := range bed.Systems {
			if s.Family != "neli" || s.Inside {
				continue
			}
			members := s.Members
			s.Client, s.Setting = client, client+", "+s.Setting
			s.Members = func(servers Servers, group string) Group { return clientele{members(servers, group), client} }
			beds[i].Systems = append(beds[i].Systems, s)
		}
	}
	return beds
}

// clientele is a group whose members use another Kafka client.
type clientele struct {
	Group
	client string
}

func (g clientele) Params(seat, incarnation int) (member.Params, error) {
	p, err := g.Group.Params(seat, incarnation)
	p.Client = g.client
	return p, err
}

// Beds returns all beds.
func Beds() []Bed {
	return []Bed{kafkaBed(), etcdBed(false), etcdBed(true), raftBed(), peersBed()}
}

// peersBed is this library without a broker: three members, each with a log host inside, so that a
// leader's log dies with it.
func peersBed() Bed {
	bed := inside("peers", "neli")
	for _, t := range []time.Duration{time.Second, 100 * time.Millisecond} {
		bed.Systems = append(bed.Systems, System{Family: bed.Family, Bed: bed.Name, Setting: fmt.Sprintf("T = %v", t), Lease: t, Beat: t / 5, Inside: true,
			Settle: t + 300*time.Millisecond, // a restarted log counts again after W(T)
			Idle:   true, Kinds: append(slices.Clone(common), Restart),
			Members: func(_ Servers, group string) Group {
				return &hosted{group: group, lease: t}
			}})
	}
	return bed
}

// hosted is a group whose three members each have a log host inside. When a seat's process is
// killed and started again, the seat keeps its address and the name of its log; the log is empty.
type hosted struct {
	group string
	lease time.Duration
	hosts []member.Voter
}

func (g *hosted) Params(seat, incarnation int) (member.Params, error) {
	if g.hosts == nil {
		addrs, err := kafkatest.FreeAddrs(Size)
		if err != nil {
			return member.Params{}, err
		}
		for i, addr := range addrs {
			g.hosts = append(g.hosts, member.Voter{ID: nodeID(i), Addr: addr})
		}
	}
	return member.Params{Kind: member.Neli, Name: fmt.Sprintf("m%d.%d", seat, incarnation), Group: g.group, Lease: g.lease, Hosts: g.hosts, Host: g.hosts[seat].ID}, nil
}
