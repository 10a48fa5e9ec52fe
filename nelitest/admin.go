package nelitest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/goneli/neli/kafka"
)

// admin implements kafka.Admin.
type admin struct {
	client
	blocked []*waiter // requests that wait for the link or for a partition's leader
}

func newAdmin(c client) *admin { return &admin{client: c} }

// call makes a request. When that gets through, it calls answer with the lock held, and again after errNoLeader.
func (a *admin) call(ctx context.Context, answer func() error) error {
	b := a.b
	b.mu.Lock()
	defer b.mu.Unlock()
	a.gate()
	w := a.newWaiter()
	b.schedule(&w.event, b.now()+a.lag(b.opts.RequestLatency))
	for {
		if err := a.err(); err != nil {
			b.cancel(&w.event)
			return err
		}
		b.mu.Unlock()
		select {
		case <-w.done:
		case <-ctx.Done():
		}
		b.mu.Lock()
		a.gate()
		switch {
		case a.over():
		case ctx.Err() != nil:
			b.cancel(&w.event)
			a.blocked = slices.DeleteFunc(a.blocked, func(x *waiter) bool { return x == w })
			return fmt.Errorf("nelitest: %w", ctx.Err())
		case b.down:
			return errDown
		case !a.reaches(LinkAdmin):
			w = a.newWaiter()
			a.blocked = append(a.blocked, w)
		default:
			if err := a.m.refusal(LinkAdmin); err != nil {
				return err
			}
			err := answer()
			if err != errNoLeader {
				return err
			}
			w = a.newWaiter()
			a.blocked = append(a.blocked, w)
		}
	}
}

// errNoLeader makes a request wait: a client retries until there is a leader.
var errNoLeader = errors.New("nelitest: a partition has no leader")

// ask makes a request about a topic.
func (a *admin) ask(ctx context.Context, name string, answer func(*topic) error) error {
	return a.call(ctx, func() error {
		t := a.b.topics[name]
		if t == nil || !t.exists {
			return fmt.Errorf("%w: %s", kafka.ErrUnknownTopic, name)
		}
		return answer(t)
	})
}

// Brokers implements [kafka.Admin].
func (a *admin) Brokers(ctx context.Context, _ bool) (brokers []kafka.BrokerInfo, err error) {
	err = a.call(ctx, func() error {
		brokers = a.b.describe()
		return nil
	})
	return brokers, err
}

// KeepsEpochs implements kafka.EpochKeeper: this Kafka never forgets an epoch.
func (a *admin) KeepsEpochs(ctx context.Context) (bool, error) {
	return true, a.call(ctx, func() error { return nil })
}

// Topic implements [kafka.Admin].
func (a *admin) Topic(ctx context.Context, name string) (info kafka.TopicInfo, err error) {
	err = a.ask(ctx, name, func(t *topic) error {
		info = kafka.TopicInfo{ID: t.id, Partitions: len(t.logs), Replicas: t.replicas}
		for _, l := range t.logs {
			info.Brokers = append(info.Brokers, slices.Clone(l.brokers))
		}
		return nil
	})
	return info, err
}

// CreateTopic implements [kafka.Admin].
func (a *admin) CreateTopic(ctx context.Context, spec kafka.TopicSpec) error {
	return a.call(ctx, func() error { return a.b.create(spec) })
}

// Settings implements [kafka.Admin].
func (a *admin) Settings(ctx context.Context, name string) (settings map[string]string, err error) {
	err = a.ask(ctx, name, func(t *topic) error {
		settings = maps.Clone(t.settings)
		return nil
	})
	return settings, err
}

// Offsets implements [kafka.Admin].
func (a *admin) Offsets(ctx context.Context, name string, n int) (ranges []kafka.OffsetRange, err error) {
	err = a.ask(ctx, name, func(t *topic) error {
		if n > len(t.logs) {
			return unknown(name, n-1)
		}
		ranges = nil
		for i, l := range t.logs[:n] {
			if a.b.offline(t, i) {
				return errNoLeader
			}
			ranges = append(ranges, kafka.OffsetRange{Start: l.start, End: l.readable()})
		}
		return nil
	})
	return ranges, err
}

// Log implements [kafka.Admin].
func (a *admin) Log(ctx context.Context, name string, partition int) (info kafka.LogInfo, err error) {
	err = a.ask(ctx, name, func(t *topic) error {
		switch {
		case !t.has(partition):
			return unknown(name, partition)
		case a.b.offline(t, partition):
			return errNoLeader
		}
		l := t.logs[partition]
		info = kafka.LogInfo{OffsetRange: kafka.OffsetRange{Start: l.start, End: l.readable()}, Epoch: l.epoch}
		return nil
	})
	return info, err
}

// Close implements [kafka.Admin]. Pending calls fail.
func (a *admin) Close() {
	a.b.mu.Lock()
	defer a.b.mu.Unlock()
	a.gate()
	a.closed = true
	a.recheck()
	a.dismiss(a)
}

func (a *admin) recheck() {
	for _, w := range a.blocked {
		a.b.schedule(&w.event, a.b.now()+a.lag(a.b.opts.RequestLatency))
	}
	a.blocked = nil
}

func (a *admin) lose() { a.recheck() }

func (a *admin) kill() {
	a.dead = true
	a.recheck()
}
