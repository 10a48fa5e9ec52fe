//go:build cgo && !neli_nolibrdkafka

package confluent

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"
	"github.com/goneli/neli/kafka"
)

// confluentGroup takes part in a consumer group.
//
// The client calls rebalance from within Poll, Leave and Close. It answers at
// once with whatever the group's protocol asks for, and leaves what is worth
// telling in events, for Poll to return.
type confluentGroup struct {
	confluentConsumer
	topic  string
	read   bool
	joined bool

	owned   map[int]struct{}
	revoked bool // a revoke was answered since Leave began
	events  []kafka.GroupEvent
	failed  error // an Assign or Unassign that the client did not take
	fatal   error // for good: every later Poll returns it

	mu     sync.Mutex // guards ended, and that nobody begins to ask afterwards
	ended  bool
	asking sync.WaitGroup // Reach that is under way
}

// confluentLeaveBound limits the wait for the client to hand back its partitions,
// after which it tells the coordinator. Normally this is a millisecond.
const confluentLeaveBound = time.Second

func (p confluent) GroupConsumer(props map[string]string, log *slog.Logger) (kafka.GroupConsumer, error) {
	c, err := p.consumer(props, log)
	if err != nil {
		return nil, err
	}
	return &confluentGroup{confluentConsumer: c, owned: map[int]struct{}{}}, nil
}

func (g *confluentGroup) Join(topic string, read bool) error {
	if g.closed {
		return errClientClosed
	}
	if g.joined && g.topic == topic && g.read == read {
		return nil // the client itself joins again whenever it was thrown out
	}
	if err := g.Leave(); err != nil {
		return err
	}
	g.failed = g.forget("group")
	if err := g.client.SubscribeTopics([]string{topic}, g.rebalance); err != nil {
		return g.fail("join", err)
	}
	g.topic, g.read, g.joined = topic, read, true
	return nil
}

func (g *confluentGroup) Poll(timeout time.Duration) (kafka.GroupEvent, error) {
	if g.closed {
		return kafka.GroupEvent{}, errClientClosed
	}
	for deadline := time.Now().Add(timeout); ; {
		if len(g.events) > 0 {
			ev := g.events[0]
			g.events = g.events[1:]
			return ev, nil
		}
		if err := g.takeFailure(); err != nil {
			return kafka.GroupEvent{}, err
		}
		switch ev := g.next(deadline).(type) {
		case *ck.Message:
			if err := ev.TopicPartition.Error; err != nil {
				return kafka.GroupEvent{}, g.fail("group", err)
			}
			if _, owned := g.owned[int(ev.TopicPartition.Partition)]; owned && g.read && *ev.TopicPartition.Topic == g.topic {
				return kafka.GroupEvent{Kind: kafka.GroupRecord, Record: confluentRecord(ev)}, nil
			}
		case ck.Error:
			return kafka.GroupEvent{}, g.fail("group", ev)
		}
		if len(g.events) == 0 && g.failed == nil && confluentOver(deadline) {
			return kafka.GroupEvent{}, nil
		}
	}
}

// takeFailure returns a failure once, a fatal one for ever.
func (g *confluentGroup) takeFailure() error {
	if g.fatal != nil {
		return g.fatal
	}
	err := g.failed
	g.failed = nil
	return err
}

func (g *confluentGroup) fail(doing string, err error) error {
	err = g.classify(doing, err)
	if errors.Is(err, kafka.ErrClientFatal) {
		g.fatal = err
	}
	return err
}

func (g *confluentGroup) Leave() error {
	if !g.joined || g.closed {
		return nil
	}
	g.joined, g.revoked = false, false
	if err := g.client.Unsubscribe(); err != nil {
		return g.fail("leave", err)
	}
	// The client tells the coordinator when the revoke has been answered, which
	// takes a poll. One that owns nothing may have nothing to revoke.
	bound := confluentLeaveBound
	if len(g.owned) == 0 {
		bound /= 10
	}
	for deadline := time.Now().Add(bound); !g.revoked && !confluentOver(deadline); {
		if ev, ok := g.next(deadline).(ck.Error); ok {
			g.failed = g.fail("leave", ev)
		}
	}
	clear(g.owned)
	g.events = append(g.events, kafka.GroupEvent{Kind: kafka.GroupLost})
	return nil
}

