package neli_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
	"github.com/stretchr/testify/require"
)

// A member that says that it is sick gives up in order, another one leads without
// waiting for T, and it takes part again when it is well.
func TestHealthy(t *testing.T) {
	for _, nomination := range []neli.Nomination{neli.Assigned, neli.Open} {
		t.Run(nomination.String(), func(t *testing.T) {
			simulate(t, nelitest.Options{RebalanceTime: 300 * time.Millisecond}, func(c *cluster) {
				var health sick
				with := func(cfg *neli.Config) { cfg.Nomination, cfg.Rebalance = nomination, neli.RebalanceOff }
				a := c.work("a", func(cfg *neli.Config) { with(cfg); health.config(cfg) })
				require.Same(c, a, c.leader(0, 2*silence))
				b := c.work("b", with)
				c.pass(10 * time.Second)
				c.gap()
				health.yes.Store(true)
				c.eventually(3*time.Second, "b leads", b.IsLeader)
				require.LessOrEqual(c, c.gap(), 20*time.Millisecond)
				require.Equal(c, []string{"acquired", "revoked"}, a.kinds())
				r := a.last().(neli.LeaderRevoked)
				require.Equal(c, neli.ReasonUnhealthy, r.Reason)
				require.False(c, r.Deadline.IsZero())
				require.Empty(c, c.broker.Assigned("a"), "it has left the group")

				c.crash(b)
				claims := len(c.records("app.neli", 0, "claim"))
				c.pass(time.Minute)
				require.False(c, a.IsLeader())
				require.Len(c, c.records("app.neli", 0, "claim"), claims, "it claims nothing")
				for _, m := range a.Members() {
					require.False(c, m.Nominated && m.Self)
				}
				health.yes.Store(false)
				c.eventually(12*time.Second, "it takes part again", a.IsLeader)
			})
		})
	}
}

// A barrier may take its time when a member is sick: the lease is kept meanwhile.
func TestSickLeaderDrains(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *cluster) {
		var health sick
		a := c.work("a", func(cfg *neli.Config) { open(cfg); health.config(cfg) })
		c.leader(0, 2*silence)
		b := c.work("b", open)
		c.pass(6 * time.Second)
		a.upon(func(e neli.Event) {
			if _, ok := e.(neli.LeaderRevoked); ok {
				time.Sleep(7 * time.Second)
			}
		})
		health.yes.Store(true)
		c.pass(2 * time.Second)
		health.yes.Store(false) // well again: too late, it has been told
		c.pass(5 * time.Second)
		require.True(c, a.IsLeader())
		require.False(c, b.IsLeader())
		c.eventually(2*time.Second, "b leads", b.IsLeader)
	})
}

// A check that does not return counts as sick after five seconds, and as what it
// says when it does.
func TestHangingCheckCountsAsSick(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *cluster) {
		var hang atomic.Bool
		var inside atomic.Int32
		wake := make(chan struct{})
		awaken := sync.OnceFunc(func() { close(wake) })
		defer awaken()
		a := c.work("a", func(cfg *neli.Config) {
			open(cfg)
			cfg.Rebalance = neli.RebalanceOff
			cfg.Healthy = func() error {
				if inside.Add(1) > 1 {
					c.Error("called concurrently with itself")
				}
				defer inside.Add(-1)
				if hang.Load() {
					<-wake
				}
				return nil
			}
		})
		c.leader(0, 2*silence)
		b := c.work("b", open)
		c.pass(6 * time.Second)
		hang.Store(true)
		c.pass(5 * time.Second)
		require.True(c, a.IsLeader(), "five seconds are not over")
		c.eventually(1100*time.Millisecond, "b leads", b.IsLeader)
		require.Equal(c, neli.ReasonUnhealthy, a.last().(neli.LeaderRevoked).Reason)
		c.pass(time.Minute)
		c.crash(b)
		c.pass(time.Minute)
		require.False(c, a.IsLeader())
		hang.Store(false)
		awaken()
		c.eventually(2*time.Second, "it takes part again", a.IsLeader)
	})
}

// Nothing is claimed, and no group joined, before the first check has said that all
// is well.
func TestFirstCheckComesBeforeTheFirstClaim(t *testing.T) {
	for _, nomination := range []neli.Nomination{neli.Assigned, neli.Open} {
		for _, how := range []string{"slow", "sick", "hangs"} {
			simulate(t, nelitest.Options{}, func(c *cluster) {
				well := time.Now().Add(4 * time.Second)
				if how != "slow" {
					well = well.Add(16 * time.Second)
				}
				c.work("a", func(cfg *neli.Config) {
					cfg.Nomination, cfg.HeartbeatTimeout = nomination, 200*time.Millisecond
					cfg.Healthy = func() error {
						if how == "sick" && time.Now().Before(well) {
							return errSick
						}
						time.Sleep(time.Until(well))
						return nil
					}
				})
				c.pass(time.Until(well) - time.Millisecond)
				require.Empty(c, c.records("app.neli", 0, "claim"), how)
				require.Empty(c, c.broker.Assigned("a"), how)
				c.leader(0, 5*time.Second)
			})
		}
	}
}

