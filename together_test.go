package neli

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestTogether(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	var stopped atomic.Int32
	untilDone := func(ctx context.Context) error {
		<-ctx.Done()
		stopped.Add(1)
		return nil
	}
	fails := func(err error) func(context.Context) error { return func(context.Context) error { return err } }
	boom := errors.New("boom")

	t.Run("waits for all", func(t *testing.T) {
		require.NoError(t, together(t.Context()))
		require.NoError(t, together(t.Context(), fails(nil), fails(nil)))
	})
	t.Run("the first error stops the others and is returned as it is", func(t *testing.T) {
		stopped.Store(0)
		late := func(ctx context.Context) error {
			<-ctx.Done()
			require.ErrorIs(t, context.Cause(ctx), boom)
			return errors.New("in consequence")
		}
		require.Equal(t, boom, together(t.Context(), untilDone, fails(boom), late, untilDone))
		require.EqualValues(t, 2, stopped.Load())
	})
	t.Run("who returns nil stops nobody", func(t *testing.T) {
		goOn := make(chan struct{})
		ran := false
		require.NoError(t, together(t.Context(), func(context.Context) error { close(goOn); return nil }, func(ctx context.Context) error {
			<-goOn
			ran = ctx.Err() == nil
			return nil
		}))
		require.True(t, ran)
	})
	t.Run("the end of the context stops all, and is no error", func(t *testing.T) {
		stopped.Store(0)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.NoError(t, together(ctx, untilDone, untilDone))
		require.EqualValues(t, 2, stopped.Load())
	})
}
