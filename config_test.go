package neli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/redact"
	"github.com/goneli/neli/internal/said"
	"github.com/goneli/neli/kafka"
)

func TestConfigDefaults(t *testing.T) {
	s, err := Config{}.resolve()
	require.NoError(t, err)
	binary := filepath.Base(os.Args[0])
	require.Equal(t, binary, s.LeaderGroupID)
	require.Equal(t, binary+".neli", s.topic)
	require.Regexp(t, `^.+_[0-9]+_[0-9]{10}$`, s.Name)
	require.NotEmpty(t, s.process)
	require.False(t, s.DisableTopicCreation)
	require.Equal(t, Exclusive, s.Mode)
	require.Equal(t, NominationOpen, s.Nomination)
	require.False(t, s.DisableRebalance)
	require.Zero(t, s.Priority)
	require.Nil(t, s.Preference)
	require.Nil(t, s.weights)
	require.Nil(t, s.Healthy)
	require.Equal(t, 1, s.Roles)
	require.Equal(t, 1, s.Partitions)
	require.Equal(t, 5*time.Second, s.HeartbeatTimeout)
	require.Equal(t, time.Second, s.HeartbeatInterval)
	require.Equal(t, 30*time.Second, s.MaxPulseInterval)
	require.Equal(t, 10*time.Second, s.DrainTimeout)
	require.Equal(t, time.Second, s.successorWait)
	require.Equal(t, 0.0005, s.MaxClockDrift)
	require.Empty(t, s.kafka)
	require.Equal(t, slog.DiscardHandler, s.logger.Handler())

	other, err := Config{}.resolve()
	require.NoError(t, err)
	require.NotEqual(t, s.process, other.process, "two in one process are two")
}

// A sentinel from the environment counts like one in Config, but only where a sentinel is used.
func TestConfigShowsTheSentinelOfTheEnvironment(t *testing.T) {
	t.Setenv("NELI_SENTINEL", "/run/neli/s.sock")
	for _, c := range []struct {
		cfg  Config
		want string
	}{
		{Config{}, "/run/neli/s.sock"},
		{Config{Sentinel: "/s"}, "/s"},
		{Config{Observer: true}, ""},
		{Config{Mode: NonExclusive}, ""},
	} {
		s, err := c.cfg.resolve()
		require.NoError(t, err)
		require.Equal(t, c.want, s.Config.Sentinel, "%+v", c.cfg)
	}
}

func TestConfigDerivesTimes(t *testing.T) {
	for _, c := range []struct {
		name                             string
		cfg                              Config
		timeout, every, broadcast        time.Duration
		successorWait, overlap, minimumT time.Duration
	}{
		{"exclusive", Config{HeartbeatTimeout: 2 * time.Second},
			2 * time.Second, 400 * time.Millisecond, 400 * time.Millisecond, time.Second, 2 * time.Second, 0},
		{"exclusive, slow", Config{HeartbeatTimeout: time.Minute},
			time.Minute, 12 * time.Second, 12 * time.Second, 12 * time.Second, 34 * time.Second, 0},
		{"exclusive, Assigned", Config{HeartbeatTimeout: 2 * time.Second, Nomination: NominationAssigned},
			2 * time.Second, 400 * time.Millisecond, 400 * time.Millisecond, 4 * time.Second, 2 * time.Second, 0},
		{"a slower group", Config{Nomination: NominationAssigned, KafkaConfig: KafkaConfigMap{"heartbeat.interval.ms": 2000}},
			5 * time.Second, time.Second, time.Second, 7 * time.Second, 5 * time.Second, 0},
		{"KIP-848", Config{Nomination: NominationAssigned, KafkaConfig: KafkaConfigMap{"group.protocol": "Consumer"}},
			5 * time.Second, time.Second, time.Second, 13 * time.Second, 5 * time.Second, 0},
		{"non-exclusive", Config{Mode: NonExclusive},
			18 * time.Second, 900 * time.Millisecond, 900 * time.Millisecond, 4 * time.Second, 11800 * time.Millisecond, 0},
		{"non-exclusive, two groups", Config{Mode: NonExclusive, GroupsOnTopic: 2},
			18 * time.Second, 900 * time.Millisecond, 1800 * time.Millisecond, 4 * time.Second, 13600 * time.Millisecond, 0},
		{"non-exclusive, a longer session", Config{Mode: NonExclusive, KafkaConfig: KafkaConfigMap{"session.timeout.ms": "10000"}},
			30 * time.Second, 1500 * time.Millisecond, 1500 * time.Millisecond, 4 * time.Second, 17 * time.Second, 0},
		{"non-exclusive, KIP-848", Config{Mode: NonExclusive, KafkaConfig: KafkaConfigMap{"group.protocol": "consumer"}},
			135 * time.Second, 6750 * time.Millisecond, 6750 * time.Millisecond, 13 * time.Second, 36500 * time.Millisecond, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := c.cfg.resolve()
			require.NoError(t, err)
			require.Equal(t, c.timeout, s.HeartbeatTimeout, "T")
			require.Equal(t, c.every, s.HeartbeatInterval, "heartbeat interval")
			require.Equal(t, c.broadcast, s.broadcast, "B")
			require.Equal(t, c.successorWait, s.successorWait, "wait for a successor")
			require.Equal(t, c.overlap, s.handoverOverlap, "overlap")
		})
	}
	s, err := Config{HeartbeatTimeout: time.Second, LeaderGroupID: "g", Name: "n"}.resolve()
	require.NoError(t, err)
	rules := s.elector(nil)
	require.Equal(t, time.Second, rules.T)
	require.Equal(t, 200*time.Millisecond, rules.HeartbeatInterval)
	require.Equal(t, "g", rules.Group)
	require.Equal(t, "n", rules.Name)
}

