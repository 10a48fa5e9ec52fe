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
