package franz

import (
	"slices"
	"strings"
)

// This file has the other properties of librdkafka and Java that people's files have: ignored, or refused
// with advice on what to write. "(in Go: …)" at the end says what only a program can do; the command neli omits it.

// javaWork are names of properties, and prefixes of names, for what other programs do with the same cluster.
var javaWork = []string{"key.serializer", "value.serializer", "key.deserializer", "value.deserializer", "interceptor.classes",
	"partitioner.class", "partitioner.ignore.keys", "partitioner.adaptive.partitioning.enable", "partitioner.availability.timeout.ms",
	"max.poll.records", "exclude.internal.topics", "metric.reporters", "metrics.num.samples", "metrics.recording.level",
	"metrics.sample.window.ms", "auto.commit.interval.ms", "auto.commit.enable", "offset.store.method", "offset.store.path",
	"offset.store.sync.interval.ms", "transaction.timeout.ms", "transaction.two.phase.commit.enable", "share.acknowledgement.mode",
	"share.acquire.mode", "internal.throw.on.fetch.stable.offset.unsupported", "topic.blacklist",
	"schema.registry.", "basic.auth.", "bearer.auth.", "auto.register.schemas", "use.latest.version", "specific.avro.reader"}

// otherTuning are names of properties for tuning that franz-go does by itself or does not need.
var otherTuning = []string{"client.dns.lookup", "max.block.ms", "buffer.memory", "max.request.size", "batch.size", "batch.num.messages",
	"send.buffer.bytes", "receive.buffer.bytes", "socket.send.buffer.bytes", "socket.receive.buffer.bytes", "socket.max.fails",
	"socket.blocking.max.ms", "socket.connection.setup.timeout.max.ms", "default.api.timeout.ms", "metadata.max.age.ms",
	"metadata.max.idle.ms", "metadata.recovery.strategy", "metadata.recovery.rebootstrap.trigger.ms", "topic.metadata.refresh.fast.cnt",
	"topic.metadata.refresh.sparse", "api.version.request", "api.version.request.timeout.ms", "api.version.fallback.ms",
	"broker.version.fallback", "broker.address.ttl", "message.copy.max.bytes", "enable.random.seed", "internal.termination.signal",
	"builtin.features", "delivery.report.only.error", "produce.offset.report", "queuing.strategy",
	"queue.buffering.backpressure.threshold", "consume.callback.max.messages", "msg_order_cmp",
	"sasl.login.connect.timeout.ms", "sasl.login.read.timeout.ms", "sasl.login.retry.backoff.ms", "sasl.login.retry.backoff.max.ms",
	"sasl.login.refresh.buffer.seconds", "sasl.login.refresh.min.period.seconds", "sasl.login.refresh.window.factor",
	"sasl.login.refresh.window.jitter"}

// refusal says why properties are refused, and what to write instead.
type refusal struct {
	names []string // names, or beginnings of names
	why   string
}

const inGo = " (in Go: give kgo.DialTLSConfig to franz.Provider)"