// In non-exclusive mode a sick leader leaves the group and leads until the others
// do: there is always a leader.
func TestSharedHealthy(t *testing.T) {
	simulateWith(t, nelitest.Options{RebalanceTime: 500 * time.Millisecond}, overlapping, func(c *cluster) {
		var health sick
		a := c.work("a", func(cfg *neli.Config) { shared(cfg); health.config(cfg) })
		c.leader(0, time.Minute)
		b := c.work("b", shared)
		c.pass(30 * time.Second)
		require.True(c, a.IsLeader() && !b.IsLeader())
		c.gap()
		health.yes.Store(true)
		c.eventually(sharedT, "b leads", b.IsLeader)
		require.True(c, a.IsLeader(), "overlap, by design")
		require.Empty(c, c.broker.Assigned("a"))
		c.pass(sharedT)
		require.Zero(c, c.gap())
		require.False(c, a.IsLeader())
		require.Equal(c, []string{"acquired", "revoked"}, a.kinds())
		require.Equal(c, neli.ReasonUnhealthy, a.last().(neli.LeaderRevoked).Reason)
		require.NoError(c, b.Close())
		c.pass(time.Minute)
		require.False(c, a.IsLeader())
		health.yes.Store(false)
		c.eventually(sharedT, "it takes part again", a.IsLeader)
	})
}

// A member that is sick for a moment does not come back before the group has given
// its partition to another.
func TestSharedSickForAMoment(t *testing.T) {
	simulateWith(t, nelitest.Options{RebalanceTime: 500 * time.Millisecond}, overlapping, func(c *cluster) {
		var health sick
		a := c.work("a", func(cfg *neli.Config) { shared(cfg); health.config(cfg) })
		c.leader(0, time.Minute)
		b := c.work("b", shared)
		c.pass(30 * time.Second)
		c.gap()
		for range 5 {
			health.yes.Store(true)
			c.pass(1100 * time.Millisecond)
			health.yes.Store(false)
			c.pass(20 * time.Second)
			require.True(c, a.IsLeader() || b.IsLeader())
		}
		require.Zero(c, c.gap())
		require.NotContains(c, a.kinds(), "fenced")
	})
}

// Alone, and sick, it leads until T has passed.
func TestSharedSickAndAlone(t *testing.T) {
	simulateWith(t, nelitest.Options{}, overlapping, func(c *cluster) {
		var health sick
		a := c.work("a", func(cfg *neli.Config) { shared(cfg); health.config(cfg) })
		c.leader(0, time.Minute)
		c.pass(10 * time.Second)
		health.yes.Store(true)
		c.pass(sharedT - interval)
		require.True(c, a.IsLeader())
		c.pass(2*interval + time.Second)
		require.False(c, a.IsLeader())
		require.Equal(c, neli.ReasonUnhealthy, a.last().(neli.LeaderRevoked).Reason)
		c.pass(time.Minute)
		require.False(c, a.IsLeader())
	})
}

// Close waits for a check that is under way, and none follows.
func TestCloseWaitsForTheCheck(t *testing.T) {
	for _, nomination := range []neli.Nomination{neli.Assigned, neli.Open} {
		simulate(t, nelitest.Options{}, func(c *cluster) {
			var calls atomic.Int64
			a := c.work("a", func(cfg *neli.Config) {
				cfg.Nomination = nomination
				cfg.Healthy = func() error {
					calls.Add(1)
					time.Sleep(3 * time.Second)
					calls.Add(1)
					return nil
				}
			})
			c.leader(0, 4*silence)
			c.eventually(5*time.Second, "a call is under way", func() bool { return calls.Load()%2 == 1 })
			require.NoError(c, a.Close())
			done := calls.Load()
			require.Zero(c, done%2, "it has returned")
			c.pass(time.Minute)
			require.Equal(c, done, calls.Load())
			require.NotContains(c, a.kinds(), "fenced")
		})
	}
}

// An observer has nothing to lead: nobody asks whether it should.
func TestObserverIsNotChecked(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *cluster) {
		var health sick
		o := c.join("o", func(cfg *neli.Config) { observer(cfg); health.config(cfg) })
		c.work("a", open)
		c.leader(0, 2*silence)
		c.pass(10 * time.Second)
		require.Zero(c, health.calls.Load())
		_, known := o.Holder(0)
		require.True(c, known)
	})
}

// A member of many is asked about once a second.
func TestCheckIsMadeOnceASecond(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *cluster) {
		var health sick
		a := c.work("a", func(cfg *neli.Config) { open(cfg); health.config(cfg) })
		c.pass(100 * time.Second)
		require.InDelta(c, 100, health.calls.Load(), 2)
		require.True(c, a.IsLeader())
	})
}
