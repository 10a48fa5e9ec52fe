package neli

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Trouble is told every ten seconds, and that it is over once, if it was told at all.
func TestTroubleIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out logBuffer
		log := slog.New(slog.NewTextHandler(&out, nil))
		var tr trouble
		tr.over(log, "over")
		require.Empty(t, out.String())
		require.True(t, tr.due())
		time.Sleep(9 * time.Second)
		require.False(t, tr.due())
		tr.over(log, "over", "topic", "t")
		require.Contains(t, out.String(), "msg=over topic=t after=9s\n")
		out.buf.Reset()
		require.False(t, tr.due(), "too soon for a line")
		tr.over(log, "over")
		require.Empty(t, out.String(), "nobody was told of it")
	})
}

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
