package roster

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestHelloPeriodAndGap(t *testing.T) {
	for n, want := range map[int][2]time.Duration{
		1:      {5 * time.Second, time.Second},
		20:     {5 * time.Second, time.Second},
		25:     {5 * time.Second, 1250 * time.Millisecond},
		100:    {20 * time.Second, 5 * time.Second},
		300:    {time.Minute, 15 * time.Second},
		10_000: {time.Minute, 500 * time.Second},
	} {
		require.Equal(t, want, [2]time.Duration{HelloPeriod(n), HelloGap(n)}, n)
	}
}
