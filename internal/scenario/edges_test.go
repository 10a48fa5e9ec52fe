package scenario

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/kafka"
	"github.com/goneli/neli/nelitest"
	"github.com/stretchr/testify/require"
)

// Members with different R share the roles that each wants, and then nothing moves. A term must
// not end again and again because a member is offered a role that it does not want.
func TestMembersWithDifferentRoles(t *testing.T) {
	Simulate(t, nelitest.Options{}, wide(12), func(c *Cluster) {
		c.Work("a", many(12))
		c.Eventually(2*silence, "a leads all", c.leadsAll("a", 12))
		c.Pass(steady)
		c.Work("b", many(6))
		c.Eventually(30*time.Second, "b has half of what it wants, or all", func() bool { return c.shares(12)["b"] >= 3 })
		c.Pass(time.Minute)
		before := c.Contest(1)
		terms := c.terms()
		c.Pass(10 * time.Minute)
		require.Equal(c, terms, c.terms())
		require.Equal(c, before, c.Contest(1))
		require.Len(c, c.owned(12), 12)
		for role := 6; role < 12; role++ {
			require.True(c, c.Members["a"].IsLeaderOf(role), "a does not lead a role that only a wants")
		}
		c.orderly()
		require.NoError(c, c.Members["a"].Close())
		c.Eventually(100*time.Millisecond, "b leads what it wants", c.leadsAll("b", 6))
		c.Pass(time.Minute)
		require.Len(c, c.owned(12), 6, "roles are led that no member wants")
	})
}

// A Transfer to a member that does not want the role is refused, and the leader keeps the role.
func TestTransferToAMemberThatDoesNotWantTheRole(t *testing.T) {
	Simulate(t, nelitest.Options{}, wide(4), func(c *Cluster) {
		a := c.Work("a", many(4, rebalanceOff))
		c.Eventually(2*silence, "a leads all", c.leadsAll("a", 4))
		b := c.Work("b", many(2, rebalanceOff))
		c.Pass(7 * time.Second)
		before := c.Contest(1)
		require.ErrorIs(c, a.Transfer(c.atMost(time.Minute), 3, "b"), neli.ErrNoMember)
		c.Pass(time.Minute)
		require.Equal(c, []string{"acquired"}, a.Kinds())
		require.Equal(c, before, c.Contest(1))
		require.NoError(c, a.Transfer(c.atMost(time.Minute), 1, "b"), "refuses to transfer a role that b wants")
		c.Eventually(20*time.Millisecond, "it leads", func() bool { return b.IsLeaderOf(1) })

		// b no longer wants the role, and says so while it is being asked.
		require.NoError(c, b.SetRoles(4))
		c.Pass(2 * time.Second)
		c.Broker.CutOff("b", nelitest.LinkAppends)
		require.NoError(c, b.SetRoles(2))
		require.ErrorIs(c, a.Transfer(c.atMost(time.Minute), 3, "b"), neli.ErrNoAnswer)
		require.True(c, a.IsLeaderOf(3))
	})
}

// Processes that crash as soon as they are started are soon forgotten, and do no harm: the leader
// leads on, and a member that joins meanwhile gets its share in time.
func TestCrashLoopsAreForgotten(t *testing.T) {
	const n = 6
	Simulate(t, nelitest.Options{}, wide(n), func(c *Cluster) {
		a := c.Work("a", many(n))
		c.Eventually(2*silence, "a leads all", c.leadsAll("a", n))
		loop := func(k int, between time.Duration) {
			for i := range k {
				m := c.Work(fmt.Sprint("x", i), many(n))
				c.Pass(between)
				c.Crash(m)
			}
		}
		loop(100, 400*time.Millisecond)
		require.Equal(c, []string{"acquired"}, a.Kinds())
		require.Less(c, len(a.Members()), 60)
		b := c.Work("b", many(n))
		joined := time.Now()
		loop(60, 400*time.Millisecond)
		c.Eventually(time.Until(joined.Add(30*time.Second)), "b has its share", func() bool { return c.shares(n)["b"] == n/2 })
		c.Pass(20 * time.Second)
		for _, m := range []*Member{a, b} {
			require.Len(c, m.Members(), 2, "crashed processes are not forgotten")
		}
		require.Equal(c, Contest{n + n/2, n + n/2, 2}, c.Contest(1))
		c.orderly()
	})
}

