package neli

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l limiter
		require.True(t, l.due(), "the first line")
		require.False(t, l.due())
		time.Sleep(10 * time.Second)
		require.False(t, l.due())
		time.Sleep(time.Nanosecond)
		require.True(t, l.due())
		require.False(t, l.due())
	})
}