func (g *confluentGroup) Close() error {
	g.mu.Lock()
	g.ended = true
	g.mu.Unlock()
	g.asking.Wait() // the client must not go while it is asked
	return g.close("group consumer")
}

// Reach asks where the first partition ends. Asking for metadata would ask the same of a
// client that is well, but it is an answer to that by which one comes to stand still.
func (g *confluentGroup) Reach(ctx context.Context, topic string) error {
	g.mu.Lock()
	if g.ended {
		g.mu.Unlock()
		return errClientClosed
	}
	g.asking.Add(1)
	g.mu.Unlock()
	answered := make(chan error, 1)
	go func() {
		defer g.asking.Done()
		left := confluentReachBound
		if end, ok := ctx.Deadline(); ok {
			left = min(left, max(time.Until(end), time.Millisecond))
		}
		parts, err := g.client.OffsetsForTimes([]ck.TopicPartition{{Topic: &topic, Offset: ck.OffsetEnd}}, int(left.Milliseconds()))
		if err == nil && len(parts) > 0 {
			err = parts[0].Error
		}
		answered <- err
	}()
	select {
	case err := <-answered:
		return asConfluentError("reach a broker", err)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// confluentReachBound is how long a question may take, and so hold up Close.
const confluentReachBound = 2 * time.Second

// rebalance answers the client. An error would be ignored, so it is kept.
func (g *confluentGroup) rebalance(c *ck.Consumer, ev ck.Event) error {
	step := c.IncrementalAssign
	cooperative := c.GetRebalanceProtocol() == "COOPERATIVE"
	var err error
	switch ev := ev.(type) {
	case ck.AssignedPartitions:
		if !cooperative {
			step = c.Assign
		}
		err = g.assigned(step, ev.Partitions)
	case ck.RevokedPartitions:
		err = g.revoke(cooperative, ev.Partitions)
	}
	if err != nil {
		g.failed = g.fail("rebalance", err)
	}
	return nil
}

// assigned takes what the group has assigned: all of it under an eager protocol,
// which has revoked everything before, else what is added.
func (g *confluentGroup) assigned(assign func([]ck.TopicPartition) error, parts []ck.TopicPartition) error {
	for i := range parts {
		parts[i].Offset = ck.OffsetEnd // an explicit position; nothing is ever committed
		g.owned[int(parts[i].Partition)] = struct{}{}
	}
	err := assign(parts)
	if len(parts) > 0 {
		// A pause outlives an assignment, and does not take before it. In time it
		// is all the same: the client has yet to ask where the end is.
		step := g.client.Pause
		if g.read {
			step = g.client.Resume
		}
		err = errors.Join(err, step(parts))
	}
	if g.joined {
		g.events = append(g.events, kafka.GroupEvent{Kind: kafka.GroupAssigned, Partitions: slices.Sorted(maps.Keys(g.owned))})
	}
	return err
}

// revoke gives partitions back. Lost is asked first: the answer to the client
// ends that state.
func (g *confluentGroup) revoke(cooperative bool, parts []ck.TopicPartition) error {
	g.revoked = true
	lost := g.client.AssignmentLost()
	var err error
	if cooperative {
		err = g.client.IncrementalUnassign(parts)
	}
	if !cooperative || err != nil {
		err = errors.Join(err, g.client.Unassign())
	}
	for _, tp := range parts {
		delete(g.owned, int(tp.Partition))
	}
	switch {
	case !g.joined: // Leave tells
	case lost:
		clear(g.owned)
		g.events = append(g.events, kafka.GroupEvent{Kind: kafka.GroupLost})
	case cooperative: // complete in itself; an eager one is followed by an assignment
		g.events = append(g.events, kafka.GroupEvent{Kind: kafka.GroupAssigned, Partitions: slices.Sorted(maps.Keys(g.owned))})
	}
	return err
}
