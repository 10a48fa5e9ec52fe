package neli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/kafka"
)

func resolved(t *testing.T, c Config) *settings {
	t.Helper()
	s, err := c.resolve()
	require.NoError(t, err)
	return s
}

// clients returns the properties of each client by its name.
func (s *settings) clients() map[string]map[string]string {
	return map[string]map[string]string{
		"producer": s.producerProperties(), "reader": s.readerProperties(), "group": s.groupProperties(),
	}
}

func TestPropertiesByDefault(t *testing.T) {
	s := resolved(t, Config{LeaderGroupID: "app", Name: "n1"})
	for client, props := range s.clients() {
		require.Equal(t, "localhost:9092", props["bootstrap.servers"], client)
		require.Equal(t, "n1", props["client.id"], client)
		require.Equal(t, "2000", props["socket.timeout.ms"], client)
		require.Equal(t, "3000", props["socket.connection.setup.timeout.ms"], client)
		require.Equal(t, "500", props["reconnect.backoff.max.ms"], client)
		require.Equal(t, "true", props["socket.nagle.disable"], client)
	}
	p := s.producerProperties()
	require.Equal(t, "all", p["acks"])
	require.Equal(t, "5000", p["message.timeout.ms"], "T: a claim that takes longer is void")
	require.Equal(t, "0", p["linger.ms"])
	require.NotContains(t, p, "group.id")
	require.NotContains(t, p, "auto.offset.reset")

	r := s.readerProperties()
	require.Equal(t, "error", r["auto.offset.reset"], "a silent jump would void a lease")
	require.Equal(t, "app", r["group.id"])
	require.NotContains(t, r, "acks")
	require.NotContains(t, r, "session.timeout.ms")
	require.NotContains(t, r, "partition.assignment.strategy")

	g := s.groupProperties()
	require.Equal(t, "app", g["group.id"])
	require.Equal(t, "cooperative-sticky", g["partition.assignment.strategy"])
	require.Equal(t, "6000", g["session.timeout.ms"])
	require.Equal(t, "500", g["heartbeat.interval.ms"])
	require.Equal(t, "latest", g["auto.offset.reset"])
	require.NotContains(t, g, "acks")

	for name, props := range map[string]map[string]string{"reader": r, "group": g} {
		require.Equal(t, "false", props["enable.auto.commit"], name)
		require.Equal(t, "false", props["enable.auto.offset.store"], name)
		require.Equal(t, "read_uncommitted", props["isolation.level"], name)
	}
	for name, props := range s.clients() {
		require.Equal(t, "false", props["allow.auto.create.topics"], "librdkafka's producers create topics by default: %s", name)
	}
}

func TestMessageTimeoutFollowsT(t *testing.T) {
	for timeout, want := range map[time.Duration]string{
		100 * time.Millisecond:  "1000", // with a shorter timeout everything would fail on a slow day
		1500 * time.Millisecond: "1500",
		time.Minute:             "60000",
	} {
		require.Equal(t, want, resolved(t, Config{HeartbeatTimeout: timeout}).producerProperties()["message.timeout.ms"])
	}
}

// librdkafka sends heartbeats only when its main loop wakes, which happens twice a second unless
// statistics wake it more often.
func TestStatisticsWakeTheClientForEachHeartbeat(t *testing.T) {
	for _, c := range []struct {
		set  KafkaConfigMap
		want string
	}{
		{nil, "30000"},
		{KafkaConfigMap{"session.timeout.ms": 1000, "heartbeat.interval.ms": 100}, "100"},
		{KafkaConfigMap{"session.timeout.ms": 100, "heartbeat.interval.ms": 10}, "10"},
		{KafkaConfigMap{"session.timeout.ms": 20, "heartbeat.interval.ms": 5}, "10"},
		{KafkaConfigMap{"session.timeout.ms": 1000, "heartbeat.interval.ms": 100, "statistics.interval.ms": 0}, "0"},
		{KafkaConfigMap{"group.protocol": "consumer"}, "30000"},
	} {
		s := resolved(t, Config{Mode: NonExclusive, KafkaConfig: c.set})
		require.Equal(t, c.want, s.groupProperties()["statistics.interval.ms"], "%v", c.set)
		require.NotEqual(t, "10", s.producerProperties()["statistics.interval.ms"], "only members of the group have heartbeats")
	}
}

