package scenario

import (
	"testing"
	"time"

	"github.com/goneli/neli/nelitest"
	"github.com/stretchr/testify/require"
)

// If no process can reach the log, all leave the group in turn. They come back after a while, since
// another log may be available. When the log is back, a process leads.
func TestNomineesThatCouldNotClaimComeBack(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *Cluster) {
		a, b := c.Work("a", nil), c.Work("b", nil)
		c.Leader(0, 2*silence)
		for _, m := range []*Member{a, b} {
			c.Broker.CutOff(m.As, nelitest.LinkAppends|nelitest.LinkReads)
		}
		left := map[string]bool{}
		nobody := 0
		for range 240 {
			c.Pass(500 * time.Millisecond)
			in := 0
			for _, m := range []*Member{a, b} {
				left[m.As] = left[m.As] || len(c.Broker.Assigned(m.As)) == 0
				in += len(c.Broker.Assigned(m.As))
			}
			if in == 0 {
				nobody++
			}
		}
		require.Equal(c, map[string]bool{"a": true, "b": true}, left)
		require.LessOrEqual(c, nobody, 60, "no leader for more than 60 half seconds of two minutes")
		require.False(c, a.IsLeader() || b.IsLeader())
		for _, m := range []*Member{a, b} {
			c.Broker.Restore(m.As, nelitest.LinkAll)
		}
		c.Leader(0, 20*time.Second)
	})
}
