package nonexclusive_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
	"github.com/stretchr/testify/require"
)

// T, S and B of non-exclusive mode by default.
const (
	sharedT  = 18 * time.Second
	session  = 6 * time.Second
	interval = sharedT / 20
)

func shared(cfg *neli.Config) { cfg.Mode = neli.NonExclusive }

func inGroup(g string) func(*neli.Config) {
	return func(cfg *neli.Config) {
		shared(cfg)
		cfg.LeaderGroupID, cfg.LeaderTopic, cfg.GroupsOnTopic = g, "shared", 2
	}
}

// While the old leader lives there is never no leader: joins, rebalances,
// graceful leaves, a rolling restart of everybody.
func TestSharedNeverZero(t *testing.T) {
	for _, assignor := range []string{"cooperative-sticky", "range"} {
		t.Run(assignor, func(t *testing.T) {
			simulateWith(t, nelitest.Options{RebalanceTime: 500 * time.Millisecond}, overlapping, func(c *cluster) {
				with := func(cfg *neli.Config) {
					shared(cfg)
					cfg.KafkaConfig = neli.KafkaConfigMap{"partition.assignment.strategy": assignor}
				}
				c.Work("e", with)
				c.Leader(0, time.Minute)
				c.Gap()
				c.Work("d", with) // sorts before: range moves the partition
				c.Pass(30 * time.Second)
				c.Work("a", with)
				c.Pass(30 * time.Second)
				c.Broker.Rebalance()
				c.Pass(30 * time.Second)
				for _, name := range []string{"e", "d", "a"} { // a rolling restart
					require.NoError(c, c.Members[name].Close())
					c.Pass(5 * time.Second)
					c.Work(name, with)
					c.Pass(30 * time.Second)
				}
				require.Zero(c, c.Gap(), "nobody led for a while")
			})
		})
	}
}

// Every member, leader or not, writes one empty record to each partition in every B: the
// shorter of two would cost, the longer leave a new leader waiting for its evidence. B
// is HeartbeatInterval × GroupsOnTopic, so that a shared topic has as many records of
// each group as one of its own would have of a group with longer intervals.
func TestSharedBroadcastsToAllOnceInB(t *testing.T) {
	for _, groups := range []int{1, 3} {
		t.Run(fmt.Sprint(groups), func(t *testing.T) {
			simulateWith(t, nelitest.Options{}, overlapping, func(c *cluster) {
				with := func(cfg *neli.Config) {
					shared(cfg)
					cfg.Partitions, cfg.GroupsOnTopic, cfg.LeaderTopic = 3, groups, "t"
				}
				count := func() (n [3]int) {
					for p := range n {
						for _, r := range c.Broker.Records("t", p) {
							require.Empty(c, r.Value)
							n[p]++
						}
					}
					return n
				}
				b := time.Duration(groups) * interval
				c.Work("a", with)
				c.Leader(0, time.Minute)
				before := count()
				c.Pass(10 * b)
				for p, n := range count() {
					require.InDelta(c, 10, n-before[p], 1, "partition %d", p)
				}
				c.Work("b", with)
				c.Pass(30 * time.Second)
				before = count()
				c.Pass(10 * b)
				for p, n := range count() {
					require.InDelta(c, 20, n-before[p], 2, "partition %d, two members", p)
				}
			})
		})
	}
}

// Who is newly assigned a partition that nobody else writes to leads it within B.
func TestSharedLeadsWithinB(t *testing.T) {
	simulateWith(t, nelitest.Options{}, overlapping, func(c *cluster) {
		c.Work("a", shared)
		c.Work("b", shared)
		dead := c.Leader(0, time.Minute)
		c.Pass(30 * time.Second)
		other := c.Members["a"]
		if dead == other {
			other = c.Members["b"]
		}
		c.Crash(dead)
		c.Eventually(session+2*time.Second, "the group assigns it", func() bool { return len(c.Broker.Assigned(other.As)) == 1 })
		c.Eventually(interval+groupBeat, "evidence within B, of which it hears at a heartbeat", other.IsLeader)
	})
}

// Cut off but running: the old leader presumes until another one has taken over.
func TestSharedCutOffNeverZero(t *testing.T) {
	for _, links := range []nelitest.Link{nelitest.All, nelitest.Group, nelitest.Reads | nelitest.Group} {
		simulateWith(t, nelitest.Options{}, overlapping, func(c *cluster) {
			a := c.Work("a", shared)
			c.Leader(0, time.Minute)
			b := c.Work("b", shared)
			c.Pass(30 * time.Second)
			first, second := a, b
			if b.IsLeader() && !a.IsLeader() {
				first, second = b, a
			}
			c.Gap()
			c.Broker.CutOff(first.As, links)
			c.Eventually(session+5*time.Second, "the other one leads", second.IsLeader)
			require.True(c, first.IsLeader(), "overlap, by design")
			c.Pass(sharedT)
			require.False(c, first.IsLeader(), "presumes for longer than T")
			require.Zero(c, c.Gap(), "nobody led for a while")
			require.Equal(c, []string{"acquired", "fenced"}, first.Kinds())
			require.Equal(c, neli.ReasonLapsed, first.Last().(neli.LeaderFenced).Reason)
		})
	}
}

