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

// A transaction may be aborted because of its age after some of its records were acknowledged. If
// retention has also removed what the producer wrote before, franz-go renews its producer id and
// writes the other records to a new transaction, without an error. That transaction must not be
// committed, since it has only a part of the records.
func TestPartedTransactionIsNotCommitted(t *testing.T) {
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
