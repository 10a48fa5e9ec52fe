package franzfence

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/goneli/neli/fence"
	"github.com/goneli/neli/internal/absent"
)

func TestAnUnknownTopicIsRefusedForGoodAfterAWhile(t *testing.T) {
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