// Each fault names the field, its value and the rule that it breaks.
func TestConfigFaults(t *testing.T) {
	for _, c := range []struct {
		cfg                Config
		field, value, rule string
	}{
		{Config{LeaderGroupID: strings.Repeat("g", 256), LeaderTopic: "t"}, "LeaderGroupID", "ggg", "1 to 255 bytes of UTF-8"},
		{Config{LeaderTopic: "a topic"}, "LeaderTopic", "a topic", "must be 1 to 249 of"},
		{Config{LeaderTopic: ".."}, "LeaderTopic", "..", "neither '.' nor '..'"},
		{Config{LeaderTopic: strings.Repeat("t", 250)}, "LeaderTopic", "ttt", "must be 1 to 249 of"},
		{Config{LeaderGroupID: "Zürich"}, "LeaderGroupID", "Zürich", `names the topic "Zürich.neli", which must be 1 to 249 of`},
		{Config{LeaderGroupID: strings.Repeat("g", 248)}, "LeaderGroupID", "ggg", "choose another, or set LeaderTopic"},
		{Config{LeaderGroupID: strings.Repeat("g", 230), Logs: 3}, "LeaderGroupID", "ggg", "must be at most 249 bytes, completed for Logs"},
		{Config{LeaderGroupID: "g\xff", LeaderTopic: "t"}, "LeaderGroupID", "g", "1 to 255 bytes of UTF-8"},
		{Config{Name: strings.Repeat("n", 257)}, "Name", "nnn", "at most 256 bytes of UTF-8"},
		{Config{Name: strings.Repeat("n", 301)}, "Name", strings.Repeat("n", 300) + "\"… (301 bytes)", "at most 256"},
		{Config{Name: "n\xff\xfe"}, "Name", "n", "at most 256 bytes of UTF-8"},
		{Config{Advertise: "a"}, "Advertise", "a", "must be host:port, or a URL"},
		{Config{Advertise: ":8080"}, "Advertise", ":8080", "must name the host by which other processes reach this one"},
		{Config{Advertise: "http://u:secret@a"}, "Advertise", "[redacted]", "must have no user and no password"},
		{Config{Advertise: "a:1", Mode: NonExclusive}, "Advertise", "", "needs Mode Exclusive"},
		{Config{Zone: "rack 7"}, "Zone", "rack 7", "at most 64 bytes of UTF-8, without blanks"},
		{Config{Zone: "a", Mode: NonExclusive}, "Zone", "", "needs Mode Exclusive"},
		{Config{Prepare: func(context.Context, int) error { return nil }, Mode: NonExclusive}, "Prepare", "", "needs Mode Exclusive and NominationOpen"},
		{Config{Prepare: func(context.Context, int) error { return nil }, Nomination: NominationAssigned}, "Prepare", "", "needs Mode Exclusive and NominationOpen"},
		{Config{Standby: true}, "Standby", "", "needs Prepare"},
		{Config{MaxPrepares: 1001}, "MaxPrepares", "1001", "must be between 1 and 1000"},
		{Config{MaxPrepares: -1}, "MaxPrepares", "-1", "must be between 1 and 1000"},
		{Config{PrepareTimeout: 11 * time.Minute}, "PrepareTimeout", "11m0s", "must be between 100ms and 10m0s"},
		{Config{PrepareTimeout: time.Millisecond}, "PrepareTimeout", "1ms", "must be between 100ms and 10m0s"},
		{Config{MaxRoles: -1}, "MaxRoles", "-1", "must be between 1 and 1000000, or 0"},
		{Config{MaxRoles: 1_000_001}, "MaxRoles", "1000001", "must be between 1 and 1000000, or 0"},
		{Config{MaxRoles: 1, Mode: NonExclusive}, "MaxRoles", "1", "needs Mode Exclusive and NominationOpen"},
		{Config{MaxRoles: 1, Nomination: NominationAssigned}, "MaxRoles", "1", "needs Mode Exclusive and NominationOpen"},
		{Config{Weight: func(int) int { return 0 }}, "Weight", "0", "of role 0 must be between 1 and 1000000"},
		{Config{Roles: 9, Weight: func(role int) int { return 4 - role }}, "Weight", "0", "of role 4 must be"},
		{Config{Roles: 3, Weight: func(role int) int { return role + 999_999 }}, "Weight", "1000001", "of role 2 must be"},
		{Config{Weight: func(int) int { return math.MinInt }}, "Weight", "-9223372036854775808", "of role 0 must be"},
		{Config{Weight: func(int) int { return 1<<32 + 1 }}, "Weight", "4294967297", "of role 0 must be"},
		{Config{Mode: 2}, "Mode", "2", "must be Exclusive or NonExclusive"},
		{Config{Mode: -1}, "Mode", "-1", "must be Exclusive or NonExclusive"},
		{Config{Observer: true, Mode: NonExclusive}, "Observer", "true", "needs Mode Exclusive"},
		{Config{Requests: func(Request) error { return nil }, Mode: NonExclusive}, "Requests", "", "needs Mode Exclusive"},
		{Config{Nomination: 7}, "Nomination", "7", "must be NominationOpen or NominationAssigned"},
		{Config{Nomination: NominationOpen, Priority: 1_000_001}, "Priority", "1000001", "must be between -1000000 and 1000000"},
		{Config{Nomination: NominationOpen, Priority: -1_000_001}, "Priority", "-1000001", "must be between -1000000 and 1000000"},
		{Config{Priority: math.MinInt}, "Priority", "-9223372036854775808", "must be between -1000000 and 1000000"},
		{Config{Roles: -1}, "Roles", "-1", "must be between 1 and 1000000"},
		{Config{Roles: 1_000_001}, "Roles", "1000001", "must be between 1 and 1000000"},
		{Config{Partitions: -3}, "Partitions", "-3", "must be between 1 and 10000"},
		{Config{Partitions: 10_001}, "Partitions", "10001", "must be between 1 and 10000"},
		{Config{GroupsOnTopic: -1}, "GroupsOnTopic", "-1", "must be between 1 and 1000"},
		{Config{GroupsOnTopic: 1001}, "GroupsOnTopic", "1001", "must be between 1 and 1000"},
		{Config{Mode: NonExclusive, GroupsOnTopic: 1 << 62}, "GroupsOnTopic", "4611686018427387904", "must be between 1 and 1000"},
		{Config{Mode: NonExclusive, GroupsOnTopic: math.MaxInt}, "GroupsOnTopic", "9223372036854775807", "must be between 1 and 1000"},
		{Config{MaxPulseInterval: -time.Second}, "MaxPulseInterval", "-1s", "must be positive"},
		{Config{MaxPulseInterval: 25 * time.Hour}, "MaxPulseInterval", "25h0m0s", "at most 24h"},
		{Config{DrainTimeout: -time.Second}, "DrainTimeout", "-1s", "must be positive"},
		{Config{DrainTimeout: 25 * time.Hour}, "DrainTimeout", "25h0m0s", "at most 24h"},
		{Config{TokenBase: -1}, "TokenBase", "-1", "must be between 0 and 4611686018427387904"},
		{Config{TokenBase: 1<<62 + 1}, "TokenBase", "4611686018427387905", "must be between 0 and 4611686018427387904"},
		{Config{MaxClockDrift: -0.1}, "MaxClockDrift", "-0.1", "between 0 and 0.2"},
		{Config{MaxClockDrift: 0.21}, "MaxClockDrift", "0.21", "between 0 and 0.2"},
		{Config{MaxClockDrift: math.NaN()}, "MaxClockDrift", "NaN", "between 0 and 0.2"},
		{Config{MaxClockDrift: math.Inf(1)}, "MaxClockDrift", "+Inf", "between 0 and 0.2"},
		{Config{HeartbeatTimeout: 99 * time.Millisecond}, "HeartbeatTimeout", "99ms", "must be at least 100ms"},
		{Config{HeartbeatTimeout: -time.Second}, "HeartbeatTimeout", "-1s", "must be at least 100ms"},
		{Config{HeartbeatTimeout: time.Minute + 1}, "HeartbeatTimeout", "1m0.000000001s",
			"must be at most 1m0s in exclusive mode: a process that knows nothing of the log waits that long"},
		{Config{HeartbeatTimeout: 24 * time.Hour, Observer: true}, "HeartbeatTimeout", "24h0m0s", "must be at most 1m0s in exclusive mode"},
		{Config{HeartbeatTimeout: 25 * time.Hour}, "HeartbeatTimeout", "25h0m0s", "at most 1m0s in exclusive mode"},
		{Config{Mode: NonExclusive, HeartbeatTimeout: 25 * time.Hour}, "HeartbeatTimeout", "25h0m0s", "at most 24h"},
		{Config{HeartbeatTimeout: math.MaxInt64}, "HeartbeatTimeout", "2562047h", "at most 1m0s in exclusive mode"},
		{Config{HeartbeatTimeout: -1, HeartbeatInterval: time.Second}, "HeartbeatInterval", "1s", "at most 22.5ms, 0.225 of HeartbeatTimeout (100ms)"},
		{Config{HeartbeatInterval: 1126 * time.Millisecond}, "HeartbeatInterval", "1.126s", "at most 1.125s, 0.225 of HeartbeatTimeout (5s)"},
		{Config{HeartbeatInterval: 5*time.Millisecond - 1}, "HeartbeatInterval", "4.999999ms", "a thousandth of HeartbeatTimeout (5s)"},
		{Config{HeartbeatInterval: math.MaxInt64}, "HeartbeatInterval", "2562047h", "at most 1.125s, 0.225 of HeartbeatTimeout (5s)"},
		{Config{Mode: NonExclusive, HeartbeatInterval: 1 << 62}, "HeartbeatInterval", "1281023h", "at most 24h"},
		{Config{HeartbeatInterval: time.Microsecond}, "HeartbeatInterval", "1µs", "must be at least 1ms"},
		{Config{HeartbeatInterval: -time.Second}, "HeartbeatInterval", "-1s", "must be at least 1ms"},
		{Config{Mode: NonExclusive, HeartbeatTimeout: 6 * time.Second}, "HeartbeatTimeout", "6s",
			"must exceed the session timeout (6s) plus twice HeartbeatInterval (300ms) × GroupsOnTopic (1)"},
		{Config{Mode: NonExclusive, GroupsOnTopic: 7}, "GroupsOnTopic", "7",
			"does not fit: HeartbeatTimeout (18s) must exceed the session timeout (6s) plus twice HeartbeatInterval (900ms) × GroupsOnTopic (7)"},
		{Config{Mode: NonExclusive, HeartbeatInterval: 7 * time.Second}, "HeartbeatInterval", "7s", "does not fit: HeartbeatTimeout (18s) must exceed"},
		{Config{Mode: NonExclusive, KafkaConfig: KafkaConfigMap{"session.timeout.ms": 1, "heartbeat.interval.ms": 1}}, "KafkaConfig[session.timeout.ms]", "1",
			"does not fit: HeartbeatTimeout (3ms) must exceed the session timeout (1ms)"},
		{Config{Mode: NonExclusive, HeartbeatTimeout: 20 * time.Second, KafkaConfig: KafkaConfigMap{"session.timeout.ms": 30_000}},
			"HeartbeatTimeout", "20s", "must exceed the session timeout (30s)"},
		{Config{Mode: NonExclusive, HeartbeatTimeout: 40 * time.Second, KafkaConfig: KafkaConfigMap{"group.protocol": "consumer"}},
			"HeartbeatTimeout", "40s", "must exceed the session timeout (45s)"},
		{Config{KafkaConfig: KafkaConfigMap{"linger.ms": 1250}}, "KafkaConfig[linger.ms]", "1250",
			"must be below 1250, a quarter of HeartbeatTimeout (5s): a process whose own records take that long to come back claims nothing"},
		{Config{KafkaConfig: KafkaConfigMap{"queue.buffering.max.ms": "2000.5"}}, "KafkaConfig[queue.buffering.max.ms]", "2000.5", "must be below 1250"},
		{Config{KafkaConfig: KafkaConfigMap{"linger.ms": " 2000ms"}}, "KafkaConfig[linger.ms]", " 2000ms", "must be below 1250"},
		{Config{KafkaConfig: KafkaConfigMap{"fetch.min.bytes": "100 ", "fetch.wait.max.ms": "2000 "}}, "KafkaConfig[fetch.min.bytes]", "100", "must be 61 or less"},
		{Config{HeartbeatTimeout: time.Second, KafkaConfig: KafkaConfigMap{"linger.ms": 250}}, "KafkaConfig[linger.ms]", "250", "must be below 250"},
		{Config{KafkaConfig: KafkaConfigMap{"fetch.min.bytes": 100, "fetch.wait.max.ms": 2000}}, "KafkaConfig[fetch.min.bytes]", "100",
			"must be 61 or less, the size of a record, or fetch.wait.max.ms must be below 1250"},
		{Config{Mode: NonExclusive, KafkaConfig: KafkaConfigMap{"linger.ms": 4500}}, "KafkaConfig[linger.ms]", "4500",
			"must be below 4500, a quarter of HeartbeatTimeout (18s): less of HeartbeatTimeout would be left"},
		{Config{KafkaConfig: KafkaConfigMap{"session.timeout.ms": "soon"}}, "KafkaConfig[session.timeout.ms]", "soon", "must be milliseconds between 1 and 3600000"},
		{Config{KafkaConfig: KafkaConfigMap{"session.timeout.ms": 0}}, "KafkaConfig[session.timeout.ms]", "0", "must be milliseconds"},
		{Config{KafkaConfig: KafkaConfigMap{"heartbeat.interval.ms": 3_600_001}}, "KafkaConfig[heartbeat.interval.ms]", "3600001", "must be milliseconds"},
		{Config{KafkaConfig: KafkaConfigMap{"group.protocol": "consumer", "heartbeat.interval.ms": 1000}},
			"KafkaConfig[heartbeat.interval.ms]", "1000", "is the broker's to set with group.protocol=consumer"},
		{Config{KafkaConfig: KafkaConfigMap{"heartbeat.interval.ms": 6000}}, "KafkaConfig[heartbeat.interval.ms]", "6000", "must be below session.timeout.ms (6000)"},
		{Config{KafkaConfig: KafkaConfigMap{"session.timeout.ms": "500"}}, "KafkaConfig[session.timeout.ms]", "500", "must be above heartbeat.interval.ms (500)"},
		{Config{KafkaConfig: KafkaConfigMap{"bootstrap.servers": ""}}, "KafkaConfig[bootstrap.servers]", "", "must be host:port,…, or be left out (localhost:9092)"},
		{Config{KafkaConfig: KafkaConfigMap{"bootstrap.servers": " , "}}, "KafkaConfig[bootstrap.servers]", " , ", "must be host:port,…"},
		{Config{KafkaConfig: KafkaConfigMap{"bootstrap.servers": "a:1, b:99999"}}, "KafkaConfig[bootstrap.servers]", "b:99999", "must have a port from 1 to 65535"},
		{Config{KafkaConfig: KafkaConfigMap{"metadata.broker.list": "[::1]:0"}}, "KafkaConfig[metadata.broker.list]", "[::1]:0", "must have a port from 1 to 65535"},
		{Config{KafkaConfig: KafkaConfigMap{"bootstrap.servers": "a:1 b:1"}}, "KafkaConfig[bootstrap.servers]", "a:1 b:1", "must be host:port, and commas"},
		{Config{KafkaConfig: KafkaConfigMap{"metadata.broker.list": "a; b:1"}}, "KafkaConfig[metadata.broker.list]", "a; b:1", "must be host:port, and commas"},
		{Config{KafkaConfig: KafkaConfigMap{"bootstrap.servers": "http://a:1"}}, "KafkaConfig[bootstrap.servers]", "http://a:1", "does not match security.protocol=plaintext"},
		{Config{KafkaConfig: KafkaConfigMap{"sasl.username": "svc"}}, "KafkaConfig[sasl.username]", "svc", "has no effect with security.protocol=plaintext"},
		{Config{KafkaConfig: KafkaConfigMap{"sasl.password": "svc", "security.protocol": "ssl"}}, "KafkaConfig[sasl.password]", "[redacted]", "has no effect with security.protocol=ssl"},
		{Config{KafkaConfig: KafkaConfigMap{"ssl.ca.location": "/ca", "security.protocol": "SASL_PLAINTEXT"}}, "KafkaConfig[ssl.ca.location]", "/ca", "has no effect with security.protocol=SASL_PLAINTEXT"},
		{Config{KafkaConfig: KafkaConfigMap{"ssl.endpoint.identification.algorithm": "https"}}, "KafkaConfig[ssl.endpoint.identification.algorithm]", "https", "has no effect with security.protocol=plaintext"},
		{Config{KafkaConfig: KafkaConfigMap{"enable.ssl.certificate.verification": true}}, "KafkaConfig[enable.ssl.certificate.verification]", "true", "has no effect with security.protocol=plaintext"},
		{Config{KafkaConfig: KafkaConfigMap{"https.ca.location": "/ca", "security.protocol": "SSL"}}, "KafkaConfig[https.ca.location]", "/ca", "has no effect with security.protocol=SSL"},
		{Config{KafkaConfig: KafkaConfigMap{"metadata.broker.list": "a:1", "bootstrap.servers": "b:1"}}, "KafkaConfig[metadata.broker.list]", "a:1",
			"is another name of bootstrap.servers, which is set to another value: set one of them"},
		{Config{KafkaConfig: KafkaConfigMap{"metadata.broker.list": "\t"}}, "KafkaConfig[metadata.broker.list]", "", "must be host:port,…"},
		{Config{KafkaConfig: KafkaConfigMap{"acks": 1}}, "KafkaConfig[acks]", "1", "is always all"},
		{Config{KafkaConfig: KafkaConfigMap{"group.id": "mine"}}, "KafkaConfig[group.id]", "mine", "is set by LeaderGroupID"},
		{Config{KafkaConfig: KafkaConfigMap{"client.rack": nil}}, "KafkaConfig[client.rack]", "a <nil>", "must be a string, a boolean or an integer"},
		{Config{KafkaConfig: KafkaConfigMap{"linger.ms": 0.5}}, "KafkaConfig[linger.ms]", "a float64", "must be a string, a boolean or an integer"},
	} {
		t.Run(c.field+" "+c.value, func(t *testing.T) {
			s, err := c.cfg.resolve()
			require.Error(t, err)
			require.NotNil(t, s)
			lines := strings.Split(err.Error(), "\n")
			require.Equal(t, "neli: invalid configuration:", lines[0])
			found := false
			for _, line := range lines[1:] {
				found = found || strings.HasPrefix(line, c.field+": \""+c.value) && strings.Contains(line, c.rule)
			}
			require.True(t, found, "%q with %q and %q is not in\n%v", c.field, c.value, c.rule, err)
		})
	}
}

