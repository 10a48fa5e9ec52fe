package franz_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/goneli/neli"
	"github.com/goneli/neli/franz"
	"github.com/goneli/neli/internal/said"
	"github.com/goneli/neli/kafka"
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

// A member that reaches one broker must not count as one that reaches none, whichever other broker is
// silent: at least one of two questions in a row is answered. Otherwise a healthy client would be replaced.
func TestMemberThatReachesOneBrokerCountsAsConnected(t *testing.T) {
	t.Parallel()
	for silent := range int32(2) {
		c := cluster(t, kfake.NumBrokers(2), kfake.SeedTopics(1, "log"))
		b := newBed(t, c, endless...)
		m := b.member()
		require.NoError(t, m.Join("log", false))
		assigned(t, m)

		over := make(chan struct{})
		defer close(over)
		c.ControlKey(int16(kmsg.Metadata), func(kmsg.Request) (kmsg.Response, error, bool) {
			c.KeepControl()
			if c.CurrentNode() == silent {
				c.SleepControl(func() { <-over })
			}
			return nil, nil, false
		})
		reach := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			return m.Reach(ctx, "log")
		}
		first, second := reach(), reach()
		require.False(t, first != nil && second != nil, "broker %d is silent: %v, %v", silent, first, second)
		require.NoError(t, reach(), "it goes on to ask the broker that answers")
	}
}

// A member leaves while the group waits for a dead member. The coordinator is told once that wait is over.
// Otherwise it would wait for the leaver's session, too.
func TestMemberLeavesWhileTheGroupWaits(t *testing.T) {
	t.Parallel()
	c := cluster(t, kfake.SeedTopics(3, "log"))
	b := newBed(t, c)
	member := func(extra ...string) kafka.GroupConsumer {
		return b.member(append([]string{"partition.assignment.strategy", "cooperative-sticky"}, extra...)...)
	}
	poll := func(d time.Duration, members ...kafka.GroupConsumer) {
		for end := time.Now().Add(d); time.Now().Before(end); {
			for _, m := range members {
				_, _ = m.Poll(10 * time.Millisecond)
			}
		}
	}
	leaves := make(chan struct{}, 10)
	c.ControlKey(int16(kmsg.LeaveGroup), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		leaves <- struct{}{}
		return nil, nil, false
	})
	x := member("session.timeout.ms", "20000") // kfake ends the session of a member that waits to join
	require.NoError(t, x.Join("log", false))
	assigned(t, x)
	z := member("group.instance.id", "z", "session.timeout.ms", "8000")
	require.NoError(t, z.Join("log", false))
	poll(3*time.Second, x, z)
	require.NoError(t, z.Leave()) // a static member only falls silent
	y := member()
	require.NoError(t, y.Join("log", false))
	poll(time.Second, x, y)
	require.NoError(t, x.Leave())
	for end := time.Now().Add(patience); len(leaves) == 0 && time.Now().Before(end); {
		poll(100*time.Millisecond, y)
	}
	require.Len(t, leaves, 1, "the coordinator was not told")
}
