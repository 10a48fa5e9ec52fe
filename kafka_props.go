package neli

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goneli/neli/internal/clock"
	"github.com/goneli/neli/internal/kafkalog"
	"github.com/goneli/neli/internal/redact"
)

// The properties of each Kafka client. The user's values override the library's tuning, and the
// properties that the protocol depends on override both.

// tuned has the defaults of all clients. Most make them retry soon.
var tuned = map[string]string{
	"bootstrap.servers":        "localhost:9092",
	"reconnect.backoff.ms":     "50",
	"reconnect.backoff.max.ms": "500",
	"retry.backoff.ms":         "50",
	"retry.backoff.max.ms":     "250",
	// Errors and brokers that are down make the client refresh its metadata anyway. Further
	// refreshes cost an idle group messages.
	"topic.metadata.refresh.interval.ms": "10000",
	// The client reports exceeded quotas in its statistics only.
	"statistics.interval.ms": "30000",
	// Small records: Nagle's algorithm only adds latency.
	"socket.nagle.disable": "true",
}

// timeouts returns the clients' timeouts.
func (s *settings) timeouts() map[string]string {
	limits := s.health.clients.Pace.Timeouts(s.HeartbeatTimeout)
	return map[string]string{
		"socket.timeout.ms":                  strconv.FormatInt(limits.Request.Milliseconds(), 10),
		"socket.connection.setup.timeout.ms": strconv.FormatInt(limits.Connection.Milliseconds(), 10),
	}
}

// readerDefaults are the readers' defaults. A missing topic is reported only after the propagation time.
var readerDefaults = map[string]string{
	"fetch.error.backoff.ms":            "50",
	"topic.metadata.propagation.max.ms": "5000",
}

// most has the sizes that a consumer accepts. If the user sets any size, neither of these defaults is
// used, because sizes depend on each other. A client buffers a broker's answer, and unpacks a batch,
// up to receive.message.max.bytes; records are below 64 KiB.
var most = map[string]string{
	"receive.message.max.bytes": "16777216", // 16 MiB
	"fetch.max.bytes":           "8388608",  // 8 MiB
}

func (s *settings) sizes() map[string]string {
	for _, name := range []string{"receive.message.max.bytes", "fetch.max.bytes", "message.max.bytes", "fetch.message.max.bytes", "max.partition.fetch.bytes"} {
		if _, set := s.kafka[name]; set {
			return nil
		}
	}
	return most
}

// largestBatch returns the size of the largest batch that a producer writes: the topic's limit, or
// the user's limit if that is smaller.
func (s *settings) largestBatch() string {
	if n, err := strconv.Atoi(s.kafka["message.max.bytes"]); err == nil && n < kafkalog.LargestBatch {
		return s.kafka["message.max.bytes"]
	}
	return strconv.Itoa(kafkalog.LargestBatch)
}

// longPoll is how long a broker delays the answer to a fetch when there are no records. The first
// record ends the wait, so it adds no latency. Each poll saved is a request from every reader to
// every broker. The client wants another second for the answer (socket.timeout.ms).
const longPoll = time.Second

// brokers returns the bootstrap servers as log lines name them. It is empty if no property names them:
// a Provider's options may do so instead.
func (s *settings) brokers() string {
	named := or(s.kafka["bootstrap.servers"], s.kafka["metadata.broker.list"])
	if s.Provider != nil {
		return named
	}
	return or(named, tuned["bootstrap.servers"])
}

func (s *settings) fetchWait() string {
	room := millis(s.kafka["socket.timeout.ms"], s.health.clients.Pace.Timeouts(s.HeartbeatTimeout).Request) - time.Second
	return strconv.FormatInt(max(0, min(longPoll, room)).Milliseconds(), 10)
}

// reservedProperty is a property that users cannot set, except to the value that the library sets anyway,
// since configuration files often contain it.
type reservedProperty struct {
	rule string
	same []string // what the library sets, in lower case
}

// reserved lists the properties that users cannot set.
var reserved = map[string]reservedProperty{
	"acks":                            {"is always all: a lease must survive a broker", []string{"all", "-1"}},
	"request.required.acks":           {"is always all: a lease must survive a broker", []string{"all", "-1"}},
	"group.id":                        {"is set by LeaderGroupID: leave it out", nil},
	"auto.offset.reset":               {"is set by the library, since a silent jump would void a lease: leave it out", []string{"error", "none"}},
	"enable.auto.commit":              {"is set by the library, which commits nothing: leave it out", []string{"false"}},
	"enable.auto.offset.store":        {"is set by the library, which commits nothing: leave it out", []string{"false"}},
	"isolation.level":                 {"is set by the library: leave it out", []string{"read_uncommitted"}},
	"enable.partition.eof":            {"is set by the library: leave it out", []string{"false"}},
	"message.timeout.ms":              {"is set by the library from HeartbeatTimeout: leave it out", nil},
	"delivery.timeout.ms":             {"is set by the library from HeartbeatTimeout: leave it out", nil},
	"transactional.id":                {"is not supported, since the lease needs no transactions: leave it out", nil},
	"allow.auto.create.topics":        {"is set by the library, which creates the topic with safe settings: leave it out", []string{"false"}},
	"go.events.channel.enable":        {"is not supported: leave it out", []string{"false"}},
	"plugin.library.paths":            {"is not supported: leave it out", nil},
	"go.application.rebalance.enable": {"is set by the library: leave it out", nil},
}

