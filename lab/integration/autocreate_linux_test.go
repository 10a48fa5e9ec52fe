package integration

import (
	"context"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/goneli/neli"
	fenceconfluent "github.com/goneli/neli/fence/confluent"
	"github.com/goneli/neli/franz/franzfence"
	"github.com/goneli/neli/lab/kafkatest"
	"github.com/goneli/neli/lab/nursery"
)

// stays is for how long a deleted topic must not come back. Members check their topic every ten seconds.
const stays = 12 * time.Second

// Brokers create a topic by default when a client asks for one. Nothing in the library may bring a deleted or missing
// topic back in this way, since it would have the brokers' default settings.
func TestDeletedTopicIsNotRecreated(t *testing.T) {
	t.Parallel()
	cluster := kafkatest.Run(t, kafkatest.Options{BrokerProps: autoCreating()})
	admin := newHostileAdmin(t, cluster.Bootstrap())
	var gone []string // topics that must not be there
	for name, provider := range clients {
		for _, mode := range hostileModes {
			gone = append(gone, autoCreateMembers(t, cluster, name+"-"+mode.name, func(c *neli.Config) {
				mode.set(c)
				c.Provider = provider()
			}))
		}
		cfg, log := hostileConfig(cluster.Bootstrap(), "awaited-"+name, hostileModes[0].set)
		cfg.Provider, cfg.DisableTopicCreation = provider(), true
		hostileStart(t, cfg, log)
		require.Zero(t, admin.partitions(t, cfg.LeaderTopic))
		gone = append(gone, cfg.LeaderTopic)
	}
	gone = append(gone, autoCreateCommand(t, cluster, admin))
	for _, topic := range gone {
		if admin.partitions(t, topic) > 0 {
			admin.remove(t, topic)
		}
	}
	gone = append(gone, autoCreateFences(t, cluster))
	hostileUntil(t, patience, func() bool {
		return !slices.ContainsFunc(gone, func(topic string) bool { return admin.partitions(t, topic) > 0 })
	}, "they are gone")
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(stays); time.Now().Before(end); <-tick.C {
		for _, topic := range gone {
			require.Zero(t, admin.partitions(t, topic), "somebody has made topic %s anew", topic)
		}
	}
}

// autoCreateMembers starts a leader, a member that may not create the topic, and a sentinel, and returns their topic.
func autoCreateMembers(t *testing.T, cluster *kafkatest.Cluster, name string, set func(*neli.Config)) string {
	cfg, log := hostileConfig(cluster.Bootstrap(), name, set)
	cfg.HeartbeatTimeout = 2 * time.Second
	if cfg.Mode == neli.Exclusive {
		cfg.Sentinel = startSentinelWith(t, neli.KafkaConfigMap{"bootstrap.servers": cluster.Bootstrap()}, cfg.Provider)
	}
	hostileStart(t, cfg, log).leads(t, patience)
	cfg.DisableTopicCreation = true
	cfg.Logger, log = newHostileLogger()
	follower := hostileStart(t, cfg, log)
	hostileUntil(t, patience, func() bool {
		return follower.Stats().Records > 0 || len(log.with("the group assigned")) > 0
	}, "another member follows")
	return cfg.LeaderTopic
}

// autoCreateFences produces to a topic that nobody has created, and returns it.
func autoCreateFences(t *testing.T, cluster *kafkatest.Cluster) string {
	topic := "results-of-nobody"
	librdkafka, err := fenceconfluent.New(t.Context(), ck.ConfigMap{"bootstrap.servers": cluster.Bootstrap()})
	require.NoError(t, err)
	franz, err := franzfence.New(t.Context(), kgo.SeedBrokers(cluster.Bootstrap()))
	require.NoError(t, err)
	assert.Error(t, librdkafka.AppendOnly(t.Context(), topic))
	assert.Error(t, franz.AppendOnly(t.Context(), topic))
	one, err := librdkafka.Open("one")()
	require.NoError(t, err)
	t.Cleanup(one.Close)
	two, err := franz.Open("two")()
	require.NoError(t, err)
	t.Cleanup(two.Close)
	for _, init := range []func(context.Context) error{one.Init, two.Init} { // a coordinator that has just begun may send clients away
		hostileUntil(t, patience, func() bool { return init(t.Context()) == nil }, "a transaction can begin")
	}
	require.NoError(t, one.Begin())
	require.NoError(t, two.Begin())
	short, done := context.WithTimeout(t.Context(), 5*time.Second)
	defer done()
	var writing sync.WaitGroup
	defer writing.Wait()
	writing.Go(func() {
		assert.Error(t, one.Produce(short, []*ck.Message{{TopicPartition: ck.TopicPartition{Topic: &topic, Partition: 0}, Value: []byte("x")}}))
	})
	assert.Error(t, two.Produce(short, []*kgo.Record{{Topic: topic, Value: []byte("x")}}))
	return topic
}

// autoCreateCommand starts a command with a topic of its own, and returns the topic. The command's
// other verbs only read.
func autoCreateCommand(t *testing.T, cluster *kafkatest.Cluster, admin hostileAdmin) string {
	program := buildCommand(t)
	for _, verb := range [][]string{{"check", "--for", "1s"}, {"status"}} {
		out, err := exec.CommandContext(t.Context(), program, append(verb, "--bootstrap", cluster.Bootstrap(), "--group", "nobody")...).CombinedOutput()
		require.Error(t, err)
		require.Contains(t, string(out), "is missing")
	}
	require.Zero(t, admin.partitions(t, "nobody.neli"))
	children, err := nursery.New("")
	require.NoError(t, err)
	t.Cleanup(children.Close)
	dir := t.TempDir()
	m := &commandMember{t: t, name: "a", said: filepath.Join(dir, "out")}
	m.join(children, exec.Command(program, "run", "--bootstrap", cluster.Bootstrap(), "--group", "of-the-command", "--name", "a",
		"--timeout", "2s", "--", "sh", "-c", commandJob), filepath.Join(dir, "witness"))
	hostileUntil(t, time.Minute, m.runs, "a job runs")
	return "of-the-command.neli"
}
