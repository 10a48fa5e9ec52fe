package kafkatest

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/goneli/neli/lab/nursery"
)

// patience is how long a step that must succeed may take.
const patience = time.Minute

// quickReturn makes a restart wait less than 9 s for the broker's former session to end. The session still suits
// brokers that share a busy machine: one that is silent for longer is fenced, and leads nothing.
var quickReturn = map[string]string{
	"broker.session.timeout.ms":    "5000",
	"broker.heartbeat.interval.ms": "500",
}

func TestOneBroker(t *testing.T) {
	props := maps.Clone(quickReturn)
	props["message.max.bytes"] = "4321"
	free, err := FreeAddrs(1)
	require.NoError(t, err)
	c := Run(t, Options{BrokerProps: props, Port: int(netip.MustParseAddrPort(free[0]).Port())})
	b := c.Brokers()[0]
	assert.Equal(t, free[0], b.Addr)
	assert.Equal(t, b.Addr, c.Bootstrap())
	createTopic(t, c, "things")
	produce(t, c, "things", "one")

	t.Run("suspended it is silent", func(t *testing.T) {
		require.NoError(t, b.Suspend())
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		_, err := b.live(ctx)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		require.NoError(t, b.Resume())
		resumed, stop := context.WithTimeout(t.Context(), patience)
		defer stop()
		// If it was suspended for longer than its session, it is fenced until its next heartbeat.
		assert.NoError(t, b.waitReady(resumed, 1))
	})

	t.Run("killed it is gone and comes back with its data", func(t *testing.T) {
		pid := b.Pid()
		assert.NotZero(t, pid)
		b.Kill()
		b.Kill()
		assert.Zero(t, b.Pid())
		assert.False(t, nursery.Alive(pid))
		assert.Error(t, b.Suspend())
		require.NoError(t, b.Restart(t.Context()))
		assert.NotEqual(t, pid, b.Pid())
		assert.Equal(t, "one", consume(t, c, "things"))
	})

	t.Run("terminated while suspended", func(t *testing.T) {
		require.NoError(t, b.Suspend())
		require.NoError(t, b.Terminate(t.Context()))
		assert.Zero(t, b.Pid())
		require.NoError(t, b.Terminate(t.Context()))
		require.NoError(t, b.Restart(t.Context()))
	})

	t.Run("logs are kept", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "kept")
		require.NoError(t, c.KeepLogs(dir))
		assert.FileExists(t, filepath.Join(dir, "broker-1.log"))
		props, err := os.ReadFile(filepath.Join(dir, "broker-1.properties"))
		require.NoError(t, err)
		assert.Contains(t, string(props), "message.max.bytes=4321\n")
		info, err := os.Stat(filepath.Join(dir, "broker-1.properties"))
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), info.Mode(), "settings may have secrets")
		assert.Contains(t, c.Logs(), "--- broker 1 ("+b.Addr+")\n")
	})

	t.Run("stopped it leaves nothing", func(t *testing.T) {
		pid := b.Pid()
		c.Stop()
		c.Stop()
		assert.False(t, nursery.Alive(pid))
		assert.NoDirExists(t, c.dir)
		assert.ErrorIs(t, b.Restart(t.Context()), nursery.ErrClosed)
		assert.ErrorIs(t, c.KeepLogs(t.TempDir()), os.ErrNotExist)
	})
}

func TestStartReportsWhyItFailed(t *testing.T) {
	requireOwn(t, KafkaVersion)
	_, err := Start(t.Context(), Options{BrokerProps: map[string]string{"num.io.threads": "many"}})
	require.ErrorContains(t, err, "num.io.threads")
}

func TestStartTakesOtherPortsWhenOneIsTaken(t *testing.T) {
	requireOwn(t, KafkaVersion)
	var tried []string
	testHookLaidOut = func(c *Cluster) {
		addr := c.brokers[0].Addr
		tried = append(tried, addr)
		if len(tried) == 1 {
			l, err := net.Listen("tcp", addr)
			require.NoError(t, err)
			t.Cleanup(func() { _ = l.Close() })
		}
	}
	defer func() { testHookLaidOut = nil }()
	c := Run(t, Options{Dir: t.TempDir()})
	require.Len(t, tried, 2)
	assert.Equal(t, tried[1], c.Bootstrap())
}

// Brokers on hosts of their own may be out of reach without Dial.
func TestRequestsToAnyBrokerUseDial(t *testing.T) {
	dialled := errors.New("dialled")
	c := &Cluster{opts: Options{Dial: func(context.Context, string, string) (net.Conn, error) { return nil, dialled }}}
	c.brokers = []*Broker{{ID: 1, Addr: "127.0.0.1:1", cluster: c}}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, err := c.ask(ctx, kmsg.NewPtrMetadataRequest())
	assert.ErrorIs(t, err, dialled)
	_, err = c.brokers[0].ask(ctx, kmsg.NewPtrMetadataRequest())
	assert.ErrorIs(t, err, dialled)
}

func createTopic(t *testing.T, c *Cluster, topic string) {
	t.Helper()
	req := kmsg.NewPtrCreateTopicsRequest()
	spec := kmsg.NewCreateTopicsRequestTopic()
	spec.Topic, spec.NumPartitions, spec.ReplicationFactor = topic, 1, int16(len(c.brokers))
	req.Topics = append(req.Topics, spec)
	resp, err := c.ask(t.Context(), req)
	require.NoError(t, err)
	require.NoError(t, kerr.ErrorForCode(resp.(*kmsg.CreateTopicsResponse).Topics[0].ErrorCode))
}

func produce(t *testing.T, c *Cluster, topic, value string) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(c.addrs()...))
	require.NoError(t, err)
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, client.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte(value)}).FirstErr())
}

// consume returns the value of a topic's first record.
func consume(t *testing.T, c *Cluster, topic string) string {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(c.addrs()...), kgo.ConsumeTopics(topic))
	require.NoError(t, err)
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		fetches := client.PollFetches(ctx)
		require.NoError(t, fetches.Err0())
		if records := fetches.Records(); len(records) > 0 {
			return string(records[0].Value)
		}
	}
}
