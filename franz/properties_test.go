package franz

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/oauth"

	"github.com/goneli/neli"
	"github.com/goneli/neli/kafka"
)

var discard = slog.New(slog.DiscardHandler)

// made returns a client of the kind with these properties, and franz-go's client.
func made(t *testing.T, kind kind, props map[string]string) (*client, *kgo.Client) {
	t.Helper()
	of := []func(*settings) []kgo.Opt{producing, following, taking}[kind]
	if kind == forGroup && props["group.id"] == "" {
		props["group.id"] = "g"
	}
	c, err := provider{}.newClient(kind, props, discard, of)
	require.NoError(t, err)
	k, err := c.dial(of(c.settings)...)
	require.NoError(t, err)
	t.Cleanup(func() { k.shut(0) })
	return c, k.Client
}

// effects has what each property does to franz-go's client or to this package's settings.
var effects = []struct {
	kind        kind
	name, value string
	option      any // an option of franz-go, or a function of the two clients
	want        any
}{
	{forProducer, "bootstrap.servers", "a:1, b:2", kgo.SeedBrokers, []string{"a:1", "b:2"}},
	{forProducer, "metadata.broker.list", "c:1", kgo.SeedBrokers, []string{"c:1"}},
	{forProducer, "client.id", "me", kgo.ClientID, "me"},
	{forProducer, "socket.timeout.ms", "2000", kgo.RequestTimeoutOverhead, 2 * time.Second},
	{forProducer, "socket.timeout.ms", "10", kgo.RequestTimeoutOverhead, 100 * time.Millisecond},
	{forProducer, "socket.connection.setup.timeout.ms", "3000", kgo.DialTimeout, 3 * time.Second},
	{forProducer, "topic.metadata.refresh.interval.ms", "2000", kgo.MetadataMaxAge, 2 * time.Second},
	{forProducer, "topic.metadata.refresh.interval.ms", "-1", kgo.MetadataMaxAge, time.Hour},
	{forProducer, "topic.metadata.refresh.interval.ms", "0", kgo.MetadataMaxAge, time.Hour},
	{forProducer, "topic.metadata.refresh.fast.interval.ms", "50", kgo.MetadataMinAge, 50 * time.Millisecond},
	{forProducer, "topic.metadata.refresh.fast.interval.ms", "1", kgo.MetadataMinAge, 10 * time.Millisecond},
	{forProducer, "request.timeout.ms", "1500", kgo.ProduceRequestTimeout, 1500 * time.Millisecond},
	{forProducer, "linger.ms", "0", kgo.ProducerLinger, time.Millisecond},
	{forProducer, "linger.ms", "2.5", kgo.ProducerLinger, 2500 * time.Microsecond},
	{forProducer, "queue.buffering.max.ms", "7", kgo.ProducerLinger, 7 * time.Millisecond},
	{forProducer, "acks", "all", kgo.RequiredAcks, kgo.AllISRAcks()},
	{forProducer, "request.required.acks", "-1", kgo.RequiredAcks, kgo.AllISRAcks()},
	{forProducer, "message.timeout.ms", "5000", delivery, 5 * time.Second},
	{forProducer, "delivery.timeout.ms", "5000", delivery, 5 * time.Second},
	{forProducer, "message.max.bytes", "70000", batchMax, int32(70000)},
	{forProducer, "message.max.bytes", "200000000", kgo.BrokerMaxWriteBytes, int32(200000000)}, // franz-go's default is less
	{forProducer, "queue.buffering.max.messages", "77", kgo.MaxBufferedRecords, int64(77)},
	{forProducer, "queue.buffering.max.kbytes", "3", kgo.MaxBufferedBytes, int64(3 << 10)},
	{forProducer, "retries", "3", kgo.RecordRetries, int64(3)},
	{forProducer, "message.send.max.retries", "3", kgo.RecordRetries, int64(3)},
	{forProducer, "compression.type", "zstd", kgo.ProducerBatchCompression, []kgo.CompressionCodec{kgo.ZstdCompression()}},
	{forProducer, "compression.codec", "none", kgo.ProducerBatchCompression, []kgo.CompressionCodec{kgo.NoCompression()}},
	{forProducer, "compression.level", "3", compressionLevel, 3},
	{forGroup, "group.remote.assignor", "range", remoteAssignor, "range"},
	{forProducer, "client.id", "", kgo.ProducerBatchCompression, []kgo.CompressionCodec{kgo.NoCompression()}},
	{forProducer, "connections.max.idle.ms", "60000", kgo.ConnIdleTimeout, time.Minute},
	{forProducer, "connections.max.idle.ms", "0", kgo.ConnIdleTimeout, idleConnection},
	{forProducer, "client.id", "", kgo.ConnIdleTimeout, idleConnection},
	{forProducer, "enable.metrics.push", "false", kgo.DisableClientMetrics, true},
	{forProducer, "enable.metrics.push", "true", kgo.DisableClientMetrics, false},
	{forProducer, "enable.idempotence", "true", kgo.DisableIdempotentWrite, true},
	{forReader, "retry.backoff.ms", "50", leastBackoff, true},
	{forReader, "retry.backoff.max.ms", "250", mostBackoff, true},
	{forReader, "topic.metadata.propagation.max.ms", "5000", propagation, 5 * time.Second},
	{forReader, "auto.offset.reset", "error", kgo.ConsumeResetOffset, kgo.NoResetOffset()},
	{forReader, "isolation.level", "read_uncommitted", kgo.FetchIsolationLevel, int8(0)},
	{forReader, "fetch.wait.max.ms", "1000", kgo.FetchMaxWait, time.Second},
	{forReader, "fetch.wait.max.ms", "0", kgo.FetchMaxWait, 10 * time.Millisecond},
	{forReader, "fetch.min.bytes", "5", kgo.FetchMinBytes, int32(5)},
	{forReader, "fetch.max.bytes", "5000000", kgo.FetchMaxBytes, int32(5000000)},
	{forReader, "fetch.max.bytes", "200000000", kgo.BrokerMaxReadBytes, int32(200000000)}, // likewise
	{forReader, "receive.message.max.bytes", "2000", kgo.FetchMaxBytes, int32(2000)},
	{forReader, "max.partition.fetch.bytes", "50000", kgo.FetchMaxPartitionBytes, int32(50000)},
	{forReader, "fetch.message.max.bytes", "50000", kgo.FetchMaxPartitionBytes, int32(50000)},
	{forReader, "receive.message.max.bytes", "70000000", kgo.BrokerMaxReadBytes, int32(70000000)},
	{forReader, "client.rack", "r", kgo.Rack, "r"},
	{forGroup, "group.id", "h", kgo.ConsumerGroup, "h"},
	{forGroup, "auto.offset.reset", "latest", kgo.ConsumeResetOffset, kgo.NewOffset().AtEnd()},
	{forGroup, "enable.auto.commit", "false", kgo.DisableAutoCommit, true},
	{forGroup, "session.timeout.ms", "7000", kgo.SessionTimeout, 7 * time.Second},
	{forGroup, "heartbeat.interval.ms", "500", kgo.HeartbeatInterval, 500 * time.Millisecond},
	{forGroup, "max.poll.interval.ms", "70000", kgo.RebalanceTimeout, 70 * time.Second},
	{forGroup, "group.instance.id", "i", kgo.InstanceID, "i"},
	{forGroup, "partition.assignment.strategy", "range,roundrobin", strategies, []string{"range", "roundrobin"}},
	{forGroup, "partition.assignment.strategy", "cooperative-sticky", strategies, []string{"cooperative-sticky"}},
	{forGroup, "group.protocol", "consumer", kgo.ServerSideBalancer, true},
	{forGroup, "group.protocol", "classic", kgo.ServerSideBalancer, false},
}

