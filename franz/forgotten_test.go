//go:build cgo && !neli_nolibrdkafka

package franz_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/goneli/neli"
	"github.com/goneli/neli/internal/confluent"
)

// A broker that shuts down may answer that there are no brokers. librdkafka then forgets all of
// them, for ever (docs/clients.md). Every process must recover by itself, both one that only
// reads and one that has to be in a group. This is a test of librdkafka. It is in this module
// because a broker that sends such answers on request is here.
func TestClientsThatForgotAllBrokersAreReplaced(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	confluent, err := confluent.New()
	require.NoError(t, err)
	well := map[*neli.Neli]func(*neli.Neli) bool{}
	start := func(name string, cfg neli.Config, is func(*neli.Neli) bool) {
		cfg.KafkaConfig = neli.KafkaConfigMap{"bootstrap.servers": c.ListenAddrs()[0], "topic.metadata.refresh.interval.ms": 500}
		cfg.Provider, cfg.Name = confluent, name
		n, err := neli.New(cfg)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, n.Close()) })
		if !cfg.Observer {
			p, err := n.Background(func() { <-time.After(100 * time.Millisecond) })
			require.NoError(t, err)
			t.Cleanup(func() { _ = p.Close() })
		}
		well[n] = is
	}
	leadsOne := func(n *neli.Neli) bool { return n.IsLeaderOf(0) != n.IsLeaderOf(1) }
	for i := range 2 {
		start(fmt.Sprint("assigned ", i), neli.Config{LeaderGroupID: "a", Nomination: neli.NominationAssigned, Roles: 2, Partitions: 2,
			HeartbeatTimeout: 3 * time.Second}, leadsOne)
		start(fmt.Sprint("non-exclusive ", i), neli.Config{LeaderGroupID: "n", Mode: neli.NonExclusive, Roles: 2, Partitions: 2,
			HeartbeatTimeout: 10 * time.Second}, leadsOne)
	}
	start("observer", neli.Config{LeaderGroupID: "a", Observer: true, HeartbeatTimeout: 3 * time.Second}, func(n *neli.Neli) bool {
		h, known := n.Holder(0)
		return known && h.Age <= n.Config().HeartbeatTimeout
	})
	unwell := func() (out int) {
		for n, is := range well {
			if !is(n) {
				out++
			}
		}
		return out
	}
	require.Eventually(t, func() bool { return unwell() == 0 }, patience, 20*time.Millisecond)

	var brokerless atomic.Bool
	brokerless.Store(true)
	c.ControlKey(int16(kmsg.Metadata), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		return noBrokers(req.(*kmsg.MetadataRequest)), nil, brokerless.Load()
	})
	require.Eventually(t, func() bool { return unwell() == len(well) }, patience, 20*time.Millisecond, "all clients have forgotten their brokers")
	brokerless.Store(false)
	began := time.Now()
	require.Eventually(t, func() bool { return unwell() == 0 }, patience, 20*time.Millisecond, "all clients have recovered")
	t.Log("all are well after", time.Since(began))
	// Not every client has to be replaced: on a busy machine, one that got no answer meanwhile has forgotten nothing.
	replaced := uint64(0)
	for n := range well {
		t.Log(n.Config().Name, "has replaced", n.Stats().ReadersReplaced)
		replaced += n.Stats().ReadersReplaced
	}
	require.Positive(t, replaced)
}

// After an outage, a member joins its group without first asking about the topic. If that question were lost, the
// client would not repeat it, and the member would stay out of the group until the client next looks at the metadata.
func TestMemberRemembersTheTopicThroughAnOutage(t *testing.T) {
	t.Parallel()
	c := cluster(t, kfake.SeedTopics(1, "log"))
	confluent, err := confluent.New()
	require.NoError(t, err)
	g, err := confluent.GroupConsumer(map[string]string{"bootstrap.servers": c.ListenAddrs()[0], "group.id": "g",
		"session.timeout.ms": "1000", "heartbeat.interval.ms": "100", "partition.assignment.strategy": "cooperative-sticky",
		"topic.metadata.refresh.interval.ms": "500", "reconnect.backoff.ms": "20", "reconnect.backoff.max.ms": "100"}, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, g.Close()) })
	poll := func(until func() bool) {
		t.Helper()
		for end := time.Now().Add(patience); !until(); {
			_, _ = g.Poll(20 * time.Millisecond)
			require.True(t, time.Now().Before(end), "too late")
		}
	}
	var joins atomic.Int64
	c.ControlKey(int16(kmsg.SyncGroup), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		joins.Add(1)
		return nil, nil, false
	})
	require.NoError(t, g.Join("log", false))
	poll(func() bool { return joins.Load() > 0 })

	var down, silent atomic.Bool
	c.Control(func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		asked, ok := req.(*kmsg.MetadataRequest)
		if lost := down.Load() || silent.Load() && ok && len(asked.Topics) > 0; lost {
			return nil, errors.New("lost"), true
		}
		return nil, nil, false
	})
	down.Store(true)
	over := time.Now().Add(3 * time.Second) // two sessions, and twice three looks at the metadata
	poll(func() bool { return time.Now().After(over) })
	silent.Store(true)
	down.Store(false)
	var joined atomic.Bool
	c.ControlKey(int16(kmsg.JoinGroup), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		joined.Store(true)
		return nil, nil, false
	})
	poll(joined.Load)
}

// A question about the brokers must return an error if there are none. librdkafka's admin client
// aborts the process in that case.
func TestAnswerWithoutBrokersIsAnError(t *testing.T) {
	c := cluster(t)
	confluent, err := confluent.New()
	require.NoError(t, err)
	p, err := confluent.Producer(map[string]string{"bootstrap.servers": c.ListenAddrs()[0]}, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer p.Close()
	a, err := confluent.Admin(p)
	require.NoError(t, err)
	defer a.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	brokers, err := a.Brokers(ctx, true)
	require.NoError(t, err)
	require.Len(t, brokers, 1)
	c.ControlKey(int16(kmsg.Metadata), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		return noBrokers(req.(*kmsg.MetadataRequest)), nil, true
	})
	_, err = a.Brokers(ctx, true)
	require.Error(t, err)
}

// noBrokers is the answer of a broker that shuts down: there are topics, but no brokers.
func noBrokers(req *kmsg.MetadataRequest) *kmsg.MetadataResponse {
	resp := req.ResponseKind().(*kmsg.MetadataResponse)
	for _, asked := range req.Topics {
		topic := kmsg.NewMetadataResponseTopic()
		topic.Topic, topic.TopicID, topic.ErrorCode = asked.Topic, asked.TopicID, kerr.LeaderNotAvailable.Code
		resp.Topics = append(resp.Topics, topic)
	}
	return resp
}