// partitionOnEachBroker creates the topic with m partitions. Broker i alone has partition i − 1.
func (c *Cluster) partitionOnEachBroker(m int) {
	c.Helper()
	p := c.Broker.Provider("operator")
	producer, err := p.Producer(nil, slog.New(slog.DiscardHandler))
	require.NoError(c, err)
	admin, err := p.Admin(producer)
	require.NoError(c, err)
	require.NoError(c, admin.CreateTopic(c.Context(), kafka.TopicSpec{Name: topic, Partitions: m, Replicas: 1}))
	admin.Close()
	require.NoError(c, producer.Close())
}

// One partition is offline. The roles of all others have leaders throughout, and do not move to and
// fro. When the partition is back, its roles are led again, and the shares are level.
func TestRolesOfAnUnreachablePartition(t *testing.T) {
	const n, m = 24, 4
	Simulate(t, nelitest.Options{Brokers: m}, wide(n), func(c *Cluster) {
		c.partitionOnEachBroker(m)
		for _, name := range []string{"a", "b", "d"} {
			c.Work(name, manyOn(m, n))
		}
		c.level(n, steady+15*time.Second)
		c.Pass(time.Minute)
		require.NoError(c, c.Broker.StopBroker(3))
		c.Pass(20 * time.Second)
		require.Len(c, c.owned(n), n-n/m)
		c.Pass(40 * time.Second) // the members held about equally many roles there
		terms := c.terms()
		for range 60 {
			c.Pass(10 * time.Second)
			require.Len(c, c.owned(n), n-n/m)
		}
		require.Equal(c, terms, c.terms(), "nothing moves")
		require.NoError(c, c.Broker.StartBroker(3))
		c.Eventually(4*defaultT, "all are led again", c.allLed(n))
		c.level(n, time.Minute)
	})
}

// With Assigned nomination, one offline partition does the others no lasting harm. A member that
// cannot claim there leaves the group for a bounded time, and then stays.
func TestAssignedWithAnOfflinePartition(t *testing.T) {
	Simulate(t, nelitest.Options{Brokers: 2}, Roles(2), func(c *Cluster) {
		c.partitionOnEachBroker(2)
		for _, name := range []string{"a", "b"} {
			c.Work(name, func(cfg *neli.Config) { cfg.Partitions = 2 })
		}
		c.Eventually(3*silence, "all are led", c.allLed(2))
		c.Pass(10 * time.Second)
		require.NoError(c, c.Broker.StopBroker(2))
		c.Gap()
		c.Pass(10 * time.Minute)
		gap := c.Gap()
		c.Logf("role 0 was without a leader for %v of 10 minutes", gap)
		require.LessOrEqual(c, gap, 20*time.Second)
		require.NoError(c, c.Broker.StartBroker(2))
		c.Eventually(time.Minute, "all are led again", c.allLed(2))
	})
}

// StepDown takes no longer than documented, even if no record arrives and T is long. It waits for a
// successor, and then for the acknowledgement of a Release.
func TestStepDownOfACutOffMember(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *Cluster) {
		a := c.Work("a", func(cfg *neli.Config) { Open(cfg); cfg.HeartbeatTimeout = time.Minute })
		c.Leader(0, 3*time.Minute)
		c.Pass(10 * time.Second)
		c.Broker.CutOff("a", nelitest.LinkAll)
		began := time.Now()
		require.NoError(c, a.StepDown(c.atMost(5*time.Minute)))
		took := time.Since(began)
		c.Logf("took %v", took)
		require.LessOrEqual(c, took, 5*time.Second)
		require.False(c, a.IsLeader())
	})
}

