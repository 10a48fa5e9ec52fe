package neli_test

import (
	"testing"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
	"github.com/stretchr/testify/require"
)

// With a group, the holder leaves first and leads on until the group has
// nominated a successor who says so: the gap is a round trip, not a rebalance.
func TestCloseWaitsForTheSuccessor(t *testing.T) {
	for _, nomination := range []neli.Nomination{neli.Assigned, neli.Open} {
		t.Run(nomination.String(), func(t *testing.T) {
			simulate(t, nelitest.Options{RebalanceTime: 300 * time.Millisecond}, func(c *cluster) {
				with := func(cfg *neli.Config) { cfg.Nomination = nomination }
				a := c.work("a", with)
				require.Same(c, a, c.leader(0, 2*silence))
				b := c.work("b", with)
				c.pass(time.Minute)
				c.gap()
				began := time.Now()
				require.NoError(c, a.Close())
				require.Less(c, time.Since(began), 2*time.Second)
				c.eventually(time.Second, "b leads", b.IsLeader)
				require.Less(c, c.gap(), 20*time.Millisecond)
				require.Equal(c, neli.StateClosed, a.State())
				require.NoError(c, a.Await())
			})
		})
	}
}

// A rebalance that moves a partition goes the same way.
func TestRebalanceHandsOverWithoutAGap(t *testing.T) {
	simulate(t, nelitest.Options{RebalanceTime: 300 * time.Millisecond}, func(c *cluster) {
		with := func(cfg *neli.Config) { cfg.Partitions, cfg.Roles = 2, 2 }
		a := c.work("a", with)
		c.leader(0, 2*silence)
		c.pass(10 * time.Second)
		b := c.work("b", with)
		moved := 0
		c.eventually(30*time.Second, "b has one", func() bool {
			if b.IsLeaderOf(1) {
				moved = 1
			}
			return b.IsLeader()
		})
		e := a.last().(neli.LeaderRevoked)
		require.Equal(c, []int{moved}, e.Partitions())
		require.Equal(c, neli.ReasonUnassigned, e.Reason)
		require.True(c, a.IsLeaderOf(1-moved))
	})
}

// The only member does not wait for anybody.
func TestLastMemberClosesAtOnce(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *cluster) {
		a, b := c.work("a", nil), c.work("b", nil)
		c.leader(0, 2*silence)
		c.pass(time.Minute)
		require.NoError(c, b.Close())
		c.pass(time.Second)
		began := time.Now()
		require.NoError(c, a.Close())
		require.Less(c, time.Since(began), 500*time.Millisecond)
	})
}

// Without a pulse loop at work Close delivers the events itself.
func TestCloseDelivers(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *cluster) {
		a := c.join("a", nil)
		ok, err := a.Pulse(2 * silence)
		require.NoError(c, err)
		require.True(c, ok)
		require.NoError(c, a.Close())
		require.Equal(c, []string{"acquired", "revoked"}, a.kinds())
		require.Equal(c, neli.ReasonClosing, a.last().(neli.LeaderRevoked).Reason)
		require.Len(c, c.records("app.neli", 0, "release"), 1)
		require.NoError(c, a.Close())
	})
}

// A claim that was on its way when Close was called is released when it has come
// back, so that nobody waits for a ghost.
func TestCloseReleasesAClaimUnderWay(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *cluster) {
		a := c.join("a", open)
		ok, err := a.Pulse(0)
		require.NoError(c, err)
		require.False(c, ok)
		c.broker.Delay("a", time.Second)
		c.pass(silence + 200*time.Millisecond)
		require.Empty(c, c.records("app.neli", 0, "claim"))
		require.NoError(c, a.Close())
		require.Len(c, c.records("app.neli", 0, "claim"), 1)
		require.Len(c, c.records("app.neli", 0, "release"), 1)
		require.Empty(c, a.kinds())
	})
}

func TestCloseIsBoundedWithoutABroker(t *testing.T) {
	type when struct {
		name string
		wait time.Duration
	}
	for _, mode := range []neli.Config{{}, {Nomination: neli.Open}, {Mode: neli.NonExclusive}} {
		for _, w := range []when{{"before anything", 0}, {"as leader", 3 * silence}} {
			simulateWith(t, nelitest.Options{}, overlapping, func(c *cluster) {
				a := c.join("a", func(cfg *neli.Config) { cfg.Mode, cfg.Nomination = mode.Mode, mode.Nomination })
				_, err := a.Pulse(w.wait)
				require.NoError(c, err)
				c.broker.CutOff("a", nelitest.All)
				began := time.Now()
				require.NoError(c, a.Close())
				require.Less(c, time.Since(began), 12*time.Second, "%s %s", mode.Mode, w.name)
				require.Equal(c, neli.StateClosed, a.State())
				require.False(c, a.IsLeader())
			})
		}
	}
}

func TestCloseTwiceAtOnce(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *cluster) {
		a := c.work("a", open)
		c.leader(0, 2*silence)
		results := make(chan error, 3)
		for range 3 {
			go func() { results <- a.Close() }()
		}
		for range 3 {
			require.NoError(c, <-results)
		}
		require.Equal(c, []string{"acquired", "revoked"}, a.kinds())
	})
}

// What a process that has crashed said before does not count: the group has given
// its partitions to others since.
func TestCloseDoesNotTakeTheDeadForSuccessors(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *cluster) {
		b := c.work("b", nil)
		require.Same(c, b, c.leader(0, 2*silence))
		a := c.work("a", nil)
		c.pass(time.Second)
		c.crash(b)
		c.eventually(10*time.Second, "a leads", a.IsLeader)
		d := c.work("d", nil)
		c.pass(time.Second)
		require.True(c, c.broker.Assign("a"))
		c.gap()
		c.pass(time.Second)
		require.True(c, a.IsLeader(), "nobody has said that it is nominated")
		require.True(c, c.broker.Assign("d", 0))
		c.eventually(time.Second, "d leads", d.IsLeader)
		require.Less(c, c.gap(), 20*time.Millisecond)
	})
}
