package pause

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestForWaitsUntilTheTimeHasPassedOrTheContextHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		require.NoError(t, For(t.Context(), time.Minute))
		require.Equal(t, time.Minute, time.Since(began))

		reason := errors.New("reason")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(reason) })
		require.ErrorIs(t, For(ctx, time.Minute), reason)
		require.Equal(t, time.Minute+time.Second, time.Since(began))
	})
}

func TestUntilAsksUntilTheConditionIsTrueOrTheTimeHasPassed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, asked := time.Now(), 0
		require.True(t, Until(t.Context(), time.Minute, func() bool { asked++; return asked == 11 }))
		require.Equal(t, time.Second, time.Since(began))

		require.False(t, Until(t.Context(), time.Minute, func() bool { return false }))
		require.Equal(t, time.Minute+time.Second, time.Since(began))

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.False(t, Until(ctx, time.Minute, func() bool { return false }))
		require.True(t, Until(ctx, time.Minute, func() bool { return true }), "at once")
	})
}
