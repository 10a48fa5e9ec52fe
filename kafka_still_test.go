package neli

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A reader stands still when an acknowledged record of this process, handed over after the
// last one was read, does not come for as long as Poll is asked.
func TestStillness(t *testing.T) {
	const lease = 10 * time.Second
	at := func(s int) time.Time { return time.Unix(1000+int64(s), 0) }
	for _, c := range []struct {
		name   string
		do     func(s *stillness)
		waited time.Duration
		want   []int
	}{
		{"nothing was appended", func(*stillness) {}, time.Hour, nil},
		{"acknowledged, for T", func(s *stillness) { s.acknowledged(1, at(1)) }, lease, []int{1}},
		{"acknowledged, for less than T", func(s *stillness) { s.acknowledged(1, at(1)) }, lease - 1, nil},
		{"read before the acknowledgement", func(s *stillness) { s.got(1, at(2), lease); s.acknowledged(1, at(1)) }, time.Hour, nil},
		{"read afterwards", func(s *stillness) { s.acknowledged(1, at(1)); s.got(1, at(2), lease) }, time.Hour, nil},
		{"another partition is read", func(s *stillness) { s.acknowledged(1, at(1)); s.got(0, at(2), lease) }, lease, []int{1}},
		{"a replacement in vain doubles the time", func(s *stillness) { s.restart(at(2), []int{1}); s.acknowledged(1, at(3)) }, 2*lease - 1, nil},
		{"and no more", func(s *stillness) { s.restart(at(2), []int{1}); s.acknowledged(1, at(3)) }, 2 * lease, []int{1}},
		{"a record read undoes that", func(s *stillness) {
			s.restart(at(2), []int{1})
			s.got(1, at(3), lease)
			s.acknowledged(1, at(4))
		}, lease, []int{1}},
	} {
		s := newStillness(2, lease)
		c.do(s)
		require.Equal(t, c.want, s.waited(c.waited), c.name)
	}
}

// A reader that stands still is replaced within T and five seconds, said once and counted,
// and its process leads again.
func TestReaderThatStandsStillIsReplaced(t *testing.T) {
	var out logBuffer
	cfg := Config{Nomination: Open, Logger: slog.New(slog.NewTextHandler(&out, nil))}
	mocked(t, cfg, nothing, func(t *testing.T, k *mockKafka, n *Neli) {
		p, err := n.Background(func() { time.Sleep(time.Second) })
		require.NoError(t, err)
		defer p.Close()
		require.Eventually(t, n.IsLeader, time.Minute, 100*time.Millisecond)
		k.mu.Lock()
		k.still = 1
		k.mu.Unlock()
		time.Sleep(12 * time.Second)
		require.Equal(t, 2, k.count("LogReader"), "replaced within T + 5 s")
		require.Equal(t, 1, k.count("LogReader.Close"))
		time.Sleep(10 * time.Second)
		require.True(t, n.IsLeader())
		time.Sleep(time.Minute)
		require.Equal(t, 2, k.count("LogReader"), "a reader that reads is left alone")
		require.EqualValues(t, 1, n.Stats().ReadersReplaced)
	})
	require.Equal(t, 1, strings.Count(out.String(), "the log reader stands still"))
}

// Readers that all stand still are not replaced in a storm, and one that says why it does
// not read is not replaced.
func TestReadersAreNotReplacedInAStorm(t *testing.T) {
	mocked(t, Config{Nomination: Open}, func(k *mockKafka) { k.still = 1000 }, func(t *testing.T, k *mockKafka, n *Neli) {
		_, err := n.Pulse(10 * time.Minute)
		require.NoError(t, err)
		require.Greater(t, k.count("LogReader"), 3)
		require.Less(t, k.count("LogReader"), 10)
	})
	mocked(t, Config{Nomination: Open}, nothing, func(t *testing.T, k *mockKafka, n *Neli) {
		ok, err := n.Pulse(time.Minute)
		require.NoError(t, err)
		require.True(t, ok)
		k.mu.Lock()
		k.fail("Poll", slices.Repeat([]error{ErrTopicAuthorization}, 60)...)
		k.mu.Unlock()
		time.Sleep(time.Minute)
		require.Equal(t, 1, k.count("LogReader"))
	})
}
