package franzfence_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/goneli/neli/fence"
	"github.com/goneli/neli/franz/franzfence"
)

// If franz-go cannot know whether the brokers have a record, it retries without limit. Commit must not wait for that,
// or the term could not end.
func TestCommitEndsWithItsContextIfTheOutcomeIsUnknown(t *testing.T) {
	broker := cluster("t", verifies, 0)
	defer broker.Close()
	kafkas, err := franzfence.New(t.Context(), kgo.SeedBrokers(broker.ListenAddrs()...))
	require.NoError(t, err)
	unsure := make(chan struct{}, 1)
	broker.ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) {
		broker.KeepControl()
		select {
		case unsure <- struct{}{}:
		default:
		}
		return answered(req.(*kmsg.ProduceRequest), appendedToTooFew), nil, true
	})
	ended := make(chan error, 1)
	go func() {
		ended <- fence.Transactions(t.Context(), always{}, kafkas.Open("neli/g/0"), func(ctx context.Context, p *franzfence.Producer) error {
			ctx, cancel := context.WithCancel(ctx)
			go func() {
				<-unsure
				cancel()
			}()
			err := p.Commit(ctx, &kgo.Record{Topic: "t", Value: []byte("1")})
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorIs(t, err, fence.ErrRefused)
			return nil
		})
	}()
	select {
	case err := <-ended:
		require.NoError(t, err)
	case <-time.After(30 * time.Second):
		t.Fatal("it waits for the client, which waits for the brokers")
	}
}

// appendedToTooFew is the answer of a broker whose followers do not have the records yet: the client must ask again.
func appendedToTooFew(int32) *kerr.Error { return kerr.NotEnoughReplicasAfterAppend }

// A transaction may be aborted because of its age after some of its records were acknowledged. If
// retention has also removed what the producer wrote before, franz-go renews its producer id and
// writes the other records to a new transaction, without an error. That transaction must not be
// committed, since it has only a part of the records.
func TestSplitTransactionIsNotCommitted(t *testing.T) {
	broker := cluster("t", verifies, 0)
	defer broker.Close()
	kafkas, err := franzfence.New(t.Context(), kgo.SeedBrokers(broker.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MetadataMinAge(50*time.Millisecond))
	require.NoError(t, err)
	record := func(value string) []*kgo.Record {
		return []*kgo.Record{{Topic: "two", Partition: 0, Value: []byte(value)}, {Topic: "two", Partition: 1, Value: []byte(value)}}
	}
	committed, ends := 0, 0
	broker.ControlKey(int16(kmsg.EndTxn), func(kmsg.Request) (kmsg.Response, error, bool) {
		broker.KeepControl()
		ends++
		return nil, nil, false
	})
	err = fence.Transactions(t.Context(), always{}, kafkas.Open("neli/g/0"), func(ctx context.Context, p *franzfence.Producer) error {
		if committed > 0 {
			return nil
		}
		if err := p.Commit(ctx, record("1")...); err != nil {
			return err
		}
		committed++
		broker.ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) {
			return answered(req.(*kmsg.ProduceRequest), partly), nil, true
		})
		err := p.Commit(ctx, record("2")...)
		require.ErrorIs(t, err, fence.ErrRefused)
		return err
	})
	require.NoError(t, err)
	require.Equal(t, 1, ends, "the second one is left to the next producer's init")
}

// answered answers each partition with an error, or with nil.
func answered(req *kmsg.ProduceRequest, errs func(partition int32) *kerr.Error) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.ProduceResponse)
	for _, topic := range req.Topics {
		to := kmsg.NewProduceResponseTopic()
		to.Topic, to.TopicID = topic.Topic, topic.TopicID
		for _, p := range topic.Partitions {
			answer := kmsg.NewProduceResponseTopicPartition()
			answer.Partition, answer.BaseOffset, answer.LogStartOffset = p.Partition, 100, 100
			if err := errs(p.Partition); err != nil {
				answer.ErrorCode = err.Code
			}
			to.Partitions = append(to.Partitions, answer)
		}
		resp.Topics = append(resp.Topics, to)
	}
	return resp
}

// partly acknowledges partition 0, and refuses partition 1 for its epoch.
func partly(partition int32) *kerr.Error {
	if partition == 1 {
		return kerr.InvalidProducerEpoch
	}
	return nil
}