func delivery(c *client, _ *kgo.Client) any         { return c.settings.delivery }
func propagation(c *client, _ *kgo.Client) any      { return c.settings.propagation }
func compressionLevel(c *client, _ *kgo.Client) any { return c.settings.compression.level }
func remoteAssignor(c *client, _ *kgo.Client) any   { return c.settings.assignor }
func batchMax(_ *client, k *kgo.Client) any {
	return k.OptValue(kgo.ProducerBatchMaxBytesFn).(func(string) int32)("")
}

func leastBackoff(c *client, _ *kgo.Client) any {
	d := c.settings.retryBackoff(1)
	return d >= 40*time.Millisecond && d <= 60*time.Millisecond
}

func mostBackoff(c *client, _ *kgo.Client) any {
	return c.settings.retryBackoff(50) == 250*time.Millisecond
}

func strategies(_ *client, k *kgo.Client) any {
	var names []string
	for _, b := range k.OptValue(kgo.Balancers).([]kgo.GroupBalancer) {
		names = append(names, b.ProtocolName())
	}
	return names
}

func TestProperties(t *testing.T) {
	tried := map[string]bool{}
	for _, e := range effects {
		t.Run(e.name+"="+e.value, func(t *testing.T) {
			tried[e.name] = true
			c, k := made(t, e.kind, map[string]string{e.name: e.value})
			if of, ok := e.option.(func(*client, *kgo.Client) any); ok {
				require.Equal(t, e.want, of(c, k))
				return
			}
			require.Equal(t, e.want, k.OptValue(e.option))
		})
	}
	for _, p := range table {
		for _, name := range p.names {
			if p.set == nil || strings.HasPrefix(p.means, "no effect") || strings.HasPrefix(name, "ssl.") ||
				strings.HasPrefix(name, "sasl.") || strings.HasPrefix(name, "security.") || strings.HasPrefix(name, "https.") || strings.HasPrefix(name, "enable.ssl.") {
				continue // TestCredentials and similar tests have these
			}
			assert.True(t, tried[name] || refusesAll(p), "%s has no effect in this test", name)
		}
	}
}