// A fault names a field that the user has set, never one that derives from it, and names it only once.
func TestConfigFaultsNameFieldsThatWereSet(t *testing.T) {
	for _, c := range []struct {
		cfg    Config
		fields []string
	}{
		{Config{LeaderGroupID: "Zürich"}, []string{"LeaderGroupID"}},
		{Config{LeaderGroupID: "g\xff"}, []string{"LeaderGroupID"}},
		{Config{LeaderGroupID: strings.Repeat("g", 256)}, []string{"LeaderGroupID"}},
		{Config{LeaderGroupID: "g", HeartbeatTimeout: time.Nanosecond}, []string{"HeartbeatTimeout"}},
		{Config{LeaderGroupID: "g", HeartbeatTimeout: -time.Second}, []string{"HeartbeatTimeout"}},
		{Config{LeaderGroupID: "g", Mode: NonExclusive, HeartbeatTimeout: time.Nanosecond}, []string{"HeartbeatTimeout"}},
		{Config{LeaderGroupID: "g", Mode: NonExclusive, HeartbeatInterval: time.Minute}, []string{"HeartbeatInterval"}},
	} {
		_, err := c.cfg.resolve()
		require.Error(t, err)
		var fields []string
		for _, line := range strings.Split(err.Error(), "\n")[1:] {
			field, _, _ := strings.Cut(line, ":")
			fields = append(fields, field)
		}
		require.Equal(t, c.fields, fields, err)
	}
}

