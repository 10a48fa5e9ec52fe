//go:build cgo && !neli_nolibrdkafka

package confluent

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"
	"github.com/goneli/neli/kafka"
)

// confluentGroup takes part in a consumer group.
//
// The client calls rebalance from within Poll, Leave and Close. rebalance does at once what the
// group's protocol demands, and records events for Poll to return.
type confluentGroup struct {
	confluentConsumer
	topic  string
	read   bool
	joined bool

	owned   map[int]struct{} // the client's partitions, also while it is leaving
	revoked bool             // a revocation was answered since Leave began
	events  []kafka.GroupEvent
	failed  error // the error that the next Poll returns
	fatal   error // a final error, which every later Poll returns

	mu     sync.Mutex // guards ended, so that no Reach begins after Close
	ended  bool
	asking sync.WaitGroup // Reach calls in progress
}

// confluentLeaveBound limits the wait for the client to hand back its partitions, which must
// happen before it tells the coordinator. It usually takes a millisecond.
const confluentLeaveBound = time.Second

// confluentMemory is how long a client in a group remembers a topic that it hears nothing of (metadata.max.age.ms). The default
// is three times topic.metadata.refresh.interval.ms, and an outage may last longer. After that, librdkafka asks about the topic
// before it joins the group. If this question is lost, it does not ask again: it joins after its next regular look at the
// metadata, up to an interval later. librdkafka computes in microseconds with 32 bits, which overflow after 35 minutes.
const confluentMemory = 30 * time.Minute

func (p confluent) GroupConsumer(props map[string]string, log *slog.Logger) (kafka.GroupConsumer, error) {
	all := map[string]string{"metadata.max.age.ms": strconv.FormatInt(confluentMemory.Milliseconds(), 10)}
	maps.Copy(all, props)
	c, err := p.consumer(all, log)
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
			if _, owned := g.owned[int(ev.TopicPartition.Partition)]; owned && g.joined && g.read && *ev.TopicPartition.Topic == g.topic {
				return kafka.GroupEvent{Kind: kafka.GroupRecord, Record: confluentRecord(ev)}, nil
			}
		case ck.Error:
			err := g.fail("group", ev)
			if at := confluentUnreadable(ev, err); at != nil {
				g.skip()
				err = at
			}
			return kafka.GroupEvent{}, err
		}
		if len(g.events) == 0 && g.failed == nil && confluentOver(deadline) {
			return kafka.GroupEvent{}, nil
		}
	}
}

// skip reads on at the ends of all partitions: the client would ask again and again for the record that it
// cannot read, and does not say in which partition that is.
func (g *confluentGroup) skip() {
	if len(g.owned) == 0 {
		return
	}
	parts := make([]ck.TopicPartition, 0, len(g.owned))
	for p := range g.owned {
		parts = append(parts, ck.TopicPartition{Topic: &g.topic, Partition: int32(p), Offset: ck.OffsetEnd})
	}
	var err error
	if g.client.GetRebalanceProtocol() == "COOPERATIVE" {
		err = errors.Join(g.client.IncrementalUnassign(parts), g.client.IncrementalAssign(parts))
	} else {
		err = g.client.Assign(parts)
	}
	if err != nil {
		g.failed = g.fail("read on", err)
	}
}

// takeFailure returns a passing failure once, and a fatal one every time.
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
	// The client tells the coordinator once the revocation was answered, which takes a poll. A
	// member that owns no partition may get no revocation.
	bound := confluentLeaveBound
	if len(g.owned) == 0 {
		bound /= 10
	}
	for deadline := time.Now().Add(bound); !g.revoked && !confluentOver(deadline); {
		if ev, ok := g.next(deadline).(ck.Error); ok {
			g.failed = g.fail("leave", ev)
		}
	}
	// During a rebalance the client postpones leaving, and keeps its partitions until it leaves. If it
	// joins again before, it keeps them for good.
	g.events = append(g.events, kafka.GroupEvent{Kind: kafka.GroupLost})
	return nil
}

func (g *confluentGroup) Close() error {
	g.mu.Lock()
	g.ended = true
	g.mu.Unlock()
	g.asking.Wait() // the client must outlive them
	return g.close("group consumer")
}

// Reach asks where the first partition ends. It does not ask for metadata, because an answer with
// metadata can bring the client to a standstill. If ctx ends first, the question goes on in the
// background: librdkafka drops a connection on which a question was not answered in time, and may
// be fetching over it.
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
		parts, err := g.client.OffsetsForTimes([]ck.TopicPartition{{Topic: &topic, Offset: ck.OffsetEnd}}, int(confluentReachBound.Milliseconds()))
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

// confluentReachBound is how long Reach's question may take, and so delay Close.
const confluentReachBound = 2 * time.Second

// rebalance answers the client. The client ignores an error returned from here, so it is kept.
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

// assigned handles an assignment. Under an eager protocol parts are all partitions, after everything
// was revoked. Otherwise parts are only the added ones.
func (g *confluentGroup) assigned(assign func([]ck.TopicPartition) error, parts []ck.TopicPartition) error {
	for i := range parts {
		parts[i].Offset = ck.OffsetEnd // explicit, since nothing is ever committed
		g.owned[int(parts[i].Partition)] = struct{}{}
	}
	err := assign(parts)
	if len(parts) > 0 {
		// Pausing has no effect before the assignment, and outlasts it. It still comes in time: the
		// client has yet to ask where the end is.
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

// revoke gives partitions back. It asks first whether they were lost, since the answer to the client ends that state.
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
	case !g.joined: // Leave reports the end
	case lost:
		clear(g.owned)
		g.events = append(g.events, kafka.GroupEvent{Kind: kafka.GroupLost})
	case cooperative: // this assignment is complete; after an eager revocation another one follows
		g.events = append(g.events, kafka.GroupEvent{Kind: kafka.GroupAssigned, Partitions: slices.Sorted(maps.Keys(g.owned))})
	}
	return err
}