// Cut off from the log and not from the group, a process stays assigned as far as
// the group knows. It makes room while its own presumption lasts, and comes back.
func TestSharedDeafMakesRoom(t *testing.T) {
	for _, links := range []nelitest.Link{nelitest.Reads, nelitest.Appends | nelitest.Acks | nelitest.Reads} {
		simulateWith(t, nelitest.Options{RebalanceTime: 500 * time.Millisecond}, overlapping, func(c *cluster) {
			first := c.Work("a", shared)
			c.Leader(0, time.Minute)
			second := c.Work("b", shared)
			c.Pass(30 * time.Second)
			if second.IsLeader() && !first.IsLeader() {
				first, second = second, first
			}
			c.Gap()
			c.Broker.CutOff(first.As, links)
			c.Eventually(sharedT, "the other one leads", second.IsLeader)
			require.True(c, first.IsLeader(), "overlap, by design")
			c.Pass(2 * time.Minute) // it tries again and again
			require.Zero(c, c.Gap(), "nobody led for a while")
			c.Broker.Restore(first.As, links)
			second.Close()
			c.Eventually(sharedT, "it leads again", first.IsLeader)
			require.Zero(c, c.Gap(), "nobody led for a while")
		})
	}
}

// After a crash there is no leader for at most S + J + B; with two disjoint groups
// there is always one.
func TestSharedCrash(t *testing.T) {
	simulateWith(t, nelitest.Options{}, overlapping, func(c *cluster) {
		c.Work("a", shared)
		c.Work("b", shared)
		dead := c.Leader(0, time.Minute)
		c.Pass(30 * time.Second)
		c.Gap()
		c.Crash(dead)
		c.Pass(30 * time.Second)
		require.LessOrEqual(c, c.Gap(), session+2*time.Second+interval)
		c.Leader(0, time.Millisecond)
	})
	simulateWith(t, nelitest.Options{}, overlapping, func(c *cluster) {
		for _, name := range []string{"g1", "g2", "h1", "h2"} {
			c.Work(name, inGroup(name[:1]))
		}
		c.Pass(time.Minute)
		for _, victim := range []string{"g1", "g2"} {
			if c.Members[victim].IsLeader() {
				c.Gap()
				c.Crash(c.Members[victim])
				c.Pass(time.Minute)
				require.Zero(c, c.Gap())
				return
			}
		}
		require.Fail(c, "nobody led in group g")
	})
}

// A lapse after the assignment was withdrawn is an orderly end.
func TestSharedWithdrawnIsRevoked(t *testing.T) {
	simulateWith(t, nelitest.Options{}, overlapping, func(c *cluster) {
		with := func(cfg *neli.Config) {
			shared(cfg)
			cfg.KafkaConfig = neli.KafkaConfigMap{"partition.assignment.strategy": "range"}
		}
		b := c.Work("b", with)
		c.Leader(0, time.Minute)
		a := c.Work("a", with)
		c.Eventually(10*time.Second, "a leads", a.IsLeader)
		require.True(c, b.IsLeader())
		c.Pass(sharedT)
		require.Equal(c, []string{"acquired", "revoked"}, b.Kinds())
		r := b.Last().(neli.LeaderRevoked)
		require.Equal(c, neli.ReasonUnassigned, r.Reason)
		require.True(c, r.Deadline.IsZero())
		_, ok := a.Token(0)
		require.False(c, ok, "there are no tokens")
	})
}

// A suspended process may presume for up to T when it wakes, and no longer.
func TestSharedWokenPresumesNoLongerThanT(t *testing.T) {
	simulateWith(t, nelitest.Options{}, overlapping, func(c *cluster) {
		c.Work("a", shared)
		c.Work("b", shared)
		old := c.Leader(0, time.Minute)
		c.Broker.Suspend(old.As)
		c.Pass(2 * time.Minute)
		c.Broker.Resume(old.As)
		c.Pass(sharedT + time.Second)
		require.False(c, old.IsLeader())
	})
}