func TestConfigLimitsAreAllowed(t *testing.T) {
	for _, cfg := range []Config{
		{HeartbeatTimeout: 100 * time.Millisecond},
		{Nomination: NominationOpen, Priority: 1_000_000, DisableRebalance: true},
		{Nomination: NominationOpen, Priority: -1_000_000},
		{Advertise: "https://10.0.0.8:8443", Zone: strings.Repeat("z", 64)},
		{HeartbeatTimeout: time.Minute, HeartbeatInterval: 13500 * time.Millisecond},
		{HeartbeatTimeout: 5 * time.Second, HeartbeatInterval: 5 * time.Millisecond},
		{HeartbeatTimeout: 5 * time.Second, HeartbeatInterval: 1125 * time.Millisecond},
		{HeartbeatTimeout: 100 * time.Millisecond, HeartbeatInterval: time.Millisecond},
		{MaxPulseInterval: 24 * time.Hour, DrainTimeout: 24 * time.Hour, MaxClockDrift: 0.2},
		{MaxPulseInterval: 1, DrainTimeout: 1, MaxClockDrift: 1e-9},
		{LeaderGroupID: strings.Repeat("g", 244)},
		{LeaderGroupID: strings.Repeat("g", 255), LeaderTopic: strings.Repeat("t", 249)},
		{LeaderGroupID: "a group: of Zürich", LeaderTopic: "..."},
		{KafkaConfig: KafkaConfigMap{"bootstrap.servers": "PLAINTEXT://a:1/, b,[::1]:65535,[::1],::1,", "security.protocol": "plaintext"}},
		{Name: strings.Repeat("n", 256), Roles: 1_000_000, Partitions: 10_000},
		{Mode: NonExclusive, HeartbeatTimeout: 24 * time.Hour, HeartbeatInterval: 40 * time.Second, GroupsOnTopic: 1000},
		{Mode: NonExclusive, HeartbeatTimeout: 6*time.Second + 3, HeartbeatInterval: time.Millisecond, KafkaConfig: KafkaConfigMap{"session.timeout.ms": 5998}},
	} {
		_, err := cfg.resolve()
		require.NoError(t, err, "%+v", cfg)
	}
}

