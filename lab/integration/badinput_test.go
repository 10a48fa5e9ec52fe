package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/goneli/neli"
	"github.com/goneli/neli/lab/kafkatest"
)

// Tests of bad configuration, a topic with malformed records, Close, and no broker.
func TestBadInput(t *testing.T) {
	cluster := kafkatest.Run(t, kafkatest.Options{BrokerProps: hostileBroker()})
	t.Run("configuration", testConfiguration)
	t.Run("rubbish", func(t *testing.T) { testRubbish(t, cluster) })
	t.Run("close", func(t *testing.T) { testClose(t, cluster) })
	t.Run("no broker", func(t *testing.T) { testNoBroker(t, cluster) })
}

// nothingStays checks at the test's end that the test has left no goroutine behind. It runs after all other cleanups,
// which close what the test itself has made. It leaves out goroutines of proxies: some start only after the proxy
// listens, and those of a connection may end long after it.
func nothingStays(t *testing.T) {
	others := []goleak.Option{goleak.IgnoreCurrent()}
	for _, f := range []string{".(*Proxy).server", ".(*Proxy).freeBlocker", ".(*ToxicLink).read", ".(*ToxicLink).write", "/toxics.(*ToxicStub).Run"} {
		others = append(others, goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2"+f))
	}
	t.Cleanup(func() { goleak.VerifyNone(t, others...) })
}

// New refuses the same properties as the client, and names them.
func testConfiguration(t *testing.T) {
	nothingStays(t)
	many := neli.Config{
		KafkaConfig: neli.KafkaConfigMap{
			"acks": "1", "group.id": "mine", "session.timeout.ms": "soon", "linger.ms": 1.5, "retries": []int{1},
			"sasl.password": struct{ s string }{"s3same"},
		},
		LeaderTopic: "no such/topic", Mode: 7, Nomination: -1, Roles: -1, Partitions: -2,
		HeartbeatTimeout: time.Millisecond, DrainTimeout: -time.Second, MaxClockDrift: 2,
	}
	_, err := neli.New(many)
	require.Error(t, err)
	for _, fault := range []string{
		"KafkaConfig[acks]", "KafkaConfig[group.id]", "KafkaConfig[session.timeout.ms]", "KafkaConfig[linger.ms]", "KafkaConfig[retries]",
		"KafkaConfig[sasl.password]", "LeaderTopic", "Mode", "Nomination", "Roles", "Partitions", "HeartbeatTimeout", "DrainTimeout", "MaxClockDrift",
	} {
		assert.ErrorContains(t, err, fault+": ")
	}
	assert.NotContains(t, err.Error(), "s3same")

	type refusal struct {
		props neli.KafkaConfigMap
		name  string // what the error names
		modes []string
	}
	all := []string{"open", "assigned", "non-exclusive"}
	grouped := all[1:] // without a group the property has no effect
	for _, c := range []refusal{
		{neli.KafkaConfigMap{"no.such.property": "x"}, "no.such.property", all},
		{neli.KafkaConfigMap{"": "x"}, `""`, all},
		{neli.KafkaConfigMap{"socket.timeout.ms": "soon"}, "socket.timeout.ms", all},
		{neli.KafkaConfigMap{"socket.timeout.ms": -5}, "socket.timeout.ms", all},
		{neli.KafkaConfigMap{"debug": "nonsense"}, "debug", all},
		{neli.KafkaConfigMap{"security.protocol": "telepathy"}, "security.protocol", all},
		{neli.KafkaConfigMap{"security.protocol": "SSL", "ssl.key.pem": "tr0ub4dor-and-3"}, "ssl.key.pem", all},
		{neli.KafkaConfigMap{"fetch.wait.max.ms": "soon"}, "fetch.wait.max.ms", all},
		{neli.KafkaConfigMap{"partition.assignment.strategy": "fair"}, "partition.assignment.strategy", grouped},
		{neli.KafkaConfigMap{"max.poll.interval.ms": 10}, "max.poll.interval.ms", grouped},
	} {
		for _, mode := range hostileModes {
			if !slices.Contains(c.modes, mode.name) {
				continue
			}
			cfg := neli.Config{LeaderGroupID: "bad", KafkaConfig: c.props}
			mode.set(&cfg)
			_, err := neli.New(cfg)
			if assert.Error(t, err, "%v %v", mode.name, c.props) {
				assert.ErrorContains(t, err, c.name, mode.name)
				assert.NotContains(t, err.Error(), "tr0ub4dor-and-3")
			}
		}
	}
	_, err = neli.New(neli.Config{}, func(neli.Event) {}, func(neli.Event) {})
	assert.ErrorContains(t, err, "barrier")
}

// rubbish returns n records of every kind that does not belong in a leader topic.
func rubbish(n int, group, log string, random *rand.Rand) [][]byte {
	forged := func(fields map[string]any) []byte {
		record := map[string]any{"neli": 1, "kind": "beat", "group": group, "log": log, "process": "forger", "session": 1, "name": "forger",
			"t": 3e9, "longest": 3e9, "read": -1, "seq": 1}
		for name, value := range fields {
			record[name] = value
		}
		b, err := json.Marshal(record)
		if err != nil {
			panic(err)
		}
		return b
	}
	noise := func(size int) []byte {
		b := make([]byte, size)
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		return b
	}
	kinds := []func(i int) []byte{
		func(int) []byte { return noise(random.IntN(300)) },
		func(int) []byte { return nil },
		func(int) []byte { return []byte{} },
		func(int) []byte { return []byte(`{}`) },
		func(int) []byte { return []byte(`null`) },
		func(int) []byte { return []byte(`[[[]]]`) },
		func(i int) []byte { return forged(map[string]any{"group": fmt.Sprintf("other-%d", i%7)}) },
		func(int) []byte { return forged(map[string]any{"neli": 99, "kind": "treaty"}) },
		func(int) []byte { return forged(map[string]any{"kind": "coup"}) },
		func(int) []byte { return forged(map[string]any{"process": strings.Repeat("m", 1000)}) },
		func(int) []byte { return forged(map[string]any{"session": "seven"}) },
		func(int) []byte { return forged(map[string]any{"read": -9}) },
		func(int) []byte { return forged(map[string]any{"kind": "claim"}) },
		func(int) []byte { return []byte(`{"neli":1,"kind":"beat","group":"` + group + "\xff\xfe\"}") },
		func(int) []byte { return forged(map[string]any{"seq": 1e300}) },
		func(i int) []byte {
			return fmt.Appendf(nil, `{"neli":1,"kind":"hello","group":%q,"log":%q,"process":"hello-%d","session":1,"read":-1,"seq":1,"hello":{"roles":1,"wants":[0,-5,99999999]}}`, group, log, i)
		},
	}
	out := make([][]byte, 0, n)
	for i := range n {
		switch {
		case i%1000 == 500:
			out = append(out, bytes.Repeat([]byte("["), 60_000)) // deep
		case i%1000 == 750:
			out = append(out, forged(map[string]any{"name": strings.Repeat("x", 100_000)})) // too large, and valid JSON
		default:
			out = append(out, kinds[i%len(kinds)](i))
		}
	}
	return out
}

// 20,000 records of rubbish neither disturb a leader nor keep a newcomer from its turn. A leader's own beat comes
// behind them in the log, so T leaves time to read them under the race detector, on cores that three such tests share.
func testRubbish(t *testing.T, cluster *kafkatest.Cluster) {
	admin := newHostileAdmin(t, cluster.Bootstrap())
	const count = 20_000
	for _, mode := range hostileModes {
		t.Run(mode.name, func(t *testing.T) {
			t.Parallel()
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			cfg, log := hostileConfig(cluster.Bootstrap(), "rubbish", mode.set)
			cfg.HeartbeatTimeout = 30 * time.Second
			var lost []neli.Event
			var mu sync.Mutex
			m := hostileStart(t, cfg, log, func(e neli.Event) {
				if _, acquired := e.(neli.LeaderAcquired); !acquired {
					mu.Lock()
					defer mu.Unlock()
					lost = append(lost, e)
				}
			})
			m.leads(t, time.Minute)
			token, exclusive := m.Token(0)
			before := m.Stats()

			records := rubbish(count, cfg.LeaderGroupID, admin.id(t, cfg.LeaderTopic), rand.New(rand.NewPCG(seed, 1)))
			hostileWrite(t, cluster.Bootstrap(), cfg.LeaderTopic, records...)
			written := time.Now()
			hostileUntil(t, time.Minute, func() bool { return m.Stats().Records >= before.Records+count }, "all is read")
			t.Logf("read %v after it was written", time.Since(written).Round(time.Millisecond))
			assert.True(t, m.IsLeader())
			mu.Lock()
			assert.Empty(t, lost, "leadership was not disturbed")
			mu.Unlock()
			if !exclusive {
				return
			}
			again, _ := m.Token(0)
			assert.Equal(t, token, again)
			s := m.Stats()
			assert.Greater(t, s.Foreign, uint64(count/20))
			assert.Greater(t, s.Newer, uint64(count/20))
			assert.Greater(t, s.Malformed, uint64(count/2))
			assert.Zero(t, s.LogResets)
			assert.Len(t, log.with("level=WARN", "malformed"), 1)
			assert.Len(t, log.with("level=WARN", "newer version"), 1)

			// Records that claim to have read beyond the end look like a log that went back. They
			// cost a leader its term, but it can lead again.
			ahead := admin.end(t, cfg.LeaderTopic, 0) + 1_000_000
			hostileWrite(t, cluster.Bootstrap(), cfg.LeaderTopic, fmt.Appendf(nil,
				`{"neli":1,"kind":"beat","group":%q,"log":%q,"process":"forger","session":1,"t":10000000000,"longest":0,"read":%d,"seq":1}`,
				cfg.LeaderGroupID, admin.id(t, cfg.LeaderTopic), ahead))
			forged := time.Now()
			// No other member knows the leases, so this takes the longest lease that there can be.
			hostileUntil(t, 2*time.Minute, func() bool { now, leads := m.Token(0); return leads && now > token }, "it leads again")
			t.Logf("led again %v after a forged record", time.Since(forged).Round(time.Millisecond))
			assert.Equal(t, uint64(1), m.Stats().LogResets)

			// A newcomer finds nothing but rubbish where it begins to read.
			hostileWrite(t, cluster.Bootstrap(), cfg.LeaderTopic, slices.DeleteFunc(slices.Clone(records[:100]), newer)...)
			cfg.Logger, log = newHostileLogger()
			newcomer := hostileStart(t, cfg, log)
			hostileUntil(t, time.Minute, func() bool { return newcomer.Stats().Records > 0 }, "the newcomer reads")
			require.NoError(t, m.Close())
			closed := time.Now()
			newcomer.leads(t, time.Minute)
			t.Logf("the newcomer led %v after the leader's Close", time.Since(closed).Round(time.Millisecond))
		})
	}
}

// newer reports whether a record is, or looks like, one of a newer version. A member that reads one
// claims nothing for a minute.
func newer(record []byte) bool {
	return bytes.Contains(record, []byte(`"neli":99`)) || bytes.Contains(record, []byte(`"coup"`))
}

// Without a broker no member leads, and everything else works: New, Pulse and Close return in time, and the
// log says what is wrong without flooding. Then the broker comes up.
func testNoBroker(t *testing.T, cluster *kafkatest.Cluster) {
	broker := cluster.Brokers()[0]
	require.NoError(t, broker.Terminate(t.Context()))
	for _, mode := range hostileModes {
		t.Run(mode.name, func(t *testing.T) {
			nothingStays(t)
			cfg, log := hostileConfig(cluster.Bootstrap(), "nobody", mode.set)
			began := time.Now()
			n, err := neli.New(cfg)
			require.NoError(t, err)
			assert.Less(t, time.Since(began), 5*time.Second, "it waits for no broker")
			longest := time.Duration(0)
			for len(log.with("level=WARN", "retrying", cluster.Bootstrap(), "refused")) == 0 || time.Since(began) < 5*time.Second {
				start := time.Now()
				ok, err := n.Pulse(10 * time.Millisecond)
				longest = max(longest, time.Since(start))
				require.NoError(t, err)
				require.False(t, ok)
				require.Less(t, time.Since(began), time.Minute, "it does not say what is wrong")
			}
			t.Logf("the longest Pulse(10ms) took %v", longest)
			assert.Less(t, longest, 5*time.Second, "it waits for no broker, since none comes")
			said := log.with("level=WARN")
			t.Log(said)
			assert.LessOrEqual(t, len(said), 3*(1+int(time.Since(began)/(10*time.Second))), "it does not flood")
			began = time.Now()
			require.NoError(t, n.Close())
			t.Logf("closed in %v", time.Since(began).Round(time.Millisecond))
			assert.Less(t, time.Since(began), hostileCloseBound)
		})
	}
	var members []*hostileMember
	for _, mode := range hostileModes {
		cfg, log := hostileConfig(cluster.Bootstrap(), "later", mode.set)
		members = append(members, hostileStart(t, cfg, log))
	}
	hostileUntil(t, time.Minute, func() bool { return len(members[0].log.with("level=WARN", "retrying")) > 0 }, "it says that")
	require.NoError(t, broker.Restart(t.Context()))
	came := time.Now()
	for _, m := range members {
		m.leads(t, time.Minute)
		t.Logf("led %v after the broker had come", time.Since(came).Round(time.Millisecond))
	}
}

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
