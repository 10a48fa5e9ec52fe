//go:build cgo && !neli_nolibrdkafka

package confluent

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/fence"
	"github.com/goneli/neli/internal/absent"
)

func TestNewRefusesProperties(t *testing.T) {
	_, err := New(t.Context(), kafka.ConfigMap{"bootstrap.server": "x"})
	require.ErrorContains(t, err, "bootstrap.server")
	o := &Opener{config: kafka.ConfigMap{"acks": 1}}
	_, err = o.Open("id")()
	require.ErrorContains(t, err, "acks")
}

func TestNewWaitsAsLongAsItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	time.AfterFunc(100*time.Millisecond, func() { cancel(gone) })
	_, err := New(ctx, kafka.ConfigMap{"bootstrap.servers": "127.0.0.1:1", "log_level": 0})
	require.ErrorIs(t, err, gone)
}

// The client sees no cancellation; resume does.
func TestInitEndsWithItsContext(t *testing.T) {
	o := &Opener{config: kafka.ConfigMap{"bootstrap.servers": "127.0.0.1:1", "log_level": 0}}
	c, err := o.Open("id")()
	require.NoError(t, err)
	defer c.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	time.AfterFunc(100*time.Millisecond, func() { cancel(gone) })
	require.ErrorIs(t, c.Init(ctx), gone)
}

func TestClassifyNamesTheRight(t *testing.T) {
	c := &client{id: "neli/invoicing/0"}
	err := c.classify(kafka.NewError(kafka.ErrTransactionalIDAuthorizationFailed, "", true))
	require.ErrorIs(t, err, fence.ErrPermanent)
	require.ErrorContains(t, err, "WRITE on TransactionalId neli/invoicing/0")
	err = c.classify(kafka.NewError(kafka.ErrTopicAuthorizationFailed, "", false))
	require.ErrorIs(t, err, fence.ErrPermanent)
	require.ErrorContains(t, err, "WRITE on the topic")
	err = c.classify(kafka.NewError(kafka.ErrFenced, "", true))
	require.NotErrorIs(t, err, fence.ErrPermanent)
	require.NoError(t, c.classify(nil))
}

// A broker may forget a topic for a moment; one that stays unknown is missing.
func TestAnUnknownTopicIsRefusedForGoodAfterAWhile(t *testing.T) {
	c := &client{id: "neli/invoicing/0", absent: &absent.Topics{}}
	topic := "invoices"
	for _, code := range unknown {
		c.absent.Known(slices.Values([]string{topic}))
		at, err := kafka.TopicPartition{Topic: &topic}, kafka.NewError(code, "", false)
		require.NotErrorIs(t, c.refused(at, err, time.Now()), fence.ErrPermanent)
		lasting := c.refused(at, err, time.Now().Add(-absent.Patience))
		require.ErrorIs(t, lasting, fence.ErrPermanent)
		require.ErrorContains(t, lasting, topic)
	}
}
