package shards_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
	"github.com/goneli/neli/shards"
)

// A shard that nobody has prepared is prepared by its leader. A planned move waits for the other process's Prepare.
func TestShardMovesPrepared(t *testing.T) {
	onStage(t, func(s *stage) {
		a := s.start("a")
		time.Sleep(10 * time.Second)
		for shard := range count {
			_, told := a.of(shard)
			require.Equal(s, "prepare serve", told)
			require.Equal(s, shards.Serving, a.state(shard))
		}
		b := s.start("b")
		time.Sleep(6 * time.Second)
		require.NoError(s, a.n.Transfer(s.Context(), 2, "b"))
		time.Sleep(time.Second)
		hers, _ := a.of(2)
		his, told := b.of(2)
		require.Equal(s, "prepare serve", told)
		require.Equal(s, time.Second, his[0].end.Sub(his[0].begin))
		from, to := hers[1], his[1]
		require.GreaterOrEqual(s, from.end, his[0].end)
		require.Less(s, to.begin.Sub(from.end), 10*time.Millisecond)
		require.Greater(s, to.token, from.token)
		require.ErrorIs(s, from.why, shards.ErrMoved)
		require.NoError(s, his[0].ctx.Err(), "lasts until Serve has returned")
		b.close()
		require.Error(s, his[0].ctx.Err())
	})
}

// The causes with which contexts of Serve end.
func TestCauses(t *testing.T) {
	reason := errors.New("reason")
	for name, c := range map[string]struct {
		end  func(a *member)
		want []error
	}{
		"Transfer":             {func(a *member) { require.NoError(a, a.n.Transfer(a.Context(), 0, "b")) }, []error{shards.ErrMoved, neli.ErrRevoked}},
		"StepDown":             {func(a *member) { require.NoError(a, a.n.StepDown(a.Context())) }, []error{shards.ErrMoved, neli.ErrRevoked}},
		"Close":                {func(a *member) { require.NoError(a, a.n.Close()) }, []error{shards.ErrClosing, neli.ErrRevoked}},
		"end of Run's context": {func(a *member) { a.stop(reason) }, []error{shards.ErrClosing, reason}},
		"another's error":      {func(a *member) { a.breaks[1] <- reason }, []error{shards.ErrClosing, neli.ErrRevoked}},
		"loss":                 {func(a *member) { a.broker.CutOff("a", nelitest.LinkAll) }, []error{shards.ErrLost, neli.ErrFenced}},
	} {
		t.Run(name, func(t *testing.T) {
			onStage(t, func(s *stage) {
				a := s.start("a")
				time.Sleep(5 * time.Second)
				s.start("b")
				time.Sleep(6 * time.Second)
				c.end(a)
				time.Sleep(10 * time.Second)
				calls, _ := a.of(0)
				for _, want := range c.want {
					require.ErrorIs(s, calls[1].why, want)
				}
				if name == "another's error" {
					<-a.over
					require.ErrorIs(s, a.err, reason)
				}
				s.broker.Restore("a", nelitest.LinkAll)
			})
		})
	}
}

// Each method of Serve's context asks the clock: a process that wakes finds its term over before the library runs.
func TestServeContextAsksTheClock(t *testing.T) {
	for name, ask := range map[string]func(context.Context) bool{
		"Err": func(ctx context.Context) bool { return ctx.Err() != nil },
		"Done": func(ctx context.Context) bool {
			select {
			case <-ctx.Done():
				return true
			default:
				return false
			}
		},
		"Value": func(ctx context.Context) bool { return errors.Is(context.Cause(ctx), shards.ErrLost) },
	} {
		t.Run(name, func(t *testing.T) {
			onStage(t, func(s *stage) {
				a := s.start("a")
				time.Sleep(10 * time.Second)
				calls, _ := a.of(0)
				require.NoError(s, calls[1].ctx.Err())
				s.broker.Freeze("a")
				time.Sleep(10 * time.Second)
				require.True(s, ask(calls[1].ctx))
				s.broker.Resume("a")
			})
		})
	}
}

// byHand runs a test in which a leads all shards, and b prepares what the test asks for.
func byHand(t *testing.T, test func(s *stage, a, b *member)) {
	onStage(t, func(s *stage) {
		a := s.start("a")
		time.Sleep(10 * time.Second)
		b := s.start("b")
		time.Sleep(6 * time.Second)
		test(s, a, b)
	})
}

