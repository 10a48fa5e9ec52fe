//go:build cgo && !neli_nolibrdkafka

package confluent

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"github.com/goneli/neli/internal/offsets"
	"github.com/goneli/neli/kafka"
)

func (a *confluentAdmin) Offsets(ctx context.Context, topic string, n int) ([]kafka.OffsetRange, error) {
	return offsets.Of(ctx, topic, n, a.ends(ck.OffsetBeginning), a.ends(ck.OffsetEnd))
}

func (a *confluentAdmin) Log(ctx context.Context, topic string, partition int) (kafka.LogInfo, error) {
	return offsets.Log(ctx, topic, partition, a.ends(ck.OffsetBeginning), a.ends(ck.OffsetEnd))
}

// ends asks for one end of the log of each given partition. Uncommitted records count, since the
// reader sees them, too.
func (a *confluentAdmin) ends(which ck.Offset) offsets.Ends {
	return func(ctx context.Context, topic string, partitions []int32) ([]kafka.LogInfo, error) {
		return a.endsAt(ctx, topic, partitions, which)
	}
}

// endsAt must not call the admin client's ListOffsets: librdkafka 2.15.1 may free such a request
// twice (docs/clients.md).
func (a *confluentAdmin) endsAt(ctx context.Context, topic string, partitions []int32, which ck.Offset) ([]kafka.LogInfo, error) {
	return confluentAsk(ctx, a, "list offsets of "+topic, func(ctx context.Context, _ ck.AdminOptionRequestTimeout) ([]kafka.LogInfo, error) {
		asked := make([]ck.TopicPartition, len(partitions))
		for i, p := range partitions {
			asked[i] = ck.TopicPartition{Topic: &topic, Partition: p, Offset: which}
		}
		answer, err := a.positions(ctx, asked)
		if err != nil {
			return nil, err
		}
		if len(answer) != len(partitions) {
			return nil, fmt.Errorf("%d of %d partitions answered", len(answer), len(partitions))
		}
		ends := make([]kafka.LogInfo, len(partitions))
		for i, tp := range answer { // in the order of asked
			switch {
			case tp.Error != nil:
				return nil, tp.Error
			case tp.Partition != partitions[i]:
				return nil, fmt.Errorf("an answer about partition %d instead of %d", tp.Partition, partitions[i])
			case tp.Offset < 0:
				return nil, fmt.Errorf("partition %d: offset %d is not a position", tp.Partition, tp.Offset)
			}
			ends[i].End, ends[i].Epoch = int64(tp.Offset), confluentEpoch(tp.LeaderEpoch)
		}
		return ends, nil
	})
}

// confluentPositionsBound is how long one question for positions may take, and so delay Close.
const confluentPositionsBound = 4 * time.Second

// confluentPatience returns how long a question for positions may take: as long as any other
// request, within confluentPositionsBound. It must not depend on the context of a call, since
// librdkafka drops a connection on which a question was not answered in time, with all records in
// flight.
func confluentPatience(config ck.ConfigMap) time.Duration {
	text, _ := config["socket.timeout.ms"].(string)
	ms, err := strconv.Atoi(text)
	if err != nil {
		return confluentPositionsBound
	}
	return min(time.Duration(ms)*time.Millisecond, confluentPositionsBound)
}

// confluentQuestions is how many questions for positions may be unanswered. Each takes a thread.
const confluentQuestions = 16

var errNoLeaders = errors.New("there is no such topic, or its partitions have no leaders")

// positions asks again after each time-out until ctx is done. The question takes no context: if ctx
// ends first, the question goes on in the background, and Close waits for it.
func (a *confluentAdmin) positions(ctx context.Context, asked []ck.TopicPartition) ([]ck.TopicPartition, error) {
	type answer struct {
		positions []ck.TopicPartition
		err       error
	}
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case a.asking <- struct{}{}:
		}
		answered := make(chan answer, 1)
		a.calls.Go(func() {
			defer func() { <-a.asking }()
			positions, err := a.producer.client.OffsetsForTimes(asked, int(a.producer.patience.Milliseconds()))
			answered <- answer{positions, err}
		})
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case got := <-answered:
			var ke ck.Error
			if !errors.As(got.err, &ke) {
				return got.positions, got.err
			}
			switch ke.Code() {
			case ck.ErrTimedOut, ck.ErrTimedOutQueue, ck.ErrAllBrokersDown: // once more
			case ck.ErrUnknownPartition: // librdkafka says so, too, when a known topic has no leaders
				return nil, errNoLeaders
			default:
				return nil, ke
			}
		}
	}
}

// oneBroker is how long each broker but the last may take to describe itself.
const oneBroker = time.Second

// KeepsEpochs implements kafka.EpochKeeper. librdkafka does not tell which requests a broker supports. So
// this asks for a setting that brokers have only with KRaft, one broker after the other until one
// answers. That needs DESCRIBE_CONFIGS on the cluster.
func (a *confluentAdmin) KeepsEpochs(ctx context.Context) (keeps bool, err error) {
	brokers, err := a.Brokers(ctx, false)
	if err != nil {
		return false, err
	}
	for i, b := range brokers {
		asking, cancel := ctx, context.CancelFunc(func() {})
		if i < len(brokers)-1 {
			asking, cancel = context.WithTimeout(ctx, oneBroker)
		}
		keeps, err = a.hasRoles(asking, b.ID)
		cancel()
		if err == nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			break
		}
	}
	return keeps, err
}

// hasRoles reports whether a broker has the setting process.roles.
func (a *confluentAdmin) hasRoles(ctx context.Context, broker int) (bool, error) {
	return confluentAsk(ctx, a, "describe broker "+strconv.Itoa(broker), func(ctx context.Context, timeout ck.AdminOptionRequestTimeout) (has bool, err error) {
		results, err := a.client.DescribeConfigs(ctx, []ck.ConfigResource{{Type: ck.ResourceBroker, Name: strconv.Itoa(broker)}}, timeout)
		if err != nil {
			return false, err
		}
		for _, r := range results {
			if r.Error.Code() != ck.ErrNoError {
				return false, r.Error
			}
			has = has || r.Config["process.roles"].Value != ""
		}
		return has, nil
	})
}