// asSet reports whether the value is what the library sets, or empty, which counts as not set.
func (r reservedProperty) asSet(value string) bool {
	return value == "" || slices.Contains(r.same, strings.ToLower(value))
}

// groupOnly lists the properties of group members only. client.rack is one of them: a reader of the log that
// fetched from a follower would read its own and others' records up to half a second later.
var groupOnly = []string{"client.rack", "session.timeout.ms", "heartbeat.interval.ms", "max.poll.interval.ms",
	"partition.assignment.strategy", "group.instance.id", "group.protocol", "group.protocol.type",
	"group.remote.assignor", "coordinator.query.interval.ms"}

// readOnly lists the properties of consumers only.
var readOnly = []string{"queued.min.messages", "queued.max.messages.kbytes", "fetch.queue.backoff.ms",
	"fetch.wait.max.ms", "fetch.message.max.bytes", "max.partition.fetch.bytes", "fetch.max.bytes",
	"fetch.min.bytes", "fetch.error.backoff.ms", "check.crcs"}

// writeOnly lists the properties of producers only.
var writeOnly = []string{"enable.idempotence", "enable.gapless.guarantee", "queue.buffering.max.messages",
	"queue.buffering.max.kbytes", "queue.buffering.max.ms", "linger.ms", "message.send.max.retries", "retries",
	"compression.codec", "compression.type", "compression.level", "batch.num.messages", "batch.size",
	"sticky.partitioning.linger.ms", "request.timeout.ms", "partitioner"}

// checkProperties checks the user's properties and turns them into strings, without those that the library sets.
// group is LeaderGroupID.
func checkProperties(m KafkaConfigMap, group string, f *faults) map[string]string {
	out := make(map[string]string, len(m))
	protocol, _ := propertyValue(m["security.protocol"])
	protocol = or(protocol, "plaintext")
	for _, name := range slices.Sorted(maps.Keys(m)) {
		field := "KafkaConfig[" + name + "]"
		v, ok := propertyValue(m[name])
		shown := v
		if redact.Secret(name) {
			shown = redact.Mark
		}
		kept, taken := reserved[name]
		switch {
		case taken:
			f.check(ok && (kept.asSet(v) || name == "group.id" && v == group), field, shown, kept.rule)
		case !ok:
			f.check(false, field, fmt.Sprintf("a %T", m[name]), "must be a string, a boolean or an integer")
		default:
			out[name] = v
			f.check(v == "" || !withoutEffect(name, protocol), field, shown, "has no effect with security.protocol="+protocol)
		}
	}
	for _, name := range []string{"bootstrap.servers", "metadata.broker.list"} {
		v, set := out[name] // an empty value comes from an environment variable that is not set
		f.check(!set || strings.Trim(v, ", \t\r\n") != "", "KafkaConfig["+name+"]", v,
			"must be host:port,…, or be left out ("+tuned["bootstrap.servers"]+")")
		checkServers("KafkaConfig["+name+"]", v, protocol, f)
	}
	for _, alias := range slices.Sorted(maps.Keys(aliases)) { // if both names are set, which value the client takes depends on chance
		name := aliases[alias]
		v, set := out[alias]
		other, both := out[name]
		shown := v
		if redact.Secret(alias) {
			shown = redact.Mark
		}
		f.check(!set || !both || v == other, "KafkaConfig["+alias+"]", shown, "is another name of "+name+", which is set to another value: set one of them")
	}
	for _, name := range []string{"session.timeout.ms", "heartbeat.interval.ms"} {
		v, set := out[name]
		if !set {
			continue
		}
		n, err := strconv.Atoi(v)
		f.check(err == nil && n > 0 && n <= 3_600_000, "KafkaConfig["+name+"]", v, "must be milliseconds between 1 and 3600000")
		f.check(!newGroups(out), "KafkaConfig["+name+"]", v, "is the broker's to set with group.protocol=consumer")
	}
	session, heartbeat := sessionTimeout(out), heartbeatInterval(out)
	if _, set := out["heartbeat.interval.ms"]; set {
		f.check(heartbeat < session, "KafkaConfig[heartbeat.interval.ms]", heartbeat.Milliseconds(),
			fmt.Sprintf("must be below session.timeout.ms (%d)", session.Milliseconds()))
	} else {
		f.check(heartbeat < session, "KafkaConfig[session.timeout.ms]", session.Milliseconds(),
			fmt.Sprintf("must be above heartbeat.interval.ms (%d)", heartbeat.Milliseconds()))
	}
	return out
}

