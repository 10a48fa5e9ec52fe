package franz

import (
	"errors"
	"math"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// ever stands for a time without a bound.
const ever = math.MaxInt32 * time.Millisecond

// table says what each property does. docs/clients.md shows it, and a test compares the two. A
// property without set is accepted and has no effect, for the reason in means.
var table = []property{
	// Set by the library, or with a default of the library's.
	{[]string{"bootstrap.servers", "metadata.broker.list"}, "`kgo.SeedBrokers`", text(seeds)},
	{[]string{"client.id"}, "`kgo.ClientID`", option(kgo.ClientID)},
	{[]string{"socket.timeout.ms"}, "`kgo.RequestTimeoutOverhead`, 100 ms at least: how much longer a request may take than the time that it gives the broker",
		wait(leastOverhead, 5*time.Minute, kgo.RequestTimeoutOverhead)},
	{[]string{"socket.connection.setup.timeout.ms"}, "`kgo.DialTimeout`, 1 s at least", wait(time.Second, ever, kgo.DialTimeout)},
	{[]string{"retry.backoff.ms"}, "the first pause of `kgo.RetryBackoffFn`, which doubles", millis(time.Millisecond, 5*time.Minute, func(s *settings, d time.Duration) { s.backoff = d })},
	{[]string{"retry.backoff.max.ms"}, "the longest pause of `kgo.RetryBackoffFn`", millis(time.Millisecond, 5*time.Minute, func(s *settings, d time.Duration) { s.backoffMax = d })},
	{[]string{"reconnect.backoff.ms", "reconnect.backoff.jitter.ms"}, "no effect: franz-go connects when a request needs it, and the request backs off", nil},
	{[]string{"reconnect.backoff.max.ms"}, "no effect: likewise", nil},
	{[]string{"topic.metadata.refresh.interval.ms"}, "`kgo.MetadataMaxAge`, an hour at most; −1 and 0 are an hour", number(-1, 3_600_000, func(s *settings, n int64) {
		s.metadata[1] = time.Duration(n) * time.Millisecond
		if n <= 0 { // librdkafka refreshes at no interval then, and franz-go as often as it may
			s.metadata[1] = time.Hour
		}
	})},
	{[]string{"topic.metadata.refresh.fast.interval.ms"}, "`kgo.MetadataMinAge`, 10 ms at least", millis(0, time.Minute, func(s *settings, d time.Duration) { s.metadata[0] = max(d, leastMetadataAge) })},
	{[]string{"topic.metadata.propagation.max.ms"}, "how long a log reader waits for an unknown topic, which some brokers may not know yet", millis(0, time.Hour, func(s *settings, d time.Duration) { s.propagation = d })},
	{[]string{"request.timeout.ms"}, "`kgo.ProduceRequestTimeout`, 100 ms at least", wait(100*time.Millisecond, 15*time.Minute, kgo.ProduceRequestTimeout)},
	{[]string{"linger.ms", "queue.buffering.max.ms"}, "`kgo.ProducerLinger`, 1 ms at least, so that the beats of many partitions share requests",
		wait(leastLinger, time.Minute, kgo.ProducerLinger)},
	{[]string{"acks", "request.required.acks"}, "`kgo.RequiredAcks(kgo.AllISRAcks())`; other values are refused", only("all", "-1")},
	{[]string{"message.timeout.ms", "delivery.timeout.ms"}, "a context of each record: franz-go's own limit follows the wall clock, and spares what is in flight",
		millis(time.Millisecond, ever, func(s *settings, d time.Duration) { s.delivery = d })},
	{[]string{"group.id"}, "`kgo.ConsumerGroup`; no effect for a log reader: only librdkafka needs one there", text(func(s *settings, v string) { s.group = v })},
	{[]string{"auto.offset.reset"}, "`kgo.ConsumeResetOffset`: `kgo.NoResetOffset` (`error`), the end in a group (`latest`); other values are refused",
		func(s *settings, v string) error {
			if s.kind == forReader {
				return only("error")(s, v)
			}
			return only("latest")(s, v)
		}},
	{[]string{"enable.auto.commit", "enable.auto.offset.store"}, "`kgo.DisableAutoCommit`; `true` is refused", only("false")},
	{[]string{"enable.partition.eof"}, "no effect: franz-go has no such event; `true` is refused", only("false")},
	{[]string{"allow.auto.create.topics"}, "no effect: franz-go creates none unless told to; `true` is refused", only("false")},
	{[]string{"isolation.level"}, "`kgo.FetchIsolationLevel(kgo.ReadUncommitted())`; `read_committed` is refused", only("read_uncommitted")},
	{[]string{"session.timeout.ms"}, "`kgo.SessionTimeout`, 100 ms at least", wait(100*time.Millisecond, time.Hour, kgo.SessionTimeout)},
	{[]string{"heartbeat.interval.ms"}, "`kgo.HeartbeatInterval`", wait(time.Millisecond, time.Hour, kgo.HeartbeatInterval)},
	{[]string{"partition.assignment.strategy"}, "`kgo.Balancers`: `cooperative-sticky`, `range`, `roundrobin`, in order of preference", balancers},
	{[]string{"fetch.wait.max.ms"}, "`kgo.FetchMaxWait`, 10 ms at least", wait(leastFetchWait, 5*time.Minute, kgo.FetchMaxWait)},
	{[]string{"fetch.error.backoff.ms", "fetch.queue.backoff.ms"}, "no effect: `retry.backoff.ms` applies to fetches, too", nil},
	{[]string{"statistics.interval.ms"}, "no effect: a quota's delays are reported as they happen", nil},
	{[]string{"socket.nagle.disable"}, "no effect: Go switches Nagle's algorithm off", nil},

	// Set by users.
	{[]string{"client.rack"}, "`kgo.Rack`", option(kgo.Rack)},
	{[]string{"group.instance.id"}, "`kgo.InstanceID`", func(s *settings, v string) error {
		s.instance, s.base = true, append(s.base, kgo.InstanceID(v))
		return nil
	}},
	{[]string{"group.protocol"}, "`consumer`: `kgo.ServerSideBalancer`", choice(func(s *settings, v string) { s.serverSide = v == "consumer" }, "classic", "consumer")},
	{[]string{"group.remote.assignor"}, "`kgo.Balancers`, with `group.protocol=consumer`: `uniform`, `range`; no effect otherwise", choice(func(s *settings, v string) { s.assignor = v }, "uniform", "range")},
	{[]string{"group.protocol.type"}, "`kgo.GroupProtocol`; other values than `consumer` are refused", only("consumer")},
	{[]string{"max.poll.interval.ms"}, "`kgo.RebalanceTimeout`: the library does the polling", wait(100*time.Millisecond, 24*time.Hour, kgo.RebalanceTimeout)},
	{[]string{"fetch.min.bytes"}, "`kgo.FetchMinBytes`", size(1, kgo.FetchMinBytes)},
	{[]string{"fetch.max.bytes"}, "`kgo.FetchMaxBytes`", number(1, 1<<30, func(s *settings, n int64) { s.fetchMax = int32(n) })},
	{[]string{"max.partition.fetch.bytes", "fetch.message.max.bytes"}, "`kgo.FetchMaxPartitionBytes`", size(1, kgo.FetchMaxPartitionBytes)},
	{[]string{"receive.message.max.bytes"}, "`kgo.BrokerMaxReadBytes`, and `kgo.MaxDecompressBatchBytes`", number(1<<10, 1<<30, func(s *settings, n int64) { s.readMax = int32(n) })},
	{[]string{"message.max.bytes"}, "`kgo.ProducerBatchMaxBytes`", number(1000, 1<<30, func(s *settings, n int64) { s.batchMax = int32(n) })},
	{[]string{"queue.buffering.max.messages"}, "`kgo.MaxBufferedRecords`", number(1, 10_000_000, func(s *settings, n int64) { s.base = append(s.base, kgo.MaxBufferedRecords(int(n))) })},
	{[]string{"queue.buffering.max.kbytes"}, "`kgo.MaxBufferedBytes`", number(1, math.MaxInt32, func(s *settings, n int64) { s.base = append(s.base, kgo.MaxBufferedBytes(int(n)<<10)) })},
	{[]string{"message.send.max.retries", "retries"}, "`kgo.RecordRetries`", number(0, math.MaxInt32, func(s *settings, n int64) { s.base = append(s.base, kgo.RecordRetries(int(n))) })},
	{[]string{"compression.type", "compression.codec"}, "`kgo.ProducerBatchCompression`, `none` by default", choice(func(s *settings, v string) { s.compression.name = v }, "none", "gzip", "snappy", "lz4", "zstd")},
	{[]string{"compression.level"}, "the level of `kgo.ProducerBatchCompression`", number(-1, 12, func(s *settings, n int64) { s.compression.level = int(n) })},
	{[]string{"connections.max.idle.ms"}, "`kgo.ConnIdleTimeout`, 15 minutes at most; 0 is 9 minutes", millis(0, 15*time.Minute, func(s *settings, d time.Duration) {
		if d > 0 {
			s.base = append(s.base, kgo.ConnIdleTimeout(max(d, 100*time.Millisecond)))
		}
	})},
	{[]string{"enable.metrics.push"}, "`false`: `kgo.DisableClientMetrics`", truth(func(s *settings, on bool) {
		if !on {
			s.base = append(s.base, kgo.DisableClientMetrics())
		}
	})},
	{[]string{"enable.idempotence"}, "no effect: records of a lease may be duplicated, and idempotence would keep records that must be dropped", only("true", "false")},
	{[]string{"check.crcs"}, "no effect: franz-go always checks", nil},
	{[]string{"socket.keepalive.enable"}, "no effect: Go keeps connections alive", nil},
	{[]string{"debug", "log_level", "log.connection.close", "log.thread.name", "log.queue"}, "no effect: the level of the log decides", nil},
	{[]string{"queued.min.messages", "queued.max.messages.kbytes"}, "no effect: one answer of each broker is buffered", nil},
	{[]string{"partitioner", "sticky.partitioning.linger.ms"}, "no effect: the library chooses the partition", nil},
	{[]string{"coordinator.query.interval.ms"}, "no effect: franz-go asks when a coordinator has changed", nil},
	{javaWork, "no effect: for the work of other programs; a name that ends in a dot is a prefix", nil},
	{otherTuning, "no effect: franz-go needs none, or has its own", nil},

	// Security.
	{[]string{"security.protocol"}, "`kgo.DialTLSConfig`, `kgo.SASL`", choice(func(s *settings, v string) { s.security.protocol = v }, "plaintext", "ssl", "sasl_plaintext", "sasl_ssl")},
	{[]string{"sasl.mechanism", "sasl.mechanisms"}, "`kgo.SASL`: `PLAIN`, `SCRAM-SHA-256`, `SCRAM-SHA-512`, `OAUTHBEARER`; give any other one with the option", text(func(s *settings, v string) { s.security.mechanism = strings.ToUpper(v) })},
	{[]string{"sasl.username"}, "likewise", text(func(s *settings, v string) { s.security.user = v })},
	{[]string{"sasl.password"}, "likewise", text(func(s *settings, v string) { s.security.password = v })},
	{[]string{"sasl.oauthbearer.method"}, "`oidc`: tokens by golang.org/x/oauth2; `default` with Config.LoginToken or `kgo.SASL`", choice(func(s *settings, v string) { s.security.bearer.method = v }, "default", "oidc")},
	{[]string{"sasl.oauthbearer.client.id", "sasl.oauthbearer.client.credentials.client.id"}, "`clientcredentials.Config`, in the header Authorization, not URL-encoded", text(func(s *settings, v string) { s.security.bearer.id = v })},
	{[]string{"sasl.oauthbearer.client.secret", "sasl.oauthbearer.client.credentials.client.secret"}, "likewise", text(func(s *settings, v string) { s.security.bearer.secret = v })},
	{[]string{"sasl.oauthbearer.token.endpoint.url"}, "likewise", text(func(s *settings, v string) { s.security.bearer.endpoint = v })},
	{[]string{"sasl.oauthbearer.scope"}, "likewise", text(func(s *settings, v string) { s.security.bearer.scope = v })},
	{[]string{"sasl.oauthbearer.extensions"}, "`oauth.Auth.Extensions`: name=value,…", text(func(s *settings, v string) { s.security.bearer.extensions = v })},
	{[]string{"sasl.oauthbearer.sub.claim.name"}, "the claim that a token must have; `sub` by default", text(func(s *settings, v string) { s.security.bearer.subject = v })},
	{[]string{"sasl.oauthbearer.assertion.file"}, "a file with the assertion, read each time", text(func(s *settings, v string) { s.security.bearer.assertion = v })},
	{[]string{"sasl.oauthbearer.assertion.private.key.file"}, "the key that signs the assertion, read each time: PEM, not encrypted", text(func(s *settings, v string) { s.security.bearer.keyFile = v })},
	{[]string{"sasl.oauthbearer.assertion.private.key.pem"}, "likewise", text(func(s *settings, v string) { s.security.bearer.key = v })},
	{[]string{"sasl.oauthbearer.assertion.jwt.template.file"}, "JSON with the `header` and `payload` to start from", text(func(s *settings, v string) { s.security.bearer.template = v })},
	{[]string{"sasl.oauthbearer.assertion.claim.aud"}, "a claim of the assertion", text(func(s *settings, v string) { s.security.bearer.aud = v })},
	{[]string{"sasl.oauthbearer.assertion.claim.iss"}, "likewise", text(func(s *settings, v string) { s.security.bearer.iss = v })},
	{[]string{"sasl.oauthbearer.assertion.claim.sub"}, "likewise", text(func(s *settings, v string) { s.security.bearer.sub = v })},
	{[]string{"sasl.oauthbearer.grant.type"}, "`client_credentials` (the default), `urn:ietf:params:oauth:grant-type:jwt-bearer`", choice(func(s *settings, v string) { s.security.bearer.grant = v }, "client_credentials", grantAssertion)},
	{[]string{"sasl.oauthbearer.assertion.algorithm"}, "`RS256` (the default), `ES256`", choice(func(s *settings, v string) { s.security.bearer.algorithm = strings.ToUpper(v) }, "rs256", "es256")},
	{[]string{"sasl.oauthbearer.assertion.claim.exp.seconds"}, "`exp` of the assertion, 300 by default", number(1, math.MaxInt32, func(s *settings, n int64) { s.security.bearer.exp = n })},
	{[]string{"sasl.oauthbearer.assertion.claim.nbf.seconds"}, "how far `nbf` lies in the past, 60 by default", number(0, math.MaxInt32, func(s *settings, n int64) { s.security.bearer.nbf = n + 1 })},
	{[]string{"sasl.oauthbearer.assertion.claim.jti.include"}, "`true`: `jti` is random", truth(func(s *settings, on bool) { s.security.bearer.jti = on })},
	{[]string{"https.ca.location"}, "`tls.Config.RootCAs` for the token endpoint: a file, or a directory of them; `probe` means the system's", text(func(s *settings, v string) { s.security.bearer.caFile = v })},
	{[]string{"https.ca.pem"}, "likewise", text(func(s *settings, v string) { s.security.bearer.ca = v })},
	{[]string{"ssl.ca.location"}, "`tls.Config.RootCAs`: a file, or a directory of them; `probe` means the system's", text(func(s *settings, v string) { s.security.caFile = v })},
	{[]string{"ssl.ca.pem"}, "`tls.Config.RootCAs`", text(func(s *settings, v string) { s.security.ca = v })},
	{[]string{"ssl.certificate.location"}, "`tls.Config.GetClientCertificate`: with `ssl.key.location` it is read for each connection", text(func(s *settings, v string) { s.security.certificateFile = v })},
	{[]string{"ssl.certificate.pem"}, "`tls.Config.Certificates`", text(func(s *settings, v string) { s.security.certificate = v })},
	{[]string{"ssl.key.location"}, "likewise", text(func(s *settings, v string) { s.security.keyFile = v })},
	{[]string{"ssl.key.pem"}, "likewise", text(func(s *settings, v string) { s.security.key = v })},
	{[]string{"ssl.protocol"}, "no effect: TLS 1.2 and 1.3 are used; other values are refused", only("tls", "tlsv1.2", "tlsv1.3")},
	{[]string{"ssl.enabled.protocols"}, "likewise; TLS 1.3 alone is refused, since the brokers decide that", only("tlsv1.2,tlsv1.3", "tlsv1.3,tlsv1.2")},
	{[]string{"enable.ssl.certificate.verification"}, "`false`: `tls.Config.InsecureSkipVerify`", truth(func(s *settings, on bool) { s.security.verify = on })},
	{[]string{"ssl.endpoint.identification.algorithm"}, "`none`: the broker's certificate is verified, but not its name", choice(func(s *settings, v string) { s.security.identify = v == "https" }, "none", "https")},
}

// seeds parses a list of [protocol://]host[:port]. It skips empty entries, as librdkafka does:
// franz-go would take them for this machine.
func seeds(s *settings, v string) {
	var list []string
	for seed := range strings.SplitSeq(v, ",") {
		seed = strings.TrimSpace(seed)
		if protocol, address, named := strings.Cut(seed, "://"); named {
			s.protocols = append(s.protocols, strings.ToLower(protocol))
			seed, _, _ = strings.Cut(address, "/")
		}
		if seed != "" {
			list = append(list, seed)
		}
	}
	s.base = append(s.base, kgo.SeedBrokers(list...))
}

// balancers parses strategies in order of preference.
func balancers(s *settings, v string) error {
	s.balancers = nil
	for name := range strings.SplitSeq(v, ",") {
		switch strings.TrimSpace(name) {
		case "cooperative-sticky":
			s.balancers = append(s.balancers, kgo.CooperativeStickyBalancer())
		case "range":
			s.balancers = append(s.balancers, kgo.RangeBalancer())
		case "roundrobin":
			s.balancers = append(s.balancers, kgo.RoundRobinBalancer())
		default:
			return errors.New("must be cooperative-sticky, range or roundrobin, or several of them")
		}
	}
	return nil
}

// compression is a codec and its level, which are two properties.
type compression struct {
	name  string
	level int
}

func (c compression) codec() kgo.CompressionCodec {
	codec := kgo.NoCompression()
	switch c.name {
	case "gzip":
		codec = kgo.GzipCompression()
	case "snappy":
		codec = kgo.SnappyCompression()
	case "lz4":
		codec = kgo.Lz4Compression()
	case "zstd":
		codec = kgo.ZstdCompression()
	}
	if c.level > 0 {
		codec = codec.WithLevel(c.native())
	}
	return codec
}

// native returns the level in the numbers of the codec's package. franz-go ignores other numbers.
func (c compression) native() int {
	switch {
	case c.name == "gzip":
		return min(c.level, 9)
	case c.name == "lz4":
		return 1 << (8 + min(c.level, 9))
	case c.name == "zstd" && c.level < 3: // as klauspost's EncoderLevelFromZstd
		return 1
	case c.name == "zstd" && c.level < 6:
		return 2
	case c.name == "zstd" && c.level < 10:
		return 3
	case c.name == "zstd":
		return 4
	}
	return c.level
}
