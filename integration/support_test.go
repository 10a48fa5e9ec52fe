package integration

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/goneli/neli"
)

// Code that the tests of topics, access and bad input share. Their members run in the test's own process: nothing is killed
// here, and the tests look at what members log and return.

// hostileTimeout is T of these tests: long enough for a busy machine.
const hostileTimeout = time.Second

// hostileModes are the ways to contend.
var hostileModes = []struct {
	name string
	set  func(*neli.Config)
}{
	{"open", func(c *neli.Config) { c.Nomination = neli.Open }},
	{"assigned", func(c *neli.Config) { c.Nomination = neli.Assigned }},
	{"non-exclusive", func(c *neli.Config) { c.Mode = neli.NonExclusive }},
}

// hostileBroker makes groups settle quickly, so that the tests do not wait for that.
func hostileBroker() map[string]string {
	return map[string]string{
		"group.initial.rebalance.delay.ms": "0",
		"group.min.session.timeout.ms":     "500",
		"broker.session.timeout.ms":        "3000",
	}
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
		Nomination:       neli.Assigned, // unless the mode is another
		HeartbeatTimeout: hostileTimeout,
		DrainTimeout:     time.Second,
		Provider:         client(),
		Logger:           logger,
	}
	set(&cfg)
	if cfg.Mode == neli.NonExclusive {
		cfg.HeartbeatInterval = 100 * time.Millisecond
	}
	if cfg.Nomination == neli.Assigned && cfg.KafkaConfig["group.protocol"] != "consumer" {
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
		// A leader's Pulse does not wait, so this does.
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

// fails waits for the error that Pulse ends with, and checks that Await returns
// the same.
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
type hostileLog struct {
	mu    sync.Mutex
	lines []string
}

var _ io.Writer = (*hostileLog)(nil)

// Write takes one line, as slog's handlers write it.
func (l *hostileLog) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, string(line))
	return len(line), nil
}

func newHostileLogger() (*slog.Logger, *hostileLog) {
	l := &hostileLog{}
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug - 100})), l
}

