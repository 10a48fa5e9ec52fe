package franz

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/goneli/neli/kafka"
)

// group takes part in a consumer group. Each Join has a membership with a franz-go client of its
// own, since a client that has left cannot join again. franz-go rebalances on its own goroutines.
// The results become events, which Poll returns.
type group struct {
	*client
	present *membership // nil: no Join, or Leave was called
	former  sync.WaitGroup
	closed  bool
	end     error // the result of Close

	records []*kgo.Record // for Poll to return
	errs    []error       // for Poll to return, before records

	mu     sync.Mutex // guards the fields below
	events []kafka.GroupEvent
	owned  map[int]struct{}
	poll   context.CancelFunc // ends the wait of a Poll
	fatal  error              // a final error, which every later Poll returns
	turn   int                // the broker that Reach asks first
}

// leaveBound is how long Leave waits at most for the client to close.
const leaveBound = time.Second

func (p provider) GroupConsumer(props map[string]string, log *slog.Logger) (kafka.GroupConsumer, error) {
	c, err := p.newClient(forGroup, props, log, taking)
	if err != nil {
		return nil, err
	}
	return &group{client: c, owned: map[int]struct{}{}}, nil
}

func (g *group) Join(topic string, read bool) error {
	if g.closed {
		return errClosed
	}
	if m := g.present; m != nil && m.topic == topic && m.read == read {
		return nil // franz-go itself joins again whenever it was thrown out
	}
	if err := g.Leave(); err != nil {
		return err
	}
	if g.settings.instance {
		g.former.Wait() // a late join of the former membership would take this one's place
	}
	m := &membership{of: g, topic: topic, read: read, left: make(chan struct{})}
	g.become(m) // before it can be called back
	kafka, err := g.dial(append(taking(g.settings),
		kgo.WithHooks(m),
		kgo.ConsumeTopics(topic),
		kgo.OnPartitionsAssigned(m.assigned),
		kgo.OnPartitionsRevoked(m.revoked),
		kgo.OnPartitionsLost(m.lost),
	)...)
	if err != nil {
		g.become(nil)
		return classify("join", err)
	}
	if !read {
		kafka.PauseFetchTopics(topic)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	m.kafka = kafka
	return nil
}

// become makes m, which may be nil, the present membership. Reports of other memberships are ignored from then on.
func (g *group) become(m *membership) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.present, g.fatal = m, nil
	clear(g.owned)
	if m == nil {
		g.events = []kafka.GroupEvent{{Kind: kafka.GroupLost}}
	}
}

func (g *group) Leave() error {
	m := g.present
	if m == nil || g.closed {
		return nil
	}
	g.become(nil)
	g.records, g.errs = nil, nil

	g.former.Go(m.leave)
	bound := time.NewTimer(leaveBound)
	defer bound.Stop()
	select {
	case <-m.left:
	case <-bound.C:
	}
	return nil
}

func (g *group) Close() error {
	if !g.closed {
		g.end = g.Leave()
		g.closed = true
		g.former.Wait()
		g.endTokens()
	}
	return g.end
}

// Reach asks one broker after the other until one answers. It begins after the broker that was
// silent last. kgo.Client.Ping always begins with the same broker: if only that one is silent, Ping
// has no time left for the others.
func (g *group) Reach(ctx context.Context, _ string) error {
	g.mu.Lock()
	var kafka *link
	if g.present != nil {
		kafka = g.present.kafka
	}
	turn := g.turn
	g.mu.Unlock()
	if kafka == nil {
		return nil // it has no connections yet, or no longer
	}
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{} // no topics; nil would ask for all
	brokers := append(kafka.DiscoveredBrokers(), kafka.SeedBrokers()...)
	var err error
	for range brokers {
		if _, err = brokers[turn%len(brokers)].Request(ctx, req); err == nil {
			break
		}
		turn++
		if ctx.Err() != nil {
			break
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.turn = turn
	return classify("reach a broker", err)
}

func (g *group) Poll(timeout time.Duration) (kafka.GroupEvent, error) {
	if g.closed {
		return kafka.GroupEvent{}, errClosed
	}
	for deadline := time.Now().Add(timeout); ; {
		ev, ok, err := g.next()
		if ok || err != nil {
			return ev, err
		}
		left := time.Until(deadline)
		if g.present == nil {
			time.Sleep(max(left, 0))
			return kafka.GroupEvent{}, nil
		}
		if fetched := g.fetch(left); !fetched && time.Until(deadline) <= 0 {
			return kafka.GroupEvent{}, g.trouble("group")
		}
	}
}

// next returns the next event or error, if there is one.
func (g *group) next() (ev kafka.GroupEvent, ok bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.events) > 0 {
		ev, g.events = g.events[0], g.events[1:]
		return ev, true, nil
	}
	if g.fatal != nil {
		return ev, false, g.fatal
	}
	if len(g.errs) > 0 {
		err, g.errs = g.errs[0], g.errs[1:]
		return ev, false, err
	}
	for len(g.records) > 0 {
		r := g.records[0]
		g.records = g.records[1:]
		if _, owned := g.owned[int(r.Partition)]; owned && g.present.read && r.Topic == g.present.topic {
			return kafka.GroupEvent{Kind: kafka.GroupRecord, Record: asRecord(r)}, true, nil
		}
	}
	return ev, false, nil
}

// fetch takes what has arrived. If there is time left, it waits for something to arrive. An event ends the wait.
func (g *group) fetch(left time.Duration) (fetched bool) {
	var ctx context.Context // nil: do not wait
	if left > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.Background(), left)
		defer cancel()
		g.mu.Lock()
		if g.poll = cancel; len(g.events) > 0 || g.fatal != nil {
			cancel()
		}
		g.mu.Unlock()
	}
	fetches := g.present.kafka.PollRecords(ctx, batch)
	fetches.EachPartition(func(p kgo.FetchTopicPartition) {
		if p.Err != nil && (ctx == nil || !errors.Is(p.Err, ctx.Err())) {
			g.errs = append(g.errs, g.failed(p)...)
		}
	})
	g.records = append(g.records, fetches.Records()...)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.poll = nil
	return len(g.records) > 0 || len(g.errs) > 0 || len(g.events) > 0 || g.fatal != nil
}

// failed returns the error, if any, that Poll returns instead of a partition's records. If franz-go
// cannot read these, it would ask for them again and again, so reading goes on at the partition's end.
func (g *group) failed(p kgo.FetchTopicPartition) []error {
	out := classify("group", p.Err)
	switch {
	case unreadable(p.FetchPartition) && p.HighWatermark > 0:
		g.present.kafka.SetOffsets(map[string]map[int32]kgo.EpochOffset{p.Topic: {p.Partition: {Epoch: -1, Offset: p.HighWatermark}}})
		return []error{&kafka.UnreadableError{Partition: int(p.Partition), Err: out, Next: p.HighWatermark}}
	case passing(out) && kerr.IsRetriable(p.Err):
		g.log.Debug("group membership is retried", "error", out)
		return nil
	}
	return []error{out}
}
