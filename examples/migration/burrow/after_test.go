package burrow

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/examples/migration/internal/trial"
	"github.com/goneli/neli/nelitest"
)

var _ = before // only compiled, since it needs a ZooKeeper

func TestAfter(t *testing.T) {
	trial.Run(t, neli.Config{LeaderGroupID: "burrow-notifier"}, trial.Of(func(ctx context.Context, n *neli.Neli, act func()) error {
		after(ctx, n, act)
		return nil
	}))
}

// after ends with its context even if it waits for the lock.
func TestAfterEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker := nelitest.NewBroker(nelitest.Options{})
		defer broker.Close()
		broker.CutOff("anna", nelitest.LinkAll) // nobody leads
		n, err := neli.New(neli.Config{LeaderGroupID: "burrow-notifier", Provider: broker.Provider("anna")})
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			after(ctx, n, func() {})
		}()
		time.Sleep(time.Minute)
		stop()
		time.Sleep(time.Minute)
		select {
		case <-ended:
		default:
			t.Error("it still waits for the lock")
		}
		require.NoError(t, n.Close())
		<-ended
	})
}

// A Lock refuses to be locked twice or unlocked twice, and can be locked again after a loss.
func TestLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker := nelitest.NewBroker(nelitest.Options{})
		defer broker.Close()
		n, err := neli.New(neli.Config{LeaderGroupID: "burrow-notifier", Provider: broker.Provider("anna")})
		require.NoError(t, err)
		k := &Lock{Neli: n}
		require.ErrorIs(t, k.Unlock(), errNotLocked)
		require.NoError(t, k.Lock())
		require.ErrorIs(t, k.Lock(), errLocked)
		first := k.Context()
		require.NoError(t, first.Err())
		broker.CutOff("anna", nelitest.LinkAll)
		<-first.Done()
		require.ErrorIs(t, context.Cause(first), neli.ErrFenced)
		require.NoError(t, k.Unlock())
		require.Nil(t, k.Context())
		broker.Restore("anna", nelitest.LinkAll)
		require.NoError(t, k.Lock())
		require.NoError(t, k.Context().Err())
		require.NoError(t, k.Unlock())
		require.ErrorIs(t, k.Unlock(), errNotLocked)
		require.NoError(t, k.Lock())
		unlocked := make(chan error, 2)
		for range 2 {
			go func() { unlocked <- k.Unlock() }()
		}
		require.ElementsMatch(t, []error{nil, errNotLocked}, []error{<-unlocked, <-unlocked}, "at once")
		closed := make(chan error)
		go func() {
			time.Sleep(time.Second)
			closed <- n.Close()
		}()
		require.NoError(t, k.Lock())
		<-k.Context().Done()
		if err := k.Unlock(); err != nil { // whichever came first, Unlock or Close, says how Lead ended
			require.ErrorIs(t, err, neli.ErrClosed)
		}
		require.ErrorIs(t, k.Lock(), neli.ErrClosed)
		require.NoError(t, <-closed)
	})
}