// with returns the lines that contain all of words.
func (l *hostileLog) with(words ...string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []string
	for _, line := range l.lines {
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

// hostileAdmin is an admin client of the cluster at bootstrap.
type hostileAdmin struct {
	*ck.AdminClient
	bootstrap string
	franz     admin // for the questions in which librdkafka may abort the process (docs/clients.md)
}

func newHostileAdmin(t *testing.T, bootstrap string) hostileAdmin {
	t.Helper()
	a, err := ck.NewAdminClient(&ck.ConfigMap{"bootstrap.servers": bootstrap, "log_level": 0})
	require.NoError(t, err)
	t.Cleanup(a.Close)
	return hostileAdmin{a, bootstrap, newAdmin(t, bootstrap)}
}

// create creates a topic, and waits until the broker describes it. On a busy machine a broker that misses its heartbeats is
// fenced for a moment, and the cluster then has no brokers. A client that learns of this forgets its broker for good
// (docs/clients.md), so another client has to ask.
func (a hostileAdmin) create(t *testing.T, topic string, partitions, replicas int, settings map[string]string) {
	t.Helper()
	asked := false // by a client that got no answer
	hostileUntil(t, 40*time.Second, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		results, err := a.CreateTopics(ctx, []ck.TopicSpecification{{
			Topic: topic, NumPartitions: partitions, ReplicationFactor: replicas, Config: settings,
		}})
		if code := kafkaCode(err); code == ck.ErrTimedOut || code == ck.ErrTimedOutQueue || errors.Is(err, context.DeadlineExceeded) {
			a, asked = newHostileAdmin(t, a.bootstrap), true
			return false
		}
		require.NoError(t, err)
		if results[0].Error.Code() == ck.ErrInvalidReplicationFactor {
			return false
		}
		if !asked || results[0].Error.Code() != ck.ErrTopicAlreadyExists {
			require.Equal(t, ck.ErrNoError, results[0].Error.Code(), results[0].Error)
		}
		return true
	}, "topic "+topic+" is created")
	hostileUntil(t, 20*time.Second, func() bool { return a.partitions(t, topic) == partitions }, "topic "+topic+" is described")
}

// kafkaCode returns the code of a client's error; 0 for other errors.
func kafkaCode(err error) ck.ErrorCode {
	var e ck.Error
	errors.As(err, &e)
	return e.Code()
}

func (a hostileAdmin) remove(t *testing.T, topic string) {
	t.Helper()
	results, err := a.DeleteTopics(t.Context(), []string{topic})
	require.NoError(t, err)
	require.Equal(t, ck.ErrNoError, results[0].Error.Code(), results[0].Error)
}

// describe returns the partitions of topic; none if it does not exist.
func (a hostileAdmin) describe(t *testing.T, topic string) []ck.TopicPartitionInfo {
	t.Helper()
	d, err := a.DescribeTopics(t.Context(), ck.NewTopicCollectionOfTopicNames([]string{topic}))
	require.NoError(t, err)
	return d.TopicDescriptions[0].Partitions
}

func (a hostileAdmin) partitions(t *testing.T, topic string) int { return len(a.describe(t, topic)) }

func (a hostileAdmin) settings(t *testing.T, topic string) map[string]string {
	t.Helper()
	results, err := a.DescribeConfigs(t.Context(), []ck.ConfigResource{{Type: ck.ResourceTopic, Name: topic}})
	require.NoError(t, err)
	out := map[string]string{}
	for name, entry := range results[0].Config {
		out[name] = entry.Value
	}
	return out
}

// id returns the topic's id, which records have.
func (a hostileAdmin) id(t *testing.T, topic string) string {
	d, err := a.DescribeTopics(t.Context(), ck.NewTopicCollectionOfTopicNames([]string{topic}))
	require.NoError(t, err)
	require.Len(t, d.TopicDescriptions, 1)
	return d.TopicDescriptions[0].TopicID.String()
}

// end returns the offset after the last record of a partition.
func (a hostileAdmin) end(t *testing.T, topic string, partition int) int64 {
	t.Helper()
	req := kmsg.NewPtrListOffsetsRequest()
	of, p := kmsg.NewListOffsetsRequestTopic(), kmsg.NewListOffsetsRequestTopicPartition()
	p.Partition, p.Timestamp = int32(partition), -1
	of.Topic, of.Partitions = topic, append(of.Partitions, p)
	req.Topics = append(req.Topics, of)
	resp, err := req.RequestWith(t.Context(), a.franz)
	require.NoError(t, err)
	answer := resp.Topics[0].Partitions[0]
	require.NoError(t, kerr.ErrorForCode(answer.ErrorCode))
	return answer.Offset
}

// behead deletes the records of a partition before an offset, all of them if it is −1.
func (a hostileAdmin) behead(t *testing.T, topic string, partition int, before int64) {
	t.Helper()
	req := kmsg.NewPtrDeleteRecordsRequest()
	of, p := kmsg.NewDeleteRecordsRequestTopic(), kmsg.NewDeleteRecordsRequestTopicPartition()
	p.Partition, p.Offset = int32(partition), before
	of.Topic, of.Partitions = topic, append(of.Partitions, p)
	req.Topics = append(req.Topics, of)
	resp, err := req.RequestWith(t.Context(), a.franz)
	require.NoError(t, err)
	require.NoError(t, kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode))
}

// hostileWrite appends values to partition 0 of a topic and waits until the broker has them.
func hostileWrite(t *testing.T, bootstrap, topic string, values ...[]byte) {
	t.Helper()
	p, err := ck.NewProducer(&ck.ConfigMap{
		"bootstrap.servers": bootstrap, "acks": "all", "log_level": 0, "linger.ms": 5,
		"go.delivery.reports": true, "go.events.channel.size": 64,
	})
	require.NoError(t, err)
	defer p.Close()
	go func() {
		for _, v := range values {
			for {
				err := p.Produce(&ck.Message{TopicPartition: ck.TopicPartition{Topic: &topic, Partition: 0}, Value: v}, nil)
				if e, ok := err.(ck.Error); !ok || e.Code() != ck.ErrQueueFull {
					break
				}
				p.Flush(10)
			}
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for left := len(values); left > 0; {
		select {
		case ev := <-p.Events():
			if m, ok := ev.(*ck.Message); ok {
				require.NoError(t, m.TopicPartition.Error)
				left--
			}
		case <-ctx.Done():
			t.Fatalf("%d records were not written", left)
		}
	}
}
