package neli

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goneli/neli/kafka"
	"github.com/stretchr/testify/require"
)

// A producer that has failed for good is replaced, whether it says so at once or in
// a report, in both modes; who leads goes on leading.
func TestProducerIsReplaced(t *testing.T) {
	for _, how := range []error{kafka.ErrClientFatal, errors.Join(errReported, kafka.ErrClientFatal)} {
		for _, mode := range []Mode{Exclusive, NonExclusive} {
			var out logBuffer
			cfg := Config{Mode: mode, Logger: slog.New(slog.NewTextHandler(&out, nil))}
			mocked(t, cfg, nothing, func(t *testing.T, k *mockKafka, n *Neli) {
				p, err := n.Background(func() { time.Sleep(time.Second) })
				require.NoError(t, err)
				defer p.Close()
				if mode == Exclusive {
					require.Eventually(t, n.IsLeader, time.Minute, 100*time.Millisecond)
				} else {
					time.Sleep(10 * time.Second)
				}
				k.mu.Lock()
				k.dead = how // of the one that there is
				k.mu.Unlock()
				time.Sleep(time.Minute)
				require.Equal(t, 2, k.count("Producer"))
				require.Equal(t, 1, k.count("Producer.Close"))
				require.Equal(t, 1, k.count("Admin.Close"))
				require.Equal(t, mode == Exclusive, n.IsLeader(), "%v", how)
				require.Equal(t, StateLive, n.State())
			})
			require.Equal(t, 1, strings.Count(out.String(), "the producer has failed for good: replacing it"))
		}
	}
}

// What was on its way in the old producer is reported as failed, once.
func TestReplacedProducerReportsEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newMockKafka()
		l, err := newLastingProducer(k, nil, slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		k.silent = true
		reports := make(chan error, 3)
		for range 2 {
			require.NoError(t, l.Append("t", 0, nil, func(err error) { reports <- err }))
		}
		k.mu.Lock()
		k.dead = kafka.ErrClientFatal
		k.mu.Unlock()
		require.ErrorIs(t, l.Append("t", 0, nil, func(error) { t.Error("a report of what was not taken") }), kafka.ErrClientFatal)
		for range 2 {
			require.Error(t, <-reports)
		}
		time.Sleep(replaceEvery)
		k.silent = false
		require.NoError(t, l.Append("t", 0, nil, func(err error) { reports <- err }))
		require.NoError(t, <-reports)
		lastingAdmin{l}.Close()
		require.NoError(t, l.Close())
		require.Zero(t, k.open)
		require.Empty(t, reports)
	})
}

// One that cannot be replaced is tried again, said, and does not hold up Close; one
// that fails as soon as it is there is not replaced without pause.
func TestProducerThatCannotBeReplaced(t *testing.T) {
	var out logBuffer
	cfg := Config{Logger: slog.New(slog.NewTextHandler(&out, nil))}
	mocked(t, cfg, nothing, func(t *testing.T, k *mockKafka, n *Neli) {
		ok, err := n.Pulse(time.Minute)
		require.NoError(t, err)
		require.True(t, ok)
		k.mu.Lock()
		k.dead = kafka.ErrClientFatal
		for range 1000 {
			k.fail("Producer", errors.New("no memory"))
		}
		k.mu.Unlock()
		time.Sleep(time.Minute)
		require.False(t, n.IsLeader())
		require.Equal(t, StateLive, n.State())
		made := k.count("Producer")
		require.Greater(t, made, 30)
		require.Less(t, made, 90)
		began := time.Now()
		require.NoError(t, n.Close())
		require.Less(t, time.Since(began), 30*time.Second)
	})
	require.Contains(t, out.String(), "cannot replace the producer, retrying")
	require.Contains(t, out.String(), "no memory")

	mocked(t, Config{}, func(k *mockKafka) { k.stillborn = true }, func(t *testing.T, k *mockKafka, n *Neli) {
		_, err := n.Pulse(time.Minute)
		require.NoError(t, err)
		require.Less(t, k.count("Producer"), 70)
		require.Greater(t, k.count("Producer"), 2)
	})
}