// Each client gets the common properties and its own.
func TestPropertiesReachTheirClients(t *testing.T) {
	all := []string{"group", "producer", "reader"}
	for name, want := range map[string][]string{
		"security.protocol":             all,
		"sasl.password":                 all,
		"ssl.ca.location":               all,
		"client.id":                     all,
		"bootstrap.servers":             all,
		"statistics.interval.ms":        all,
		"some.future.property":          all,
		"session.timeout.ms":            {"group"},
		"heartbeat.interval.ms":         {"group"},
		"max.poll.interval.ms":          {"group"},
		"partition.assignment.strategy": {"group"},
		"group.instance.id":             {"group"},
		"client.rack":                   {"group"},
		"fetch.wait.max.ms":             {"group", "reader"},
		"fetch.min.bytes":               {"group", "reader"},
		"check.crcs":                    {"group", "reader"},
		"linger.ms":                     {"producer"},
		"compression.type":              {"producer"},
		"batch.size":                    {"producer"},
		"enable.idempotence":            {"producer"},
		"request.timeout.ms":            {"producer"},
	} {
		s := resolved(t, Config{HeartbeatTimeout: time.Minute, KafkaConfig: KafkaConfigMap{"security.protocol": "SASL_SSL", name: "5100"}})
		var got []string
		for _, client := range slices.Sorted(maps.Keys(s.clients())) {
			if v, ok := s.clients()[client][name]; ok {
				require.Equal(t, "5100", v, "%s of the %s: the user's value wins", name, client)
				got = append(got, client)
			}
		}
		require.Equal(t, want, got, name)
	}
}

// No client is given a property that only another one understands, even if the library added it.
func TestPropertiesAreEachClientsOwn(t *testing.T) {
	s := resolved(t, Config{})
	for _, name := range slices.Concat(groupOnly, readOnly, []string{"auto.offset.reset", "enable.auto.commit", "isolation.level"}) {
		require.NotContains(t, s.producerProperties(), name)
	}
	for _, name := range slices.Concat(groupOnly, writeOnly, []string{"acks", "message.timeout.ms"}) {
		require.NotContains(t, s.readerProperties(), name)
	}
	for _, name := range slices.Concat(writeOnly, []string{"acks", "message.timeout.ms"}) {
		require.NotContains(t, s.groupProperties(), name)
	}
}

// A process far from the brokers uses a longer T, so the timeouts grow with T. But none is so long
// that a process still waits for a silent broker after the cluster has replaced it.
func TestTimeoutsFollowT(t *testing.T) {
	for timeout, want := range map[time.Duration][3]string{ // request, socket, setup
		300 * time.Millisecond: {"1500", "2000", "3000"},
		5 * time.Second:        {"1500", "2000", "3000"},
		10 * time.Second:       {"3000", "4000", "6000"},
		time.Minute:            {"4500", "6000", "9000"},
	} {
		s := resolved(t, Config{HeartbeatTimeout: timeout})
		for client, props := range s.clients() {
			require.Equal(t, want[1], props["socket.timeout.ms"], "%s, T = %v", client, timeout)
			require.Equal(t, want[2], props["socket.connection.setup.timeout.ms"], "%s, T = %v", client, timeout)
		}
		require.Equal(t, want[0], s.producerProperties()["request.timeout.ms"], "T = %v", timeout)
		require.Equal(t, "1000", s.readerProperties()["fetch.wait.max.ms"], "T = %v", timeout)
	}
}

