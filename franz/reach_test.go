package franz_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/goneli/neli"
	"github.com/goneli/neli/franz"
	"github.com/goneli/neli/internal/said"
)

// If no broker is reached, the log says so, and why the connection failed.
func TestLogSaysThatNoBrokerIsReached(t *testing.T) {
	var out said.Text
	n, err := neli.New(neli.Config{LeaderGroupID: "g", Provider: franz.Provider(), Logger: slog.New(slog.NewTextHandler(&out, nil)),
		KafkaConfig: neli.KafkaConfigMap{"bootstrap.servers": "127.0.0.1:1"}})
	require.NoError(t, err)
	defer n.Close()
	said := func() bool { return strings.Contains(out.String(), "level=WARN") }
	require.Eventually(t, said, time.Minute, 10*time.Millisecond)
	require.Regexp(t, `msg="no broker reached, retrying" group=g .*brokers=127\.0\.0\.1:1 error=".*127\.0\.0\.1:1.*connection refused`, out.String())
	require.NotContains(t, out.String(), "find the leader topic")
	require.False(t, n.Stats().Reached)
}

// If an option names brokers, the log does not name the default broker.
func TestLogNamesOnlyBrokersOfOptions(t *testing.T) {
	var out said.Text
	n, err := neli.New(neli.Config{LeaderGroupID: "g", Provider: franz.Provider(kgo.SeedBrokers("127.0.0.1:1")), Logger: slog.New(slog.NewTextHandler(&out, nil))})
	require.NoError(t, err)
	defer n.Close()
	said := func() bool { return strings.Contains(out.String(), "level=WARN") }
	require.Eventually(t, said, time.Minute, 10*time.Millisecond)
	require.Regexp(t, `msg="no broker reached, retrying" group=g .*127\.0\.0\.1:1.*connection refused`, out.String())
	require.NotContains(t, out.String(), "localhost")
}
