//go:build cgo && !neli_nolibrdkafka

package confluent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"
	"github.com/goneli/neli/kafka"
)

// confluentAdmin sends its requests over a producer's connections.
type confluentAdmin struct {
	producer *confluentProducer
	client   *ck.AdminClient

	ctx    context.Context // done when closed
	cancel context.CancelFunc
	mu     sync.Mutex
	calls  sync.WaitGroup // calls in progress; the client must outlive them
	asking chan struct{}  // holds a token for each question for positions
}

func (confluent) Admin(p kafka.Producer) (kafka.Admin, error) {
	cp, ok := p.(*confluentProducer)
	if !ok {
		return nil, fmt.Errorf("%T is not a producer of this provider", p)
	}
	client, err := ck.NewAdminClientFromProducer(cp.client)
	if err != nil {
		return nil, asConfluentError("admin client", err)
	}
	a := &confluentAdmin{producer: cp, client: client, asking: make(chan struct{}, confluentQuestions)}
	a.ctx, a.cancel = context.WithCancel(context.Background())
	return a, nil
}

func (a *confluentAdmin) Close() {
	a.mu.Lock()
	a.cancel()
	a.mu.Unlock()
	a.calls.Wait()
	a.client.Close()
}

// confluentAsk runs one admin call. It ends within 50 ms of ctx or the admin, except in listed.
func confluentAsk[T any](ctx context.Context, a *confluentAdmin, doing string,
	call func(context.Context, ck.AdminOptionRequestTimeout) (T, error)) (T, error) {

	var none T
	a.mu.Lock()
	if a.ctx.Err() != nil {
		a.mu.Unlock()
		return none, asConfluentError(doing, errClientClosed)
	}
	a.calls.Add(1)
	a.mu.Unlock()
	defer a.calls.Done()

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(a.ctx, cancel)()

	answer, err := call(ctx, confluentTimeout(ctx))
	return answer, a.producer.outcome(doing, err)
}

// overtime is how much longer librdkafka may take than ctx, so that ctx ends a call, with its own error.
const overtime = 200 * time.Millisecond

// confluentTimeout returns what ctx leaves plus overtime, at most the client's limit of 1 h; without a deadline 1 min.
func confluentTimeout(ctx context.Context) ck.AdminOptionRequestTimeout {
	timeout := time.Minute
	if deadline, ok := ctx.Deadline(); ok {
		timeout = min(max(time.Until(deadline), 0)+overtime, time.Hour)
	}
	return ck.SetAdminRequestTimeout(timeout)
}

// Brokers uses DescribeCluster only to learn racks. If a broker lists no brokers at that moment,
// DescribeCluster aborts the process (librdkafka 2.15.1, rdkafka_admin.c: Assertion `rko_result'
// failed). Brokers list none while they start, shut down, or are all fenced. Asking for the
// metadata first makes an abort unlikely, but not impossible.
func (a *confluentAdmin) Brokers(ctx context.Context, racks bool) ([]kafka.BrokerInfo, error) {
	return confluentAsk(ctx, a, "describe cluster", func(ctx context.Context, timeout ck.AdminOptionRequestTimeout) ([]kafka.BrokerInfo, error) {
		listed, err := a.listed(ctx)
		if err != nil || !racks {
			return listed, err
		}
		cluster, err := a.client.DescribeCluster(ctx, timeout)
		if err != nil {
			return nil, err
		}
		var brokers []kafka.BrokerInfo
		for _, n := range cluster.Nodes {
			b := kafka.BrokerInfo{ID: n.ID}
			if n.Rack != nil {
				b.Rack = *n.Rack
			}
			brokers = append(brokers, b)
		}
		return brokers, nil
	})
}

