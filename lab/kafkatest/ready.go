package kafkatest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// WaitInSync waits until b knows every replica of every partition to be in sync. In a rolling restart, call it before
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

// Logs returns the last 64 KiB of each broker's log. Call it before Stop.
func (c *Cluster) Logs() string {
	var text strings.Builder
	for _, b := range c.brokers {
		fmt.Fprintf(&text, "--- broker %d (%s)\n%s", b.ID, b.Addr, b.logTail(64<<10))
	}
	return text.String()
}

// KeepLogs copies the brokers' logs and settings to dir, as broker-1.log,
// broker-1.properties and so on. Call it before Stop, which removes them.
func (c *Cluster) KeepLogs(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("kafkatest: keeping logs: %w", err)
	}
	var failed []error
	for _, b := range c.brokers {
		to := filepath.Join(dir, fmt.Sprintf("broker-%d", b.ID))
		failed = append(failed,
			copyFile(to+".log", b.logFile()),
			copyFile(to+".properties", b.propertiesFile()))
	}
	if err := errors.Join(failed...); err != nil {
		return fmt.Errorf("kafkatest: keeping logs: %w", err)
	}
	return nil
}

func copyFile(to, from string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o600) // settings may have secrets
}

// complaint returns the log of the broker's present run from its first error on, or its end if there is no error.
func (b *Broker) complaint() string {
	const limit = 4 << 10
	content, err := os.ReadFile(b.logFile())
	if err != nil {
		return err.Error()
	}
	b.mu.Lock()
	run := content[min(b.logged, len(content)):]
	b.mu.Unlock()
	first := bytes.Index(run, []byte(" ERROR "))
	if first < 0 {
		return string(run[max(0, len(run)-limit):])
	}
	line := bytes.LastIndexByte(run[:first], '\n') + 1
	return string(run[line:min(len(run), line+limit)])
}

// logTail returns the last limit bytes of the broker's log.
func (b *Broker) logTail(limit int) string {
	content, err := os.ReadFile(b.logFile())
	if err != nil {
		return err.Error() + "\n"
	}
	return string(content[max(0, len(content)-limit):])
}