func TestConfigReportsAllFaultsAtOnce(t *testing.T) {
	_, err := New(Config{
		LeaderTopic:       "?",
		Name:              strings.Repeat("n", 300),
		Advertise:         "0.0.0.0:80",
		Zone:              "a\tb",
		Mode:              9,
		Nomination:        9,
		Priority:          math.MaxInt,
		Roles:             -1,
		MaxRoles:          -1,
		Partitions:        -1,
		HeartbeatTimeout:  time.Nanosecond,
		HeartbeatInterval: time.Minute,
		MaxPulseInterval:  -1,
		DrainTimeout:      -1,
		GroupsOnTopic:     -1,
		MaxClockDrift:     2,
		KafkaConfig:       KafkaConfigMap{"acks": 0, "isolation.level": 0, "linger.ms": []int{1}},
	})
	require.Error(t, err)
	for _, field := range []string{"LeaderTopic", "Name", "Advertise", "Zone", "MaxRoles", "Mode", "Nomination", "Priority", "Roles", "Partitions", "HeartbeatTimeout", "HeartbeatInterval",
		"MaxPulseInterval", "DrainTimeout", "GroupsOnTopic", "MaxClockDrift", "KafkaConfig[acks]", "KafkaConfig[isolation.level]", "KafkaConfig[linger.ms]"} {
		require.Contains(t, err.Error(), "\n"+field+": ")
	}
	require.Equal(t, 19, strings.Count(err.Error(), "\n"), "one line a fault:\n%v", err)
}

