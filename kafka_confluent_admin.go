//go:build cgo && !neli_nolibrdkafka

package neli

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"
)

// confluentAdmin asks over the connections of a producer.
type confluentAdmin struct {
	producer *confluentProducer
	client   *kafka.AdminClient

	ctx    context.Context // done when closed
	cancel context.CancelFunc
	mu     sync.Mutex
	calls  sync.WaitGroup // under way; the client must not go before they do
}

func (confluent) Admin(p Producer) (Admin, error) {
	cp, ok := p.(*confluentProducer)
	if !ok {
		return nil, fmt.Errorf("%T is not a producer of this provider", p)
	}
	client, err := kafka.NewAdminClientFromProducer(cp.client)
	if err != nil {
		return nil, asConfluentError("admin client", err)
	}
	a := &confluentAdmin{producer: cp, client: client}
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

// confluentAsk runs one admin call, which ends with ctx or with a. The client notices
// within 50 ms.
func confluentAsk[T any](ctx context.Context, a *confluentAdmin, doing string,
	call func(context.Context, kafka.AdminOptionRequestTimeout) (T, error)) (T, error) {

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

// confluentTimeout is what ctx leaves for a request, within the client's limits
// (1 ms to 1 h).
func confluentTimeout(ctx context.Context) kafka.AdminOptionRequestTimeout {
	timeout := time.Minute
	if deadline, ok := ctx.Deadline(); ok {
		timeout = min(max(time.Until(deadline), time.Millisecond), time.Hour)
	}
	return kafka.SetAdminRequestTimeout(timeout)
}

func (a *confluentAdmin) Brokers(ctx context.Context) (int, error) {
	return confluentAsk(ctx, a, "describe cluster", func(ctx context.Context, timeout kafka.AdminOptionRequestTimeout) (int, error) {
		cluster, err := a.client.DescribeCluster(ctx, timeout)
		return len(cluster.Nodes), err
	})
}

func (a *confluentAdmin) Topic(ctx context.Context, topic string) (TopicInfo, error) {
	return confluentAsk(ctx, a, "describe topic "+topic, func(ctx context.Context, timeout kafka.AdminOptionRequestTimeout) (TopicInfo, error) {
		answer, err := a.client.DescribeTopics(ctx, kafka.NewTopicCollectionOfTopicNames([]string{topic}), timeout)
		if err != nil {
			return TopicInfo{}, err
		}
		if len(answer.TopicDescriptions) != 1 {
			return TopicInfo{}, fmt.Errorf("%d descriptions of one topic", len(answer.TopicDescriptions))
		}
		d := answer.TopicDescriptions[0]
		if d.Error.Code() != kafka.ErrNoError {
			return TopicInfo{}, d.Error
		}
		info := TopicInfo{ID: d.TopicID.String(), Partitions: len(d.Partitions)}
		for i, part := range d.Partitions {
			if i == 0 || len(part.Replicas) < info.Replicas {
				info.Replicas = len(part.Replicas)
			}
		}
		return info, nil
	})
}

func (a *confluentAdmin) CreateTopic(ctx context.Context, spec TopicSpec) error {
	_, err := confluentAsk(ctx, a, "create topic "+spec.Name, func(ctx context.Context, timeout kafka.AdminOptionRequestTimeout) (any, error) {
		results, err := a.client.CreateTopics(ctx, []kafka.TopicSpecification{{
			Topic:             spec.Name,
			NumPartitions:     spec.Partitions,
			ReplicationFactor: spec.Replicas,
			Config:            spec.Settings,
		}}, timeout)
		for _, r := range results {
			if r.Error.Code() != kafka.ErrNoError {
				return nil, r.Error
			}
		}
		return nil, err
	})
	return err
}

func (a *confluentAdmin) Settings(ctx context.Context, topic string) (map[string]string, error) {
	return confluentAsk(ctx, a, "describe settings of "+topic, func(ctx context.Context, timeout kafka.AdminOptionRequestTimeout) (map[string]string, error) {
		results, err := a.client.DescribeConfigs(ctx, []kafka.ConfigResource{{Type: kafka.ResourceTopic, Name: topic}}, timeout)
		if err != nil {
			return nil, err
		}
		settings := map[string]string{}
		for _, r := range results {
			if r.Error.Code() != kafka.ErrNoError {
				return nil, r.Error
			}
			for name, entry := range r.Config {
				settings[name] = entry.Value
			}
		}
		return settings, nil
	})
}

func (a *confluentAdmin) Offsets(ctx context.Context, topic string, n int) ([]OffsetRange, error) {
	// Starts first: they only grow, so no start lies behind its end.
	starts, err := a.ends(ctx, topic, n, kafka.EarliestOffsetSpec)
	if err != nil {
		return nil, err
	}
	ends, err := a.ends(ctx, topic, n, kafka.LatestOffsetSpec)
	if err != nil {
		return nil, err
	}
	ranges := make([]OffsetRange, n)
	for i := range ranges {
		ranges[i] = OffsetRange{Start: starts[i], End: ends[i]}
	}
	return ranges, nil
}

// ends asks for one end of each partition's log. Uncommitted records count: the
// reader sees them too.
func (a *confluentAdmin) ends(ctx context.Context, topic string, n int, which kafka.OffsetSpec) ([]int64, error) {
	return confluentAsk(ctx, a, "list offsets of "+topic, func(ctx context.Context, timeout kafka.AdminOptionRequestTimeout) ([]int64, error) {
		asked := make(map[kafka.TopicPartition]kafka.OffsetSpec, n)
		for i := range n {
			asked[kafka.TopicPartition{Topic: &topic, Partition: int32(i)}] = which
		}
		answer, err := a.client.ListOffsets(ctx, asked, timeout, kafka.SetAdminIsolationLevel(kafka.IsolationLevelReadUncommitted))
		if err != nil {
			return nil, err
		}
		offsets := make([]int64, n)
		known := 0
		for tp, info := range answer.ResultInfos {
			switch {
			case info.Error.Code() != kafka.ErrNoError:
				return nil, info.Error
			case info.Offset < 0:
				return nil, fmt.Errorf("partition %d: offset %d is not a position", tp.Partition, info.Offset)
			case int(tp.Partition) < n:
				offsets[tp.Partition] = int64(info.Offset)
				known++
			}
		}
		if known != n {
			return nil, fmt.Errorf("%d of %d partitions answered", known, n)
		}
		return offsets, nil
	})
}