// refusesAll reports whether only the value that the library sets is accepted, so that a property
// has no visible effect.
func refusesAll(p property) bool { return strings.Contains(p.means, "refused") }

func TestRemoteAssignor(t *testing.T) {
	for assignor, want := range map[string]kgo.GroupBalancer{"range": kgo.RangeBalancer(), "uniform": kgo.StickyBalancer(), "": kgo.StickyBalancer()} {
		_, k := made(t, forGroup, map[string]string{"group.protocol": "consumer", "group.remote.assignor": assignor})
		require.IsType(t, want, k.OptValue(kgo.Balancers).([]kgo.GroupBalancer)[0])
	}
}

// All faults are reported together, without secrets.
func TestFaults(t *testing.T) {
	_, err := Provider().Producer(map[string]string{
		"bootstrap.servers": "a:1", "socket.timeout.ms": "soon", "acks": "1", "no.such.property": "x", "sasl.oauthbearer.config": "s3cret-1",
		"ssl.key.password": "s3cret-2", "some.token": "s3cret-3", "linger.ms": "-1", "security.protocol": "SASL_SSL",
		"sasl.mechanism": "GSSAPI", "sasl.password": "s3cret-4", "ssl.key.pem": "s3cret-5", "isolation.level": "read_committed",
		"transactional.id": "t", "max.in.flight.requests.per.connection": "5", "fetch.max.bytes": "many", "enable.gapless.guarantee": "true",
	}, discard)
	require.Error(t, err)
	for _, says := range []string{
		"client refuses its properties: ", "socket.timeout.ms=soon: must be milliseconds from 0 to 300000", "acks=1: must be all or -1",
		"no.such.property: is not known", "sasl.oauthbearer.config: is not supported", "ssl.key.password: encrypted keys are not read",
		"some.token: is not known", "linger.ms=-1: must be", "sasl.mechanism=GSSAPI: must be PLAIN", "ssl.key: has no ssl.certificate",
		"isolation.level=read_committed: must be read_uncommitted", "transactional.id: a lease", "max.in.flight.requests.per.connection: one request",
		"fetch.max.bytes=many: must be an integer from 1 to", "enable.gapless.guarantee: ",
	} {
		assert.ErrorContains(t, err, says)
	}
	assert.NotContains(t, err.Error(), "s3cret")

	for _, props := range []map[string]string{
		{"security.protocol": "ssl", "ssl.ca.pem": "x"}, {"security.protocol": "ssl", "ssl.ca.location": "/nowhere"},
		{"security.protocol": "sasl_ssl"}, {"security.protocol": "sasl_ssl", "sasl.mechanism": "PLAIN"},
		{"security.protocol": "ssl", "ssl.certificate.location": "/nowhere", "ssl.key.pem": "k"}, {"security.protocol": "tls"},
		{"auto.offset.reset": "latest"}, {"auto.offset.reset": "earliest"}, {"enable.auto.commit": "true"}, {"partition.assignment.strategy": "sticky"},
		{"session.timeout.ms": "1000", "heartbeat.interval.ms": "2000"}, {"compression.type": "best"}, {"socket.timeout.ms": "NaN"},
	} {
		_, err := Provider().LogReader(props, discard)
		assert.Error(t, err, "%v", props)
	}
}

