package neli

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A client of a group is replaced when it has reached nobody for T, and five seconds at least,
// while another client has.
func TestReachability(t *testing.T) {
	for t0, want := range map[time.Duration]time.Duration{time.Second: stillAfter, 8 * time.Second: 8 * time.Second, time.Minute: time.Minute} {
		r := newReachability(t0)
		require.Equal(t, want, time.Duration(r.first)*r.every, "T = %v", t0)
	}
	r := newReachability(time.Second)
	require.Equal(t, 4, r.first)
	alone := func(n int) (out []bool) {
		for range n {
			out = append(out, r.alone())
		}
		return out
	}
	require.NotContains(t, alone(3), true)
	r.reached()
	require.NotContains(t, alone(3), true, "it has reached a broker")
	r.nobody()
	require.NotContains(t, alone(3), true, "nobody has")
	require.True(t, r.alone())
	require.NotContains(t, alone(7), true, "a replacement in vain doubles the time")
	require.True(t, r.alone())
	r.reached()
	require.NotContains(t, alone(3), true)
	require.True(t, r.alone(), "and an answer undoes that")
	for range 20 {
		for !r.alone() {
		}
	}
	require.Equal(t, stillMost, time.Duration(r.most)*r.every, "five minutes at most")
}

// The client of a group that stands still is replaced within T and five seconds, in both modes,
// said once and counted, and its process is in the group again.
func TestGroupConsumerThatStandsStillIsReplaced(t *testing.T) {
	for _, cfg := range []Config{{Nomination: Assigned}, {Mode: NonExclusive}} {
		var out logBuffer
		cfg.HeartbeatTimeout, cfg.Logger = 10*time.Second, slog.New(slog.NewTextHandler(&out, nil))
		mocked(t, cfg, func(k *mockKafka) { k.feeds = cfg.Mode == NonExclusive }, func(t *testing.T, k *mockKafka, n *Neli) {
			p, err := n.Background(func() { time.Sleep(time.Second) })
			require.NoError(t, err)
			defer p.Close()
			time.Sleep(time.Minute)
			require.Equal(t, 1, k.count("GroupConsumer"))
			joined := k.count("Join")
			k.mu.Lock()
			k.deaf = 1
			k.fail("GroupConsumer", errors.New("no memory"))
			k.mu.Unlock()
			time.Sleep(15 * time.Second)
			require.Equal(t, 3, k.count("GroupConsumer"), "replaced within T + 5 s")
			require.Equal(t, 1, k.count("GroupConsumer.Close"))
			time.Sleep(10 * time.Minute)
			require.Greater(t, k.count("Join"), joined)
			require.Equal(t, 3, k.count("GroupConsumer"), "one that reaches a broker is left alone")
			require.EqualValues(t, 1, n.Stats().ReadersReplaced)
		})
		require.Equal(t, 1, strings.Count(out.String(), "the client of the group stands still"))
		require.Equal(t, 1, strings.Count(out.String(), "cannot replace the client of the group, retrying"))
	}
}

// It is not replaced while the brokers are away, nor while the process wants nothing of the
// group, and never in a storm.
func TestGroupConsumersAreNotReplacedInAStorm(t *testing.T) {
	mocked(t, Config{Nomination: Assigned}, func(k *mockKafka) { k.away = true }, func(t *testing.T, k *mockKafka, n *Neli) {
		p, err := n.Background(func() { time.Sleep(time.Second) })
		require.NoError(t, err)
		time.Sleep(time.Hour)
		require.Equal(t, 1, k.count("GroupConsumer"))
		k.mu.Lock()
		k.away, k.deaf = false, 1000
		k.mu.Unlock()
		time.Sleep(10 * time.Minute)
		made := k.count("GroupConsumer")
		require.Greater(t, made, 4)
		require.Less(t, made, 10)
		require.NoError(t, p.Close()) // contends no more
		time.Sleep(time.Hour)
		require.LessOrEqual(t, k.count("GroupConsumer"), made+1, "what was begun is ended")
	})
}