func TestSharedHungApplication(t *testing.T) {
	simulateWith(t, nelitest.Options{}, overlapping, func(c *cluster) {
		a := c.Join("a", shared)
		ok, err := a.Pulse(time.Minute)
		require.NoError(c, err)
		require.True(c, ok)
		b := c.Work("b", shared)
		c.Pass(30*time.Second + sharedT + time.Second)
		require.False(c, a.IsLeader(), "its application hangs")
		require.True(c, b.IsLeader(), "a member whose application hangs makes room")
	})
}

// Most programs end the context of Lead, or their Pulser, and then call Close. The
// process leaves the group at the first of these and leads on until another member
// does, and the tasks go on; what Close adds to that cuts nothing short.
func TestSharedResignsWithoutAGap(t *testing.T) {
	for _, how := range []string{"Pulser.Close", "Lead", "Pulser.Close beside Close", "Lead beside Close"} {
		t.Run(how, func(t *testing.T) {
			simulateWith(t, nelitest.Options{RebalanceTime: 500 * time.Millisecond}, overlapping, func(c *cluster) {
				a := c.Join("a", shared)
				ctx, cancel := context.WithCancel(c.Context())
				defer cancel()
				stop := cancel
				returned := make(chan struct{})
				if lead := strings.HasPrefix(how, "Lead"); lead {
					go func() {
						defer close(returned)
						_ = a.Lead(ctx, func(ctx context.Context, _ neli.Leadership) error { <-ctx.Done(); return nil })
					}()
				} else {
					p, err := a.Background(a.Task)
					require.NoError(c, err)
					stop = func() { go func() { defer close(returned); _ = p.Close() }() }
				}
				c.Leader(0, time.Minute)
				b := c.Work("b", shared)
				c.Pass(30 * time.Second)
				require.True(c, a.IsLeader() && !b.IsLeader())
				c.Gap()
				stop()
				if strings.HasSuffix(how, "beside Close") {
					c.Pass(100 * time.Millisecond)
				} else {
					c.Pass(200 * time.Millisecond)
					require.Empty(c, c.Broker.Assigned("a"), "it has left the group")
					require.True(c, a.IsLeader(), "overlap, by design")
					<-returned
				}
				require.NoError(c, a.Close())
				<-returned
				require.True(c, b.IsLeader())
				require.Zero(c, c.Gap())
				require.Equal(c, []string{"acquired", "revoked"}, a.Kinds())
			})
		})
	}
}

// While the process that ends its Pulser leads on, its task is called.
func TestSharedWorksUntilItLeadsNoMore(t *testing.T) {
	simulateWith(t, nelitest.Options{}, overlapping, func(c *cluster) {
		a := c.Join("a", shared)
		p, err := a.Background(a.Task)
		require.NoError(c, err)
		c.Leader(0, time.Minute)
		b := c.Work("b", shared)
		c.Pass(30 * time.Second)
		before, began := a.Tasks(), time.Now()
		require.NoError(c, p.Close())
		took := time.Since(began)
		require.InDelta(c, (session + 2*time.Second + 2*interval).Seconds(), took.Seconds(), 0.5)
		require.Greater(c, a.Tasks()-before, int(took/(10*time.Millisecond)), "it works to the end")
		require.Positive(c, b.Tasks())
		require.Equal(c, neli.ReasonResigned, a.Last().(neli.LeaderRevoked).Reason)
		_, err = a.Background(a.Task)
		require.NoError(c, err)
		require.NoError(c, b.Close())
		c.Leader(0, time.Millisecond)
		c.Eventually(sharedT, "it takes part again", a.IsLeader)
	})
}