// Many members start after all others have closed in an orderly way. They know at once that nobody
// leads, and lead everything within round trips.
func TestStartAfterACleanEnd(t *testing.T) {
	const n, size = 60, 6
	for _, m := range []int{1, 4} {
		Simulate(t, nelitest.Options{}, wide(n), func(c *Cluster) {
			for i := range size {
				c.Work(fmt.Sprint("m", i), manyOn(m, n))
			}
			c.level(n, steady+15*time.Second)
			for _, name := range c.Names {
				require.NoError(c, c.Members[name].Close())
			}
			before := c.Contest(m)
			for i := range size {
				c.Work(fmt.Sprint("m", i), manyOn(m, n))
			}
			began := time.Now()
			c.Eventually(300*time.Millisecond, "all are led", c.allLed(n))
			k := c.Contest(m).Less(before)
			c.Logf("%d partitions: after %v; %d claims in %d records; %v", m, time.Since(began), k.Claims, k.Records, c.shares(n))
			require.LessOrEqual(c, k.Claims, n+n/5)
			c.level(n, time.Second)
		})
	}
}

// Claims in flight do not count in the balance.
func TestClaimsInFlightDoNotCountInTheBalance(t *testing.T) {
	const n, m = 12, 2
	Simulate(t, nelitest.Options{}, wide(n), func(c *Cluster) {
		for _, name := range []string{"a", "b", "d"} {
			c.Work(name, manyOn(m, n))
		}
		c.level(n, steady+15*time.Second)
		c.Pass(time.Minute)
		terms := c.terms()
		c.Broker.CutOff("d", nelitest.LinkAppends|nelitest.LinkAcks)
		c.Eventually(2*silence, "a and b lead all", func() bool { s := c.shares(n); return s["a"]+s["b"] == n })
		require.Equal(c, terms+n/3, c.terms())
		c.Pass(10 * time.Minute)
		require.Equal(c, terms+n/3, c.terms(), "a Claim in flight has moved roles")
		require.LessOrEqual(c, len(c.Records(0, lease.Claim))+len(c.Records(1, lease.Claim)), 6*m)
		c.Broker.Restore("d", nelitest.LinkAll)
		c.level(n, time.Minute)
	})
}

// A process that starts to watch late learns the leader from the leader's next record, even if no
// other member writes anything.
func TestLateWatcherLearnsTheLeader(t *testing.T) {
	Simulate(t, nelitest.Options{}, wide(1), func(c *Cluster) {
		c.Work("a", many(1))
		c.Leader(0, 2*silence)
		c.Pass(time.Minute)
		o := c.Join("o", func(cfg *neli.Config) { cfg.Observer = true })
		ctx, stop := context.WithTimeout(c.Context(), 5*time.Second)
		defer stop()
		for s := range o.Watch(ctx) {
			if s.Status == neli.StatusHeld {
				require.Equal(c, "a", s.Holder.Name)
				return
			}
		}
		require.Fail(c, "Watch reports nothing")
	})
}

// lasting sets T.
func lasting(t time.Duration) func(*neli.Config) {
	return func(cfg *neli.Config) { cfg.HeartbeatTimeout = t }
}

// Members on one log may have different T. A holder with a shorter lease than another holder counts
// as silent when its own lease is over, not when the other's would be.
func TestHolderOfAShortLeaseIsFoundSilentInTime(t *testing.T) {
	Simulate(t, nelitest.Options{}, wide(2), func(c *Cluster) {
		c.Work("a", many(2, lasting(time.Minute)))
		c.Eventually(3*time.Minute, "a leads all", c.leadsAll("a", 2))
		b := c.Work("b", many(2, lasting(2*time.Second)))
		c.Eventually(5*time.Minute, "b leads one", func() bool { return c.shares(2)["b"] == 1 })
		c.Crash(b)
		c.Eventually(4*time.Second, "a leads all again", c.leadsAll("a", 2))
	})
}

