package proxy

import (
	"context"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/goneli/neli/lab/kafkatest"
)

func TestKafkaBehindProxies(t *testing.T) {
	cluster := kafkatest.Run(t, kafkatest.Options{ProxiedListeners: 2})
	createTopic(t, cluster.Bootstrap())
	proxies := []*Proxy{start(t, cluster, 0), start(t, cluster, 1)}
	p, other := proxies[0], proxies[1]
	log := newReader(t, cluster.Bootstrap())

	t.Run("a member sees no address but its proxy's", func(t *testing.T) {
		for _, p := range proxies {
			assert.Equal(t, p.Bootstrap(), advertised(t, p.Bootstrap()))
		}
		assert.Equal(t, cluster.Bootstrap(), advertised(t, cluster.Bootstrap()))
	})

	t.Run("reading through a proxy", func(t *testing.T) {
		require.NoError(t, produce(t, p.Bootstrap(), "first", patience))
		assert.Equal(t, "first", log.next())
		assert.Equal(t, "first", newReader(t, other.Bootstrap()).next())
	})

	t.Run("cut off, and the other is not", func(t *testing.T) {
		require.NoError(t, p.CutOff(Both))
		assert.Error(t, produce(t, p.Bootstrap(), "lost", time.Second))
		require.NoError(t, produce(t, other.Bootstrap(), "other", patience))
		assert.Equal(t, "other", log.next())
		require.NoError(t, p.Restore())
		require.NoError(t, produce(t, p.Bootstrap(), "back", patience))
		assert.Equal(t, "back", log.next(), "what was lost does not come")
	})

	t.Run("deaf: the record is written, the writer does not know", func(t *testing.T) {
		err := produceDuring(t, p.Bootstrap(), "unacknowledged", func() error { return p.CutOff(Downstream) })
		assert.ErrorIs(t, err, context.Canceled)
		assert.Equal(t, "unacknowledged", log.next())
		require.NoError(t, p.Restore())
	})

	t.Run("held: the record of a writer that is gone comes late", func(t *testing.T) {
		err := produceDuring(t, p.Bootstrap(), "late", func() error { return p.Hold(Upstream) })
		assert.ErrorIs(t, err, context.Canceled)
		require.NoError(t, produce(t, other.Bootstrap(), "between", patience))
		require.NoError(t, p.Restore())
		assert.Equal(t, "between", log.next())
		assert.Equal(t, "late", log.next())
	})

	t.Run("a restarted broker is reached by the same way", func(t *testing.T) {
		broker := cluster.Brokers()[0]
		require.NoError(t, broker.Restart(t.Context()))
		require.NoError(t, produce(t, p.Bootstrap(), "last", patience))
		assert.Equal(t, "last", log.next())
	})
}

// patience is how long a step that must succeed may take.
const patience = time.Minute

func start(t *testing.T, cluster *kafkatest.Cluster, i int) *Proxy {
	t.Helper()
	p, err := New(cluster, i)
	require.NoError(t, err)
	t.Cleanup(p.Close)
	return p
}

func newClient(t *testing.T, bootstrap string, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(append(opts, kgo.SeedBrokers(strings.Split(bootstrap, ",")...))...)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return client
}

const topic = "things"

func createTopic(t *testing.T, bootstrap string) {
	t.Helper()
	req := kmsg.NewPtrCreateTopicsRequest()
	spec := kmsg.NewCreateTopicsRequestTopic()
	spec.Topic, spec.NumPartitions, spec.ReplicationFactor = topic, 1, 1
	req.Topics = append(req.Topics, spec)
	resp, err := req.RequestWith(t.Context(), newClient(t, bootstrap))
	require.NoError(t, err)
	require.NoError(t, kerr.ErrorForCode(resp.Topics[0].ErrorCode))
}

// advertised returns the brokers' addresses as a client learns them.
func advertised(t *testing.T, bootstrap string) string {
	t.Helper()
	resp, err := kmsg.NewPtrMetadataRequest().RequestWith(t.Context(), newClient(t, bootstrap))
	require.NoError(t, err)
	var addrs []string
	for _, b := range resp.Brokers {
		addrs = append(addrs, net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port))))
	}
	return strings.Join(addrs, ",")
}

// produce writes a record with a client of its own.
func produce(t *testing.T, bootstrap, value string, limit time.Duration) error {
	t.Helper()
	return produceWith(t, newClient(t, bootstrap), value, limit)
}

// written closes itself when a client has sent a record, from when it is armed on.
type written struct {
	armed atomic.Bool
	once  sync.Once
	sent  chan struct{}
}

func (w *written) OnBrokerWrite(_ kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, err error) {
	if w.armed.Load() && kmsg.Key(key) == kmsg.Produce && err == nil {
		w.once.Do(func() { close(w.sent) })
	}
}

// produceDuring writes a record with a client that was connected before the cut, and closes it. It gives up a second
// after the record was sent, which takes longer than that on a busy machine.
func produceDuring(t *testing.T, bootstrap, value string, cut func() error) error {
	t.Helper()
	w := &written{sent: make(chan struct{})}
	// Without idempotence, with which it would ask for a producer id first.
	client := newClient(t, bootstrap, kgo.DisableIdempotentWrite(), kgo.WithHooks(w))
	defer client.Close()
	require.NoError(t, produceWith(t, client, "", patience)) // readers skip empty records
	require.NoError(t, cut())
	w.armed.Store(true)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		select {
		case <-w.sent:
		case <-time.After(patience): // then the record does not come
		}
		<-time.After(time.Second)
		cancel()
	}()
	return client.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte(value)}).FirstErr()
}

func produceWith(t *testing.T, client *kgo.Client, value string, limit time.Duration) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	return client.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte(value)}).FirstErr()
}

type reader struct {
	t      *testing.T
	client *kgo.Client
}

// newReader reads the topic from its beginning.
func newReader(t *testing.T, bootstrap string) *reader {
	t.Helper()
	return &reader{t, newClient(t, bootstrap, kgo.ConsumeTopics(topic))}
}

func (r *reader) next() string {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	for {
		fetches := r.client.PollRecords(ctx, 1)
		require.NoError(r.t, fetches.Err0())
		for _, record := range fetches.Records() {
			if len(record.Value) > 0 {
				return string(record.Value)
			}
		}
	}
}
