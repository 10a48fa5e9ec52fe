package peers

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/goneli/neli/lab/bench/member"
	"github.com/goneli/neli/lab/bench/probe"
	"github.com/goneli/neli/lab/kafkatest"
	"github.com/goneli/neli/lab/nursery"
)

// peersBed is this library without a broker: three members, each with a log host inside, so that a
// leader's log dies with it.
func peersBed() Bed {
	bed := Bed{Name: "peers", Family: "neli", Start: startLogHost}
	for _, t := range []time.Duration{time.Second, 300 * time.Millisecond, 100 * time.Millisecond} {
		s := peersSystem(bed.Name, t)
		s.Idle, s.Kinds = []int{Size}, append(slices.Clone(common), Restart)
		bed.Systems = append(bed.Systems, s)
	}
	many := peersSystem(bed.Name, time.Second)
	many.Setting += fmt.Sprintf(", %d roles", ManyRoles)
	many.Roles, many.Idle, many.Kinds = ManyRoles, []int{Size}, []Kind{Kill}
	many.Members = func(_ Servers, group string) Group {
		return &hosted{group: group, lease: many.Lease, roles: ManyRoles}
	}
	bed.Systems = append(bed.Systems, many, watchedOnPeers(bed.Name))
	return bed
}

// ManyRoles is the number of roles in the trials of many roles without a broker. These trials have
// no hand-over, since checking each role takes longer than handing over all.
const ManyRoles = 10_000

func peersSystem(bed string, t time.Duration) System {
	return System{Family: "neli", Bed: bed, Setting: fmt.Sprintf("T = %v", t), Lease: t, Beat: t / 5, Timed: true, Inside: true,
		Settle: t + 300*time.Millisecond, // a restarted log counts again after T′
		Members: func(_ Servers, group string) Group {
			return &hosted{group: group, lease: t}
		}}
}

// hosted is a group whose first three members each have a log host inside. When a seat's process is
// killed and started again, the seat keeps its address and the name of its log; the log is empty.
// Several roles are all led by the member that started first.
type hosted struct {
	group string
	lease time.Duration
	roles int
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
	p := member.Params{Kind: member.Neli, Name: fmt.Sprintf("m%d.%d", seat, incarnation), Group: g.group, Lease: g.lease, Hosts: g.hosts}
	if seat < len(g.hosts) {
		p.Host = g.hosts[seat].ID
	}
	if g.roles > 1 {
		p.Roles, p.Priority = g.roles, -incarnation
	}
	return p, nil
}

func (g *hosted) Voter(int) member.Voter { return member.Voter{} }

// LogHost is a log host in a process of its own, to measure round trips. The log hosts of elections
// are inside the members.
type LogHost struct {
	Addr    string
	process *nursery.Process
}

// Pids returns none, since the members are the servers.
func (LogHost) Pids() []int { return nil }

// Version returns this library's version.
func (LogHost) Version() string { return "" }

// Stop kills it.
func (h LogHost) Stop() { h.process.Kill() }

// HostCommand is the subcommand that makes this program a log host, on the address that
// follows.
const HostCommand = "host"

func startLogHost(_ context.Context, p Place) (Servers, error) {
	addrs, err := kafkatest.FreeAddrs(1)
	if err != nil {
		return nil, err
	}
	cmd, err := Self(HostCommand, addrs[0])
	if err != nil {
		return nil, err
	}
	cmd.Stderr = os.Stderr
	process, err := p.Start(cmd)
	if err != nil {
		return nil, err
	}
	return LogHost{addrs[0], process}, nil
}

// HostMain runs a log host.
func HostMain(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%s: an address is needed, and nothing else", HostCommand)
	}
	return probe.Serve(context.Background(), args[0])
}
