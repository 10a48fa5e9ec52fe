package neli_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/internal/inside"
	"github.com/goneli/neli/kafka"
	"github.com/goneli/neli/nelitest"
)

// A process that has just started and calls the members knows all of them within a second, with
// either nomination. The others do not take the caller for a member. Without the right to write, the
// error says so.
func TestCallMembers(t *testing.T) {
	for _, nomination := range []neli.Nomination{neli.NominationAssigned, neli.NominationOpen} {
		t.Run(nomination.String(), func(t *testing.T) {
			simulate(t, nelitest.Options{}, func(c *cluster) {
				with := func(cfg *neli.Config) { cfg.Nomination = nomination }
				a := c.Work("a", with)
				c.Work("b", with)
				c.Pass(33 * time.Second) // between two Hellos
				o := c.Join("o", observer)
				c.Pass(100 * time.Millisecond)
				require.Empty(c, o.Members(), "or the test shows nothing")
				ctx, stop := context.WithTimeout(context.Background(), time.Second)
				defer stop()
				require.NoError(c, inside.CallMembers(ctx, o.Neli))
				c.Pass(time.Second)
				require.Equal(c, []string{"a", "b"}, names(o.Members()))
				require.Equal(c, []string{"a", "b"}, names(a.Members()))

				c.Broker.Refuse("r", nelitest.LinkAppends, kafka.ErrTopicAuthorization)
				r := c.Join("r", observer)
				c.Pass(100 * time.Millisecond)
				wait, end := context.WithTimeout(context.Background(), 5*time.Second)
				defer end()
				err := inside.CallMembers(wait, r.Neli)
				require.ErrorIs(c, err, neli.ErrNoAnswer)
				require.NoError(c, wait.Err())
				require.ErrorContains(c, err, "not authorized")
				require.Equal(c, neli.StateLive, r.State(), "it may still watch")

				over, cancel := context.WithCancel(context.Background())
				cancel()
				require.ErrorIs(c, inside.CallMembers(over, c.Join("late", observer).Neli), context.Canceled)
				require.NoError(c, o.Close())
				require.ErrorIs(c, inside.CallMembers(context.Background(), o.Neli), neli.ErrClosed)
				var none context.Context
				require.ErrorContains(c, inside.CallMembers(none, o.Neli), "ctx is nil")
			})
		})
	}
}
