package peers

import (
	"fmt"
	"slices"
	"time"

	"github.com/goneli/neli/lab/bench/member"
	"github.com/goneli/neli/lab/kafkatest"
)

// peersBed is this library without a broker: three members, each with a log host inside, so that a
// leader's log dies with it.
func peersBed() Bed {
	bed := inside("peers", "neli")
	for _, t := range []time.Duration{time.Second, 100 * time.Millisecond} {
		bed.Systems = append(bed.Systems, System{Family: bed.Family, Bed: bed.Name, Setting: fmt.Sprintf("T = %v", t), Lease: t, Beat: t / 5, Inside: true,
			Settle: t + 300*time.Millisecond, // a restarted log counts again after T′
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
