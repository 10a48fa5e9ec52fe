package scenario

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/nelitest"
	"github.com/stretchr/testify/require"
)

// rubbish appends n records that belong to no group.
func (c *Cluster) rubbish(n int) {
	c.Helper()
	for range n {
		_, err := c.Broker.Inject(topic, 0, []byte("x"))
		require.NoError(c, err)
	}
}

// A newcomer that finds no Snapshot where it first begins to read looks farther back, before it
// waits for the longest lease allowed.
func TestNewcomerLooksFartherBack(t *testing.T) {
	for _, n := range []int{1_000, 5_000, 30_000, 100_000} {
		t.Run(fmt.Sprintf("%d records behind the Snapshot", n), func(t *testing.T) {
			Simulate(t, nelitest.Options{}, wide(4), func(c *Cluster) {
				a := c.Work("a", many(4))
				c.Eventually(2*silence, "a leads all", c.leadsAll("a", 4))
				require.NoError(c, a.Close())
				c.rubbish(n)
				b := c.Work("b", many(4))
				c.Eventually(time.Second, "b leads all", c.leadsAll("b", 4))
				require.Zero(c, b.Stats().LogResets, "looking back counts as a reset of the log")
			})
		})
	}
}

// A newcomer may read a Snapshot that was in flight for long and is older than the beginning of
// its reading. It cannot use it, and looks farther back.
func TestSnapshotOlderThanTheReadingIsNotUsed(t *testing.T) {
	Simulate(t, nelitest.Options{}, wide(4), func(c *Cluster) {
		a := c.Work("a", many(4))
		c.Eventually(2*silence, "a leads all", c.leadsAll("a", 4))
		require.NoError(c, a.Close())
		left := c.Records(0, lease.Snapshot)
		require.NotEmpty(c, left)
		c.rubbish(3_000)
		_, err := c.Broker.Inject(topic, 0, left[len(left)-1].Value)
		require.NoError(c, err)
		c.Work("b", many(4))
		c.Eventually(time.Second, "b leads all", c.leadsAll("b", 4))
	})
}

// Of many newcomers, the first one that finds a Snapshot writes one for the others.
func TestManyNewcomersSoonLearnTheHolder(t *testing.T) {
	Simulate(t, nelitest.Options{}, wide(4), func(c *Cluster) {
		a := c.Work("a", many(4))
		c.Eventually(2*silence, "a leads all", c.leadsAll("a", 4))
		require.NoError(c, a.Close())
		c.rubbish(5_000)
		var all []*Member
		for i := range 20 {
			all = append(all, c.Work(fmt.Sprint("b", i), many(4)))
		}
		c.Eventually(time.Second, "all know who leads", func() bool {
			return !slices.ContainsFunc(all, func(m *Member) bool {
				_, ok := m.Holder(0)
				return !ok
			})
		})
	})
}

// A newcomer looks back only a limited distance. Then it waits, and leads.
func TestNewcomerLooksBackALimitedDistance(t *testing.T) {
	Simulate(t, nelitest.Options{}, wide(4), func(c *Cluster) {
		a := c.Work("a", many(4))
		c.Eventually(2*silence, "a leads all", c.leadsAll("a", 4))
		require.NoError(c, a.Close())
		c.rubbish(130_000)
		c.Work("b", many(4))
		c.Pass(time.Minute)
		require.Empty(c, c.owned(4), "claims before the longest lease allowed is over")
		c.Eventually(3*time.Second, "b leads all", c.leadsAll("b", 4))
	})
}