// leastBatch is the size of the smallest answer that has a record.
const leastBatch = 61

// checkDelays checks the properties that delay every record on its way to the log or back. A
// process claims nothing if its own records take T/4 or longer to come back.
func (s *settings) checkDelays(f *faults) {
	limit := clock.Stalled(s.HeartbeatTimeout)
	why := "a process whose own records take that long to come back claims nothing"
	if s.Mode == NonExclusive {
		why = "less of HeartbeatTimeout would be left for a stall of the log"
	}
	rule := fmt.Sprintf("must be below %d, a quarter of HeartbeatTimeout (%v): %s", max(1, limit.Milliseconds()), s.HeartbeatTimeout, why)
	late := func(name, otherwise string) bool {
		value, ms := or(s.kafka[name], otherwise), 0.0
		_, err := fmt.Sscan(value, &ms) // librdkafka ignores blanks before a number, and anything behind it
		below := err == nil && ms < float64(limit)/float64(time.Millisecond)
		return value != "" && !below
	}
	for _, name := range []string{"linger.ms", "queue.buffering.max.ms"} {
		f.check(!late(name, ""), "KafkaConfig["+name+"]", s.kafka[name], rule)
	}
	bytes := 0
	if _, err := fmt.Sscan(s.kafka["fetch.min.bytes"], &bytes); err == nil && bytes > leastBatch {
		f.check(!late("fetch.wait.max.ms", s.fetchWait()), "KafkaConfig[fetch.min.bytes]", bytes,
			fmt.Sprintf("must be %d or less, the size of a record, or fetch.wait.max.ms %s", leastBatch, rule))
	}
}

// withoutEffect reports whether a property of TLS or of a login has no effect with this protocol.
// The clients do not report that.
func withoutEffect(name, protocol string) bool {
	tls := strings.HasPrefix(name, "ssl.") || strings.HasPrefix(name, "enable.ssl.")
	login := strings.HasPrefix(name, "sasl.") || strings.HasPrefix(name, "https.") // https: the token endpoint
	switch strings.ToLower(protocol) {
	case "plaintext":
		return tls || login
	case "ssl":
		return login
	case "sasl_plaintext":
		return tls
	}
	return false // the client refuses any but sasl_ssl
}

// checkServers checks the addresses of brokers. librdkafka reports none of these faults: it connects
// to the port modulo 65536, and drops an address with another protocol.
func checkServers(field, servers, security string, f *faults) {
	for server := range strings.SplitSeq(servers, ",") {
		server = strings.TrimSpace(server)
		protocol, address, named := strings.Cut(server, "://")
		if !named {
			protocol, address = security, server
		}
		f.check(strings.EqualFold(protocol, security), field, server, "does not match security.protocol="+security)
		address, _, _ = strings.Cut(address, "/")
		f.check(!strings.ContainsAny(address, " \t\r\n;\"'"), field, server, "must be host:port, and commas between several")
		colon := strings.LastIndexByte(address, ':')
		if colon < 0 || colon != strings.IndexByte(address, ':') && !strings.HasSuffix(address[:colon], "]") {
			continue // a name or an IPv6 address without a port
		}
		port, err := strconv.ParseUint(address[colon+1:], 10, 16)
		f.check(err == nil && port > 0, field, server, "must have a port from 1 to 65535")
	}
}

func propertyValue(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case bool:
		return strconv.FormatBool(v), true
	case int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64:
		return fmt.Sprint(v), true
	}
	return "", false
}

// newGroups reports whether the group uses the protocol of KIP-848.
func newGroups(props map[string]string) bool {
	return strings.EqualFold(props["group.protocol"], "consumer")
}

// sessionTimeout is how long the group takes to notice a lost member.
func sessionTimeout(props map[string]string) time.Duration {
	if newGroups(props) {
		return 45 * time.Second // group.consumer.session.timeout.ms of a stock broker
	}
	return millis(props["session.timeout.ms"], 6*time.Second)
}

// heartbeatInterval is how long a member takes to learn of a rebalance.
func heartbeatInterval(props map[string]string) time.Duration {
	if newGroups(props) {
		return 5 * time.Second // group.consumer.heartbeat.interval.ms of a stock broker
	}
	return millis(props["heartbeat.interval.ms"], 500*time.Millisecond)
}

