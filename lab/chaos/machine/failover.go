package machine

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/goneli/neli/lab/chaos/disk"
	"github.com/goneli/neli/lab/chaos/member"
	"github.com/goneli/neli/lab/chaos/plan"
	"github.com/goneli/neli/lab/kafkatest"
	"github.com/goneli/neli/lab/pause"
)

// startDisks gives each broker a disk that can be stalled.
func (m *machine) startDisks(ctx context.Context, hosts []kafkatest.Host) error {
	for i := range hosts {
		hosts[i].Data = filepath.Join(m.Scratch, "mounted", brokerHost(i))
		d, err := disk.Start(ctx, m.nursery, filepath.Join(m.Scratch, "disks", brokerHost(i)), hosts[i].Data)
		if err != nil {
			return err
		}
		m.disks = append(m.disks, d)
	}
	return nil
}

// calm waits until all is well, and every replica of every topic in sync: only then do the bounds of a fault apply.
func (m *machine) calm(ctx context.Context, s plan.Step) {
	well := func() bool { return m.unwell(ctx) == "" && m.groups.replicated(ctx) }
	if !pause.Until(ctx, 2*time.Minute, well) && ctx.Err() == nil {
		m.complain("all was not well before %q: %s; every replica in sync: %v", s.Kind, m.unwell(ctx), m.groups.replicated(ctx))
	}
}

// ofLog chooses the broker that leads the log of a part's role.
func (m *machine) ofLog(ctx context.Context, p plan.Part) (plan.Part, error) {
	topics, err := m.groups.topics(ctx)
	if err != nil {
		return p, err
	}
	// The topic has as many partitions as there are roles.
	leader := int(topics[member.Topic(0)].Partitions[int32(p.Role)].Leader)
	if leader < 1 || leader > Brokers {
		return p, fmt.Errorf("no broker leads the log of role %d", p.Role)
	}
	p.Broker, p.Other = leader-1, leader%Brokers
	return p, nil
}

// topics asks the brokers about all topics.
func (g *groups) topics(ctx context.Context) (kadm.TopicDetails, error) {
	limited, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return kadm.NewClient(g.client).ListTopicsWithInternal(limited)
}

// replicated reports whether all brokers have all topics in sync.
func (g *groups) replicated(ctx context.Context) bool {
	topics, err := g.topics(ctx)
	whole := err == nil && len(topics) > 0
	topics.EachPartition(func(p kadm.PartitionDetail) { whole = whole && len(p.ISR) == Brokers })
	return whole
}
