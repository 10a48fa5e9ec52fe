package nelitest_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
)

// A closed Neli reads nothing, so it does not count the time for which the roles that it released are vacant:
// another member leads them.
func TestAClosedNeliCountsNoVacancies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := nelitest.NewBroker(nelitest.Options{})
		defer b.Close()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 2)
		start := func(name string) *neli.Neli {
			n, err := neli.New(neli.Config{LeaderGroupID: "g", Roles: 8, Provider: b.Provider(name)})
			require.NoError(t, err)
			go func() {
				ended <- n.Lead(ctx, func(ctx context.Context, _ neli.Leadership) error { <-ctx.Done(); return nil })
			}()
			time.Sleep(30 * time.Second)
			return n
		}
		alice, bob := start("alice"), start("bob")
		require.NoError(t, alice.Close())
		require.ErrorIs(t, <-ended, neli.ErrClosed)
		before := alice.Stats().Leaderless
		time.Sleep(10 * time.Minute)
		require.Equal(t, 8, bob.Stats().Led)
		require.InDelta(t, before, alice.Stats().Leaderless, 0.1)
		cancel()
		require.NoError(t, <-ended)
		require.NoError(t, bob.Close())
	})
}