func millis(s string, d time.Duration) time.Duration {
	n, err := strconv.Atoi(s)
	if err != nil || n <= 0 {
		return d
	}
	return time.Duration(n) * time.Millisecond
}

// aliases are librdkafka's alternative names of properties that users can set.
var aliases = map[string]string{
	"metadata.broker.list":      "bootstrap.servers",
	"queue.buffering.max.ms":    "linger.ms",
	"sasl.mechanism":            "sasl.mechanisms",
	"compression.type":          "compression.codec",
	"retries":                   "message.send.max.retries",
	"max.partition.fetch.bytes": "fetch.message.max.bytes",
	"max.in.flight":             "max.in.flight.requests.per.connection",
	"sasl.oauthbearer.client.credentials.client.id":     "sasl.oauthbearer.client.id",
	"sasl.oauthbearer.client.credentials.client.secret": "sasl.oauthbearer.client.secret",
}

func (s *settings) properties(drop [][]string, defaults, fixed map[string]string) map[string]string {
	out := maps.Clone(tuned)
	maps.Copy(out, s.timeouts())
	maps.Copy(out, defaults)
	maps.Copy(out, s.kafka)
	maps.Copy(out, fixed)
	for alias, name := range aliases {
		if _, set := s.kafka[alias]; set && s.kafka[name] == "" {
			delete(out, name) // the library's default must not compete with the user's value
		}
	}
	out["client.id"] = or(s.kafka["client.id"], s.Name)
	for _, names := range drop {
		for _, name := range names {
			delete(out, name)
		}
	}
	return out
}

func (s *settings) producerProperties() map[string]string {
	drop := [][]string{groupOnly, readOnly}
	if s.Observer {
		// An observer has a producer only for its connections. An idempotent producer would
		// ask for a producer id at once, which needs the right to write.
		drop = append(drop, []string{"enable.idempotence", "enable.gapless.guarantee"})
	}
	timeout := s.HeartbeatTimeout
	// When a producer asks about a deleted topic, the broker must not create one with its defaults.
	fixed := map[string]string{"acks": "all", "allow.auto.create.topics": "false", "message.max.bytes": s.largestBatch()}
	if s.logs > 0 {
		// Records queued for a broker that is down should not arrive when it returns: late
		// records are harmless, but cost waits. librdkafka's resolution is a second.
		timeout = s.HeartbeatTimeout / 4
		fixed["enable.idempotence"] = "false"
		drop = append(drop, []string{"enable.gapless.guarantee"})
	}
	fixed["message.timeout.ms"] = strconv.FormatInt(max(timeout, time.Second).Milliseconds(), 10)
	return s.properties(drop, map[string]string{
		"request.timeout.ms": strconv.FormatInt((s.health.clients.Pace.Timeouts(s.HeartbeatTimeout).Request * 3 / 4).Milliseconds(), 10), // before the socket's timeout
		"linger.ms":          "0",
		"topic.metadata.refresh.fast.interval.ms": "50",
	}, fixed)
}

// following returns the properties that all consumers share.
func following(reset string) map[string]string {
	return map[string]string{
		"enable.auto.commit":       "false",
		"enable.auto.offset.store": "false",
		"enable.partition.eof":     "false",
		"isolation.level":          "read_uncommitted",
		"allow.auto.create.topics": "false",
		"auto.offset.reset":        reset,
	}
}

func (s *settings) readerProperties() map[string]string {
	fixed := following("error")
	fixed["group.id"] = s.LeaderGroupID // librdkafka requires one; the reader does not join it
	defaults := maps.Clone(readerDefaults)
	defaults["fetch.wait.max.ms"] = s.fetchWait()
	maps.Copy(defaults, s.sizes())
	return s.properties([][]string{groupOnly, writeOnly}, defaults, fixed)
}

// mainLoop is how often librdkafka's main loop wakes by itself.
const mainLoop = 500 * time.Millisecond

func (s *settings) groupProperties() map[string]string {
	defaults := map[string]string{
		"partition.assignment.strategy": "cooperative-sticky",
		"session.timeout.ms":            "6000",
		"heartbeat.interval.ms":         "500",
		"fetch.error.backoff.ms":        "50",
	}
	if newGroups(s.kafka) {
		defaults = map[string]string{"fetch.error.backoff.ms": "50"}
	} else if every := heartbeatInterval(s.kafka); every < mainLoop {
		// librdkafka sends heartbeats only when its main loop wakes: twice a second, which is too
		// rare for a short session. Statistics wake it more often.
		defaults["statistics.interval.ms"] = strconv.FormatInt(max(every, 10*time.Millisecond).Milliseconds(), 10)
	}
	maps.Copy(defaults, s.sizes())
	fixed := following("latest")
	fixed["group.id"] = s.LeaderGroupID
	return s.properties([][]string{writeOnly}, defaults, fixed)
}