// A shard that is offered before Run is prepared when Run begins, unless it is called off before.
func TestPrepareBeforeRun(t *testing.T) {
	onStage(t, func(s *stage) {
		a := s.start("a", func(a *member) { a.later = true })
		called, end := context.WithCancelCause(s.Context())
		time.AfterFunc(time.Second, func() { end(neli.ErrNotLed) })
		require.ErrorIs(s, a.set.Prepare(called, 0), neli.ErrNotLed)
		time.AfterFunc(40*time.Second, a.run)
		require.NoError(s, a.set.Prepare(s.Context(), 0))
		_, told := a.of(0)
		require.Equal(s, "prepare", told)
		time.Sleep(10 * time.Second)
		_, told = a.of(0)
		require.Equal(s, "prepare serve", told)
	})
}

// A prepared shard is given up if this process does not get it: when the leader calls it off, when the term was
// over before Serve, when another process has led the shard meanwhile, and when Run ends.
func TestAbandon(t *testing.T) {
	for name, c := range map[string]struct {
		cause error
		then  func(b *member)
		kept  time.Duration
		want  error
	}{
		"called off":    {fmt.Errorf("%w: enough", neli.ErrNotLed), func(*member) {}, 0, shards.ErrMoved},
		"never served":  {neli.ErrLed, func(*member) {}, time.Minute, shards.ErrLost},
		"offered again": {neli.ErrLed, func(b *member) { go b.set.Prepare(context.Background(), 0) }, 0, shards.ErrMoved},
		"closing":       {neli.ErrLed, func(b *member) { b.stop(nil) }, 0, shards.ErrClosing},
	} {
		t.Run(name, func(t *testing.T) {
			byHand(t, func(s *stage, _, b *member) {
				ctx, end := context.WithCancelCause(context.Background())
				require.NoError(s, b.set.Prepare(ctx, 0))
				time.Sleep(time.Second)
				require.Equal(s, shards.Prepared, b.state(0))
				end(c.cause)
				c.then(b)
				time.Sleep(c.kept - time.Millisecond)
				if c.kept > 0 {
					require.Equal(s, shards.Prepared, b.state(0))
				}
				time.Sleep(6 * time.Millisecond)
				require.Equal(s, shards.Draining, b.state(0))
				time.Sleep(3 * time.Second)
				calls, told := b.of(0)
				require.True(s, strings.HasPrefix(told, "prepare abandon"), told)
				require.ErrorIs(s, calls[1].why, c.want)
				require.ErrorIs(s, context.Cause(calls[0].ctx), c.want)
			})
		})
	}
}

// A process that gets a shard while it prepares it serves it when Prepare has returned.
func TestLedWhilePreparing(t *testing.T) {
	byHand(t, func(s *stage, a, b *member) {
		b.warmUp = 9 * time.Second
		go a.n.Transfer(s.Context(), 0, "b")
		time.Sleep(time.Second)
		s.broker.CutOff("a", nelitest.LinkAll)
		time.Sleep(6 * time.Second)
		require.True(s, b.n.IsLeaderOf(0))
		require.Equal(s, shards.Preparing, b.state(0))
		time.Sleep(3 * time.Second)
		calls, told := b.of(0)
		require.Equal(s, "prepare serve", told)
		require.Equal(s, calls[0].end, calls[1].begin)
		s.broker.Restore("a", nelitest.LinkAll)
	})
}

// A Prepare that ignores its context delays the next one, and what it has prepared is given up.
func TestPrepareThatIgnoresItsContext(t *testing.T) {
	byHand(t, func(s *stage, _, b *member) {
		b.prepare = func(context.Context, int) error { time.Sleep(20 * time.Second); return nil }
		ctx, end := context.WithCancelCause(context.Background())
		go b.set.Prepare(ctx, 0)
		time.Sleep(time.Second)
		end(neli.ErrNotLed)
		s.broker.CutOff("a", nelitest.LinkAll)
		time.Sleep(time.Minute)
		_, told := b.of(0)
		require.Equal(s, "prepare abandon prepare serve", told)
		s.broker.Restore("a", nelitest.LinkAll)
	})
}

// A process that gets a shard back does not serve it until its former Serve has returned.
func TestServeThatIgnoresItsContext(t *testing.T) {
	onStage(t, func(s *stage) {
		a := s.start("a", func(a *member) {
			a.serve = func(ctx context.Context, _ neli.Leadership) error {
				<-ctx.Done()
				time.Sleep(20 * time.Second)
				return ctx.Err()
			}
		})
		time.Sleep(10 * time.Second)
		b := s.start("b")
		time.Sleep(6 * time.Second)
		s.broker.CutOff("a", nelitest.LinkAll)
		time.Sleep(10 * time.Second)
		require.Equal(s, shards.Draining, a.state(0))
		require.Equal(s, shards.Serving, b.state(0))
		s.broker.Restore("a", nelitest.LinkAll)
		time.Sleep(6 * time.Second)
		b.close()
		time.Sleep(time.Minute)
		calls, told := a.of(0)
		require.Equal(s, "prepare serve prepare serve", told)
		require.GreaterOrEqual(s, calls[2].begin, calls[1].end)
	})
}

