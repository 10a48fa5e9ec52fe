//go:build cgo && !neli_nolibrdkafka

package confluent

import (
	"context"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/kafka"
)

// A question where a log ends returns with its context, and librdkafka goes on asking. The client
// must not be destroyed before that has ended.
func TestCloseWaitsForQuestions(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, silent.Close()) }()
	p, err := confluent{}.Producer(map[string]string{"bootstrap.servers": silent.Addr().String()}, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	a, err := confluent{}.Admin(p)
	require.NoError(t, err)

	began := time.Now()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	_, err = a.Log(ctx, "log", 0)
	require.ErrorIs(t, err, context.Canceled)
	require.Less(t, time.Since(began), confluentPositionsBound, "it returns with its context")
	a.Close()
	took := time.Since(began)
	require.NoError(t, p.Close())
	require.GreaterOrEqual(t, took, confluentPositionsBound)
	require.Less(t, took, confluentPositionsBound+patience/2)
}

// Purge must not reach a client that is being destroyed.
func TestPurgeDoesNotReachAClosedClient(t *testing.T) {
	p := &confluentProducer{closed: true}
	require.NotPanics(t, p.Purge, "it has no client")
}

// A call whose time is up says so by the context's error, not by librdkafka's.
func TestCallsEndWithTheirDeadline(t *testing.T) {
	t.Parallel()
	p, err := confluent{}.Producer(map[string]string{"bootstrap.servers": "127.0.0.1:1"}, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer func() { require.NoError(t, p.Close()) }()
	a, err := confluent{}.Admin(p)
	require.NoError(t, err)
	defer a.Close()
	for what, call := range map[string]func(context.Context) error{
		"Brokers":  func(ctx context.Context) error { _, err := a.Brokers(ctx, false); return err },
		"Topic":    func(ctx context.Context) error { _, err := a.Topic(ctx, "t"); return err },
		"Settings": func(ctx context.Context) error { _, err := a.Settings(ctx, "t"); return err },
		"CreateTopic": func(ctx context.Context) error {
			return a.CreateTopic(ctx, kafka.TopicSpec{Name: "t", Partitions: 1, Replicas: 1})
		},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		require.ErrorIs(t, call(ctx), context.DeadlineExceeded, what)
		cancel()
	}
}