// The same holds for a holder that an observer took for silent while the observer was cut off, and then heard again.
func TestHolderOfAShortLeaseIsFoundSilentAgain(t *testing.T) {
	Simulate(t, nelitest.Options{}, wide(2), func(c *Cluster) {
		c.Work("a", many(1, lasting(time.Minute)))
		c.Eventually(3*time.Minute, "a leads role 0", func() bool { return c.shares(2)["a"] == 1 })
		c.Work("b", many(2, lasting(2*time.Second)))
		c.Eventually(5*time.Minute, "b leads role 1", func() bool { return c.shares(2)["b"] == 1 })
		o := c.Join("o", many(2, lasting(time.Minute), observer))
		var told atomic.Value // of role 1
		watching, stop := context.WithCancel(context.Background())
		var watch sync.WaitGroup
		watch.Go(func() {
			for s := range o.Watch(watching) {
				for role := range s.Roles() {
					if role == 1 {
						told.Store(s.Status)
					}
				}
			}
		})
		defer watch.Wait()
		defer stop()
		is := func(want neli.Status) func() bool { return func() bool { return told.Load() == want } }
		c.Eventually(time.Minute, "o knows that b leads", is(neli.StatusHeld))
		c.Broker.CutOff("o", nelitest.LinkReads)
		c.Eventually(4*time.Second, "o takes b for silent", is(neli.StatusVacant))
		c.Broker.Restore("o", nelitest.LinkReads)
		c.Eventually(4*time.Second, "o has heard b", is(neli.StatusHeld))
		c.Crash(c.Members["b"])
		c.Eventually(4*time.Second, "o finds b silent", is(neli.StatusVacant))
	})
}

// If no process can reach the log, all leave the group in turn. They come back after a while, since
// another log may be available. When the log is back, a process leads.
func TestNomineesThatCouldNotClaimComeBack(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *Cluster) {
		a, b := c.Work("a", nil), c.Work("b", nil)
		c.Leader(0, 2*silence)
		for _, m := range []*Member{a, b} {
			c.Broker.CutOff(m.As, nelitest.LinkAppends|nelitest.LinkReads)
		}
		left := map[string]bool{}
		nobody := 0
		for range 240 {
			c.Pass(500 * time.Millisecond)
			in := 0
			for _, m := range []*Member{a, b} {
				left[m.As] = left[m.As] || len(c.Broker.Assigned(m.As)) == 0
				in += len(c.Broker.Assigned(m.As))
			}
			if in == 0 {
				nobody++
			}
		}
		require.Equal(c, map[string]bool{"a": true, "b": true}, left)
		require.LessOrEqual(c, nobody, 60, "no leader for more than 60 half seconds of two minutes")
		require.False(c, a.IsLeader() || b.IsLeader())
		for _, m := range []*Member{a, b} {
			c.Broker.Restore(m.As, nelitest.LinkAll)
		}
		c.Leader(0, 20*time.Second)
	})
}

// A static member that cannot reach the log stays away until its session is over: the group would give its
// partitions back to it.
func TestAssignedDeafStaticMemberMakesRoom(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *Cluster) {
		with := func(id string) func(*neli.Config) {
			return func(cfg *neli.Config) {
				cfg.Nomination = neli.NominationAssigned
				cfg.KafkaConfig = neli.KafkaConfigMap{"group.instance.id": id, "session.timeout.ms": 30000}
			}
		}
		a := c.Work("a", with("a"))
		c.Leader(0, time.Minute)
		b := c.Work("b", with("b"))
		c.Pass(time.Minute)
		require.True(c, a.IsLeader() && !b.IsLeader())
		c.Broker.CutOff("a", nelitest.LinkReads|nelitest.LinkAppends|nelitest.LinkAcks)
		c.Eventually(2*time.Minute, "b leads", b.IsLeader)
	})
}