// If brokers turn out to be far away, later clients get longer timeouts. The user's own values stay.
func TestTimeoutsFollowMeasuredRoundTrips(t *testing.T) {
	s := resolved(t, Config{HeartbeatTimeout: 5 * time.Second})
	s.health.clients.Pace.Note(time.Second, time.Now())
	for client, props := range s.clients() {
		require.Equal(t, "4000", props["socket.timeout.ms"], client)
		require.Equal(t, "10000", props["socket.connection.setup.timeout.ms"], client)
	}
	require.Equal(t, "3000", s.producerProperties()["request.timeout.ms"])
	s = resolved(t, Config{HeartbeatTimeout: 5 * time.Second, KafkaConfig: KafkaConfigMap{"socket.timeout.ms": 2500}})
	s.health.clients.Pace.Note(time.Second, time.Now())
	require.Equal(t, "2500", s.readerProperties()["socket.timeout.ms"])
}

func TestUsersValuesWinOverTuning(t *testing.T) {
	values := KafkaConfigMap{}
	all := maps.Clone(tuned)
	maps.Copy(all, resolved(t, Config{}).timeouts())
	for name := range all {
		values[name] = "4711"
	}
	for name := range readerDefaults {
		values[name] = "4711"
	}
	s := resolved(t, Config{KafkaConfig: values})
	for client, props := range s.clients() {
		for name := range all {
			require.Equal(t, "4711", props[name], "%s of the %s", name, client)
		}
	}
	for name := range readerDefaults {
		require.Equal(t, "4711", s.readerProperties()[name], name)
	}
	values["session.timeout.ms"] = "4711" // this must not change the clients: they got a copy
	require.Equal(t, "6000", s.groupProperties()["session.timeout.ms"])
}

// The properties on which the protocol depends cannot be overridden, neither through New nor below it.
func TestReservedPropertiesCannotBeOverridden(t *testing.T) {
	for name := range reserved {
		_, err := Config{KafkaConfig: KafkaConfigMap{name: "mine"}}.resolve()
		require.ErrorContains(t, err, "KafkaConfig["+name+"]: \"mine\" is")
	}
	plain := resolved(t, Config{LeaderGroupID: "app", Name: "n"})
	s := resolved(t, Config{LeaderGroupID: "app", Name: "n"})
	for name := range reserved {
		s.kafka[name] = "mine"
	}
	for client, props := range s.clients() {
		for _, name := range []string{"acks", "message.timeout.ms", "group.id", "auto.offset.reset", "enable.auto.commit",
			"enable.auto.offset.store", "isolation.level", "enable.partition.eof", "allow.auto.create.topics"} {
			if want, ok := plain.clients()[client][name]; ok {
				require.Equal(t, want, props[name], "%s of the %s", name, client)
			}
		}
	}
}

// A configuration file may set a reserved property to the value that the library uses anyway.
func TestReservedPropertiesMayHaveTheLibrarysValue(t *testing.T) {
	same := KafkaConfigMap{"acks": "ALL", "request.required.acks": -1, "group.id": "app", "auto.offset.reset": "none", "enable.auto.commit": false,
		"enable.auto.offset.store": "false", "isolation.level": "read_uncommitted", "enable.partition.eof": "false",
		"allow.auto.create.topics": "false", "transactional.id": ""}
	s := resolved(t, Config{LeaderGroupID: "app", KafkaConfig: same})
	require.Empty(t, s.kafka, "the library's own values reach the clients")
	require.Equal(t, "error", s.readerProperties()["auto.offset.reset"])
	_, err := Config{LeaderGroupID: "app", KafkaConfig: KafkaConfigMap{"group.id": "App", "acks": "1", "auto.offset.reset": "earliest"}}.resolve()
	for _, name := range []string{"group.id", "acks", "auto.offset.reset"} {
		require.ErrorContains(t, err, "KafkaConfig["+name+"]")
	}
}

