package scenario

import (
	"context"
	"testing"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
	"github.com/stretchr/testify/require"
)

// Rebalance levels the shares at once, even within balance's tolerance or with DisableRebalance, and returns the moves.
func TestRebalance(t *testing.T) {
	const n = 42
	Simulate(t, nelitest.Options{}, wide(n), func(c *Cluster) {
		a := c.Work("a", many(n, rebalanceOff))
		c.Eventually(2*silence, "a leads all", c.leadsAll("a", n))
		c.Pass(time.Minute)
		b := c.Work("b", many(n, rebalanceOff))
		c.Pass(5 * time.Second)
		moved, err := a.Rebalance(c.atMost(time.Second))
		require.NoError(c, err)
		require.Empty(c, moved, "b is not there for 15 s")
		c.Pass(time.Minute)
		require.Equal(c, n, c.shares(n)["a"], "nothing moves by itself")

		began := time.Now()
		moved, err = a.Rebalance(c.atMost(time.Minute))
		require.NoError(c, err)
		require.Less(c, time.Since(began), 5*time.Second)
		require.Equal(c, []neli.Moved{{Name: "b", ID: b.ID(), Roles: n / 2}}, moved)
		require.Equal(c, n/2, c.shares(n)["b"])
		moved, err = a.Rebalance(c.atMost(time.Minute))
		require.NoError(c, err)
		require.Empty(c, moved)
		s := a.Stats()
		require.Equal(c, []uint64{3, n / 2}, []uint64{s.Rebalances, s.RolesRebalanced})

		c.Work("d", many(n, rebalanceOff))
		c.Pass(time.Minute)
		require.Zero(c, c.shares(n)["d"])
		for _, m := range []*Member{a, b} {
			moved, err = m.Rebalance(c.atMost(time.Minute))
			require.NoError(c, err)
			require.Len(c, moved, 1)
			require.Equal(c, []any{"d", n / 6}, []any{moved[0].Name, moved[0].Roles})
		}
		require.Equal(c, map[string]int{"a": n / 3, "b": n / 3, "d": n / 3}, c.shares(n))
		c.orderly()
	})
}

// With balance on, Rebalance levels the tenth that balance tolerates.
func TestRebalanceWithoutTolerance(t *testing.T) {
	const n = 60
	Simulate(t, nelitest.Options{}, wide(n), func(c *Cluster) {
		a, b := c.Work("a", many(n)), c.Work("b", many(n))
		c.Eventually(steady+15*time.Second, "both lead", c.allLed(n))
		c.Pass(time.Minute)
		for role := range n {
			if a.IsLeaderOf(role) {
				require.NoError(c, a.Transfer(c.atMost(time.Minute), role, b.ID()))
				break
			}
		}
		c.Pass(time.Minute)
		before := c.shares(n)
		_, err := b.Rebalance(c.atMost(time.Minute))
		require.NoError(c, err)
		_, err = a.Rebalance(c.atMost(time.Minute))
		require.NoError(c, err)
		after := c.shares(n)
		require.GreaterOrEqual(c, before["b"]-before["a"], 2)
		require.Equal(c, n, after["a"]+after["b"])
		require.LessOrEqual(c, max(after["a"], after["b"])-min(after["a"], after["b"]), 1)
		c.orderly()
	})
}

// Rebalance ends with its context: no batch begins after that, and what has moved is returned.
func TestRebalanceEndsWithItsContext(t *testing.T) {
	const n = 6
	Simulate(t, nelitest.Options{}, wide(n), func(c *Cluster) {
		a := c.Work("a", many(n, rebalanceOff))
		c.Eventually(2*silence, "a leads all", c.leadsAll("a", n))
		c.Work("b", many(n, rebalanceOff))
		c.Pass(time.Minute)
		c.Broker.CutOff("b", nelitest.LinkAll)
		moved, err := a.Rebalance(c.atMost(500 * time.Millisecond))
		require.ErrorIs(c, err, context.DeadlineExceeded)
		require.Empty(c, moved)
		c.Pass(5 * time.Second) // the batch is called off
		c.Broker.Restore("b", nelitest.LinkAll)
		c.Pass(time.Minute)
		require.Equal(c, n, c.shares(n)["a"], "a batch began after the end")

		var none context.Context
		_, err = a.Rebalance(none)
		require.ErrorContains(c, err, "ctx is nil")
		o := c.Join("o", func(cfg *neli.Config) { Open(cfg); observer(cfg) })
		_, err = o.Rebalance(context.Background())
		require.ErrorIs(c, err, neli.ErrObserver)
		require.NoError(c, a.Close())
		_, err = a.Rebalance(context.Background())
		require.ErrorIs(c, err, neli.ErrClosed)
	})
}

// Another process may ask for a rebalance. The holder decides.
func TestAskForRebalance(t *testing.T) {
	const n = 8
	Simulate(t, nelitest.Options{}, wide(n), func(c *Cluster) {
		var m mood
		a := c.Work("a", many(n, rebalanceOff, m.config))
		c.Eventually(2*silence, "a leads all", c.leadsAll("a", n))
		c.Work("b", many(n, rebalanceOff))
		c.Pass(time.Minute)
		o := c.Join("o", func(cfg *neli.Config) { Open(cfg); observer(cfg); cfg.Roles = n })
		require.NoError(c, o.Ask(c.atMost(time.Minute), neli.Request{Rebalance: true}))
		require.True(c, m.asked()[0].Rebalance)
		c.Eventually(10*time.Second, "shared out", func() bool { return c.shares(n)["b"] == n/2 })
		require.EqualValues(c, 1, a.Stats().Rebalances)
		for _, r := range []neli.Request{{Rebalance: true, To: "b"}, {Rebalance: true, StepDown: true}, {}} {
			require.ErrorContains(c, o.Ask(c.atMost(time.Minute), r), "Request.")
		}
	})
}