// Whatever Prepare does instead of preparing a shard that this process leads, it is called again, and other
// shards are served.
func TestPrepareThatFails(t *testing.T) {
	for name, fails := range map[string]func() error{
		"error":  func() error { return errors.New("no") },
		"panic":  func() error { panic("no") },
		"goexit": func() error { runtime.Goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			onStage(t, func(s *stage) {
				var lines lines
				var failed atomic.Int32
				a := s.start("a", func(a *member) {
					a.cfg.Logger = slog.New(slog.NewTextHandler(&lines, nil))
					a.prepare = func(_ context.Context, shard int) error {
						if shard == 2 && failed.Add(1) < 4 {
							return fails()
						}
						return nil
					}
				})
				time.Sleep(20 * time.Second)
				calls, told := a.of(2)
				require.Equal(s, "prepare prepare prepare prepare serve", told)
				for i := range 3 {
					require.Equal(s, time.Second<<i, calls[i+1].begin.Sub(calls[i].end))
				}
				_, told = a.of(1)
				require.Equal(s, "prepare serve", told)
				require.Equal(s, 3, lines.count(`msg="nobody serves a shard: its Prepare failed, trying again" group=carts name=a role=2 error=`))
			})
		})
	}
}

// The end of a term ends the Prepare that it waits for.
func TestPrepareEndsWithTheTerm(t *testing.T) {
	onStage(t, func(s *stage) {
		a := s.start("a", func(a *member) { a.warmUp = time.Hour })
		time.Sleep(10 * time.Second)
		a.stop(nil)
		time.Sleep(time.Second)
		calls, told := a.of(0)
		require.Equal(s, "prepare", told)
		require.ErrorIs(s, calls[0].why, shards.ErrClosing)
	})
}

// MaxPrepares limits how many of the shards that it leads a process prepares at once.
func TestFewPreparesAtOnce(t *testing.T) {
	onStage(t, func(s *stage) {
		a := s.start("a", func(a *member) { a.cfg.MaxPrepares = 1 })
		time.Sleep(10 * time.Second)
		all := a.find(func(c *call) bool { return c.what == "prepare" })
		require.Len(s, all, count)
		for i, c := range all[1:] {
			require.GreaterOrEqual(s, c.begin, all[i].end)
		}
	})
}

// Wrong uses are refused, and the error says what is wrong.
func TestWrongUses(t *testing.T) {
	_, err := shards.New(0, shards.Functions{})
	require.EqualError(t, err, "shards: New: count is 0: must be at least 1")
	_, err = shards.New(1, shards.Functions{})
	require.EqualError(t, err, "shards: New: Functions.Serve is nil: set it to what serves a shard")
	onStage(t, func(s *stage) {
		a := s.start("a")
		time.Sleep(time.Second)
		for _, shard := range []int{-1, count} {
			_, err := a.set.State(shard)
			require.EqualError(s, err, fmt.Sprintf("shards: State: shard %d: must be between 0 and 3, as neli.Slot(key, 4) is", shard))
			require.ErrorContains(s, a.set.Prepare(s.Context(), shard), "shards: Prepare: shard")
		}
		require.EqualError(s, a.set.Run(s.Context(), a.n), "shards: Run: another Run of this Set is at work")
		require.EqualError(s, a.set.Run(s.Context(), nil), "shards: Run: n is nil")
		a.stop(nil)
		<-a.over
		require.EqualError(s, a.set.Prepare(s.Context(), 0), "shards: Prepare: Run has ended")
		for want, change := range map[string]func(*neli.Config){
			"Config.Mode is NonExclusive: must be Exclusive":                                      func(c *neli.Config) { c.Mode, c.Prepare, c.DisableRebalance = neli.NonExclusive, nil, false },
			"Config.Roles is 3: must be 4, the number of shards; or greater, with Functions.Rest": func(c *neli.Config) { c.Roles = 3 },
			"Config.Roles is 5: must be 4, the number of shards; or greater, with Functions.Rest": func(c *neli.Config) { c.Roles = 5 },
			"Config.Prepare is nil: set it to the Set's Prepare":                                  func(c *neli.Config) { c.Prepare = nil },
		} {
			cfg := a.cfg
			cfg.Provider = s.broker.Provider("other")
			change(&cfg)
			n, err := neli.New(cfg)
			require.NoError(s, err)
			require.ErrorContains(s, a.set.Run(s.Context(), n), "shards: Run: "+want)
			require.NoError(s, n.Close())
		}
		a.run() // Run may be called again
		time.Sleep(10 * time.Second)
		require.Equal(s, shards.Serving, a.state(0))
		require.NoError(s, a.n.SetRoles(count+1))
		<-a.over
		require.ErrorContains(s, a.err, "shards: SetRoles: shard 4: must be between 0 and 3")
	})
}

