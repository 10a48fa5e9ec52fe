package scenario

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
)

// A static member that cannot reach the log stays away until its session is over: the group would give its
// partitions back to it.
func TestAssignedDeafStaticMemberMakesRoom(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *Cluster) {
		with := func(id string) func(*neli.Config) {
			return func(cfg *neli.Config) {
				cfg.Nomination = neli.NominationAssigned
				cfg.KafkaConfig = neli.KafkaConfigMap{"group.instance.id": id, "session.timeout.ms": 30000}
			}
		}
		a := c.Work("a", with("a"))
		c.Leader(0, time.Minute)
		b := c.Work("b", with("b"))
		c.Pass(time.Minute)
		require.True(c, a.IsLeader() && !b.IsLeader())
		c.Broker.CutOff("a", nelitest.LinkReads|nelitest.LinkAppends|nelitest.LinkAcks)
		c.Eventually(2*time.Minute, "b leads", b.IsLeader)
	})
}
