package peers

import (
	"context"
	"fmt"
	"time"

	"github.com/goneli/neli/lab/bench/member"
	"github.com/goneli/neli/lab/kafkatest"
	"github.com/goneli/neli/lab/proxy"
)

// Far is how much longer a round trip takes for a far member.
const Far = 40 * time.Millisecond

// farSeat is the seat of the far member.
const farSeat = 2

// Distant is a cluster that can also be reached by a slower way.
type Distant struct {
	Kafka
	detour *proxy.Proxy
}

// Stop stops the cluster and the slower way.
func (d Distant) Stop() {
	d.detour.Close()
	d.Kafka.Stop()
}

func startDistant(ctx context.Context, place Place) (Servers, error) {
	near, err := StartKafka(ctx, place, kafkatest.Options{Brokers: 1, ProxiedListeners: 1})
	if err != nil {
		return nil, err
	}
	d := Distant{Kafka: near}
	if d.detour, err = proxy.New(near.Cluster, 0); err != nil {
		near.Stop()
		return nil, err
	}
	if err := d.detour.Latency(Far); err != nil {
		d.Stop()
		return nil, err
	}
	return d, nil
}

// farBed has groups with one member far from the broker. The group prefers the member that started
// first, so roles move round, and each third hand-over is one to the far member.
func farBed() Bed {
	s := neliSystem("1 broker", 5*time.Second)
	s.Bed, s.Setting = "1 broker, a far member", fmt.Sprintf("%s, one member %v away", s.Setting, Far)
	s.Far, s.Kinds = farSeat, []Kind{Kill, Hand}
	members := s.Members
	s.Members = func(servers Servers, group string) Group {
		d := servers.(Distant)
		return mixed{ranked{members(d.Kafka, group).(plain)}, d.detour.Bootstrap()}
	}
	return Bed{Name: s.Bed, Family: s.Family, Start: startDistant, Systems: []System{s}}
}

// mixed is a ranked group with a far member.
type mixed struct {
	ranked
	far string // the address for that one
}

func (g mixed) Params(seat, incarnation int) (member.Params, error) {
	p, err := g.ranked.Params(seat, incarnation)
	if seat == farSeat {
		p.Servers = []string{g.far}
	}
	return p, err
}
