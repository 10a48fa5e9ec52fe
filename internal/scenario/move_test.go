package scenario

import (
	"testing"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
	"github.com/stretchr/testify/require"
)

// A preferred member announces itself but hears nothing. Leaders ask it once a minute, and no term ends for it.
func TestDeafMemberIsLeftAlone(t *testing.T) {
	const n = 3
	Simulate(t, nelitest.Options{}, wide(n), func(c *Cluster) {
		a := c.Work("a", many(n))
		c.Eventually(2*silence, "a leads all", c.leadsAll("a", n))
		c.Pass(time.Second)
		c.Work("b", many(n, priority(10)))
		c.Pass(6 * time.Second)
		c.Broker.CutOff("b", nelitest.LinkReads)
		c.Pass(20 * time.Second)
		require.Equal(c, 1, c.pings(0), "asks more than once")
		c.Gap()
		c.Pass(10 * time.Minute)
		require.InDelta(c, 13, c.pings(0), 2, "does not ask 5, 10, 20, 40 s later, then each minute")
		require.Zero(c, a.count("revoked"))
		require.Zero(c, c.Gap())
		c.Broker.Restore("b", nelitest.LinkAll)
		c.Eventually(time.Minute+10*time.Second, "b leads all", c.leadsAll("b", n))
		c.orderly()
	})
}

// A member that was once too busy to answer, as when many start on few cores, gets its share soon
// afterwards, not a minute later.
func TestBusyMemberHasItsShareSoon(t *testing.T) {
	const n = 4
	Simulate(t, nelitest.Options{}, wide(n), func(c *Cluster) {
		c.Work("a", many(n))
		c.Eventually(2*silence, "a leads all", c.leadsAll("a", n))
		c.Pass(20 * time.Second) // a young group is shared out early
		c.Work("b", many(n))
		c.Pass(6 * time.Second)
		c.Broker.CutOff("b", nelitest.LinkReads)
		c.Eventually(20*time.Second, "a asks b", func() bool { return c.pings(0) == 1 })
		c.Pass(2 * time.Second)
		c.Broker.Restore("b", nelitest.LinkAll)
		c.Eventually(15*time.Second, "b leads half", func() bool { return c.shares(n)["b"] == n/2 })
		c.orderly()
	})
}

// A slow barrier delays roles that move for balance. These roles move together, and beats go on.
func TestRebalancedRolesDrainTogether(t *testing.T) {
	const n = 6
	Simulate(t, nelitest.Options{}, wide(n), func(c *Cluster) {
		a := c.Work("a", many(n))
		c.Eventually(2*silence, "a leads all", c.leadsAll("a", n))
		c.Pass(time.Second)
		told := a.Hold(7 * time.Second)
		b := c.Work("b", many(n))
		r := <-told
		require.Equal(c, neli.ReasonRebalanced, r.Reason)
		require.Len(c, r.Roles(), n/2)
		c.Pass(6900 * time.Millisecond)
		require.Equal(c, n, c.shares(n)["a"], "given up while the application finishes its work")
		c.Eventually(200*time.Millisecond, "b has its share", func() bool { return c.shares(n)["b"] == n/2 })
		c.Pass(time.Minute)
		require.Empty(c, told)
		require.Equal(c, []string{"acquired"}, b.Kinds())
		c.orderly()
	})
}

// If a leader closes or becomes unhealthy while it gives up roles for balance, all its terms end in an orderly way.
func TestCloseWhileRolesMove(t *testing.T) {
	const n = 4
	for _, how := range []string{"close", "sick"} {
		Simulate(t, nelitest.Options{}, wide(n), func(c *Cluster) {
			var health sick
			a := c.Work("a", many(n, health.config))
			c.Eventually(2*silence, "a leads all", c.leadsAll("a", n))
			c.Pass(time.Second)
			told := a.Hold(3 * time.Second)
			c.Work("b", many(n))
			<-told
			c.Pass(time.Second)
			if how == "close" {
				require.NoError(c, a.Close())
			}
			health.yes.Store(true)
			c.Eventually(8*time.Second, "b leads all", c.leadsAll("b", n))
			require.NotContains(c, a.Kinds(), "fenced")
			k := c.Contest(1)
			require.Equal(c, k.Won, k.Claims)
		})
	}
}

// A role that was handed over is not handed on for 30 s. A role that was claimed may be moved at once.
func TestHandedOverRoleStaysForAWhile(t *testing.T) {
	const n = 4
	Simulate(t, nelitest.Options{}, wide(n), func(c *Cluster) {
		c.Work("a", many(n))
		c.Eventually(2*silence, "a leads all", c.leadsAll("a", n))
		b := c.Work("b", many(n))
		c.Pass(5 * time.Second)
		c.Work("d", many(n, priority(10)))
		c.Eventually(20*time.Second, "b leads", b.IsLeader)
		began := time.Now()
		c.Eventually(time.Minute, "d leads all", c.leadsAll("d", n))
		require.Greater(c, time.Since(began), 29*time.Second)
		c.orderly()
	})
}

// SetRoles takes effect: all members give up the roles beyond R, and none is handed over.
func TestRebalanceRespectsSetRoles(t *testing.T) {
	Simulate(t, nelitest.Options{}, wide(8), func(c *Cluster) {
		for _, name := range []string{"a", "b"} {
			c.Work(name, many(8))
		}
		c.level(8, 40*time.Second)
		for _, r := range []int{3, 8} {
			for _, name := range c.Names {
				require.NoError(c, c.Members[name].SetRoles(r))
			}
			c.level(r, 40*time.Second) // a role that has moved stays for 30 s
			before := c.Contest(1)
			c.Pass(time.Minute)
			require.Equal(c, before, c.Contest(1), "roles still move")
			require.Len(c, c.owned(8), r)
		}
		c.orderly()
	})
}

// If the successor in whose favour a role was released does not claim it, the others claim it one
// after the other, not all at once.
func TestUnclaimedHandoverDrawsFewClaims(t *testing.T) {
	lost := 0
	for range 6 {
		simulate(t, nelitest.Options{}, func(c *Cluster) {
			a := c.Work("a", Open)
			c.Leader(0, 2*silence)
			for _, name := range []string{"b", "d", "e", "f", "g", "h", "i", "j"} {
				c.Work(name, Open)
			}
			c.Pass(7 * time.Second)
			a.Hold(2 * time.Second)
			result := a.transferring(c.atMost(time.Minute), 0, "b")
			c.Pass(time.Second)
			before := c.Contest(1)
			c.Crash(c.Members["b"])
			require.ErrorIs(c, <-result, neli.ErrNotDone)
			c.Pass(time.Second)
			k := c.Contest(1).Less(before)
			require.Equal(c, 1, k.Won)
			lost += k.Claims - 1
		})
	}
	require.LessOrEqual(t, lost, 6, "of 6 times 8 claimants")
}
