package franz_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

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