// refused are known properties that are refused. The first entry that fits counts.
var refused = []refusal{
	{[]string{"sasl.jaas.config"}, "is Java's: write sasl.username=… and sasl.password=… instead; with sasl.mechanism=AWS_MSK_IAM leave it out, " +
		"and with OAUTHBEARER set sasl.oauthbearer.method=oidc and its properties"},
	{[]string{"sasl.client.callback.handler.class"}, "is Java's: leave it out, sasl.mechanism suffices"},
	{[]string{"sasl.login.callback.handler.class", "sasl.login.class"}, "is Java's: leave it out; for tokens set sasl.oauthbearer.method=oidc and sasl.oauthbearer.token.endpoint.url"},
	{[]string{"sasl.oauthbearer.assertion.private.key.passphrase"}, "encrypted keys are not read: decrypt it with openssl pkey, and leave the passphrase out"},
	{[]string{"sasl.oauthbearer.", "enable.sasl.oauthbearer.unsecure.jwt"}, "is not supported: sasl.oauthbearer.method=oidc gets tokens with the other properties of this table (in Go: set Config.LoginToken)"},
	{[]string{"sasl.kerberos."}, "Kerberos needs more than properties: log in by SCRAM, tokens or a certificate (in Go: give kgo.SASL of a mechanism for Kerberos to franz.Provider)"},
	{[]string{"ssl.truststore.certificates"}, "is Java's name of ssl.ca.pem: write that, and leave out ssl.truststore.type"},
	{[]string{"ssl.keystore.certificate.chain"}, "is Java's name of ssl.certificate.pem: write that, and leave out ssl.keystore.type"},
	{[]string{"ssl.keystore.key"}, "is Java's name of ssl.key.pem: write that"},
	{[]string{"ssl.truststore.location"}, "only PEM is read: write ssl.ca.location=ca.pem, made with openssl pkcs12 -in STORE -nokeys -out ca.pem, or with keytool -list -rfc -keystore STORE"},
	{[]string{"ssl.truststore."}, "belongs to ssl.truststore.location: leave it out, and write ssl.ca.location=ca.pem"},
	{[]string{"ssl.keystore.location"}, "only PEM is read: write ssl.certificate.location=client.pem and ssl.key.location=client.pem, made with openssl pkcs12 -in STORE -nodes -out client.pem" + inGo},
	{[]string{"ssl.keystore."}, "belongs to ssl.keystore.location: leave it out, and write ssl.certificate.location and ssl.key.location"},
	{[]string{"ssl.key.password"}, "encrypted keys are not read: decrypt it with openssl pkey, and leave the password out" + inGo},
	{[]string{"ssl.ca.certificate.stores"}, "is for Windows with librdkafka: leave it out for the system's certificates, or write ssl.ca.location"},
	{[]string{"ssl.crl.location"}, "lists of revoked certificates are not read: leave it out" + inGo},
	{[]string{"ssl.cipher.suites", "ssl.curves.list", "ssl.sigalgs.list"}, "Go chooses among the safe ones: leave it out" + inGo},
	{[]string{"ssl.", "ssl_", "security.providers"}, "belongs to another TLS library: leave it out" + inGo},
	{[]string{"fetch.max.wait.ms"}, "is Java's name of fetch.wait.max.ms: write that"},
	{[]string{"compression.gzip.level", "compression.lz4.level", "compression.zstd.level"}, "write compression.level"},
	{[]string{"bootstrap.controllers"}, "controllers keep no records: write bootstrap.servers"},
	{[]string{"config.providers"}, "values are not replaced: write the values themselves, and leave it out"},
	{[]string{"broker.address.family"}, "cannot be set: write addresses of that family into bootstrap.servers, or leave it out (in Go: give kgo.Dialer to franz.Provider)"},
	{[]string{"transactional.id"}, "a lease needs no transactions: leave it out"},
	{[]string{"max.in.flight"}, "one request in flight for each broker keeps records in order: leave it out"},
	{[]string{"enable.gapless.guarantee"}, "records must be dropped when they are late: leave it out"},
	{[]string{"plugin.library.paths", "interceptors", "default_topic_conf", "enabled_events", "opaque", "background_event_cb", "closesocket_cb",
		"connect_cb", "consume_cb", "dr_cb", "dr_msg_cb", "error_cb", "log_cb", "oauthbearer_token_refresh_cb", "offset_commit_cb", "open_cb",
		"partitioner_cb", "rebalance_cb", "resolve_cb", "socket_cb", "stats_cb", "throttle_cb"}, "is for programs in C: leave it out"},
}

// hint returns why a property is refused, and what to write instead if there is something.
func hint(name string) string {
	for _, r := range refused {
		if slices.ContainsFunc(r.names, func(n string) bool { return strings.HasPrefix(name, n) }) {
			return r.why
		}
	}
	return "is not known: check its spelling, or leave it out"
}
