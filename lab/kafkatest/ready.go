package kafkatest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// ask sends one request to this broker over its plain listener, and to no other.
func (b *Broker) ask(ctx context.Context, req kmsg.Request) (kmsg.Response, error) {
	client, err := b.cluster.client(b.Addr)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	return client.SeedBrokers()[0].Request(ctx, req)
}

// client returns a client of the plain listeners.
func (c *Cluster) client(addrs ...string) (*kgo.Client, error) {
	opts := []kgo.Opt{kgo.SeedBrokers(addrs...)}
	if c.opts.Dial != nil {
		opts = append(opts, kgo.Dialer(c.opts.Dial))
	}
	return kgo.NewClient(opts...)
}

// live returns the ids of the brokers that b lists in its metadata: those that
// are registered and not fenced, as far as b knows.
func (b *Broker) live(ctx context.Context) ([]int, error) {
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{} // none; nil would mean all
	resp, err := b.ask(ctx, req)
	if err != nil {
		return nil, err
	}
	var ids []int
	for _, broker := range resp.(*kmsg.MetadataResponse).Brokers {
		ids = append(ids, int(broker.NodeID))
	}
	return ids, nil
}

// WaitInSync waits until b knows no partition with a replica out of sync. In a rolling restart, call it before
// you stop the next broker.
func (b *Broker) WaitInSync(ctx context.Context) error {
	return b.poll(ctx, "waiting until all replicas are in sync", func(ctx context.Context) error {
		resp, err := b.ask(ctx, kmsg.NewPtrMetadataRequest()) // of all topics
		if err != nil {
			return err
		}
		for _, t := range resp.(*kmsg.MetadataResponse).Topics {
			for _, p := range t.Partitions {
				if p.Leader < 0 || len(p.ISR) < len(p.Replicas) {
					return fmt.Errorf("%s[%d]: leader %d, replicas %v, in sync %v", *t.Topic, p.Partition, p.Leader, p.Replicas, p.ISR)
				}
			}
		}
		return nil
	})
}

// waitReady waits until the broker answers and lists the brokers want.
func (b *Broker) waitReady(ctx context.Context, want ...int) error {
	p := b.current()
	return b.poll(ctx, fmt.Sprintf("waiting until it lists brokers %v", want), func(ctx context.Context) error {
		if !p.Running() {
			return stop{fmt.Errorf("it ended (%s):\n%s", p.State(), b.complaint())}
		}
		live, err := b.live(ctx)
		if err != nil {
			return err
		}
		for _, id := range want {
			if !slices.Contains(live, id) {
				return fmt.Errorf("it lists %v", live)
			}
		}
		return nil
	})
}

// stop is an error that ends a poll.
type stop struct{ error }

// poll calls attempt until it succeeds, fails with a stop, or ctx is done.
func (b *Broker) poll(ctx context.Context, doing string, attempt func(context.Context) error) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		limited, cancel := context.WithTimeout(ctx, 2*time.Second)
		err := attempt(limited)
		cancel()
		if err == nil {
			return nil
		}
		if end, ok := err.(stop); ok {
			return b.errorf("%s: %w", doing, end.error)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return b.errorf("%s: %w; last: %w", doing, ctx.Err(), err)
		}
	}
}