// Each setting that would have no effect is named.
func TestUnusedSettings(t *testing.T) {
	for name, value := range map[string]string{"https.ca.location": "/nowhere", "sasl.oauthbearer.method": "default"} {
		_, err := Provider().Producer(map[string]string{"bootstrap.servers": "a:1", "security.protocol": "sasl_ssl",
			"sasl.mechanism": "PLAIN", "sasl.username": "u", "sasl.password": "p", name: value}, discard)
		assert.EqualError(t, err, "client refuses its properties: "+name+": has no effect with sasl.mechanism=PLAIN")
	}
	_, err := Provider().LogReader(map[string]string{"receive.message.max.bytes": "2000", "fetch.max.bytes": "2001"}, discard)
	assert.ErrorContains(t, err, "receive.message.max.bytes=2000: must be at least fetch.max.bytes=2001")
}

// The name of a directory of certificates may have brackets, which are a pattern elsewhere.
func TestDirectoryOfCertificates(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "trusted[1]")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "more"), 0o700))
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	file := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.pem"), file, 0o600))
	require.NoError(t, addFiles(x509.NewCertPool(), dir))
}

// Options that would break a lease and cannot be overridden are refused, too.
func TestUnsuitableOptions(t *testing.T) {
	for _, opt := range []kgo.Opt{kgo.ManualFlushing(), kgo.AllowAutoTopicCreation(), kgo.KeepControlRecords(), kgo.BlockRebalanceOnPoll(),
		kgo.ConsumeRegex(), kgo.TransactionalID("t"), kgo.ShareGroup("s"), kgo.DefaultProduceTopicAlways(), kgo.AllowIdempotentProduceCancellation()} {
		_, err := Provider(opt).Producer(map[string]string{}, discard)
		assert.ErrorContains(t, err, "client refuses its options")
	}
	// The library overrides the other options on which a lease depends.
	p, err := Provider(kgo.RequiredAcks(kgo.NoAck()), kgo.MaxProduceRequestsInflightPerBroker(5), kgo.ProducerLinger(3*time.Millisecond),
		kgo.ConsumerGroup("g"), kgo.ConsumeTopics("t")).Producer(map[string]string{"linger.ms": "9"}, discard)
	require.NoError(t, err)
	defer p.Close()
	k := p.(*producer).kafka
	assert.Equal(t, kgo.AllISRAcks(), k.OptValue(kgo.RequiredAcks))
	assert.Equal(t, 1, k.OptValue(kgo.MaxProduceRequestsInflightPerBroker))
	assert.Empty(t, k.OptValue(kgo.ConsumerGroup))
	assert.Equal(t, 3*time.Millisecond, k.OptValue(kgo.ProducerLinger), "a property takes precedence over an option")
}

// An option that franz-go refuses when it is alone, but accepts beside the library's options, does
// not hide the login mechanism of another option.
func TestRefusedOptionHidesNoMechanism(t *testing.T) {
	kerberos := oauth.Auth{Token: "t"}.AsMechanism() // any mechanism that properties cannot give
	for name, opt := range map[string]kgo.Opt{"in flight": kgo.MaxProduceRequestsInflightPerBroker(5), "acks": kgo.RequiredAcks(kgo.LeaderAck()),
		"sizes": kgo.FetchMaxBytes(200 << 20)} {
		t.Run(name, func(t *testing.T) {
			p, err := Provider(opt, kgo.SASL(kerberos)).Producer(map[string]string{"security.protocol": "sasl_ssl", "sasl.mechanism": "OAUTHBEARER",
				"receive.message.max.bytes": "300000000"}, discard)
			require.NoError(t, err)
			require.NoError(t, p.Close())
		})
	}
}