// Members that know of different numbers of roles: whoever is assigned a partition
// leads it, whether or not it knows a role there, and so leads such a role at once
// when it learns of it. It is told of roles that it knows, and of no others.
func TestSharedDifferentRoles(t *testing.T) {
	simulateWith(t, nelitest.Options{}, overlapping, func(c *cluster) {
		some := func(cfg *neli.Config) { shared(cfg); cfg.Partitions, cfg.Roles = 3, 1 }
		a := c.Work("a", some)
		c.Leader(0, time.Minute)
		c.Pass(time.Minute)
		require.Equal(c, []int{0, 1, 2}, c.Broker.Assigned("a"))
		require.Equal(c, []string{"acquired"}, a.Kinds())
		require.Equal(c, []int{0}, a.Last().(neli.LeaderAcquired).Partitions(), "nothing is said of what has no role")
		require.False(c, a.IsLeaderOf(1))

		c.Broker.CutOff("a", nelitest.All) // no evidence comes any more: V is what it was
		c.Pass(interval)
		require.NoError(c, a.SetRoles(2))
		c.Eventually(10*time.Millisecond, "a role that it learns of is led at once", func() bool { return a.IsLeaderOf(1) })
		e := a.Last().(neli.LeaderAcquired)
		require.Equal(c, []int{1}, e.Partitions())
		require.Equal(c, []int{1}, e.Roles())
		require.False(c, a.IsLeaderOf(2))

		require.NoError(c, a.SetRoles(1))
		c.Pass(10 * time.Millisecond)
		require.Equal(c, []string{"acquired", "acquired", "revoked"}, a.Kinds())
		require.Equal(c, neli.ReasonRoles, a.Last().(neli.LeaderRevoked).Reason)
		require.Equal(c, []int{1}, a.Last().(neli.LeaderRevoked).Partitions())
		require.NoError(c, a.SetRoles(3))
		c.Eventually(10*time.Millisecond, "all are led", func() bool { return a.IsLeaderOf(1) && a.IsLeaderOf(2) })
		require.Equal(c, []int{1, 2}, a.Last().(neli.LeaderAcquired).Partitions())

		c.Pass(sharedT)
		require.False(c, a.IsLeader(), "V is what it was")
		require.NoError(c, a.SetRoles(1))
		require.NoError(c, a.SetRoles(3))
		c.Pass(time.Second)
		require.False(c, a.IsLeader(), "V is older than T")
	})
}

// Cut off from the log, a process makes room also on partitions where it knows no
// role: others may know one.
func TestSharedStarvedWithoutRolesMakesRoom(t *testing.T) {
	simulateWith(t, nelitest.Options{RebalanceTime: 500 * time.Millisecond}, overlapping, func(c *cluster) {
		with := func(roles int) func(*neli.Config) {
			return func(cfg *neli.Config) {
				shared(cfg)
				cfg.Partitions, cfg.Roles = 2, roles
				cfg.KafkaConfig = neli.KafkaConfigMap{"partition.assignment.strategy": "range"}
			}
		}
		c.Work("b", with(1))
		c.Leader(0, time.Minute)
		a := c.Work("a", with(2)) // comes first: range gives it partition 0, and 1 to b
		c.Pass(30 * time.Second)
		require.Equal(c, []int{1}, c.Broker.Assigned("b"))
		c.Broker.CutOff("b", nelitest.Reads)
		c.Eventually(sharedT, "another member leads what only that knows", func() bool { return a.IsLeaderOf(1) })
	})
}

// A log handler is the user's code: it may ask the Neli whatever it likes.
func TestSharedLogsWithNoLockHeld(t *testing.T) {
	simulateWith(t, nelitest.Options{}, overlapping, func(c *cluster) {
		var a *member
		var said atomic.Int64
		a = c.Work("a", func(cfg *neli.Config) {
			shared(cfg)
			cfg.Logger = slog.New(callsBack{func(r slog.Record) {
				if r.Level == slog.LevelWarn {
					_ = a.Stats() // with the lock held it would wait for ever
					said.Add(1)
				}
			}})
		})
		c.Leader(0, time.Minute)
		c.Broker.CutOff("a", nelitest.Reads)
		c.Pass(10 * time.Minute)
		require.Positive(c, said.Load())
		require.LessOrEqual(c, said.Load(), int64(10*time.Minute/(10*time.Second)), "and not too often")
	})
}

// A process that is to leave the group for want of records, and whose poll does not
// return before it would be back, leaves still: it would never be told again what it
// has.
func TestSharedStarvedWhilePollIsBlocked(t *testing.T) {
	simulateWith(t, nelitest.Options{}, overlapping, func(c *cluster) {
		a := c.Work("a", func(cfg *neli.Config) {
			shared(cfg)
			cfg.HeartbeatTimeout, cfg.HeartbeatInterval = 8700*time.Millisecond, 300*time.Millisecond
		})
		c.Leader(0, time.Minute)
		c.Pass(10 * time.Second)
		c.Broker.CutOff("a", nelitest.Reads)
		c.Pass(session - time.Second)
		c.Broker.Suspend("a") // no call returns; timers go on, and the session is not over yet
		c.Pass(session - 500*time.Millisecond)
		c.Broker.Restore("a", nelitest.All)
		c.Broker.Resume("a")
		c.Pass(20 * time.Second)
		require.Equal(c, []int{0}, c.Broker.Assigned("a"))
		require.True(c, a.IsLeader(), "the only member, and well")
	})
}

// callsBack is a log handler that does something with each line.
type callsBack struct{ do func(slog.Record) }

func (h callsBack) Enabled(context.Context, slog.Level) bool { return true }
func (h callsBack) Handle(_ context.Context, r slog.Record) error {
	h.do(r)
	return nil
}
func (h callsBack) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h callsBack) WithGroup(string) slog.Handler      { return h }
