package kafkalog

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goneli/neli/kafka"
	"github.com/stretchr/testify/require"
)

// What was on its way in the old producer is reported as failed, once.
func TestReplacedProducerReportsEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &fakeProvider{}
		l, err := newLastingProducer(k, noProperties, nil, slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		first := k.producers[0]
		first.silent = true
		reports := make(chan error, 3)
		for range 2 {
			require.NoError(t, l.Append("t", 0, nil, func(err error) { reports <- err }))
		}
		first.mu.Lock()
		first.dead = kafka.ErrClientFatal
		first.mu.Unlock()
		require.ErrorIs(t, l.Append("t", 0, nil, func(error) { t.Error("a report of what was not taken") }), kafka.ErrClientFatal)
		for range 2 {
			require.Error(t, <-reports)
		}
		time.Sleep(replaceEvery)
		require.NoError(t, l.Append("t", 0, nil, func(err error) { reports <- err }))
		require.NoError(t, <-reports)
		lastingAdmin{l}.Close()
		require.NoError(t, l.Close())
		require.Len(t, k.producers, 2)
		for _, p := range k.producers {
			require.True(t, p.closed)
		}
		require.Empty(t, reports)
	})
}
