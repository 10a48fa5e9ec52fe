//go:build cgo && !neli_nolibrdkafka

package franz_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/goneli/neli"
)

// A broker that shuts down may tell its clients of no brokers. librdkafka forgets all of them
// then, for ever (docs/clients.md). Every process gets over that by itself: one that only follows,
// and one that needs to be in a group, too. This is librdkafka's test, and here because a broker
// that does so at will is.
func TestClientsThatForgetAllBrokersAreReplaced(t *testing.T) {
	c := cluster(t)
	confluent, err := neli.Confluent()
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
		start(fmt.Sprint("assigned ", i), neli.Config{LeaderGroupID: "a", Nomination: neli.Assigned, Roles: 2, Partitions: 2,
			HeartbeatTimeout: 3 * time.Second}, leadsOne)
		start(fmt.Sprint("non-exclusive ", i), neli.Config{LeaderGroupID: "n", Mode: neli.NonExclusive, Roles: 2, Partitions: 2,
			HeartbeatTimeout: 10 * time.Second}, leadsOne)
	}
	start("observer", neli.Config{LeaderGroupID: "a", Observer: true, HeartbeatTimeout: 3 * time.Second}, func(n *neli.Neli) bool {
		h, known := n.Holder(0)
		return known && h.Age <= n.HeartbeatTimeout()
	})
	unwell := func() (out int) {
		for n, is := range well {
			if !is(n) {
				out++
			}
		}
		return out
	}
	require.Eventually(t, func() bool { return unwell() == 0 }, time.Minute, 20*time.Millisecond)

	var brokerless atomic.Bool
	brokerless.Store(true)
	c.ControlKey(int16(kmsg.Metadata), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		return noBrokers(req.(*kmsg.MetadataRequest)), nil, brokerless.Load()
	})
	require.Eventually(t, func() bool { return unwell() == len(well) }, time.Minute, 20*time.Millisecond, "all have forgotten")
	brokerless.Store(false)
	began := time.Now()
	require.Eventually(t, func() bool { return unwell() == 0 }, 2*time.Minute, 20*time.Millisecond, "all get over it")
	t.Log("all are well after", time.Since(began))
	// Not by each: a client that got no answer meanwhile, on a busy machine, has forgotten nothing.
	replaced := uint64(0)
	for n := range well {
		t.Log(n.Name(), "has replaced", n.Stats().ReadersReplaced)
		replaced += n.Stats().ReadersReplaced
	}
	require.Positive(t, replaced)
}

// A question for the brokers must not abort the process when there are none, as one that
// librdkafka's admin client asks does.
func TestNoBrokersAreAnError(t *testing.T) {
	c := cluster(t)
	confluent, err := neli.Confluent()
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

// noBrokers is what a broker that shuts down may answer: there are topics, and no brokers.
func noBrokers(req *kmsg.MetadataRequest) *kmsg.MetadataResponse {
	resp := req.ResponseKind().(*kmsg.MetadataResponse)
	for _, asked := range req.Topics {
		topic := kmsg.NewMetadataResponseTopic()
		topic.Topic, topic.TopicID, topic.ErrorCode = asked.Topic, asked.TopicID, kerr.LeaderNotAvailable.Code
		resp.Topics = append(resp.Topics, topic)
	}
	return resp
}
