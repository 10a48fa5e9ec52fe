package scenario

import (
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/said"
	"github.com/goneli/neli/nelitest"
	"github.com/stretchr/testify/require"
)

// An unhealthy member gives up its roles in an orderly way, another one leads without waiting for
// T, and the member takes part again when it is healthy.
func TestHealthy(t *testing.T) {
	for _, nomination := range []neli.Nomination{neli.NominationAssigned, neli.NominationOpen} {
		t.Run(nomination.String(), func(t *testing.T) {
			simulate(t, nelitest.Options{RebalanceTime: 300 * time.Millisecond}, func(c *Cluster) {
				var health sick
				with := func(cfg *neli.Config) { cfg.Nomination, cfg.DisableRebalance = nomination, true }
				a := c.Work("a", func(cfg *neli.Config) { with(cfg); health.config(cfg) })
				require.Same(c, a, c.Leader(0, 2*silence))
				b := c.Work("b", with)
				c.Pass(10 * time.Second)
				c.Gap()
				health.yes.Store(true)
				c.Eventually(3*time.Second, "b leads", b.IsLeader)
				require.LessOrEqual(c, c.Gap(), 20*time.Millisecond)
				require.Equal(c, []string{"acquired", "revoked"}, a.Kinds())
				r := a.Last().(neli.LeaderRevoked)
				require.Equal(c, neli.ReasonUnhealthy, r.Reason)
				require.False(c, r.Deadline.IsZero())
				require.Empty(c, c.Broker.Assigned("a"), "it is still in the group")

				c.Crash(b)
				claims := len(c.Records(0, lease.Claim))
				c.Pass(time.Minute)
				require.False(c, a.IsLeader())
				require.Len(c, c.Records(0, lease.Claim), claims, "it claims while it is unhealthy")
				for _, m := range a.Members() {
					require.False(c, m.Nominated && m.Self)
				}
				health.yes.Store(false)
				c.Eventually(12*time.Second, "it takes part again", a.IsLeader)
			})
		})
	}
}

// A health check that hangs counts as unhealthy after five seconds. Once it returns, its result counts.
func TestHangingCheckCountsAsSick(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *Cluster) {
		var hang atomic.Bool
		var inside atomic.Int32
		wake := make(chan struct{})
		awaken := sync.OnceFunc(func() { close(wake) })
		defer awaken()
		a := c.Work("a", func(cfg *neli.Config) {
			Open(cfg)
			cfg.DisableRebalance = true
			cfg.Healthy = func() error {
				if inside.Add(1) > 1 {
					c.Error("the check is called concurrently with itself")
				}
				defer inside.Add(-1)
				if hang.Load() {
					<-wake
				}
				return nil
			}
		})
		c.Leader(0, 2*silence)
		b := c.Work("b", Open)
		c.Pass(6 * time.Second)
		hang.Store(true)
		c.Pass(5 * time.Second)
		require.True(c, a.IsLeader(), "gives up before five seconds are over")
		c.Eventually(1100*time.Millisecond, "b leads", b.IsLeader)
		require.Equal(c, neli.ReasonUnhealthy, a.Last().(neli.LeaderRevoked).Reason)
		c.Pass(time.Minute)
		c.Crash(b)
		c.Pass(time.Minute)
		require.False(c, a.IsLeader())
		hang.Store(false)
		awaken()
		c.Eventually(2*time.Second, "it takes part again", a.IsLeader)
	})
}

// A member claims nothing, and joins no group, before the first check has succeeded.
func TestFirstCheckComesBeforeTheFirstClaim(t *testing.T) {
	for _, nomination := range []neli.Nomination{neli.NominationAssigned, neli.NominationOpen} {
		for _, how := range []string{"slow", "sick", "hangs"} {
			simulate(t, nelitest.Options{}, func(c *Cluster) {
				well := time.Now().Add(4 * time.Second)
				if how != "slow" {
					well = well.Add(16 * time.Second)
				}
				c.Work("a", func(cfg *neli.Config) {
					cfg.Nomination, cfg.HeartbeatTimeout = nomination, 200*time.Millisecond
					cfg.Healthy = func() error {
						if how == "sick" && time.Now().Before(well) {
							return errSick
						}
						time.Sleep(time.Until(well))
						return nil
					}
				})
				c.Pass(time.Until(well) - time.Millisecond)
				require.Empty(c, c.Records(0, lease.Claim), how)
				require.Empty(c, c.Broker.Assigned("a"), how)
				c.Leader(0, 5*time.Second)
			})
		}
	}
}

// A check may end its goroutine, as t.FailNow does. That counts as unhealthy, and the next check counts again.
func TestCheckThatEndsItsGoroutine(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *Cluster) {
		var ends atomic.Bool
		a := c.Work("a", func(cfg *neli.Config) {
			Open(cfg)
			cfg.Healthy = func() error {
				if ends.Load() {
					runtime.Goexit()
				}
				return nil
			}
		})
		c.Leader(0, 2*silence)
		ends.Store(true)
		c.Eventually(2*time.Second, "it counts as unhealthy", func() bool { return !a.Stats().Healthy })
		ends.Store(false)
		c.Eventually(2*time.Second, "it is healthy again", func() bool { return a.Stats().Healthy })
		require.NoError(c, a.Close())
	})
}