// New and SetRoles ask for the weight of each role once, and only where weights have an effect.
func TestWeightIsAskedOnce(t *testing.T) {
	asked := map[int]int{}
	weight := func(role int) int {
		asked[role]++
		return 1 + role
	}
	for _, cfg := range []Config{{Mode: NonExclusive}, {Nomination: NominationAssigned}, {Observer: true}} {
		cfg.Roles, cfg.Weight = 3, weight
		s, err := cfg.resolve()
		require.NoError(t, err)
		require.Nil(t, s.weights)
	}
	_, err := Config{Roles: maxRoles + 1, Weight: weight}.resolve()
	require.ErrorContains(t, err, "Roles")
	require.Empty(t, asked)
	s, err := Config{Roles: 3, Weight: weight}.resolve()
	require.NoError(t, err)
	require.Equal(t, map[int]int{0: 1, 1: 1, 2: 1}, asked)
	require.NotNil(t, s.weights)
	weights, _, rule := s.weigh(5)
	require.Empty(t, rule)
	require.NotNil(t, weights)
	require.Equal(t, 1, asked[4])
}

func TestConfigErrorsShowNoSecret(t *testing.T) {
	const secret = "hunter2"
	_, err := Config{
		Roles: -1,
		KafkaConfig: KafkaConfigMap{
			"sasl.password":                  []byte(secret), // of a wrong type
			"ssl.key.pem":                    map[string]string{"x": secret},
			"sasl.oauthbearer.client.secret": 1.5,
			"SSL.Keystore.Password":          struct{ s string }{secret},
			"sasl.jaas.config":               &[]string{secret}[0],
		},
	}.resolve()
	require.Error(t, err)
	require.Equal(t, 6, strings.Count(err.Error(), "\n"))
	require.NotContains(t, err.Error(), secret)

	_, err = Config{Roles: -1, KafkaConfig: KafkaConfigMap{"sasl.password": secret, "security.protocol": "SASL_SSL"}}.resolve()
	require.ErrorContains(t, err, "Roles")
	require.NotContains(t, err.Error(), secret)
	require.NotContains(t, err.Error(), "sasl.password", "nothing is wrong with it")
}

func TestModeStrings(t *testing.T) {
	require.Equal(t, "exclusive", Exclusive.String())
	require.Equal(t, "non-exclusive", NonExclusive.String())
	require.Equal(t, "2", Mode(2).String())
	require.Equal(t, "assigned", NominationAssigned.String())
	require.Equal(t, "open", NominationOpen.String())
	require.Equal(t, "-1", Nomination(-1).String())
	require.Equal(t, "live", StateLive.String())
	require.Equal(t, "failed", StateFailed.String())
}