// With the new group protocol the broker sets the group's timeouts, and the client refuses them as properties.
func TestPropertiesOfTheNewGroupProtocol(t *testing.T) {
	for _, protocol := range []string{"consumer", "CONSUMER"} {
		g := resolved(t, Config{KafkaConfig: KafkaConfigMap{"group.protocol": protocol, "group.remote.assignor": "range"}}).groupProperties()
		for _, name := range []string{"session.timeout.ms", "heartbeat.interval.ms", "partition.assignment.strategy"} {
			require.NotContains(t, g, name)
		}
		require.Equal(t, protocol, g["group.protocol"])
		require.Equal(t, "range", g["group.remote.assignor"])
		require.Equal(t, "latest", g["auto.offset.reset"])
	}
	g := resolved(t, Config{KafkaConfig: KafkaConfigMap{"group.protocol": "classic"}}).groupProperties()
	require.Equal(t, "6000", g["session.timeout.ms"])
	require.Equal(t, "cooperative-sticky", g["partition.assignment.strategy"])
}

func TestPropertyValues(t *testing.T) {
	for _, c := range []struct {
		v    any
		want string
		ok   bool
	}{
		{"", "", true},
		{" a=b ", " a=b ", true},
		{true, "true", true},
		{false, "false", true},
		{-7, "-7", true},
		{int64(1) << 62, "4611686018427387904", true},
		{uint8(255), "255", true},
		{uint64(1) << 63, "9223372036854775808", true},
		{nil, "", false},
		{1.5, "", false},
		{'x', "120", true}, // a rune is an int32
		{[]byte("x"), "", false},
		{time.Second, "", false}, // a duration is in nanoseconds, but librdkafka counts milliseconds
		{map[string]string{}, "", false},
	} {
		got, ok := propertyValue(c.v)
		require.Equal(t, c.ok, ok, "%T %v", c.v, c.v)
		require.Equal(t, c.want, got, "%T %v", c.v, c.v)
	}
}

func TestGroupTimes(t *testing.T) {
	for _, c := range []struct {
		props              map[string]string
		session, heartbeat time.Duration
	}{
		{nil, 6 * time.Second, 500 * time.Millisecond},
		{map[string]string{"session.timeout.ms": "10000", "heartbeat.interval.ms": "3000"}, 10 * time.Second, 3 * time.Second},
		{map[string]string{"session.timeout.ms": "no number", "heartbeat.interval.ms": "-5"}, 6 * time.Second, 500 * time.Millisecond},
		{map[string]string{"group.protocol": "classic", "session.timeout.ms": "1"}, time.Millisecond, 500 * time.Millisecond},
		{map[string]string{"group.protocol": "Consumer", "session.timeout.ms": "1"}, 45 * time.Second, 5 * time.Second},
	} {
		require.Equal(t, c.session, sessionTimeout(c.props), "%v", c.props)
		require.Equal(t, c.heartbeat, heartbeatInterval(c.props), "%v", c.props)
	}
}

// If a property is set by its alternative name, the library's default does not contradict it.
func TestAliasOfAPropertyReplacesTheDefault(t *testing.T) {
	for _, alias := range []string{"metadata.broker.list", "queue.buffering.max.ms"} {
		name := aliases[alias]
		s := resolved(t, Config{KafkaConfig: KafkaConfigMap{alias: "5"}})
		require.Equal(t, "5", s.producerProperties()[alias])
		for client, props := range s.clients() {
			require.NotContains(t, props, name, client)
		}
		both := resolved(t, Config{KafkaConfig: KafkaConfigMap{alias: "5", name: "5"}})
		require.Equal(t, "5", both.producerProperties()[alias])
		_, err := Config{KafkaConfig: KafkaConfigMap{alias: "5", name: "6"}}.resolve()
		require.ErrorContains(t, err, "KafkaConfig["+alias+`]: "5" is another name of `+name)
	}
	s := resolved(t, Config{KafkaConfig: KafkaConfigMap{"metadata.broker.list": "broker:9092"}})
	for client, props := range s.clients() {
		require.Equal(t, "broker:9092", props["metadata.broker.list"], client)
	}
}

