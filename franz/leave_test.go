package franz_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/goneli/neli/kafka"
)

// A member leaves while the group waits for a dead member. The coordinator is told once that wait is over.
// Otherwise it would wait for the leaver's session, too.
func TestLeavesWhileTheGroupWaits(t *testing.T) {
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
