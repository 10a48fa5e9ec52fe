package neli_test

import (
	"context"
	"testing"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
	"github.com/stretchr/testify/require"
)

// away is how long a member claims nothing after it has stepped down: ten seconds or
// 3T.
const away = 3 * defaultT

// StepDown returns when nothing is led any more; others lead; then the member
// contends again, and takes back nothing that lives.
func TestStepDown(t *testing.T) {
	for _, nomination := range []neli.Nomination{neli.Assigned, neli.Open} {
		t.Run(nomination.String(), func(t *testing.T) {
			simulate(t, nelitest.Options{RebalanceTime: 300 * time.Millisecond}, func(c *cluster) {
				with := func(cfg *neli.Config) { cfg.Nomination, cfg.Rebalance = nomination, neli.RebalanceOff }
				a := c.work("a", with)
				require.Same(c, a, c.leader(0, 2*silence))
				b := c.work("b", with)
				c.pass(10 * time.Second)
				c.gap()
				require.NoError(c, a.StepDown(c.atMost(time.Minute)))
				stepped := time.Now()
				require.False(c, a.IsLeader())
				require.Equal(c, neli.ReasonSteppedDown, a.last().(neli.LeaderRevoked).Reason)
				c.eventually(20*time.Millisecond, "b leads", b.IsLeader)
				require.LessOrEqual(c, c.gap(), 20*time.Millisecond)
				c.crash(b)
				c.pass(away - time.Since(stepped) - 50*time.Millisecond)
				require.False(c, a.IsLeader(), "it stays away")
				c.eventually(8*time.Second, "it contends again", a.IsLeader)
			})
		})
	}
}

// With nobody else there it leads again when the time is over, and another call
// begins that anew.
func TestStepDownAlone(t *testing.T) {
	for _, nomination := range []neli.Nomination{neli.Assigned, neli.Open} {
		for _, timeout := range []time.Duration{time.Second, 5 * time.Second} {
			simulate(t, nelitest.Options{}, func(c *cluster) {
				a := c.work("a", func(cfg *neli.Config) { cfg.Nomination, cfg.HeartbeatTimeout = nomination, timeout })
				c.leader(0, 3*silence)
				c.pass(time.Second)
				stay := max(10*time.Second, 3*timeout)
				require.NoError(c, a.StepDown(c.atMost(time.Minute)))
				require.False(c, a.IsLeader())
				claims := len(c.records("app.neli", 0, "claim"))
				c.pass(stay - time.Second)
				began := time.Now()
				require.NoError(c, a.StepDown(c.atMost(time.Minute)))
				require.Zero(c, time.Since(began), "it leads nothing")
				c.pass(stay - time.Millisecond)
				require.Len(c, c.records("app.neli", 0, "claim"), claims)
				c.eventually(6*time.Second, "it leads again", a.IsLeader)
				require.Equal(c, []string{"acquired", "revoked", "acquired"}, a.kinds())
			})
		}
	}
}

func TestStepDownRefuses(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *cluster) {
		a, o := c.work("a", open), c.join("o", observer)
		c.leader(0, 2*silence)
		require.ErrorIs(c, o.StepDown(c.atMost(time.Minute)), neli.ErrObserver)
		require.NoError(c, a.Close())
		require.ErrorIs(c, a.StepDown(c.atMost(time.Minute)), neli.ErrClosed)
	})
	simulateWith(t, nelitest.Options{}, overlapping, func(c *cluster) {
		a := c.work("a", shared)
		c.leader(0, time.Minute)
		require.ErrorContains(c, a.StepDown(c.atMost(time.Minute)), "needs Mode Exclusive")
		c.pass(time.Minute)
		require.True(c, a.IsLeader())
	})
}

