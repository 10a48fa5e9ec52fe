//go:build cgo && !neli_nolibrdkafka

package neli_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
)

// A wrong address is called that, with what the connection failed with.
func TestConfluentSaysThatNoBrokerIsReached(t *testing.T) {
	lines := newLogLines()
	n, err := neli.New(neli.Config{LeaderGroupID: "g", Logger: slog.New(lines),
		KafkaConfig: neli.KafkaConfigMap{"bootstrap.servers": "127.0.0.1:1"}})
	require.NoError(t, err)
	defer n.Close()
	const text = "no broker reached, retrying"
	require.Eventually(t, func() bool { return len(lines.said(text)) > 0 }, time.Minute, 10*time.Millisecond)
	line := lines.said(text)[0]
	require.Equal(t, "127.0.0.1:1", line.attrs["brokers"].String())
	require.Regexp(t, `(?i)127\.0\.0\.1:1.*connection refused`, line.attrs["error"].String())
	require.False(t, n.Stats().Reached)
	for _, line := range lines.all() {
		require.NotContains(t, line.text, "find the leader topic")
	}
}
