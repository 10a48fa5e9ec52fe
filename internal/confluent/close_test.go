//go:build cgo && !neli_nolibrdkafka

package confluent

import (
	"context"
	"log/slog"
	"net"
	"slices"
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

// A call that times out returns the context's error, not librdkafka's.
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

// The client postpones a Leave during a rebalance, and a Join right after it takes the place of the Leave: the
// member never leaves. It still knows all partitions that the group has assigned to it.
func TestConfluentJoinsAgainDuringARebalance(t *testing.T) {
	b := newConfluentBed(t, 4)
	member := func() *confluentGroup {
		g, err := client.GroupConsumer(b.with("group.id", "g", "enable.auto.commit", "false", "session.timeout.ms", "6000",
			"heartbeat.interval.ms", "200", "partition.assignment.strategy", "cooperative-sticky"), slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		return g.(*confluentGroup)
	}
	x := member()
	defer closeConfluent(t, x)
	var told []int // the partitions that Poll last reported
	poll := func(g *confluentGroup, d time.Duration) {
		for end := time.Now().Add(d); time.Now().Before(end); {
			ev, err := g.Poll(20 * time.Millisecond)
			if err != nil || g != x {
				continue
			}
			if ev.Kind == kafka.GroupAssigned || ev.Kind == kafka.GroupLost {
				told = ev.Partitions
			}
		}
	}
	require.NoError(t, x.Join(confluentTopic, false))
	for late := time.Now().Add(patience); len(told) < 4 && time.Now().Before(late); {
		poll(x, 100*time.Millisecond)
	}
	require.Equal(t, []int{0, 1, 2, 3}, told)

	y := member()
	stop, stopped := make(chan struct{}), make(chan struct{})
	defer func() { close(stop); <-stopped; closeConfluent(t, y) }()
	require.NoError(t, y.Join(confluentTopic, false))
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				poll(y, 20*time.Millisecond)
			}
		}
	}()
	poll(x, 1500*time.Millisecond) // it learns of the rebalance, and asks to join again
	require.NoError(t, x.Leave())
	require.NoError(t, x.Join(confluentTopic, false))
	poll(x, 20*time.Second) // the rebalance
	assigned := assignment(t, x)
	for late := time.Now().Add(patience); !slices.Equal(assigned, told) && time.Now().Before(late); { // it may last longer
		poll(x, 100*time.Millisecond)
		assigned = assignment(t, x)
	}
	require.NotEmpty(t, assigned)
	require.Equal(t, assigned, told)
}

// assignment returns the partitions that the client takes for assigned.
func assignment(t *testing.T, g *confluentGroup) (assigned []int) {
	t.Helper()
	parts, err := g.client.Assignment()
	require.NoError(t, err)
	for _, p := range parts {
		assigned = append(assigned, int(p.Partition))
	}
	slices.Sort(assigned)
	return assigned
}
