package scenario

import (
	"context"
	"testing"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/nelitest"
	"github.com/stretchr/testify/require"
)

// away is how long a member claims nothing after it has stepped down: the longer of ten seconds and 3T.
const away = 3 * defaultT

// StepDown returns when the member leads nothing any more. Others lead. Then the member contends
// again, and takes back no role that has a leader.
func TestStepDown(t *testing.T) {
	for _, nomination := range []neli.Nomination{neli.NominationAssigned, neli.NominationOpen} {
		t.Run(nomination.String(), func(t *testing.T) {
			simulate(t, nelitest.Options{RebalanceTime: 300 * time.Millisecond}, func(c *Cluster) {
				with := func(cfg *neli.Config) { cfg.Nomination, cfg.DisableRebalance = nomination, true }
				a := c.Work("a", with)
				require.Same(c, a, c.Leader(0, 2*silence))
				b := c.Work("b", with)
				c.Pass(10 * time.Second)
				c.Gap()
				require.NoError(c, a.StepDown(c.atMost(time.Minute)))
				stepped := time.Now()
				require.False(c, a.IsLeader())
				require.Equal(c, neli.ReasonSteppedDown, a.Last().(neli.LeaderRevoked).Reason)
				c.Eventually(20*time.Millisecond, "b leads", b.IsLeader)
				require.LessOrEqual(c, c.Gap(), 20*time.Millisecond)
				c.Crash(b)
				c.Pass(away - time.Since(stepped) - 50*time.Millisecond)
				require.False(c, a.IsLeader(), "claims while it should stay away")
				c.Eventually(8*time.Second, "it leads again", a.IsLeader)
			})
		})
	}
}

// A member that is alone leads again after the pause. Another call restarts the pause.
func TestLoneMemberLeadsAgainAfterStepDown(t *testing.T) {
	for _, nomination := range []neli.Nomination{neli.NominationAssigned, neli.NominationOpen} {
		for _, timeout := range []time.Duration{time.Second, 5 * time.Second} {
			simulate(t, nelitest.Options{}, func(c *Cluster) {
				a := c.Work("a", func(cfg *neli.Config) { cfg.Nomination, cfg.HeartbeatTimeout = nomination, timeout })
				c.Leader(0, 3*silence)
				c.Pass(time.Second)
				stay := max(10*time.Second, 3*timeout)
				require.NoError(c, a.StepDown(c.atMost(time.Minute)))
				require.False(c, a.IsLeader())
				claims := len(c.Records(0, lease.Claim))
				c.Pass(stay - time.Second)
				began := time.Now()
				require.NoError(c, a.StepDown(c.atMost(time.Minute)))
				require.Zero(c, time.Since(began), "waits, though it leads nothing")
				c.Pass(stay - time.Millisecond)
				require.Len(c, c.Records(0, lease.Claim), claims)
				c.Eventually(6*time.Second, "it leads again", a.IsLeader)
				require.Equal(c, []string{"acquired", "revoked", "acquired"}, a.Kinds())
			})
		}
	}
}

func TestStepDownRefuses(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *Cluster) {
		a, o := c.Work("a", Open), c.Join("o", observer)
		c.Leader(0, 2*silence)
		require.ErrorIs(c, o.StepDown(c.atMost(time.Minute)), neli.ErrObserver)
		require.NoError(c, a.Close())
		require.ErrorIs(c, a.StepDown(c.atMost(time.Minute)), neli.ErrClosed)
	})
	Simulate(t, nelitest.Options{}, Overlapping, func(c *Cluster) {
		a := c.Work("a", shared)
		c.Leader(0, time.Minute)
		require.ErrorContains(c, a.StepDown(c.atMost(time.Minute)), "needs Mode Exclusive")
		c.Pass(time.Minute)
		require.True(c, a.IsLeader())
	})
}

