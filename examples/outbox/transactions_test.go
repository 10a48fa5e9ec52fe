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
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/goneli/neli/fence"
)

// refusing is a producer whose Init returns err.
type refusing struct {
	fence.Client[*kgo.Record]
	err error
}

func (r refusing) Init(context.Context) error { return r.err }

// A leader that cannot begin to publish says why, but not when a few attempts fail, as they do after each suspended leader.
func TestALeaderThatCannotBeginSaysWhy(t *testing.T) {
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

// Somebody has deleted the topic of notes while relays run. It is created again, and slots go on.
func TestSlotsGoOnWhenTheNotesWereDeleted(t *testing.T) {
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "t"))
	require.NoError(t, err)
	defer broker.Close()
	tellSettings(broker)
	opts := []kgo.Opt{kgo.SeedBrokers(broker.ListenAddrs()...)}
	p, err := newTransactions(t.Context(), nil, "g", 2, opts, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	rows := []row{{id: 1, topic: "t", key: "k", created: time.Now()}}
	publish := func() (before []int64) {
		ctx, cancel := context.WithTimeout(t.Context(), stepLimit)
		defer cancel()
		require.NoError(t, p.term(ctx, term{always{}, 1, 1}, func(ctx context.Context, w writer, published []int64) error {
			before = published
			return w.publish(ctx, rows, nil)
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