// For any input, resolve does not panic, and returns either an error or settings that all other code may rely on.
func FuzzConfig(f *testing.F) {
	f.Add("", "", "", 0, 0, 0, 0, 0, int64(0), int64(0), int64(0), int64(0), 0.0, "", "")
	f.Add("g", "t", "n", 0, 1, 9, 12, 0, int64(5e9), int64(1e9), int64(3e10), int64(1e10), 0.0005, "session.timeout.ms", "6000")
	f.Add("g", "t", "n", 1, 0, 9, 12, 3, int64(18e9), int64(9e8), int64(1), int64(1), 0.2, "group.protocol", "consumer")
	f.Add("g", "..", "n", 2, 2, -1, -1, -1, int64(math.MaxInt64), int64(math.MinInt64), int64(-1), int64(math.MaxInt64), math.NaN(), "acks", "1")
	f.Add("g", "t", "n", 0, 0, 1, 1, 1, int64(1e8), int64(2.25e7), int64(1e9), int64(1e9), 0.1, "heartbeat.interval.ms", "-1")
	f.Add("g", "t", "n", 1, 0, 1, 1, 1, int64(0), int64(1)<<62, int64(0), int64(0), 0.0, "", "")
	f.Add("g", "t", "n", 1, 0, 1, 1, 1<<62, int64(0), int64(0), int64(0), int64(0), 0.0, "", "")
	f.Add("g", "t", "n", 0, 0, 1, 1, 1, int64(0), int64(0), int64(0), int64(0), 0.0, "metadata.broker.list", "b:9092")
	f.Add("g\xff", "t", "n\xff", 0, 0, math.MaxInt, 1, 1, int64(0), int64(0), int64(0), int64(0), 0.0, "", "")
	f.Fuzz(func(t *testing.T, group, topic, name string, mode, nomination, roles, partitions, groups int,
		timeout, interval, pulse, drain int64, drift float64, property, value string) {
		c := Config{LeaderGroupID: group, LeaderTopic: topic, Name: name, Mode: Mode(mode), Nomination: Nomination(nomination),
			Roles: roles, Partitions: partitions, GroupsOnTopic: groups, HeartbeatTimeout: time.Duration(timeout),
			HeartbeatInterval: time.Duration(interval), MaxPulseInterval: time.Duration(pulse), DrainTimeout: time.Duration(drain),
			MaxClockDrift: drift}
		if property != "" {
			c.KafkaConfig = KafkaConfigMap{property: value}
		}
		s, err := c.resolve()
		if err != nil {
			require.True(t, strings.HasPrefix(err.Error(), "neli: invalid configuration:\n"), err.Error())
			if redact.Secret(property) && len(value) > 40 {
				require.NotContains(t, err.Error(), value)
			}
			return
		}
		checkSettings(t, s)
	})
}

func checkSettings(t *testing.T, s *settings) {
	t.Helper()
	require.NotEmpty(t, s.LeaderGroupID)
	require.Regexp(t, topicName, s.topic)
	require.NotEmpty(t, s.Name)
	require.NotNil(t, s.logger)
	require.True(t, 1 <= s.Roles && s.Roles <= maxRoles)
	require.True(t, 1 <= s.Partitions && s.Partitions <= maxPartitions)
	require.True(t, s.HeartbeatTimeout >= minTimeout && s.HeartbeatTimeout <= maxDuration, "T %v", s.HeartbeatTimeout)
	require.True(t, s.HeartbeatInterval >= time.Millisecond && s.HeartbeatInterval <= s.HeartbeatTimeout, "heartbeat interval %v, T %v", s.HeartbeatInterval, s.HeartbeatTimeout)
	require.GreaterOrEqual(t, s.broadcast, s.HeartbeatInterval)
	require.True(t, 0 < s.MaxPulseInterval && s.MaxPulseInterval <= maxDuration)
	require.True(t, 0 < s.DrainTimeout && s.DrainTimeout <= maxDuration)
	require.True(t, 0 <= s.MaxClockDrift && s.MaxClockDrift <= maxDrift)
	if s.Mode == Exclusive && s.Nomination == NominationOpen {
		require.Equal(t, max(time.Second, s.HeartbeatInterval), s.successorWait)
	} else {
		require.Greater(t, s.successorWait, 3*time.Second)
	}
	require.True(t, 0 < s.handoverOverlap && s.handoverOverlap <= s.HeartbeatTimeout)
	if s.Mode == Exclusive {
		require.LessOrEqual(t, s.HeartbeatTimeout, time.Minute)
		require.LessOrEqual(t, float64(s.HeartbeatInterval), 0.225*float64(s.HeartbeatTimeout))
		require.GreaterOrEqual(t, s.HeartbeatInterval, s.HeartbeatTimeout/1000)
	} else {
		require.Greater(t, s.HeartbeatTimeout, sessionTimeout(s.kafka)+2*s.broadcast)
	}
	comesBack(t, s)
	for name := range s.kafka {
		require.NotContains(t, reserved, name)
	}
	for _, props := range []map[string]string{s.producerProperties(), s.readerProperties(), s.groupProperties()} {
		require.NotEmpty(t, or(props["bootstrap.servers"], props["metadata.broker.list"]))
	}
}

