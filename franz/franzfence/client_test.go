package franzfence

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/goneli/neli/fence"
	"github.com/goneli/neli/internal/absent"
)

func TestTopicThatStaysUnknownIsAPermanentError(t *testing.T) {
	c := &client{id: "neli/invoicing/0", absent: &absent.Topics{}}
	r, began := &kgo.Record{Topic: "invoices"}, time.Now()
	require.NotErrorIs(t, c.refused(r, kerr.UnknownTopicOrPartition, began), fence.ErrPermanent)
	err := c.refused(r, kerr.UnknownTopicOrPartition, began.Add(-absent.Patience))
	require.ErrorIs(t, err, fence.ErrPermanent)
	require.ErrorIs(t, err, kerr.UnknownTopicOrPartition)
	require.ErrorContains(t, err, "invoices")
	c.absent.Known(slices.Values([]string{"invoices"}))
	require.NotErrorIs(t, c.refused(r, kerr.UnknownTopicOrPartition, began), fence.ErrPermanent)
}

// The client refuses this option only if it is transactional. New must find that out before the first term.
func TestNewRefusesOptionsThatOpenWouldRefuse(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := New(ctx, kgo.SeedBrokers("127.0.0.1:1"), kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite())
	require.NoError(t, ctx.Err())
	require.ErrorContains(t, err, "the client refuses its options")
	require.ErrorContains(t, err, "idempotent")
}

func TestProduceRefusesANilRecord(t *testing.T) {
	c, err := newClient([]kgo.Opt{kgo.SeedBrokers("127.0.0.1:1")}, "neli/invoicing/0", &absent.Topics{})
	require.NoError(t, err)
	defer c.Close()
	err = c.Produce(t.Context(), []*kgo.Record{nil})
	require.ErrorIs(t, err, fence.ErrPermanent)
	require.ErrorContains(t, err, "record 1 of 1 is nil")
}

// The client reports a missing partition with an error of its own. Partitions may be added a moment later.
func TestPartitionThatStaysUnknownIsAPermanentError(t *testing.T) {
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "invoices"))
	require.NoError(t, err)
	defer broker.Close()
	c, err := newClient([]kgo.Opt{kgo.SeedBrokers(broker.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner())}, "neli/invoicing/0", &absent.Topics{})
	require.NoError(t, err)
	defer c.Close()
	r := &kgo.Record{Topic: "invoices", Partition: 1}
	require.NoError(t, c.Init(t.Context()))
	require.NoError(t, c.Begin())
	began := time.Now()
	err = c.Produce(t.Context(), []*kgo.Record{r})
	require.ErrorContains(t, err, "invoices[1]")
	require.NotErrorIs(t, err, fence.ErrPermanent)
	for errors.Unwrap(err) != nil {
		err = errors.Unwrap(err) // the client's own
	}
	require.ErrorIs(t, c.refused(r, err, began.Add(-absent.Patience)), fence.ErrPermanent)
}