// In non-exclusive mode, an unhealthy leader leaves the group and leads on until another member
// leads, so there is always a leader.
func TestSharedHealthy(t *testing.T) {
	Simulate(t, nelitest.Options{RebalanceTime: 500 * time.Millisecond}, Overlapping, func(c *Cluster) {
		var health sick
		a := c.Work("a", func(cfg *neli.Config) { shared(cfg); health.config(cfg) })
		c.Leader(0, time.Minute)
		b := c.Work("b", shared)
		c.Pass(30 * time.Second)
		require.True(c, a.IsLeader() && !b.IsLeader())
		c.Gap()
		health.yes.Store(true)
		c.Eventually(sharedT, "b leads", b.IsLeader)
		require.True(c, a.IsLeader(), "overlap, by design")
		require.Empty(c, c.Broker.Assigned("a"))
		c.Pass(sharedT)
		require.Zero(c, c.Gap())
		require.False(c, a.IsLeader())
		require.Equal(c, []string{"acquired", "revoked"}, a.Kinds())
		require.Equal(c, neli.ReasonUnhealthy, a.Last().(neli.LeaderRevoked).Reason)
		require.NoError(c, b.Close())
		c.Pass(time.Minute)
		require.False(c, a.IsLeader())
		health.yes.Store(false)
		c.Eventually(sharedT, "it takes part again", a.IsLeader)
	})
}

// A member that is unhealthy for a moment does not come back before the group has given its
// partition to another member.
func TestSharedBriefSicknessLeavesNoGap(t *testing.T) {
	Simulate(t, nelitest.Options{RebalanceTime: 500 * time.Millisecond}, Overlapping, func(c *Cluster) {
		var health sick
		a := c.Work("a", func(cfg *neli.Config) { shared(cfg); health.config(cfg) })
		c.Leader(0, time.Minute)
		b := c.Work("b", shared)
		c.Pass(30 * time.Second)
		c.Gap()
		for range 5 {
			health.yes.Store(true)
			c.Pass(1100 * time.Millisecond)
			health.yes.Store(false)
			c.Pass(20 * time.Second)
			require.True(c, a.IsLeader() || b.IsLeader())
		}
		require.Zero(c, c.Gap())
		require.NotContains(c, a.Kinds(), "fenced")
	})
}

// A member that is unhealthy and alone leads until T has passed.
func TestSharedSickLonerStops(t *testing.T) {
	Simulate(t, nelitest.Options{}, Overlapping, func(c *Cluster) {
		var health sick
		a := c.Work("a", func(cfg *neli.Config) { shared(cfg); health.config(cfg) })
		c.Leader(0, time.Minute)
		c.Pass(10 * time.Second)
		health.yes.Store(true)
		c.Pass(sharedT - interval)
		require.True(c, a.IsLeader())
		c.Pass(2*interval + time.Second)
		require.False(c, a.IsLeader())
		require.Equal(c, neli.ReasonUnhealthy, a.Last().(neli.LeaderRevoked).Reason)
		c.Pass(time.Minute)
		require.False(c, a.IsLeader())
	})
}

// Close waits for a health check in progress, and starts no other. The test has several members, because a
// select might choose the wrong one of two events only now and then.
func TestCloseWaitsForTheCheck(t *testing.T) {
	for _, nomination := range []neli.Nomination{neli.NominationAssigned, neli.NominationOpen} {
		simulate(t, nelitest.Options{}, func(c *Cluster) {
			for i := range 5 {
				var calls atomic.Int64
				m := c.Work(fmt.Sprint(i), func(cfg *neli.Config) {
					cfg.Nomination = nomination
					cfg.Healthy = func() error {
						calls.Add(1)
						time.Sleep(3 * time.Second)
						calls.Add(1)
						return nil
					}
				})
				c.Leader(0, 4*silence)
				c.Eventually(5*time.Second, "a check is in progress", func() bool { return calls.Load()%2 == 1 })
				began := calls.Load()
				require.NoError(c, m.Close())
				require.Equal(c, began+1, calls.Load(), "Close has returned before the check, or there was another one")
				c.Pass(time.Minute)
				require.Equal(c, began+1, calls.Load())
				require.NotContains(c, m.Kinds(), "fenced")
			}
		})
	}
}

// A member is checked about once a second, however many roles it has.
func TestCheckIsMadeOnceASecond(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *Cluster) {
		var health sick
		a := c.Work("a", func(cfg *neli.Config) { Open(cfg); cfg.Roles = 10; health.config(cfg) })
		c.Pass(100 * time.Second)
		require.InDelta(c, 100, health.calls.Load(), 2)
		require.True(c, a.IsLeader())
	})
}

// A process whose records take T/4 to come back claims nothing. It logs that once, with the round trip, and Stats
// report for how long. It leads when its records are fast again.
func TestMemberTooSlowToClaimIsLogged(t *testing.T) {
	for _, lag := range []time.Duration{time.Second, 1500 * time.Millisecond, 3 * time.Second} {
		Simulate(t, nelitest.Options{}, nil, func(c *Cluster) {
			var lines said.Text
			a := c.Work("a", func(cfg *neli.Config) {
				Open(cfg)
				cfg.Logger = lines.Logger(slog.LevelWarn)
			})
			c.Broker.Lag(lag)
			c.Pass(2 * time.Minute)
			if lag < 1250*time.Millisecond {
				require.True(c, a.IsLeader())
				require.Empty(c, lines.String())
				require.Zero(c, a.Stats().ClaimsWithheld)
				return
			}
			require.False(c, a.IsLeader(), "%v", lag)
			require.Equal(c, 1, lines.Count("level="), "%v", lag)
			require.Contains(c, lines.String(), "own records take too long to come back: claiming nothing")
			require.Contains(c, lines.String(), fmt.Sprintf("roundTrip=%.2f", lag.Seconds()))
			require.Contains(c, lines.String(), "limit=1.25s heartbeatTimeout=5s")
			require.Greater(c, a.Stats().ClaimsWithheld, 100*time.Second)
			c.Broker.Lag(0)
			c.Eventually(20*time.Second, "it leads", a.IsLeader)
			require.Zero(c, a.Stats().ClaimsWithheld)
			require.Equal(c, 1, lines.Count("level="))
		})
	}
}
