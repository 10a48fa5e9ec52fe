package nelitest_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/internal/seeded"
	"github.com/goneli/neli/nelitest"
)

func TestSmallLogsElectAfterTheSilence(t *testing.T) {
	small(t, 1, func(g *smallGroup) {
		g.join("a", "b", "c")
		took := g.until(5*time.Second, allLed)
		g.Logf("cold start: %v", took)
		require.LessOrEqual(g, took, silence+12*smallTrip)
		g.pass(5*smallT, true)
	})
}

func TestSmallLogsShareRolesOut(t *testing.T) {
	small(t, 30, func(g *smallGroup) {
		g.join("a", "b", "c")
		g.until(5*time.Second, allLed)
		g.pass(smallT, true)
		count := map[string]int{}
		for _, name := range g.leaders() {
			count[name]++
		}
		for _, m := range g.members {
			require.InDelta(g, 10, count[m.name], 2, "%v", count)
		}
	})
}

func TestSmallLogsReplaceACrashedLeaderAndItsLog(t *testing.T) {
	small(t, 1, func(g *smallGroup) {
		g.join("a", "b", "c")
		g.until(5*time.Second, allLed)
		g.pass(3*smallT, true)
		leader := g.leaders()[0]
		for log := range 3 {
			g.logs.CutOff(leader, log, nelitest.LinkAll)
		}
		g.logs.Stop(1)
		took := g.until(5*time.Second, noneOf(leader))
		g.Logf("leader and a log crashed: %v", took)
		require.LessOrEqual(g, took, silence+3*smallTrip)
		g.pass(3*smallT, true)
	})
}

func TestSmallLogsMayFailOneAtATime(t *testing.T) {
	small(t, 5, func(g *smallGroup) {
		g.join("a", "b", "c")
		g.until(5*time.Second, allLed)
		before := g.leaders()
		for log := range 3 {
			g.logs.Forget(log)
			g.pass(2*smallT, true)
		}
		for log := range 3 {
			g.logs.Stop(log)
			g.pass(2*smallT, true)
			g.logs.Start(log)
			g.pass(2*smallT, true)
		}
		require.Equal(g, before, g.leaders())
		for _, m := range g.members {
			require.LessOrEqual(g, len(m.told), 1, "%q", m.told)
		}
	})
}

func TestSmallLogsALeaderWithoutAMajorityStepsDown(t *testing.T) {
	small(t, 1, func(g *smallGroup) {
		g.join("a", "b")
		g.until(5*time.Second, allLed)
		g.pass(smallT, true)
		leader := g.leaders()[0]
		g.logs.CutOff(leader, 0, nelitest.LinkAll)
		g.pass(2*smallT, true) // two logs are enough
		g.logs.CutOff(leader, 1, nelitest.LinkAll)
		took := g.until(5*time.Second, noneOf(leader))
		require.LessOrEqual(g, took, silence+6*smallTrip)
		g.logs.Restore(leader, 0)
		g.logs.Restore(leader, 1)
		g.pass(5*smallT, true)
	})
}

func TestSmallLogsHandOverWhenALeaderCloses(t *testing.T) {
	small(t, 1, func(g *smallGroup) {
		g.join("a", "b", "c")
		g.until(5*time.Second, allLed)
		g.pass(3*smallT, true)
		leader := g.member(g.leaders()[0])
		done := make(chan error)
		go func() { done <- leader.Close() }()
		var gap, took time.Duration
		begun := time.Now()
		for ; ; time.Sleep(time.Millisecond) {
			leaders := g.leaders()
			if leaders[0] == "" {
				gap += time.Millisecond
			} else if leaders[0] != leader.name {
				took = time.Since(begun)
				break
			}
			require.Less(g, time.Since(begun), 5*smallT)
		}
		require.NoError(g, <-done)
		g.Logf("hand-over: %v, of which without a leader %v", took, gap)
		require.LessOrEqual(g, took, 4*smallTrip+5*time.Millisecond) // what the sampler and the application take
		require.LessOrEqual(g, gap, 2*smallTrip+4*time.Millisecond)
	})
}

func TestSmallLogsTransferARole(t *testing.T) {
	small(t, 3, func(g *smallGroup) {
		g.join("a", "b", "c")
		g.until(5*time.Second, allLed)
		g.pass(2*smallT, true)
		from := g.leaders()[1]
		to := "a"
		if from == "a" {
			to = "b"
		}
		ctx, cancel := context.WithTimeout(g.Context(), 5*time.Second)
		defer cancel()
		require.NoError(g, g.member(from).Transfer(ctx, 1, to))
		g.until(time.Second, func(leaders []string) bool { return leaders[1] == to })
		g.pass(2*smallT, true)
		require.Equal(g, to, g.leaders()[1])
	})
}

