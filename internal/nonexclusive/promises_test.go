package nonexclusive_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/internal/seeded"
	"github.com/goneli/neli/kafka"
	"github.com/goneli/neli/nelitest"
	"github.com/stretchr/testify/require"
)

// The defaults of T, S and B in non-exclusive mode.
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

// As long as the old leader lives there is always a leader: during joins, rebalances, graceful
// leaves, and a rolling restart of all members.
func TestSharedAlwaysHasALeader(t *testing.T) {
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
				c.Work("d", with) // its name sorts first, so the range assignor moves the partition
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

// Every member, leader or not, writes one empty record to each partition per B. A shorter
// interval would cost more; a longer one would delay a new leader, which waits for its evidence.
// B is HeartbeatInterval × GroupsOnTopic, so that a topic shared by several groups gets no more
// records than a topic of one group.
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

// A newly assigned process leads within B, even if no other process writes to the partition.
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

// A process that is cut off but runs goes on as leader until another one has taken over.
func TestSharedCutOffLeaderLeadsUntilItIsReplaced(t *testing.T) {
	for _, links := range []nelitest.Link{nelitest.LinkAll, nelitest.LinkGroup, nelitest.LinkReads | nelitest.LinkGroup} {
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

// A process that is cut off from the log, but not from the group, stays assigned in the group's
// view. It makes room while it still counts as leader, and comes back later.
func TestSharedDeafMemberMakesRoom(t *testing.T) {
	for _, links := range []nelitest.Link{nelitest.LinkReads, nelitest.LinkAppends | nelitest.LinkAcks | nelitest.LinkReads} {
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

// Nothing is committed for a while, for any member. If the stall is shorter than T − B − J, no role is without a leader. A
// lone member, and members of a group that cannot rebalance within T, lead on through each stall that is shorter than T − B.
// After a longer stall a role has no leader for as long as the stall exceeds T, plus a rebalance.
func TestSharedStallOfAll(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct{ session, heartbeat, timeout time.Duration }{
		{100 * ms, 10 * ms, 300 * ms}, {100 * ms, 10 * ms, 500 * ms}, {100 * ms, 10 * ms, time.Second}, {100 * ms, 10 * ms, 3 * time.Second},
		{250 * ms, 25 * ms, 750 * ms}, {500 * ms, 50 * ms, 1500 * ms}, {time.Second, 100 * ms, 3 * time.Second},
		{2 * time.Second, 200 * ms, 6 * time.Second}, {3 * time.Second, 300 * ms, 9 * time.Second},
		{session, groupBeat, sharedT},
	} {
		if seeded.Race && c.timeout != 500*ms && c.timeout != sharedT {
			continue // the race detector is slow
		}
		for _, group := range []struct {
			members   int
			rebalance time.Duration
		}{{1, 2 * time.Second}, {3, 20 * ms}, {3, 500 * ms}} {
			members, rebalance := group.members, group.rebalance
			t.Run(fmt.Sprintf("S=%v T=%v members=%d rebalance=%v", c.session, c.timeout, members, rebalance), func(t *testing.T) {
				prepare := func(cl *cluster) { overlapping(cl); cl.Period = max(ms, c.timeout/1000) }
				simulateWith(t, nelitest.Options{RebalanceTime: rebalance}, prepare, func(cl *cluster) {
					T, B, J := c.timeout, c.timeout/20, 2*(c.heartbeat+groupPoll+rebalance)+delivery
					for i := range members {
						cl.Work(string(rune('a'+i)), func(cfg *neli.Config) {
							shared(cfg)
							cfg.Partitions, cfg.HeartbeatTimeout = 3, T
							cfg.KafkaConfig = neli.KafkaConfigMap{"session.timeout.ms": c.session.Milliseconds(), "heartbeat.interval.ms": c.heartbeat.Milliseconds()}
						})
					}
					cl.Leader(0, time.Minute)
					for i, percent := range []time.Duration{30, 50, 70, 90, 94, 100, 102, 150} {
						cl.Pass(T + 4*(J+c.session) + 5*time.Second + B*time.Duration(i)/8) // at any time of an interval
						cl.Gap()
						stall := T * percent / 100
						cl.Broker.Lag(time.Hour)
						cl.Pass(stall)
						cl.Broker.Lag(0)
						cl.Pass(2*T + 2*J + 4*time.Second)
						gap := cl.Gap()
						if (members == 1 || T < c.session+2*B+time.Second) && stall < T-B || stall < T-B-J {
							require.Zero(cl, gap, "nobody led for a while: a stall of %v", stall)
						}
						require.LessOrEqual(cl, gap, max(0, stall-T)+J+2*B, "nobody led for longer than the stall beyond T and a rebalance: a stall of %v", stall)
					}
				})
			})
		}
	}
}

// New accepts a T that is too short for hand-overs without a gap, and logs once which T would be long enough.
func TestSharedWarnsIfTLeavesGaps(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		session, heartbeat, T, every time.Duration
		groups                       int
		least                        time.Duration // 0: T is long enough
	}{
		{100 * ms, 10 * ms, 300 * ms, 0, 1, 2356 * ms}, // S + 2 s + two heartbeats, and a tenth of T for two B
		{100 * ms, 10 * ms, 2356 * ms, 0, 1, 0},
		{100 * ms, 10 * ms, 2355 * ms, 0, 1, 2356 * ms},
		{100 * ms, 10 * ms, 300 * ms, 0, 2, 2650 * ms},
		{time.Second, 100 * ms, 3 * time.Second, 100 * ms, 1, 3400 * ms},
		{session, groupBeat, sharedT, 0, 1, 0},
		{session, groupBeat, 9 * time.Second, 0, 1, 10 * time.Second},
	} {
		simulateWith(t, nelitest.Options{}, overlapping, func(cl *cluster) {
			lines := make(chan time.Duration, 8)
			cl.Join("a", func(cfg *neli.Config) {
				shared(cfg)
				cfg.HeartbeatTimeout, cfg.HeartbeatInterval, cfg.GroupsOnTopic = c.T, c.every, c.groups
				cfg.KafkaConfig = neli.KafkaConfigMap{"session.timeout.ms": c.session.Milliseconds(), "heartbeat.interval.ms": c.heartbeat.Milliseconds()}
				cfg.Logger = slog.New(callsBack{func(r slog.Record) {
					r.Attrs(func(a slog.Attr) bool {
						if a.Key == "least" {
							lines <- a.Value.Duration()
						}
						return true
					})
				}})
			})
			cl.Pass(time.Minute)
			if c.least == 0 {
				require.Empty(cl, lines, "%v", c)
				return
			}
			require.Len(cl, lines, 1, "%v", c)
			require.Equal(cl, c.least, <-lines, "%v", c)
		})
	}
}

// After a crash there is no leader for at most S + J + B. With two disjoint groups there always is one.
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

// If T lapses after the assignment was withdrawn, the term ends in an orderly way.
func TestSharedLapseAfterAWithdrawalIsOrderly(t *testing.T) {
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

// A suspended process that wakes may take itself for the leader for up to T, and no longer.
func TestSharedWokenLeaderLeadsNoLongerThanT(t *testing.T) {
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

// Most programs end the context of Lead, or their Pulser, and then call Close. The process leaves
// the group at the first of these, and leads on until another member does. Its tasks go on
// meanwhile, and a later Close does not cut that short.
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
func TestSharedTaskRunsWhileTheLeaverLeadsOn(t *testing.T) {
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
		require.InDelta(c, (session + 4*time.Second + 2*interval).Seconds(), took.Seconds(), 0.5)
		require.Greater(c, a.Tasks()-before, int(took/(10*time.Millisecond)), "its task is called to the end")
		require.Positive(c, b.Tasks())
		require.Equal(c, neli.ReasonResigned, a.Last().(neli.LeaderRevoked).Reason)
		_, err = a.Background(a.Task)
		require.NoError(c, err)
		require.NoError(c, b.Close())
		c.Leader(0, time.Millisecond)
		c.Eventually(sharedT, "it leads again", a.IsLeader)
	})
}

// Members know different numbers of roles. A member leads the partitions assigned to it even if it
// knows no role there, so it leads a role there as soon as it learns of the role. Its application
// is told only of roles that the member knows.
func TestSharedDifferentRoles(t *testing.T) {
	simulateWith(t, nelitest.Options{}, overlapping, func(c *cluster) {
		some := func(cfg *neli.Config) { shared(cfg); cfg.Partitions, cfg.Roles = 3, 1 }
		a := c.Work("a", some)
		c.Leader(0, time.Minute)
		c.Pass(time.Minute)
		require.Equal(c, []int{0, 1, 2}, c.Broker.Assigned("a"))
		require.Equal(c, []string{"acquired"}, a.Kinds())
		require.Equal(c, []int{0}, partitions(a.Last().(neli.LeaderAcquired).Change), "a partition without roles is not in the event")
		require.False(c, a.IsLeaderOf(1))

		c.Broker.CutOff("a", nelitest.LinkAll) // no evidence arrives any more, so V stays as it is
		c.Pass(interval)
		require.NoError(c, a.SetRoles(2))
		c.Eventually(10*time.Millisecond, "leads a new role at once", func() bool { return a.IsLeaderOf(1) })
		e := a.Last().(neli.LeaderAcquired)
		require.Equal(c, []int{1}, partitions(e.Change))
		require.Equal(c, []int{1}, e.Roles())
		require.False(c, a.IsLeaderOf(2))

		require.NoError(c, a.SetRoles(1))
		c.Pass(10 * time.Millisecond)
		require.Equal(c, []string{"acquired", "acquired", "revoked"}, a.Kinds())
		require.Equal(c, neli.ReasonRolesChanged, a.Last().(neli.LeaderRevoked).Reason)
		require.Equal(c, []int{1}, partitions(a.Last().(neli.LeaderRevoked).Change))
		require.NoError(c, a.SetRoles(3))
		c.Eventually(10*time.Millisecond, "leads both new roles", func() bool { return a.IsLeaderOf(1) && a.IsLeaderOf(2) })
		require.Equal(c, []int{1, 2}, partitions(a.Last().(neli.LeaderAcquired).Change))

		c.Pass(sharedT)
		require.False(c, a.IsLeader(), "V has not moved")
		require.NoError(c, a.SetRoles(1))
		require.NoError(c, a.SetRoles(3))
		c.Pass(time.Second)
		require.False(c, a.IsLeader(), "V is older than T")
	})
}

// A process that is cut off from the log also makes room on partitions where it knows no role,
// because other members may know one.
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
		a := c.Work("a", with(2)) // its name sorts first, so the range assignor gives it partition 0, and partition 1 to b
		c.Pass(30 * time.Second)
		require.Equal(c, []int{1}, c.Broker.Assigned("b"))
		c.Broker.CutOff("b", nelitest.LinkReads)
		c.Eventually(sharedT, "the member that knows the role leads it", func() bool { return a.IsLeaderOf(1) })
	})
}

// A log handler is user code. It may call any method of the Neli.
func TestSharedLogHandlerMayCallTheNeli(t *testing.T) {
	simulateWith(t, nelitest.Options{}, overlapping, func(c *cluster) {
		var a *member
		var said atomic.Int64
		a = c.Work("a", func(cfg *neli.Config) {
			shared(cfg)
			cfg.Logger = slog.New(callsBack{func(r slog.Record) {
				if r.Level == slog.LevelWarn {
					_ = a.Stats() // would wait for ever if the lock were held
					said.Add(1)
				}
			}})
		})
		c.Leader(0, time.Minute)
		c.Broker.CutOff("a", nelitest.LinkReads)
		c.Pass(10 * time.Minute)
		require.Positive(c, said.Load())
		require.LessOrEqual(c, said.Load(), int64(10*time.Minute/(10*time.Second)), "logs too often")
	})
}

// A client may refuse a record at once instead of reporting it later: librdkafka does so if its queue is full, or if
// it already knows that it may not write to the topic. Both count like reported failures.
func TestSharedRecordsRefusedAtOnce(t *testing.T) {
	simulateWith(t, nelitest.Options{}, overlapping, func(c *cluster) {
		var lines atomic.Int64
		c.Work("a", func(cfg *neli.Config) {
			shared(cfg)
			cfg.Provider = refusing{cfg.Provider, errors.New("the queue is full")}
			cfg.Logger = slog.New(callsBack{func(r slog.Record) {
				if strings.Contains(r.Message, "cannot write to the leader topic") {
					lines.Add(1)
				}
			}})
		})
		c.Pass(time.Minute)
		require.Positive(c, lines.Load(), "nobody is told why it does not lead")
		require.LessOrEqual(c, lines.Load(), int64(7), "logs too often")

		b := c.Work("b", func(cfg *neli.Config) {
			shared(cfg)
			cfg.Provider = refusing{cfg.Provider, kafka.ErrTopicAuthorization}
		})
		c.Pass(time.Minute)
		require.Equal(c, neli.StateFailed, b.State())
		require.ErrorIs(c, b.Await(), neli.ErrAccess)
		require.ErrorContains(c, b.Await(), "WRITE topic")
	})
}

// refusing is a Provider whose producers refuse every record at once.
type refusing struct {
	kafka.Provider
	why error
}

func (p refusing) Producer(props map[string]string, log *slog.Logger) (kafka.Producer, error) {
	inner, err := p.Provider.Producer(props, log)
	return refusingProducer{inner, p.why}, err
}

func (p refusing) Admin(over kafka.Producer) (kafka.Admin, error) {
	return p.Provider.Admin(over.(refusingProducer).Producer)
}

type refusingProducer struct {
	kafka.Producer
	why error
}

func (p refusingProducer) Append(string, int, []byte, func(error)) error { return p.why }

// A process has to leave the group for lack of records, while its poll blocks for longer than the
// pause. It must leave even then: otherwise the group would not repeat its assignment.
func TestSharedStarvedWhilePollIsBlocked(t *testing.T) {
	simulateWith(t, nelitest.Options{}, overlapping, func(c *cluster) {
		with := func(group string) func(*neli.Config) {
			return func(cfg *neli.Config) {
				inGroup(group)(cfg)
				cfg.HeartbeatTimeout, cfg.HeartbeatInterval = 8700*time.Millisecond, 150*time.Millisecond
			}
		}
		a := c.Work("a", with("g"))
		c.Work("b", with("h")) // so that a is not alone on the topic
		c.Eventually(time.Minute, "it leads", a.IsLeader)
		c.Pass(10 * time.Second)
		c.Broker.CutOff("a", nelitest.LinkReads)
		c.Pass(session - time.Second)
		c.Broker.Suspend("a") // no call returns, but timers go on, and the session has not expired yet
		c.Pass(session - 500*time.Millisecond)
		c.Broker.Restore("a", nelitest.LinkAll)
		c.Broker.Resume("a")
		c.Pass(20 * time.Second)
		require.Equal(c, []int{0}, c.Broker.Assigned("a"))
		require.True(c, a.IsLeader(), "the only member is healthy, and does not lead")
	})
}

// callsBack is a log handler that calls do for each line.
type callsBack struct{ do func(slog.Record) }

func (h callsBack) Enabled(context.Context, slog.Level) bool { return true }
func (h callsBack) Handle(_ context.Context, r slog.Record) error {
	h.do(r)
	return nil
}
func (h callsBack) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h callsBack) WithGroup(string) slog.Handler      { return h }

func partitions(c neli.Change) (ps []int) {
	for _, t := range c.Terms {
		ps = append(ps, t.Partition)
	}
	return ps
}