// The application finishes its work first, and its ctx ends the call only.
func TestStepDownDrains(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *cluster) {
		a := c.work("a", open)
		c.leader(0, 2*silence)
		b := c.work("b", open)
		c.pass(6 * time.Second)
		a.hold(4 * time.Second)
		ctx, cancel := context.WithTimeoutCause(context.Background(), time.Second, errEnough)
		defer cancel()
		require.ErrorIs(c, a.StepDown(ctx), errEnough)
		require.True(c, a.IsLeader())
		began := time.Now()
		require.NoError(c, a.StepDown(c.atMost(time.Minute)))
		require.InDelta(c, 3*time.Second, time.Since(began), float64(50*time.Millisecond))
		c.eventually(20*time.Millisecond, "b leads", b.IsLeader)
	})
}

// Close while it steps down ends both.
func TestCloseEndsStepDown(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *cluster) {
		a := c.work("a", open)
		c.leader(0, 2*silence)
		a.hold(4 * time.Second)
		result := make(chan error, 1)
		go func() { result <- a.StepDown(c.atMost(time.Minute)) }()
		c.pass(time.Second)
		require.NoError(c, a.Close())
		if err := <-result; err != nil {
			require.ErrorIs(c, err, neli.ErrClosed)
		}
		require.Equal(c, []string{"acquired", "revoked"}, a.kinds())
	})
}

// A claim that is under way may still win: StepDown waits for that, and gives up
// what it brings. It does not wait for ever for one that never arrives.
func TestStepDownWaitsForAClaim(t *testing.T) {
	for _, arrives := range []bool{true, false} {
		simulate(t, nelitest.Options{}, func(c *cluster) {
			a := c.work("a", open)
			c.pass(3 * time.Second)
			if arrives {
				c.broker.Delay("a", time.Second)
			} else {
				c.broker.CutOff("a", nelitest.Appends)
			}
			c.pass(silence - 3*time.Second + 500*time.Millisecond)
			require.Empty(c, c.records("app.neli", 0, "claim"), "it is under way")
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
			defer cancel()
			began := time.Now()
			require.NoError(c, a.StepDown(ctx))
			require.Greater(c, time.Since(began), 200*time.Millisecond, "it waited for the claim")
			require.False(c, a.IsLeader())
			c.pass(5 * time.Second)
			require.False(c, a.IsLeader())
		})
	}
}

// However long the application takes to finish one role, the member does not take up
// another meanwhile: StepDown would never return. Nor does it if there is another call,
// which ends with its context.
func TestStepDownOutlastsALongDrain(t *testing.T) {
	for _, twice := range []bool{false, true} {
		simulateWith(t, nelitest.Options{}, roles(2), func(c *cluster) {
			a := c.join("a", many(2, func(cfg *neli.Config) { cfg.DrainTimeout = time.Minute }))
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
			c.eventually(2*silence, "a leads both", func() bool { return a.IsLeaderOf(0) && a.IsLeaderOf(1) })
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
			c.pass(10 * time.Second)
			require.False(c, a.IsLeader(), "and then it stays away")
			c.eventually(10*time.Second, "it leads again", func() bool { return a.IsLeaderOf(0) && a.IsLeaderOf(1) })
			cancel()
			require.NoError(c, <-ended)
		})
	}
}

// All step down at the same time: nobody leads for a while, then somebody does.
func TestAllStepDown(t *testing.T) {
	simulateWith(t, nelitest.Options{}, wide(4), func(c *cluster) {
		for _, name := range []string{"a", "b", "d"} {
			c.work(name, many(4))
		}
		c.eventually(2*silence, "all are led", func() bool { return len(c.owned(4)) == 4 })
		c.pass(6 * time.Second)
		for range 3 {
			results := make(chan error, 3)
			for _, name := range c.names {
				go func() { results <- c.members[name].StepDown(c.atMost(time.Minute)) }()
			}
			for range c.names {
				require.NoError(c, <-results)
			}
			c.pass(100 * time.Millisecond)
			require.Empty(c, c.owned(4))
			c.eventually(away+2*time.Second, "all are led again", func() bool { return len(c.owned(4)) == 4 })
		}
	})
}