// Close during StepDown ends both.
func TestCloseEndsStepDown(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *Cluster) {
		a := c.Work("a", Open)
		c.Leader(0, 2*silence)
		a.Hold(4 * time.Second)
		result := make(chan error, 1)
		go func() { result <- a.StepDown(c.atMost(time.Minute)) }()
		c.Pass(time.Second)
		require.NoError(c, a.Close())
		if err := <-result; err != nil {
			require.ErrorIs(c, err, neli.ErrClosed)
		}
		require.Equal(c, []string{"acquired", "revoked"}, a.Kinds())
	})
}

// A claim in flight may still win. StepDown waits for it, and gives up the roles that it wins. It
// does not wait for ever for a claim that never arrives.
func TestStepDownWaitsForAClaim(t *testing.T) {
	for _, arrives := range []bool{true, false} {
		simulate(t, nelitest.Options{}, func(c *Cluster) {
			c.Aged(1)
			a := c.Work("a", Open)
			c.Pass(silence - 20*time.Millisecond) // the log has answered within T/2, so it will claim
			if arrives {
				c.Broker.Delay("a", time.Second)
			} else {
				c.Broker.CutOff("a", nelitest.LinkAppends)
			}
			c.Pass(500 * time.Millisecond)
			require.Empty(c, c.Records(0, lease.Claim), "the claim is not in flight any more")
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
			defer cancel()
			began := time.Now()
			require.NoError(c, a.StepDown(ctx))
			require.Greater(c, time.Since(began), 200*time.Millisecond, "did not wait for the claim")
			require.False(c, a.IsLeader())
			c.Pass(5 * time.Second)
			require.False(c, a.IsLeader())
		})
	}
}

// However long the application takes to finish one role, the member takes up no other one
// meanwhile. Otherwise StepDown would never return. The same holds if there is another call, which
// ends with its context.
func TestStepDownOutlastsALongDrain(t *testing.T) {
	for _, twice := range []bool{false, true} {
		Simulate(t, nelitest.Options{}, Roles(2), func(c *Cluster) {
			a := c.Join("a", many(2, func(cfg *neli.Config) { cfg.DrainTimeout = time.Minute }))
			ctx, cancel := context.WithCancel(context.Background())
			ended := make(chan error, 1)
			go func() {
				ended <- a.Lead(ctx, func(ctx context.Context, l neli.Leadership) error {
					<-ctx.Done()
					if l.Role == 0 {
						time.Sleep(40 * time.Second)
					}
					return nil
				})
			}()
			c.Eventually(2*silence, "a leads both", func() bool { return a.IsLeaderOf(0) && a.IsLeaderOf(1) })
			began := time.Now()
			result := make(chan error, 1)
			go func() { result <- a.StepDown(c.atMost(5 * time.Minute)) }()
			if twice {
				short, stop := context.WithTimeoutCause(context.Background(), time.Second, errEnough)
				defer stop()
				require.ErrorIs(c, a.StepDown(short), errEnough)
			}
			require.NoError(c, <-result)
			require.LessOrEqual(c, time.Since(began), 41*time.Second)
			require.False(c, a.IsLeader())
			c.Pass(10 * time.Second)
			require.False(c, a.IsLeader(), "claims while it should stay away")
			c.Eventually(10*time.Second, "it leads again", func() bool { return a.IsLeaderOf(0) && a.IsLeaderOf(1) })
			cancel()
			require.NoError(c, <-ended)
		})
	}
}

// All members step down at the same time. Nobody leads for a while, then somebody does.
func TestAllStepDown(t *testing.T) {
	Simulate(t, nelitest.Options{}, wide(4), func(c *Cluster) {
		for _, name := range []string{"a", "b", "d"} {
			c.Work(name, many(4))
		}
		c.Eventually(2*silence, "all are led", c.allLed(4))
		c.Pass(6 * time.Second)
		for range 3 {
			results := make(chan error, 3)
			for _, name := range c.Names {
				go func() { results <- c.Members[name].StepDown(c.atMost(time.Minute)) }()
			}
			for range c.Names {
				require.NoError(c, <-results)
			}
			c.Pass(100 * time.Millisecond)
			require.Empty(c, c.owned(4))
			c.Eventually(away+2*time.Second, "all are led again", c.allLed(4))
		}
	})
}
