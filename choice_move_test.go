package neli_test

import (
	"testing"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
	"github.com/stretchr/testify/require"
)

// A preferred member that says that it is there and does not hear is asked once a
// minute, and costs no term.
func TestDeafMemberIsShunned(t *testing.T) {
	const n = 3
	simulateWith(t, nelitest.Options{}, wide(n), func(c *cluster) {
		a := c.work("a", many(n))
		c.eventually(2*silence, "a leads all", func() bool { return c.shares(n)["a"] == n })
		c.pass(time.Second)
		c.work("b", many(n, priority(10)))
		c.pass(6 * time.Second)
		c.broker.CutOff("b", nelitest.Reads)
		c.pass(20 * time.Second)
		calls := func() (k int) {
			for p := range n {
				k += c.calls(p)
			}
			return k
		}
		require.Equal(c, 1, calls(), "it tries once")
		c.gap()
		c.pass(10 * time.Minute)
		require.InDelta(c, 11, calls(), 2)
		require.Zero(c, a.count("revoked"))
		require.Zero(c, c.gap())
		c.broker.Restore("b", nelitest.All)
		c.eventually(time.Minute+10*time.Second, "b leads all", func() bool { return c.shares(n)["b"] == n })
		c.orderly()
	})
}

// A barrier that takes its time holds up what moves for balance: one partition at a
// time, and beats go on.
func TestRebalanceDrainsOneAtATime(t *testing.T) {
	const n = 6
	simulateWith(t, nelitest.Options{}, wide(n), func(c *cluster) {
		a := c.work("a", many(n))
		c.eventually(2*silence, "a leads all", func() bool { return c.shares(n)["a"] == n })
		c.pass(time.Second)
		told := a.hold(4 * time.Second)
		c.work("b", many(n))
		var last time.Time
		for range n / 2 {
			r := <-told
			require.Equal(c, neli.ReasonRebalanced, r.Reason)
			require.Len(c, r.Partitions(), 1)
			require.GreaterOrEqual(c, time.Since(last), 4*time.Second)
			last = time.Now()
		}
		c.pass(5 * time.Second)
		require.Equal(c, map[string]int{"a": 3, "b": 3}, c.shares(n))
		c.pass(time.Minute)
		require.Empty(c, told)
		c.orderly()
	})
}

// A leader that is told to give up for balance and then closes, or is sick, does
// both in order.
func TestCloseWhileAPartitionMoves(t *testing.T) {
	const n = 4
	for _, how := range []string{"close", "sick"} {
		simulateWith(t, nelitest.Options{}, wide(n), func(c *cluster) {
			var health sick
			a := c.work("a", many(n, health.config))
			c.eventually(2*silence, "a leads all", func() bool { return c.shares(n)["a"] == n })
			c.pass(time.Second)
			told := a.hold(3 * time.Second)
			c.work("b", many(n))
			<-told
			c.pass(time.Second)
			if how == "close" {
				require.NoError(c, a.Close())
			}
			health.yes.Store(true)
			c.eventually(8*time.Second, "b leads all", func() bool { return c.shares(n)["b"] == n })
			require.NotContains(c, a.kinds(), "fenced")
			claims, won := c.contest(n)
			require.LessOrEqual(c, claims-won, 1)
		})
	}
}

// Who comes is told at once who else is there, whenever these last said so.
func TestNewcomerSoonKnowsTheOthers(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *cluster) {
		for _, name := range []string{"a", "b", "d", "e"} {
			c.work(name, open)
			c.pass(1300 * time.Millisecond)
		}
		c.pass(10 * time.Second)
		for _, name := range []string{"f", "g"} {
			m := c.work(name, open)
			c.pass(1100 * time.Millisecond)
			require.Len(c, m.Members(), len(c.names))
			c.pass(700 * time.Millisecond)
		}
		before := len(c.records("app.neli", 0, "hello"))
		c.pass(time.Minute)
		require.LessOrEqual(c, len(c.records("app.neli", 0, "hello"))-before, 13*len(c.names), "and then all is quiet")
	})
}

// What one is handed is not handed on for 30 s, what one has claimed may be at once.
func TestWhatWasHandedStaysForAWhile(t *testing.T) {
	const n = 4
	simulateWith(t, nelitest.Options{}, wide(n), func(c *cluster) {
		c.work("a", many(n))
		c.eventually(2*silence, "a leads all", func() bool { return c.shares(n)["a"] == n })
		b := c.work("b", many(n))
		c.pass(5 * time.Second)
		c.work("d", many(n, priority(10)))
		c.eventually(20*time.Second, "b has something", b.IsLeader)
		began := time.Now()
		c.eventually(time.Minute, "d leads all", func() bool { return c.shares(n)["d"] == n })
		require.Greater(c, time.Since(began), 29*time.Second)
		c.orderly()
	})
}

// SetRoles is followed: what lies beyond is given up by all and not handed over.
func TestRebalanceKeepsToTheRoles(t *testing.T) {
	simulateWith(t, nelitest.Options{}, wide(8), func(c *cluster) {
		for _, name := range []string{"a", "b"} {
			c.work(name, many(8))
		}
		c.level(8, 40*time.Second)
		for _, r := range []int{3, 8} {
			for _, name := range c.names {
				require.NoError(c, c.members[name].SetRoles(r))
			}
			c.level(r, 40*time.Second) // what has moved stays for 30 s
			before, _ := c.contest(8)
			c.pass(time.Minute)
			after, _ := c.contest(8)
			require.Equal(c, before, after, "and then nothing moves")
			require.Len(c, c.owned(8), r)
		}
		c.orderly()
	})
}

// When the one in whose favour a partition was released does not claim it, the others
// do so one after the other as well.
func TestFewClaimWhatAnHeirLeaves(t *testing.T) {
	lost := 0
	for range 6 {
		simulate(t, nelitest.Options{}, func(c *cluster) {
			a := c.work("a", open)
			c.leader(0, 2*silence)
			for _, name := range []string{"b", "d", "e", "f", "g", "h", "i", "j"} {
				c.work(name, open)
			}
			c.pass(7 * time.Second)
			a.hold(2 * time.Second)
			result := a.transferring(c.atMost(time.Minute), 0, "b")
			c.pass(time.Second)
			claims, won := c.contest(1)
			c.crash(c.members["b"])
			require.ErrorIs(c, <-result, neli.ErrNotTransferred)
			c.pass(time.Second)
			made, wins := c.contest(1)
			require.Equal(c, 1, wins-won)
			lost += made - claims - 1
		})
	}
	require.LessOrEqual(t, lost, 6, "of 6 times 8 claimants")
}