// listed returns the brokers in the metadata, without their racks.
func (a *confluentAdmin) listed(ctx context.Context) ([]kafka.BrokerInfo, error) {
	wait := 2 * time.Second // a distant broker takes about one
	if deadline, ok := ctx.Deadline(); ok {
		wait = min(wait, max(time.Until(deadline), 0)+overtime)
	}
	metadata, err := a.client.GetMetadata(nil, false, int(wait.Milliseconds()))
	if err = cmp.Or(ctx.Err(), err); err != nil { // the call itself takes no context
		return nil, err
	}
	var brokers []kafka.BrokerInfo
	for _, b := range metadata.Brokers {
		brokers = append(brokers, kafka.BrokerInfo{ID: int(b.ID)})
	}
	if len(brokers) == 0 {
		return nil, errors.New("the broker lists no brokers")
	}
	return brokers, nil
}

func (a *confluentAdmin) Topic(ctx context.Context, topic string) (kafka.TopicInfo, error) {
	return confluentAsk(ctx, a, "describe topic "+topic, func(ctx context.Context, timeout ck.AdminOptionRequestTimeout) (kafka.TopicInfo, error) {
		answer, err := a.client.DescribeTopics(ctx, ck.NewTopicCollectionOfTopicNames([]string{topic}), timeout)
		if err != nil {
			return kafka.TopicInfo{}, err
		}
		if len(answer.TopicDescriptions) != 1 {
			return kafka.TopicInfo{}, fmt.Errorf("%d descriptions of one topic", len(answer.TopicDescriptions))
		}
		d := answer.TopicDescriptions[0]
		if d.Error.Code() != ck.ErrNoError {
			return kafka.TopicInfo{}, d.Error
		}
		info := kafka.TopicInfo{ID: d.TopicID.String(), Partitions: len(d.Partitions), Brokers: make([][]int, len(d.Partitions))}
		for i, part := range d.Partitions {
			if i == 0 || len(part.Replicas) < info.Replicas {
				info.Replicas = len(part.Replicas)
			}
			if part.Partition < 0 || part.Partition >= len(d.Partitions) { // the partitions come in any order
				return kafka.TopicInfo{}, fmt.Errorf("a broker described partition %d of a topic with %d", part.Partition, len(d.Partitions))
			}
			for _, node := range part.Replicas {
				info.Brokers[part.Partition] = append(info.Brokers[part.Partition], node.ID)
			}
		}
		return info, nil
	})
}

func (a *confluentAdmin) CreateTopic(ctx context.Context, spec kafka.TopicSpec) error {
	_, err := confluentAsk(ctx, a, "create topic "+spec.Name, func(ctx context.Context, timeout ck.AdminOptionRequestTimeout) (any, error) {
		results, err := a.client.CreateTopics(ctx, []ck.TopicSpecification{confluentSpec(spec)}, timeout,
			ck.SetAdminValidateOnly(spec.ValidateOnly))
		for _, r := range results {
			if r.Error.Code() != ck.ErrNoError {
				return nil, r.Error
			}
		}
		return nil, err
	})
	return err
}

func confluentSpec(spec kafka.TopicSpec) ck.TopicSpecification {
	out := ck.TopicSpecification{Topic: spec.Name, NumPartitions: spec.Partitions, ReplicationFactor: spec.Replicas, Config: spec.Settings}
	for _, brokers := range spec.Brokers {
		out.ReplicationFactor = 0 // the client accepts either the factor or the assignment
		var on []int32
		for _, id := range brokers {
			on = append(on, int32(id))
		}
		out.ReplicaAssignment = append(out.ReplicaAssignment, on)
	}
	return out
}

func (a *confluentAdmin) Settings(ctx context.Context, topic string) (map[string]string, error) {
	return confluentAsk(ctx, a, "describe settings of "+topic, func(ctx context.Context, timeout ck.AdminOptionRequestTimeout) (map[string]string, error) {
		results, err := a.client.DescribeConfigs(ctx, []ck.ConfigResource{{Type: ck.ResourceTopic, Name: topic}}, timeout)
		if err != nil {
			return nil, err
		}
		settings := map[string]string{}
		for _, r := range results {
			if r.Error.Code() != ck.ErrNoError {
				return nil, r.Error
			}
			for name, entry := range r.Config {
				settings[name] = entry.Value
			}
		}
		return settings, nil
	})
}
