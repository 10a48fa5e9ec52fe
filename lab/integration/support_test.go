package integration

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/goneli/neli"
	"github.com/goneli/neli/internal/said"
)

// Code that the tests of topics, access and bad input share. Their members run in the test's own process: nothing is killed
// here, and the tests look at what members log and return.

// hostileTimeout is T of these tests: long enough for a busy machine.
const hostileTimeout = time.Second

// longTimeout is T where a term must last: in CI a test's processes, or its broker, may stand still for seven seconds.
const longTimeout = 15 * time.Second

// hostileModes are the ways to contend.
var hostileModes = []struct {
	name string
	set  func(*neli.Config)
}{
	{"open", func(c *neli.Config) { c.Nomination = neli.NominationOpen }},
	{"assigned", func(c *neli.Config) { c.Nomination = neli.NominationAssigned }},
	{"non-exclusive", func(c *neli.Config) { c.Mode = neli.NonExclusive }},
}

// hostileBroker makes groups settle quickly, so that the tests do not wait for that. A killed broker may come back
// soon, but its session lasts for several heartbeats: on a busy machine one of them may be late, and a broker that is
// fenced for a moment ends leases.
func hostileBroker() map[string]string {
	return map[string]string{
		"group.initial.rebalance.delay.ms": "0",
		"group.min.session.timeout.ms":     "500",
		"broker.session.timeout.ms":        "3000",
		"broker.heartbeat.interval.ms":     "500",
	}
}

// steadyBroker is hostileBroker for tests that kill no broker. A broker that gets no processor for longer than its session is
// fenced for a moment: topics then get fewer replicas, and clients lose the only broker.
func steadyBroker() map[string]string {
	props := hostileBroker()
	props["broker.session.timeout.ms"] = "30000"
	return props
}

// autoCreating are brokers with Kafka's own default, which the test kit switches off: they create a topic that a client
// asks for.
func autoCreating() map[string]string {
	props := steadyBroker()
	props["auto.create.topics.enable"] = "true"
	return props
}

// hostileNumber makes names unique.
var hostileNumber atomic.Int64

// hostileConfig returns the configuration of a member of a group and topic of
// their own, and the log that it writes to.
func hostileConfig(bootstrap, what string, set func(*neli.Config)) (neli.Config, *hostileLog) {
	logger, log := newHostileLogger()
	cfg := neli.Config{
		KafkaConfig:      neli.KafkaConfigMap{"bootstrap.servers": bootstrap},
		LeaderGroupID:    fmt.Sprintf("%s-%d", what, hostileNumber.Add(1)),
		Nomination:       neli.NominationAssigned, // unless set changes it
		HeartbeatTimeout: hostileTimeout,
		DrainTimeout:     time.Second,
		Provider:         client(),
		Logger:           logger,
	}
	set(&cfg)
	if cfg.Mode == neli.NonExclusive {
		cfg.HeartbeatInterval = 100 * time.Millisecond
	}
	if cfg.Nomination == neli.NominationAssigned && cfg.KafkaConfig["group.protocol"] != "consumer" {
		cfg.KafkaConfig["session.timeout.ms"] = 750
		cfg.KafkaConfig["heartbeat.interval.ms"] = 100
	}
	cfg.LeaderTopic = cfg.LeaderGroupID + ".neli"
	return cfg, log
}

// hostileMember is a Neli that is pulsed until it ends.
type hostileMember struct {
	*neli.Neli
	log   *hostileLog
	began time.Time
	ended chan struct{} // closed when Pulse has returned err

	err     error
	endedAt time.Time
}

func hostileStart(t *testing.T, cfg neli.Config, log *hostileLog, barrier ...neli.Barrier) *hostileMember {
	t.Helper()
	began := time.Now()
	n, err := neli.New(cfg, barrier...)
	require.NoError(t, err)
	m := &hostileMember{Neli: n, log: log, began: began, ended: make(chan struct{})}
	go func() {
		defer close(m.ended)
		// A leader's Pulse does not wait, so this loop does.
		for tick := time.NewTicker(10 * time.Millisecond); m.err == nil; <-tick.C {
			_, m.err = n.Pulse(10 * time.Millisecond)
		}
		m.endedAt = time.Now()
	}()
	t.Cleanup(func() {
		assert.NoError(t, n.Close())
		<-m.ended
		if t.Failed() {
			t.Logf("log of %s:\n%s", n.Config().Name, log.tail(60))
		}
	})
	return m
}

// leads waits until m leads, and returns how long that took from its start.
func (m *hostileMember) leads(t *testing.T, within time.Duration) time.Duration {
	t.Helper()
	hostileUntil(t, within, func() bool {
		select {
		case <-m.ended:
			t.Fatalf("ended instead of leading: %v", m.err)
		default:
		}
		return m.IsLeader()
	}, "it leads")
	return time.Since(m.began)
}

// fails waits for the error with which Pulse ends, and checks that Await returns the same.
func (m *hostileMember) fails(t *testing.T, within time.Duration) error {
	t.Helper()
	select {
	case <-m.ended:
	case <-time.After(within):
		t.Fatalf("Pulse returned no error within %v", within)
	}
	assert.Equal(t, m.err, m.Await())
	assert.Equal(t, neli.StateFailed, m.State())
	assert.False(t, m.IsLeader())
	return m.err
}

// hostileUntil waits for a condition.
func hostileUntil(t *testing.T, within time.Duration, cond func() bool, what string) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(within); !cond(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", within, what)
		}
	}
}

// hostileLog keeps everything that is logged, at every level.
type hostileLog struct{ said.Text }

func newHostileLogger() (*slog.Logger, *hostileLog) {
	l := &hostileLog{}
	return l.Logger(slog.LevelDebug - 100), l
}

// with returns the lines that contain all of words.
func (l *hostileLog) with(words ...string) []string {
	var found []string
	for line := range strings.Lines(l.String()) {
		all := true
		for _, word := range words {
			all = all && strings.Contains(line, word)
		}
		if all {
			found = append(found, line)
		}
	}
	return found
}

func (l *hostileLog) tail(n int) string {
	all := l.with("")
	return strings.Join(all[max(0, len(all)-n):], "")
}

// hostileWrite appends values to partition 0 of a topic, in their order, and waits until the broker has them.
func hostileWrite(t *testing.T, bootstrap, topic string, values ...[]byte) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(bootstrap, ",")...), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchMaxBytes(128<<10)) // the library's topics take no larger ones
	require.NoError(t, err)
	defer client.Close()
	records := make([]*kgo.Record, len(values))
	for i, v := range values {
		records[i] = &kgo.Record{Topic: topic, Value: v}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, client.ProduceSync(ctx, records...).FirstErr())
}
