//go:build unix

package main

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/goneli/neli/fence"
)

// refusing is a producer whose Init returns err.
type refusing struct {
	fence.Client[*kgo.Record]
	err error
}

func (r refusing) Init(context.Context) error { return r.err }

// A leader that cannot begin to publish logs the reason, but not after only a few failed attempts,
// which are normal after each suspended leader.
func TestReasonWhyALeaderCannotBeginIsLogged(t *testing.T) {
	var said strings.Builder
	var err error
	open := telling(func() (fence.Client[*kgo.Record], error) { return refusing{err: err}, nil }, slog.New(slog.NewTextHandler(&said, nil)))
	attempts := func(n int, with error) {
		err = with
		for range n {
			client, _ := open()
			require.Equal(t, with, client.Init(t.Context()))
		}
	}
	busy := errors.New("the coordinator is busy")
	attempts(usualAttempts, busy)
	attempts(1, nil)
	attempts(usualAttempts, busy)
	require.Empty(t, said.String())
	attempts(1, busy)
	require.Contains(t, said.String(), `attempts=6 error="the coordinator is busy"`)
}

// Somebody deletes the topic of notes while relays run. It is created again, and slots continue.
func TestSlotsContinueAfterTheNotesWereDeleted(t *testing.T) {
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "t"))
	require.NoError(t, err)
	defer broker.Close()
	tellSettings(broker)
	opts := []kgo.Opt{kgo.SeedBrokers(broker.ListenAddrs()...)}
	p, err := newTransactions(t.Context(), nil, "g", 2, opts, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	rows := []row{{ref: ref{id: 1}, topic: "t", key: "k", created: time.Now()}}
	publish := func() (before []int64) {
		ctx, cancel := context.WithTimeout(t.Context(), stepLimit)
		defer cancel()
		require.NoError(t, p.term(ctx, term{always{}, 1, 1}, func(ctx context.Context, w writer, last note) error {
			before = idsOf(last.rows)
			return w.publish(ctx, rows, nil, position{})
		}))
		return before
	}
	require.Empty(t, publish())
	require.Equal(t, []int64{1}, publish())
	client, err := kgo.NewClient(opts...)
	require.NoError(t, err)
	defer client.Close()
	_, err = kadm.NewClient(client).DeleteTopic(t.Context(), progressTopic("g"))
	require.NoError(t, err)
	require.Empty(t, publish())
	require.Equal(t, []int64{1}, publish())
}

// The topic of notes may have been created by somebody else. Unless its cleanup.policy is compact alone,
// Kafka deletes notes some day.
func TestRelayWarnsIfKafkaDeletesNotes(t *testing.T) {
	for name, c := range map[string]struct {
		settings map[string]string
		says     string
	}{
		"delete":              {map[string]string{"cleanup.policy": "delete"}, "cleanup.policy=delete"},
		"compact and delete":  {map[string]string{"cleanup.policy": "compact,delete"}, "cleanup.policy=compact,delete"},
		"for the size only":   {map[string]string{"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "1000"}, "retention.bytes=1000"},
		"delete, but nothing": {map[string]string{"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}, ""},
		"compact":             {map[string]string{"cleanup.policy": "compact"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			broker, err := kfake.NewCluster(kfake.NumBrokers(1))
			require.NoError(t, err)
			defer broker.Close()
			require.NoError(t, broker.CreateTopic(progressTopic("g"), 2, c.settings))
			p := &progress{opts: []kgo.Opt{kgo.SeedBrokers(broker.ListenAddrs()...)}, topic: progressTopic("g"), slots: 2}
			var said strings.Builder
			require.NoError(t, p.create(t.Context(), slog.New(slog.NewTextHandler(&said, nil))))
			require.Equal(t, c.says != "", strings.Contains(said.String(), "rows can be published again"), said.String())
			require.Contains(t, said.String(), c.says)
		})
	}
}

// A relay that has created the topic need not ask for its settings. A relay that may not ask continues.
func TestRelayNeedsNoRightToReadTopicSettings(t *testing.T) {
	broker, err := kfake.NewCluster(kfake.NumBrokers(1))
	require.NoError(t, err)
	defer broker.Close()
	asked := 0
	answerForSettings(broker, func(r *kmsg.DescribeConfigsResponseResource) {
		asked++
		r.ErrorCode = kerr.TopicAuthorizationFailed.Code
	})
	p := &progress{opts: []kgo.Opt{kgo.SeedBrokers(broker.ListenAddrs()...)}, topic: progressTopic("g"), slots: 2}
	var said strings.Builder
	log := slog.New(slog.NewTextHandler(&said, nil))
	require.NoError(t, p.create(t.Context(), log))
	require.Zero(t, asked)
	require.NoError(t, p.create(t.Context(), log))
	require.Equal(t, 1, asked)
	require.NotContains(t, said.String(), "published again")
}