// comesBack asserts that a claim of a process with these settings survives encoding and decoding. A
// process that does not recognise its own claim never leads.
func comesBack(t *testing.T, s *settings) {
	t.Helper()
	claim := &lease.Record{Kind: lease.Claim, Session: lease.Session{Process: newID(), N: 1}, Name: s.Name, Read: -1, Seq: 1,
		T: s.HeartbeatTimeout, Longest: lease.Unsaid, Fresh: true, Roles: []int32{0}}
	codec := lease.Codec{Group: s.LeaderGroupID, Log: "id"}
	got, err := codec.Decode(codec.Encode(claim))
	require.NoError(t, err)
	require.Equal(t, claim, got)
}

func TestConfigNamesSurviveTheWire(t *testing.T) {
	for _, c := range []Config{
		{},
		{LeaderGroupID: "Zürich <&>\u2028", LeaderTopic: "t", Name: "日本\x00\x7f\U0001F600"},
		{LeaderGroupID: strings.Repeat("\x01", 255), LeaderTopic: "t", Name: strings.Repeat("\x01", maxNameLength)},
		{LeaderGroupID: strings.Repeat("é", 127), LeaderTopic: "t", Name: strings.Repeat("é", maxNameLength/2)},
	} {
		s, err := c.resolve()
		require.NoError(t, err)
		comesBack(t, s)
	}
}

// A binary with a common name must be given a group name. Otherwise two unrelated services would
// elect one leader between them.
func TestCommonBinaryNeedsAGroupName(t *testing.T) {
	name := os.Args[0]
	defer func() { os.Args[0] = name }()
	for _, c := range []struct {
		binary string
		common bool
	}{
		{"/usr/bin/main", true}, {"/srv/server", true}, {"./app", true}, {"/x/__debug_bin", true},
		{"/x/__debug_bin3141592", true}, {"main.exe", true}, {"App", true},
		{"/usr/bin/invoicing", false}, {"/srv/mainline", false}, {"/srv/server2", false}, {"/x/neli.test", false},
	} {
		os.Args[0] = c.binary
		_, err := Config{}.resolve()
		if !c.common {
			require.NoError(t, err, c.binary)
			continue
		}
		require.ErrorContains(t, err, "LeaderGroupID", c.binary)
		require.ErrorContains(t, err, "set LeaderGroupID", c.binary)
		s, err := Config{LeaderGroupID: "main"}.resolve()
		require.NoError(t, err, "who says so means it")
		require.Equal(t, "main", s.LeaderGroupID)
	}
}

// TokenBase is added to every token that leaves the library, and to nothing else.
func TestTokenBase(t *testing.T) {
	const base = int64(1_000_000)
	var events []Event
	var led []int64
	synctest.Test(t, func(t *testing.T) {
		k := newMockKafka()
		n, err := New(Config{Provider: k, LeaderGroupID: "g", TokenBase: base}, func(e Event) { events = append(events, e) })
		require.NoError(t, err)
		defer func() { require.NoError(t, n.Close()) }()
		ok, err := n.Pulse(time.Minute)
		require.NoError(t, err)
		require.True(t, ok)
		token, ok := n.Token(0)
		require.True(t, ok)
		require.Greater(t, token, base)
		require.Less(t, token, base+1000)
		time.Sleep(2 * time.Second)
		h, ok := n.Holder(0)
		require.True(t, ok)
		require.Equal(t, token, h.Token)
		for s := range n.Watch(t.Context()) {
			if s.Status == StatusHeld {
				require.Equal(t, token, s.Holder.Token)
				break
			}
		}
		require.Equal(t, token, events[0].(LeaderAcquired).Terms[0].Token)
	})
	mocked(t, Config{TokenBase: base}, nothing, func(t *testing.T, _ *mockKafka, n *Neli) {
		ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
		defer stop()
		require.NoError(t, n.Lead(ctx, func(_ context.Context, l Leadership) error {
			token, ok := n.Token(0)
			require.True(t, ok)
			require.Greater(t, l.Token, base)
			led = append(led, l.Token-token)
			return nil
		}))
		require.Equal(t, []int64{0}, led)
	})
	mocked(t, Config{Mode: NonExclusive, TokenBase: base}, nothing, func(t *testing.T, _ *mockKafka, n *Neli) {
		_, ok := n.Token(0)
		require.False(t, ok)
	})
}

// Errors of a Kafka client may contain secrets. The library removes them from its errors and its log.
func TestErrorsOfClientsAreRedacted(t *testing.T) {
	var out said.Text
	cfg := Config{
		Nomination: NominationAssigned, KafkaConfig: KafkaConfigMap{"sasl.password": "s3cret", "security.protocol": "SASL_SSL"},
		Logger: slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	mocked(t, cfg, func(k *mockKafka) {
		k.fail("Poll", errors.New("no broker takes s3cret"), fmt.Errorf("%w: s3cret", kafka.ErrTopicAuthorization))
	}, func(t *testing.T, k *mockKafka, n *Neli) {
		require.Eventually(t, func() bool { return n.State() == StateFailed }, time.Minute, 100*time.Millisecond)
		err := n.Await()
		require.ErrorIs(t, err, ErrAccess)
		require.ErrorContains(t, err, redact.Mark)
		require.NotContains(t, err.Error(), "s3cret")
		require.Contains(t, out.String(), "no broker takes "+redact.Mark)
		require.NotContains(t, out.String(), "s3cret")
	})
}
