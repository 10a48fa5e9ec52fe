package neli

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/goneli/neli/kafka"
	"github.com/stretchr/testify/require"
)

// A producer is barren when reports of failures have come for ten seconds, and nothing else.
func TestBarren(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(1000+int64(s), 0) }
	gone := errors.New("message timed out")
	b := barren{patience: barrenAfter}
	require.False(t, b.failed(gone, at(0)), "the first failure")
	require.False(t, b.failed(gone, at(9)), "for less than ten seconds")
	b.acknowledged()
	require.False(t, b.failed(gone, at(10)), "something was acknowledged")
	require.False(t, b.failed(errors.Join(errReported, kafka.ErrTopicAuthorization), at(20)), "a broker has answered")
	require.False(t, b.failed(gone, at(21)), "a broker had answered")
	require.True(t, b.failed(gone, at(31)), "for ten seconds")
	require.False(t, b.failed(gone, at(32)), "the new one has failed once")
	require.False(t, b.failed(gone, at(51)), "a replacement in vain doubles the time")
	require.True(t, b.failed(gone, at(52)))
	b = barren{patience: stillMost}
	for s := 0; s < 1000; s += 301 {
		require.False(t, b.failed(gone, at(s)), "the first failure of each")
		require.False(t, b.failed(gone, at(s+299)))
		require.True(t, b.failed(gone, at(s+300)), "five minutes at most")
	}
	b.acknowledged()
	b.failed(gone, at(30_000))
	require.True(t, b.failed(gone, at(30_010)), "an acknowledgement makes it patient anew")
}

// A producer that gets nothing acknowledged is replaced, with its admin client, and its
// process leads again.
func TestBarrenProducerIsReplaced(t *testing.T) {
	var out logBuffer
	cfg := Config{Nomination: Open, Logger: slog.New(slog.NewTextHandler(&out, nil))}
	mocked(t, cfg, nothing, func(t *testing.T, k *mockKafka, n *Neli) {
		p, err := n.Background(func() { time.Sleep(time.Second) })
		require.NoError(t, err)
		defer p.Close()
		require.Eventually(t, n.IsLeader, time.Minute, 100*time.Millisecond)
		k.mu.Lock()
		k.dead = errors.Join(errReported, errors.New("message timed out")) // of the one that there is
		k.mu.Unlock()
		require.Eventually(t, func() bool { return k.count("Producer") == 2 }, 30*time.Second, 100*time.Millisecond, "it is replaced")
		require.Eventually(t, n.IsLeader, 30*time.Second, 100*time.Millisecond, "it leads again")
		time.Sleep(time.Minute)
		require.Equal(t, 2, k.count("Producer"), "and the new one stays")
		require.Equal(t, 1, k.count("Admin.Close"))
	})
	require.Equal(t, 1, strings.Count(out.String(), "nothing was acknowledged or answered for some time: replacing the producer"))
}

// So is that of a process that appends nothing, when nobody answers its questions.
func TestMuteProducerOfAnObserverIsReplaced(t *testing.T) {
	mocked(t, Config{Observer: true}, nothing, func(t *testing.T, k *mockKafka, n *Neli) {
		time.Sleep(10 * time.Minute)
		require.Equal(t, 1, k.count("Producer"))
		k.refuse(errPassing, time.Now().Add(25*time.Second))
		time.Sleep(25 * time.Second)
		require.Equal(t, 2, k.count("Producer"), "it is replaced")
		time.Sleep(10 * time.Minute)
		require.Equal(t, 2, k.count("Producer"), "and the new one stays")
		require.Equal(t, 1, k.count("Admin.Close"))
	})
}
