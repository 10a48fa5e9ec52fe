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

// franz-go does not give up a record of which it cannot know whether the brokers have it, however long that takes. Commit
// must not wait for that: the term could not be given up.
func TestACommitEndsWithItsContextWhateverTheClientCannotKnow(t *testing.T) {
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
		return appendedToTooFew(req.(*kmsg.ProduceRequest)), nil, true
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
	case <-time.After(10 * time.Second):
		t.Fatal("it waits for the client, which waits for the brokers")
	}
}

// appendedToTooFew is the answer of a broker whose followers do not have the records yet: the client must ask again.
func appendedToTooFew(req *kmsg.ProduceRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.ProduceResponse)
	for _, topic := range req.Topics {
		to := kmsg.NewProduceResponseTopic()
		to.Topic, to.TopicID = topic.Topic, topic.TopicID
		for _, p := range topic.Partitions {
			answer := kmsg.NewProduceResponseTopicPartition()
			answer.Partition, answer.ErrorCode = p.Partition, kerr.NotEnoughReplicasAfterAppend.Code
			to.Partitions = append(to.Partitions, answer)
		}
		resp.Topics = append(resp.Topics, to)
	}
	return resp
}