func TestSmallLogsAreWatched(t *testing.T) {
	small(t, 2, func(g *smallGroup) {
		g.join("a", "b")
		g.until(5*time.Second, allLed)
		g.pass(smallT, true)
		o := g.joinWith("watcher", func(c *neli.Config) { c.Observer = true })
		g.pass(2*smallT, true)
		for role, name := range g.leaders() {
			h, ok := o.Holder(role)
			require.True(g, ok, "role %d", role)
			require.Equal(g, name, h.Name)
			require.Zero(g, h.Token, "nobody but the holder knows it")
			own, ok := g.member(name).Holder(role)
			require.True(g, ok)
			token, _ := g.member(name).Token(role)
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
			g.logs.CutOff(leader, log, nelitest.LinkAll)
		}
		g.until(5*time.Second, noneOf(leader))
		require.Equal(g, g.leaders()[0], <-moved)
	})
}

func TestSmallLogsLead(t *testing.T) {
	small(t, 1, func(g *smallGroup) {
		n, err := neli.New(neli.Config{Provider: g.logs.Provider("a"), LeaderGroupID: "g", Name: "a", HeartbeatTimeout: smallT})
		require.NoError(g, err)
		defer func() { require.NoError(g, n.Close()) }()
		ctx, stop := context.WithCancel(g.Context())
		led, ended := make(chan int64, 1), make(chan error, 1)
		go func() {
			ended <- n.Lead(ctx, func(ctx context.Context, l neli.Leadership) error {
				led <- l.Token
				<-ctx.Done()
				return context.Cause(ctx)
			})
		}()
		require.Positive(g, <-led)
		for log := range 2 { // a majority
			g.logs.CutOff("a", log, nelitest.LinkAll)
		}
		time.Sleep(2 * smallT)
		require.False(g, n.IsLeader())
		g.logs.Restore("a", 0)
		g.logs.Restore("a", 1)
		require.Positive(g, <-led, "leads again")
		stop()
		require.NoError(g, <-ended)
	})
}

// seedsWithoutMercy is how many seeds TestSmallLogsWithoutMercy and TestKafkaLogsWithoutMercy
// run: ten in make sim, and fewer with the race detector, where each takes seconds.
func seedsWithoutMercy() int {
	if seeded.Race {
		return 3
	}
	return 10
}

// TestSmallLogsWithoutMercy lets all kinds of faults happen to members and logs, in random orders from
// seeds: logs stop, forget and come back, members are cut off from some logs and are closed, and others
// join. There is at most one leader, tokens increase, and in the end every role is led.
func TestSmallLogsWithoutMercy(t *testing.T) {
	for seed := range uint64(seedsWithoutMercy()) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			small(t, 4, func(g *smallGroup) {
				r := rand.New(rand.NewPCG(seed, 7))
				g.join("m0", "m1", "m2")
				for step := range 60 {
					log, m := r.IntN(3), g.members[r.IntN(len(g.members))]
					switch r.IntN(8) {
					case 0:
						g.logs.Stop(log)
					case 1, 2:
						g.logs.Start(log)
					case 3:
						g.logs.Forget(log)
					case 4:
						g.logs.CutOff(m.name, log, nelitest.LinkAll)
					case 5, 6:
						g.logs.Restore(m.name, log)
					case 7:
						if len(g.members) > 2 && r.IntN(3) == 0 {
							go func() { _ = m.Close() }() // the error is checked when it is closed again at the end
						}
						if r.IntN(3) == 0 {
							g.join(fmt.Sprintf("late%d", step))
						}
					}
					g.pass(time.Duration(r.Int64N(int64(smallT))), false)
				}
				for log := range 3 {
					g.logs.Start(log)
					for _, m := range g.members {
						g.logs.Restore(m.name, log)
					}
				}
				g.join("last")
				g.until(10*smallT, allLed)
				for range 6 { // roles that are handed over meanwhile are led again at once
					g.pass(smallT/2, false)
					g.until(smallT/4, allLed)
				}
			})
		})
	}
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
			g.joinWith(name, func(cfg *neli.Config) {
				cfg.DisableRebalance = true
				cfg.Requests = decides
			})
		}
		g.until(5*time.Second, allLed)
		g.pass(2*smallT, true)
		o := g.joinWith("o", func(cfg *neli.Config) { cfg.Observer = true })
		g.pass(2*smallT, true)
		ctx, cancel := context.WithTimeout(g.Context(), time.Minute)
		defer cancel()
		for _, down := range []int{-1, 0, 1, 2} {
			if down >= 0 {
				g.logs.Stop(down)
				g.pass(3*smallT, false)
			}
			from := g.leaders()[1]
			to := map[bool]string{true: "b", false: "a"}[from == "a"]
			refuses.Store(false)
			require.NoError(g, o.Ask(ctx, neli.Request{Role: 1, To: to}), "log %d is down", down)
			g.until(time.Second, func(leaders []string) bool { return leaders[1] == to })
			refuses.Store(true)
			err := o.Ask(ctx, neli.Request{Role: 1, StepDown: true})
			require.ErrorIs(g, err, neli.ErrRefused)
			require.ErrorContains(g, err, "not now")
			if down >= 0 {
				g.logs.Start(down)
				g.pass(3*smallT, false)
			}
			require.Equal(g, to, g.leaders()[1])
		}
	})
}
