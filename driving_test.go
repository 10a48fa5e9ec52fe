package neli_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
	"github.com/stretchr/testify/require"
)

// These tests cover faults around a driver: tasks that hang or end their goroutine, health checks
// that hang, missing contexts.

// A task that ends its goroutine, as t.FailNow does, ends the loop. Leadership is given up in an
// orderly way, and Await returns an error.
func TestTaskThatEndsItsGoroutine(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *cluster) {
		a := c.Join("a", open)
		p, err := a.Background(runtime.Goexit)
		require.NoError(c, err)
		c.Eventually(2*silence, "a has led", func() bool { return len(a.Kinds()) > 0 })
		b := c.Work("b", open)
		require.ErrorContains(c, p.Await(), "ended its goroutine")
		require.Equal(c, []string{"acquired", "revoked"}, a.Kinds())
		require.Equal(c, neli.ReasonResigned, a.Last().(neli.LeaderRevoked).Reason)
		c.Eventually(time.Second, "b leads", b.IsLeader)
		require.NoError(c, p.Close())
	})
}

// A Background task that hangs costs the leadership even if another goroutine goes on pulsing: that
// goroutine has no turn, so it says nothing about the task.
func TestPulseDoesNotExcuseAHungTask(t *testing.T) {
	for _, timeout := range []time.Duration{0, time.Second} {
		simulate(t, nelitest.Options{}, func(c *cluster) {
			a := c.Join("a", open)
			hang := make(chan struct{})
			defer close(hang)
			_, err := a.Background(func() { <-hang; c.Pass(time.Millisecond) })
			require.NoError(c, err)
			c.Leader(0, 2*silence)
			b := c.Work("b", open)
			stop, stopped := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(stopped)
				for {
					_, err := a.Pulse(timeout)
					require.NoError(c, err)
					select {
					case <-stop:
						return
					case <-time.After(time.Second):
					}
				}
			}()
			defer func() { close(stop); <-stopped }()
			c.Eventually(30*time.Second+2*silence+5*time.Second, "b leads", b.IsLeader)
			c.Crash(b)
			claims := len(records(c, "app.neli", 0, "claim"))
			c.Pass(time.Minute)
			require.Len(c, records(c, "app.neli", 0, "claim"), claims, "it claims nothing while the task hangs")
		})
	}
}

// A health check that hangs does not hide that this Neli has failed permanently.
func TestHungCheckDoesNotHideAFatalError(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *cluster) {
		hang := make(chan struct{})
		release := sync.OnceFunc(func() { close(hang) })
		defer release()
		checks := 0
		a := c.Work("a", func(cfg *neli.Config) {
			open(cfg)
			cfg.Healthy = func() error {
				if checks++; checks > 10 {
					<-hang
				}
				return nil
			}
		})
		c.Pass(12 * time.Second)
		require.NoError(c, c.Broker.DeleteTopic("app.neli"))
		awaited := make(chan error, 1)
		go func() { awaited <- a.Await() }()
		select {
		case err := <-awaited:
			require.ErrorIs(c, err, neli.ErrTopicChanged)
		case <-time.After(2 * time.Minute): // a topic counts as deleted after one minute
			require.Fail(c, "nobody was told")
		}
		require.Equal(c, neli.StateFailed, a.State())
		began := time.Now()
		require.ErrorContains(c, a.Close(), "Config.Healthy has not returned")
		require.Less(c, time.Since(began), time.Minute)
		release()
		require.NoError(c, a.Close(), "now nothing of it runs any more")
	})
}

// Lead and a Pulser give up all roles even if they end before they had a turn.
func TestDriversThatEndBeforeTheirTurnGiveUpAllRoles(t *testing.T) {
	for name, drive := range map[string]func(c *cluster, m *member){
		"Lead": func(c *cluster, m *member) {
			canceled, cancel := context.WithCancel(c.Context())
			cancel()
			require.NoError(c, m.Lead(canceled, func(context.Context, neli.Leadership) error { return errors.New("called") }))
		},
		"Background": func(c *cluster, m *member) {
			p, err := m.Background(func() {})
			require.NoError(c, err)
			require.NoError(c, p.Close())
			require.NoError(c, p.Await())
		},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, nelitest.Options{}, func(c *cluster) {
				a := c.Join("a", open)
				for i := range 20 {
					leads, err := a.Pulse(time.Minute)
					require.NoError(c, err)
					require.True(c, leads)
					drive(c, a)
					require.False(c, a.IsLeader(), "try %d", i)
				}
				require.NoError(c, a.Close())
			})
		})
	}
}

// A nil context is an error and changes nothing.
func TestNilContext(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *cluster) {
		var none context.Context
		a := c.Work("a", open)
		c.Leader(0, 2*silence)
		for name, call := range map[string]func() error{
			"StepDown": func() error { return a.StepDown(none) },
			"Transfer": func() error { return a.Transfer(none, 0, "b") },
			"Ask":      func() error { return a.Ask(none, neli.Request{StepDown: true}) },
			"PulseCtx": func() error { _, err := a.PulseCtx(none); return err },
			"Lead": func() error {
				return a.Lead(none, func(context.Context, neli.Leadership) error { return nil })
			},
			"RunSentinel": func() error { return neli.RunSentinel(none, neli.Config{}) },
		} {
			require.NotPanics(c, func() { require.ErrorContains(c, call(), name+": ctx is nil") })
		}
		seen := 0
		require.NotPanics(c, func() {
			for range a.Watch(none) { // Watch has no error to return: only this loop or Close ends it
				seen++
				break
			}
		})
		require.Equal(c, 1, seen)
		c.Pass(time.Minute)
		require.True(c, a.IsLeader())
		require.Equal(c, []string{"acquired"}, a.Kinds())
	})
}

// Roles that SetRoles removes are no longer led, but their functions may finish: the lease is kept
// until then, and the event names these roles.
func TestFunctionsOfRemovedRolesMayFinish(t *testing.T) {
	simulateWith(t, nelitest.Options{}, roles(6), func(c *cluster) {
		a := c.Join("a", func(cfg *neli.Config) { cfg.Partitions = 3; open(cfg) })
		runs, result := leading(c.Context(), a)
		byRole := map[int]*run{}
		for range 6 {
			r := next(c, runs, 2*silence)
			byRole[r.Role] = r
		}
		require.NoError(c, a.SetRoles(2))
		require.Equal(c, []int{0, 1}, slices.Collect(a.Led()))
		for _, role := range []int{2, 3, 4, 5} {
			<-byRole[role].ctx.Done()
			require.ErrorIs(c, context.Cause(byRole[role].ctx), neli.ErrRevoked)
		}
		c.Pass(3 * time.Second)
		for role, r := range byRole {
			require.True(c, r.Valid(), "the lease is kept for role %d", role)
			require.Positive(c, r.Remaining())
		}
		r := a.Last().(neli.LeaderRevoked)
		require.Equal(c, neli.ReasonRolesChanged, r.Reason)
		require.Equal(c, []int{2, 3, 4, 5}, r.Roles())
		for role := range 6 {
			byRole[role].done <- nil
		}
		c.Eventually(time.Second, "given up", func() bool {
			return !slices.ContainsFunc([]int{2, 3, 4, 5}, func(role int) bool { return byRole[role].Valid() })
		})
		require.NoError(c, a.Close())
		require.ErrorIs(c, <-result, neli.ErrClosed)
	})
}
