package peers

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/goneli/neli/lab/bench/member"
	"github.com/goneli/neli/lab/kafkatest"
)

// raftBed has no servers: the candidates are the consensus group.
func raftBed() Bed {
	bed := inside("3 nodes", "raft")
	system := func(setting string, lease, nominal time.Duration) System {
		return System{Family: bed.Family, Bed: bed.Name, Setting: setting, Lease: nominal, Beat: nominal / 5, Settle: 300 * time.Millisecond,
			Inside: true, Idle: true, Kinds: common, Members: func(s Servers, group string) Group {
				return &nodes{place: s.(noServers).place, group: group, lease: lease}
			}}
	}
	// ValidateConfig accepts 5 ms; 50 ms is what the library's own tests use.
	const fastest = 50 * time.Millisecond
	bed.Systems = []System{
		system("default: timeouts 1 s, lease 500 ms", 0, time.Second),
		system("fastest: timeouts 50 ms", fastest, fastest),
	}
	return bed
}

// inside is a bed without servers: the candidates are the servers.
func inside(name, family string) Bed {
	return Bed{Name: name, Family: family, Start: func(_ context.Context, p Place) (Servers, error) { return noServers{p}, nil }}
}

type noServers struct{ place Place }

func (noServers) Pids() []int     { return nil }
func (noServers) Version() string { return "" }
func (noServers) Stop()           {}

// nodes is a consensus group. A seat keeps its address and its log when its process is killed and started again.
type nodes struct {
	place Place
	group string
	lease time.Duration
	addrs []string
}

func (g *nodes) Params(seat, _ int) (member.Params, error) {
	if g.addrs == nil {
		var err error
		if g.addrs, err = kafkatest.FreeAddrs(Size); err != nil {
			return member.Params{}, err
		}
	}
	dir := filepath.Join(g.place.Dir, "raft-"+g.group, fmt.Sprint(seat))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return member.Params{}, err
	}
	p := member.Params{Kind: member.Raft, Name: nodeID(seat), Group: g.group, Lease: g.lease, Node: &member.Node{Dir: dir, Addr: g.addrs[seat]}}
	for i := range Size {
		p.Node.Voters = append(p.Node.Voters, member.Voter{ID: nodeID(i), Addr: g.addrs[i]})
	}
	return p, nil
}

func nodeID(seat int) string { return fmt.Sprintf("n%d", seat) }
