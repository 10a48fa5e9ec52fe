package nelitest_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
)

// internal/scenario has the elections, crashes and cuts on small logs, and internal/sim all kinds of faults at random.

func TestSmallLogsMayFailOneAtATime(t *testing.T) {
	small(t, 5, func(g *smallGroup) {
		g.join("a", "b", "c")
		before := g.leaders()
		for log := range 3 {
			g.Logs.Forget(log)
			g.staysLed(2 * smallT)
		}
		for log := range 3 {
			g.Logs.Stop(log)
			g.staysLed(2 * smallT)
			g.Logs.Start(log)
			g.staysLed(2 * smallT)
		}
		require.Equal(g, before, g.leaders())
		for _, m := range g.Members {
			require.LessOrEqual(g, len(m.Events()), 1, "%v", m.Events())
		}
	})
}

func TestSmallLogsHandOverWhenALeaderCloses(t *testing.T) {
	small(t, 1, func(g *smallGroup) {
		g.join("a", "b", "c")
		g.staysLed(3 * smallT)
		leader := g.Leader(0, 0)
		g.Gap()
		done := make(chan error, 1)
		go func() { done <- leader.Close() }()
		took := g.until(5*smallT, noneOf(leader.As))
		gap := g.Gap()
		require.NoError(g, <-done)
		g.Logf("hand-over: %v, of which without a leader %v", took, gap)
		require.LessOrEqual(g, took, 4*smallTrip+5*time.Millisecond) // what the sampler and the application take
		require.LessOrEqual(g, gap, 2*smallTrip+4*time.Millisecond)
	})
}

func TestSmallLogsTransferARole(t *testing.T) {
	small(t, 3, func(g *smallGroup) {
		g.join("a", "b", "c")
		g.staysLed(2 * smallT)
		from := g.Leader(1, 0)
		to := "a"
		if from.As == "a" {
			to = "b"
		}
		ctx, cancel := context.WithTimeout(g.Context(), 5*time.Second)
		defer cancel()
		require.NoError(g, from.Transfer(ctx, 1, to))
		g.until(time.Second, func(leaders []string) bool { return leaders[1] == to })
		g.staysLed(2 * smallT)
		require.Equal(g, to, g.leaders()[1])
	})
}

func TestSmallLogsAreWatched(t *testing.T) {
	small(t, 2, func(g *smallGroup) {
		g.join("a", "b")
		g.staysLed(smallT)
		o := g.joinWith("watcher", func(c *neli.Config) { c.Observer = true })
		g.staysLed(2 * smallT)
		for role, name := range g.leaders() {
			h, ok := o.Holder(role)
			require.True(g, ok, "role %d", role)
			require.Equal(g, name, h.Name)
			require.Zero(g, h.Token, "nobody but the holder knows it")
			own, ok := g.Members[name].Holder(role)
			require.True(g, ok)
			token, _ := g.Members[name].Token(role)
			require.Equal(g, token, own.Token)
		}
		leader := g.leaders()[0]
		ctx, cancel := context.WithCancel(g.Context())
		defer cancel()
		moved := make(chan string)
		go func() {
			for s := range o.Watch(ctx) {
				if s.Status == neli.StatusHeld && slices.Contains(slices.Collect(s.Roles()), 0) && s.Holder.Name != leader {
					moved <- s.Holder.Name
					return
				}
			}
			close(moved)
		}()
		for log := range 3 {
			g.Logs.CutOff(leader, log, nelitest.LinkAll)
		}
		g.until(5*time.Second, noneOf(leader))
		require.Equal(g, g.leaders()[0], <-moved)
	})
}

func TestSmallLogsHaveNoConsumerGroup(t *testing.T) {
	_, err := neli.New(neli.Config{Provider: nelitest.NewSmallLogs(3, smallTrip).Provider("a"), LeaderGroupID: "g",
		Mode: neli.NonExclusive, Nomination: neli.NominationAssigned, KafkaConfig: neli.KafkaConfigMap{"bootstrap.servers": "x"}})
	require.ErrorContains(t, err, "Mode")
	require.ErrorContains(t, err, "Nomination")
	require.ErrorContains(t, err, "KafkaConfig")
	_, err = neli.New(neli.Config{Provider: nelitest.NewSmallLogs(2, smallTrip).Provider("a"), LeaderGroupID: "g"})
	require.ErrorContains(t, err, "2 small logs")
}

// On small logs, too, an observer may ask, and the holder decides, even while one log is down.
func TestSmallLogsCarryRequests(t *testing.T) {
	small(t, 3, func(g *smallGroup) {
		var refuses atomic.Bool
		decides := func(neli.Request) error {
			if refuses.Load() {
				return errors.New("not now")
			}
			return nil
		}
		for _, name := range []string{"a", "b", "c"} {
			g.joinWith(name, func(cfg *neli.Config) { cfg.DisableRebalance, cfg.Requests = true, decides })
		}
		g.until(5*time.Second, allLed)
		o := g.joinWith("o", func(cfg *neli.Config) { cfg.Observer = true })
		g.staysLed(2 * smallT)
		ctx, cancel := context.WithTimeout(g.Context(), time.Minute)
		defer cancel()
		for _, down := range []int{-1, 0, 1, 2} {
			if down >= 0 {
				g.Logs.Stop(down)
				g.Pass(3 * smallT)
			}
			to := map[bool]string{true: "b", false: "a"}[g.leaders()[1] == "a"]
			refuses.Store(false)
			require.NoError(g, o.Ask(ctx, neli.Request{Role: 1, To: to}), "log %d is down", down)
			g.until(time.Second, func(leaders []string) bool { return leaders[1] == to })
			refuses.Store(true)
			err := o.Ask(ctx, neli.Request{Role: 1, StepDown: true})
			require.ErrorIs(g, err, neli.ErrRefused)
			require.ErrorContains(g, err, "not now")
			if down >= 0 {
				g.Logs.Start(down)
				g.Pass(3 * smallT)
			}
			require.Equal(g, to, g.leaders()[1])
		}
	})
}
