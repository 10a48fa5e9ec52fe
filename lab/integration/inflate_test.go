package integration

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/goneli/neli"
	"github.com/goneli/neli/lab/kafkatest"
)

// inflating writes a record of zeros that takes some KiB at the broker.
func inflating(t *testing.T, bootstrap, topic string, codec kgo.CompressionCodec, size int) error {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(bootstrap, ",")...), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(codec), kgo.ProducerBatchMaxBytes(256<<20), kgo.BrokerMaxWriteBytes(512<<20))
	require.NoError(t, err)
	defer client.Close()
	return client.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Value: make([]byte, size)}).FirstErr()
}

// The topics that the library creates refuse a record that takes much more memory at its readers than at the broker. A
// topic without these settings accepts it, which is logged once. Then readers on both clients read on behind it, and so
// does a member that starts later.
func TestInflatingRecords(t *testing.T) {
	t.Parallel()
	cluster := kafkatest.Run(t, kafkatest.Options{BrokerProps: steadyBroker()})
	admin := newHostileAdmin(t, cluster.Bootstrap())
	for name, provider := range clients {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // no member knows the leases before the record, so all wait for a minute
			use := func(c *neli.Config) {
				c.Nomination, c.Provider, c.HeartbeatTimeout = neli.NominationOpen, provider(), 5*time.Second
			}
			cfg, log := hostileConfig(cluster.Bootstrap(), "deflated", use)
			hostileStart(t, cfg, log).leads(t, patience)
			assert.ErrorIs(t, inflating(t, cluster.Bootstrap(), cfg.LeaderTopic, kgo.ZstdCompression(), 20<<20), kerr.MessageTooLarge)
			assert.Empty(t, log.with("unsafe setting"))

			cfg, log = hostileConfig(cluster.Bootstrap(), "inflating", use)
			admin.create(t, cfg.LeaderTopic, 1, 1, map[string]string{"message.timestamp.type": "LogAppendTime"})
			m := hostileStart(t, cfg, log)
			m.leads(t, patience)
			assert.Len(t, log.with("level=WARN", "unsafe setting", "compression.type=producer"), 1)
			resets := m.Stats().LogResets
			require.NoError(t, inflating(t, cluster.Bootstrap(), cfg.LeaderTopic, kgo.ZstdCompression(), 200<<20))
			hostileUntil(t, patience, func() bool { return m.Stats().LogResets > resets }, "it begins anew")
			assert.NotEmpty(t, log.with("level=WARN", "skipping what cannot be read"))
			m.leads(t, 2*time.Minute)
			cfg.KafkaConfig = maps.Clone(cfg.KafkaConfig)
			cfg.Logger, log = newHostileLogger()
			newcomer := hostileStart(t, cfg, log)
			hostileUntil(t, 2*time.Minute, func() bool { h, held := newcomer.Holder(0); return held && h.Name == m.Config().Name }, "a newcomer knows the leader")
		})
	}
}

// In non-exclusive mode only the newest record counts. So a member passes over a record that its client cannot unpack, and
// leads on.
func TestInflatingRecordsInNonExclusiveMode(t *testing.T) {
	t.Parallel()
	cluster := kafkatest.Run(t, kafkatest.Options{BrokerProps: steadyBroker()})
	admin := newHostileAdmin(t, cluster.Bootstrap())
	for name, provider := range clients {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, log := hostileConfig(cluster.Bootstrap(), "passing-over", func(c *neli.Config) {
				c.Mode, c.Provider, c.HeartbeatTimeout = neli.NonExclusive, provider(), 10*time.Second
			})
			admin.create(t, cfg.LeaderTopic, 1, 1, map[string]string{"message.timestamp.type": "LogAppendTime"})
			m := hostileStart(t, cfg, log)
			m.leads(t, patience)
			require.NoError(t, inflating(t, cluster.Bootstrap(), cfg.LeaderTopic, kgo.ZstdCompression(), 200<<20))
			hostileUntil(t, patience, func() bool { return len(log.with("level=WARN", "skipping what cannot be read")) > 0 }, "it says so")
			assert.Never(t, func() bool { return !m.IsLeader() }, 15*time.Second, 10*time.Millisecond, "it leads on")
		})
	}
}
