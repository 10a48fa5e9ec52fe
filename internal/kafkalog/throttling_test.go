package kafkalog

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/said"
)

// A trouble is logged every ten seconds. Its end is logged once, if the trouble was logged at all.
func TestTroubleIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out said.Text
		log := slog.New(slog.NewTextHandler(&out, nil))
		var tr Trouble
		tr.Over(log, "over")
		require.Empty(t, out.String())
		require.True(t, tr.Due())
		time.Sleep(9 * time.Second)
		require.False(t, tr.Due())
		tr.Over(log, "over", "topic", "t")
		require.Contains(t, out.String(), "msg=over topic=t after=9s\n")
		require.False(t, tr.Due(), "too soon for a line")
		tr.Over(log, "over")
		require.Equal(t, 1, out.Count("msg=over"), "nobody was told of trouble since")
	})
}

func TestLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Limiter
		require.True(t, l.Due(), "the first line")
		require.False(t, l.Due())
		time.Sleep(10 * time.Second)
		require.False(t, l.Due())
		time.Sleep(time.Nanosecond)
		require.True(t, l.Due())
		require.False(t, l.Due())
	})
}
