//go:build cgo && !neli_nolibrdkafka

package confluent_test

import (
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/goneli/neli"
	"github.com/goneli/neli/internal/redact"
)

// How neli.New treats this client and its errors.

// lines is a log of JSON lines.
type lines struct {
	mu  sync.Mutex
	all []map[string]any
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := map[string]any{}
	err := json.Unmarshal(b, &line)
	l.all = append(l.all, line)
	return len(b), err
}

// said returns the lines with this text.
func (l *lines) said(text string) (out []map[string]any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.all {
		if line["msg"] == text {
			out = append(out, line)
		}
	}
	return out
}

// If no broker is reached, the log says so, and why the connection failed.
func TestConfluentLogsThatNoBrokerIsReached(t *testing.T) {
	var log lines
	n, err := neli.New(neli.Config{LeaderGroupID: "g", Logger: slog.New(slog.NewJSONHandler(&log, nil)),
		KafkaConfig: neli.KafkaConfigMap{"bootstrap.servers": "127.0.0.1:1"}})
	require.NoError(t, err)
	defer n.Close()
	const text = "no broker reached, retrying"
	require.Eventually(t, func() bool { return len(log.said(text)) > 0 }, time.Minute, 10*time.Millisecond)
	line := log.said(text)[0]
	require.Equal(t, "127.0.0.1:1", line["brokers"])
	require.Regexp(t, `(?i)127\.0\.0\.1:1.*connection refused`, line["error"])
	require.False(t, n.Stats().Reached)
	require.Empty(t, log.said("cannot find the leader topic, retrying"))
}

// The client accepts the library's properties. It checks for itself how they fit together.
func TestConfluentAcceptsTheLibrarysProperties(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	for _, props := range []neli.KafkaConfigMap{nil, {"socket.timeout.ms": 1300}, {"socket.timeout.ms": 60_000}} {
		with := neli.KafkaConfigMap{"bootstrap.servers": "127.0.0.1:1"}
		for name, value := range props {
			with[name] = value
		}
		n, err := neli.New(neli.Config{KafkaConfig: with, LeaderGroupID: "g", Nomination: neli.NominationAssigned}) // with all three clients
		require.NoError(t, err)
		require.NoError(t, n.Close())
	}
}

// Faults of Config and of properties are reported together, each once, however many clients refuse the property.
func TestConfluentPropertyFaultsAreReportedTogether(t *testing.T) {
	props := neli.KafkaConfigMap{"bootstrap.server": "a:1", "socket.timeout.ms": 5, "sasl.password": "hunter2-secret",
		"security.protocol": "hunter2-secret", "acks": 0, "session.timeout.ms": "soon"}
	for _, c := range []struct {
		cfg   neli.Config
		wants []string
	}{
		{neli.Config{LeaderGroupID: "g", KafkaConfig: neli.KafkaConfigMap{"bootstrap.server": "a:1", "socket.timeout.ms": 5}}, []string{
			`KafkaConfig: No such configuration property: "bootstrap.server"`,
			`KafkaConfig: Configuration property "socket.timeout.ms" value 5 is outside allowed range 10..300000`,
		}},
		{neli.Config{LeaderGroupID: "g", Roles: -1, HeartbeatTimeout: 1 << 62, Nomination: neli.NominationAssigned, KafkaConfig: props}, []string{
			`HeartbeatTimeout: "1281023h53m38.427387904s" must be at most 1m0s in exclusive mode: a process that knows nothing of the log waits that long for a leader that it has not heard`,
			`KafkaConfig: Configuration property "socket.timeout.ms" value 5 is outside allowed range 10..300000`,
			`KafkaConfig: Invalid value "[redacted]" for configuration property "security.protocol"`,
			`KafkaConfig: No such configuration property: "bootstrap.server"`,
			`KafkaConfig[acks]: "0" is always all: a lease must survive a broker`,
			`KafkaConfig[session.timeout.ms]: "soon" must be milliseconds between 1 and 3600000`,
			`Roles: "-1" must be between 1 and 1000000`,
		}},
	} {
		_, err := neli.New(c.cfg)
		require.Error(t, err)
		lines := strings.Split(err.Error(), "\n")
		require.Equal(t, "neli: invalid configuration:", lines[0])
		require.ElementsMatch(t, c.wants, lines[1:])
		require.Equal(t, 1, strings.Count(err.Error(), "neli:"))
	}
}

// The client's prefix for the defaults of topics leads around no reserved property.
func TestConfluentRefusesDefaultsOfTopics(t *testing.T) {
	_, err := neli.New(neli.Config{LeaderGroupID: "g", KafkaConfig: neli.KafkaConfigMap{"{topic}.acks": 1}})
	require.EqualError(t, err, "neli: invalid configuration:\nKafkaConfig: No such configuration property: \"{topic}.acks\"")
}

// The client quotes values that it refuses, and such a value may be a secret.
func TestConfluentShowsNoSecret(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	_, err := neli.New(neli.Config{LeaderGroupID: "g", KafkaConfig: neli.KafkaConfigMap{"sasl.password": "s3cret", "security.protocol": "s3cret"}})
	if err == nil || strings.Contains(err.Error(), "s3cret") || !strings.Contains(err.Error(), redact.Mark) {
		t.Error(err)
	}
}