// Options of group members take precedence over properties, like all options. A static member's
// option counts like its property.
func TestGroupOptions(t *testing.T) {
	props := map[string]string{"group.id": "g", "partition.assignment.strategy": "cooperative-sticky"}
	made, err := Provider(kgo.Balancers(kgo.RangeBalancer()), kgo.InstanceID("i")).GroupConsumer(props, discard)
	require.NoError(t, err)
	g := made.(*group)
	require.NoError(t, g.Join("log", false))
	require.Equal(t, []string{"range"}, strategies(nil, g.present.kafka.Client))
	require.True(t, g.settings.instance, "a Join does not wait for the end of the former membership")
	require.NoError(t, g.Close())

	_, err = Provider(kgo.ServerSideBalancer()).GroupConsumer(props, discard)
	require.EqualError(t, err, "client refuses its options: kgo.ServerSideBalancer: set group.protocol=consumer instead, which tells the library the group's times")
	props["session.timeout.ms"], props["heartbeat.interval.ms"] = "6000", "2000"
	_, err = Provider(kgo.SessionTimeout(45*time.Second), kgo.HeartbeatInterval(3*time.Second)).GroupConsumer(props, discard)
	require.EqualError(t, err, "client refuses its options: kgo.SessionTimeout: set session.timeout.ms instead, which tells the library the group's times; "+
		"kgo.HeartbeatInterval: set heartbeat.interval.ms instead, which tells the library the group's times")
	delete(props, "partition.assignment.strategy")
	props["group.protocol"] = "consumer"
	made, err = Provider(kgo.ServerSideBalancer()).GroupConsumer(props, discard)
	require.NoError(t, err)
	require.NoError(t, made.Close())
}

// An option that a program has left nil is named.
func TestNilOption(t *testing.T) {
	_, err := Provider(kgo.ClientID("me"), nil).LogReader(map[string]string{}, discard)
	require.EqualError(t, err, "client refuses its options: option 2 of 2 is nil")
}

// An empty certificate file, such as one that is still to be issued, is an error: the client must
// not go without a certificate.
func TestEmptyCertificateFiles(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "tls.crt")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	_, err := Provider().Producer(map[string]string{"security.protocol": "ssl", "ssl.certificate.location": empty, "ssl.key.location": empty}, discard)
	require.EqualError(t, err, "client refuses its properties: ssl.certificate.location: "+empty+" is empty")
}

// seen is a provider that checks the properties of each client before it makes the client.
type seen struct {
	kafka.Provider
	t *testing.T
}

func (s seen) check(kind kind, props map[string]string) {
	s.t.Helper()
	_, err := parse(kind, props)
	assert.NoError(s.t, err)
	for name := range props {
		assert.NotNil(s.t, known(name), "%s is not known", name)
	}
}

func (s seen) Producer(props map[string]string, log *slog.Logger) (kafka.Producer, error) {
	s.check(forProducer, props)
	return s.Provider.Producer(props, log)
}

func (s seen) LogReader(props map[string]string, log *slog.Logger) (kafka.LogReader, error) {
	s.check(forReader, props)
	return s.Provider.LogReader(props, log)
}

func (s seen) GroupConsumer(props map[string]string, log *slog.Logger) (kafka.GroupConsumer, error) {
	s.check(forGroup, props)
	return s.Provider.GroupConsumer(props, log)
}

// All properties that the library itself sets are known.
func TestLibrarysOwnPropertiesAreKnown(t *testing.T) {
	for _, cfg := range []neli.Config{{}, {Nomination: neli.NominationAssigned}, {Mode: neli.NonExclusive}, {Nomination: neli.NominationAssigned, KafkaConfig: neli.KafkaConfigMap{"group.protocol": "consumer"}}} {
		cfg.LeaderGroupID, cfg.Provider, cfg.Logger = "g", seen{Provider(kgo.SeedBrokers("127.0.0.1:1")), t}, discard
		n, err := neli.New(cfg)
		require.NoError(t, err)
		require.NoError(t, n.Close())
	}
}

// docs/clients.md lists what the table has.
func TestDocumentedTable(t *testing.T) {
	page, err := os.ReadFile("../docs/clients.md")
	require.NoError(t, err)
	var rows strings.Builder
	for _, p := range table {
		fmt.Fprintf(&rows, "- `%s`: %s\n", strings.Join(p.names, "`, `"), p.means)
	}
	assert.Contains(t, string(page), rows.String(), "the list of properties; in full:\n%s", rows.String())
	for _, u := range unsuitable {
		assert.Contains(t, string(page), "`"+u.name+"`")
	}
}
