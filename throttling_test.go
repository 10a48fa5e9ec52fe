package neli

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/kafka"
)

// Quotas that are exceeded are said, not too often, and counted, in both modes,
// whichever client it is that waits, and past the replacement of one.
func TestThrottling(t *testing.T) {
	for _, mode := range []Mode{Exclusive, NonExclusive} {
		var out logBuffer
		warnings := func() int { return strings.Count(out.String(), "a quota of its user or client.id is exceeded") }
		mocked(t, Config{Mode: mode, Logger: slog.New(slog.NewTextHandler(&out, nil))}, nothing, func(t *testing.T, k *mockKafka, n *Neli) {
			p, err := n.Background(func() { time.Sleep(time.Second) })
			require.NoError(t, err)
			defer p.Close()
			time.Sleep(time.Minute)
			require.Zero(t, warnings())
			require.Zero(t, n.Stats().Throttled)
			k.throttled.Store(int64(1500 * time.Millisecond)) // of each client: there are two
			require.Equal(t, 3*time.Second, n.Stats().Throttled)
			time.Sleep(time.Minute)
			require.Equal(t, 1, warnings())
			require.True(t, strings.Contains(out.String(), "wait=3s total=3s"))
			for range 60 {
				k.throttled.Add(int64(time.Second))
				time.Sleep(time.Second)
			}
			require.Greater(t, warnings(), 2)
			require.Less(t, warnings(), 9)
			require.Equal(t, 123*time.Second, n.Stats().Throttled)
			k.mu.Lock()
			k.dead = kafka.ErrClientFatal // of the producer: a new one, which the mock lets begin with as much
			k.mu.Unlock()
			time.Sleep(time.Minute)
			require.Equal(t, 2, k.count("Producer"))
			require.Equal(t, 3*61500*time.Millisecond, n.Stats().Throttled)
		})
	}
}

// Trouble is told every ten seconds, and that it is over once, if it was told at all.
func TestTroubleIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out logBuffer
		log := slog.New(slog.NewTextHandler(&out, nil))
		var tr trouble
		tr.over(log, "over")
		require.Empty(t, out.String())
		require.True(t, tr.due())
		time.Sleep(9 * time.Second)
		require.False(t, tr.due())
		tr.over(log, "over", "topic", "t")
		require.Contains(t, out.String(), "msg=over topic=t after=9s\n")
		out.buf.Reset()
		require.False(t, tr.due(), "too soon for a line")
		tr.over(log, "over")
		require.Empty(t, out.String(), "nobody was told of it")
	})
}

func TestLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l limiter
		require.True(t, l.due(), "the first line")
		require.False(t, l.due())
		time.Sleep(10 * time.Second)
		require.False(t, l.due())
		time.Sleep(time.Nanosecond)
		require.True(t, l.due())
		require.False(t, l.due())
	})
}