// If a property is set by both of its names with different values, which value the client takes
// depends on chance. So that is a fault.
func TestPropertySetByTwoNamesIsAFault(t *testing.T) {
	for alias, name := range aliases {
		props := KafkaConfigMap{"security.protocol": "SASL_SSL", alias: "5", name: "6"}
		_, err := Config{KafkaConfig: props}.resolve()
		require.ErrorContains(t, err, "KafkaConfig["+alias+"]: ")
		require.ErrorContains(t, err, "is another name of "+name+", which is set to another value: set one of them")
		props[name] = "5"
		_, err = Config{KafkaConfig: props}.resolve()
		require.NotContains(t, fmt.Sprint(err), "is another name")
	}
	const alias = "sasl.oauthbearer.client.credentials.client.secret"
	_, err := Config{KafkaConfig: KafkaConfigMap{"security.protocol": "SASL_SSL", alias: "hunter2", aliases[alias]: "hunter3"}}.resolve()
	require.ErrorContains(t, err, "KafkaConfig["+alias+"]")
	require.NotContains(t, err.Error(), "hunter")
}

// The broker may hold a fetch back for a second. With a shorter request timeout of the user it is
// less, because the client needs a second for the answer.
func TestLongPoll(t *testing.T) {
	for _, c := range []struct {
		kafka KafkaConfigMap
		want  string
	}{
		{nil, "1000"},
		{KafkaConfigMap{"socket.timeout.ms": 60_000}, "1000"},
		{KafkaConfigMap{"socket.timeout.ms": 1300}, "300"},
		{KafkaConfigMap{"socket.timeout.ms": 500}, "0"},
		{KafkaConfigMap{"fetch.wait.max.ms": 77}, "77"},
		{KafkaConfigMap{"fetch.wait.max.ms": 77, "socket.timeout.ms": 1300}, "77"},
	} {
		require.Equal(t, c.want, resolved(t, Config{KafkaConfig: c.kafka}).readerProperties()["fetch.wait.max.ms"], "%v", c.kafka)
	}
}

type brokerless = kafka.SmallLogs // a field of the name SmallLogs would hide the method

// A configuration that does not fit Config.LoginToken makes New return an error. The error names the
// field, but no value of a secret.
func TestTokenSettings(t *testing.T) {
	token := func(context.Context) (kafka.Token, error) {
		return kafka.Token{Value: "v", Expires: time.Now().Add(time.Hour)}, nil
	}
	for says, cfg := range map[string]Config{
		"KafkaConfig[security.protocol]: \"\" must be SASL_SSL":              {},
		"KafkaConfig[sasl.mechanism]: \"PLAIN\" must be OAUTHBEARER":         {KafkaConfig: KafkaConfigMap{"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}},
		"KafkaConfig[sasl.oauthbearer.method]: \"oidc\" has no effect":       {KafkaConfig: KafkaConfigMap{"security.protocol": "SASL_SSL", "sasl.oauthbearer.method": "oidc"}},
		"KafkaConfig[sasl.oauthbearer.client.secret]: \"[redacted]\" has no": {KafkaConfig: KafkaConfigMap{"security.protocol": "SASL_SSL", "sasl.oauthbearer.client.secret": "s3cret"}},
		"Config.LoginToken: this Provider cannot log in with it": {KafkaConfig: KafkaConfigMap{"security.protocol": "SASL_SSL"},
			Provider: struct{ kafka.Provider }{}},
		"LoginToken: \"\" must be empty with small logs": {Provider: struct{ brokerless }{}},
	} {
		cfg.LeaderGroupID, cfg.LoginToken = "g", token
		if cfg.Provider == nil {
			cfg.Provider = struct{ kafka.Provider }{}
		}
		_, err := New(cfg)
		require.ErrorContains(t, err, says)
		require.NotContains(t, err.Error(), "s3cret")
	}
}