// An error of Rest ends Lead: functions of Serve see that as closing, as with an error of Serve.
func TestErrorOfRestCloses(t *testing.T) {
	onStage(t, func(s *stage) {
		why := make(chan error, 1)
		set, err := shards.New(1, shards.Functions{
			Serve: func(ctx context.Context, _ neli.Leadership) error {
				<-ctx.Done()
				why <- context.Cause(ctx)
				return nil
			},
			Rest: func(context.Context, neli.Leadership) error { time.Sleep(time.Minute); return errors.New("reason") },
		})
		require.NoError(s, err)
		n, err := neli.New(neli.Config{LeaderGroupID: "carts", Roles: 2, Provider: s.broker.Provider("a"), Prepare: set.Prepare})
		require.NoError(s, err)
		require.ErrorContains(s, set.Run(s.Context(), n), "reason")
		require.ErrorIs(s, <-why, shards.ErrClosing)
		require.NoError(s, n.Close())
	})
}

// Roles beyond the shards run another function, and are not prepared.
func TestRest(t *testing.T) {
	onStage(t, func(s *stage) {
		var ran atomic.Bool
		set, err := shards.New(count, shards.Functions{
			Serve: func(ctx context.Context, _ neli.Leadership) error { <-ctx.Done(); return nil },
			Rest:  func(_ context.Context, l neli.Leadership) error { ran.Store(l.Role == count); return nil },
		})
		require.NoError(s, err)
		n, err := neli.New(neli.Config{LeaderGroupID: "carts", Roles: count + 1, Provider: s.broker.Provider("a"), Prepare: set.Prepare})
		require.NoError(s, err)
		require.NoError(s, set.Prepare(s.Context(), count))
		ctx, stop := context.WithTimeout(s.Context(), 10*time.Second)
		defer stop()
		require.NoError(s, set.Run(ctx, n))
		require.NoError(s, n.Close())
		require.True(s, ran.Load())
	})
}

// Members come, go, are cut off, step down and hand shards over, and Prepares end in all ways.
func TestShardsSimulation(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			onStage(t, func(s *stage) {
				rng := rand.New(rand.NewPCG(seed, 0))
				names, members := []string{"a", "b", "c"}, map[string]*member{}
				start := func(name string) {
					warmUp, fails := time.Duration(rng.IntN(4000))*time.Millisecond, rng.IntN(3) == 0
					members[name] = s.start(name, func(m *member) {
						m.cfg.DisableRebalance = rng.IntN(2) == 0
						m.prepare = func(ctx context.Context, shard int) error {
							if time.Sleep(warmUp); fails && shard == 1 {
								return errors.New("no")
							}
							return nil
						}
						m.serve = func(ctx context.Context, _ neli.Leadership) error { <-ctx.Done(); time.Sleep(warmUp / 2); return nil }
					})
				}
				for _, name := range names {
					start(name)
				}
				for range 40 {
					time.Sleep(time.Duration(rng.IntN(5000)) * time.Millisecond)
					name, shard := names[rng.IntN(3)], rng.IntN(count)
					m := members[name]
					switch rng.IntN(6) {
					case 0:
						m.close()
						s.broker.Restore(name, nelitest.LinkAll)
						start(name)
					case 1:
						s.broker.CutOff(name, nelitest.LinkAll)
					case 2:
						s.broker.Restore(name, nelitest.LinkAll)
					case 3:
						go m.n.StepDown(s.Context())
					default:
						go m.n.Transfer(s.Context(), shard, names[rng.IntN(3)])
					}
				}
				for _, name := range names {
					s.broker.Restore(name, nelitest.LinkAll)
				}
				time.Sleep(2 * time.Minute)
				serving := 0
				for _, m := range members {
					for shard := range count {
						if m.state(shard) == shards.Serving && shard != 1 {
							serving++
						}
					}
				}
				require.Equal(s, count-1, serving, "shards that no Prepare fails are served")
			})
		})
	}
}

func TestUnknownStateHasAName(t *testing.T) {
	require.Equal(t, []string{"draining", "State(5)", "State(-1)"}, []string{shards.Draining.String(), shards.State(5).String(), shards.State(-1).String()})
}
