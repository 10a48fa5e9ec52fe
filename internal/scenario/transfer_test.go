package scenario

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/nelitest"
	"github.com/stretchr/testify/require"
)

// trio starts three members, of which the first that comes back leads.
func trio(c *Cluster, change func(*neli.Config)) (leader *Member, others []*Member) {
	c.Helper()
	for _, name := range []string{"a", "b", "d"} {
		c.Work(name, change)
	}
	leader = c.Leader(0, 2*silence)
	for _, name := range c.Names {
		if name != leader.As {
			others = append(others, c.Members[name])
		}
	}
	c.Pass(6 * time.Second)
	return leader, others
}

// Transfer brings a role to the member that is named, by name or by id, in a few
// round trips.
func TestTransfer(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *Cluster) {
		from, others := trio(c, Open)
		ctx := c.atMost(time.Hour)
		first := from
		before := c.Contest(1)
		for i, to := range []*Member{others[0], others[1], first} {
			began := time.Now()
			c.Gap()
			require.NoError(c, from.Transfer(ctx, 0, map[bool]string{true: to.As, false: to.ID()}[i%2 == 0]))
			c.Eventually(10*time.Millisecond, "it leads", func() bool { return to.IsLeaderOf(0) })
			require.Less(c, time.Since(began), 30*time.Millisecond, fmt.Sprint(from.As, " to ", to.As))
			require.LessOrEqual(c, c.Gap(), 10*time.Millisecond)
			require.Equal(c, neli.ReasonTransferred, from.Last().(neli.LeaderRevoked).Reason)
			require.ErrorIs(c, from.Transfer(ctx, 0, to.As), neli.ErrNotLeader)
			from = to
		}
		c.orderly()
		require.Equal(c, Contest{3, 3, 3}, c.Contest(1).Less(before))
	})
}

// Whoever comes first of a role leaves it to the one in whose favour it was
// released.
func TestHeirClaimsAlone(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *Cluster) {
		for _, name := range []string{"a", "b", "d", "e", "f", "g"} {
			c.Work(name, Open)
		}
		from := c.Leader(0, 2*silence)
		c.Pass(6 * time.Second)
		before := c.Contest(1)
		for i := range 12 {
			to := c.Members[c.Names[(i+1)%len(c.Names)]]
			if to == from {
				continue
			}
			require.NoError(c, from.Transfer(c.atMost(time.Minute), 0, to.ID()))
			c.Eventually(20*time.Millisecond, "it leads", to.IsLeader)
			from = to
		}
		k := c.Contest(1).Less(before)
		require.GreaterOrEqual(c, k.Won, 10)
		require.Equal(c, k.Won, k.Claims)
	})
}

// What is refused has no effect.
func TestTransferRefuses(t *testing.T) {
	Simulate(t, nelitest.Options{}, Overlapping, func(c *Cluster) {
		var health sick
		l := c.Work("l", Open)
		c.Leader(0, 2*silence)
		c.Work("s", func(cfg *neli.Config) { Open(cfg); health.config(cfg) })
		for _, as := range []string{"twin1", "twin2"} {
			c.Work(as, func(cfg *neli.Config) { Open(cfg); cfg.Name = "twin" })
		}
		o := c.Join("o", func(cfg *neli.Config) { Open(cfg); observer(cfg) })
		c.Join("lazy", Open) // does not contend
		other := c.Join("x", func(cfg *neli.Config) { Open(cfg); cfg.LeaderGroupID, cfg.LeaderTopic = "other", "app.neli" })
		health.yes.Store(true)
		c.Pass(10 * time.Second)
		told := len(l.Kinds())
		ctx := c.atMost(time.Hour)
		for _, to := range []string{"", "nobody", "twin", "s", "o", "lazy", c.Members["s"].ID(), other.ID(), "x"} {
			require.ErrorIs(c, l.Transfer(ctx, 0, to), neli.ErrNoMember, to)
		}
		for _, to := range []string{"l", l.ID()} {
			require.ErrorIs(c, l.Transfer(ctx, 0, to), neli.ErrLeadsAlready, to)
		}
		for _, role := range []int{-1, 1, 1 << 40} {
			require.ErrorIs(c, l.Transfer(ctx, role, "twin1"), neli.ErrNotLeader, role)
		}
		require.ErrorIs(c, c.Members["twin1"].Transfer(ctx, 0, "l"), neli.ErrNotLeader)
		require.ErrorIs(c, o.Transfer(ctx, 0, "l"), neli.ErrNotLeader)
		c.Pass(time.Second)
		require.Len(c, l.Kinds(), told)
		require.NoError(c, l.Transfer(ctx, 0, c.Members["twin2"].ID()), "one of two names goes by its id")
		c.Eventually(20*time.Millisecond, "it leads", c.Members["twin2"].IsLeader)
		require.NoError(c, l.Close())
		require.ErrorIs(c, l.Transfer(ctx, 0, "twin"), neli.ErrClosed)
	})
	for _, with := range []func(*neli.Config){nil, shared} {
		Simulate(t, nelitest.Options{}, Overlapping, func(c *Cluster) {
			a := c.Work("a", with)
			c.Leader(0, time.Minute)
			c.Work("b", with)
			c.Pass(10 * time.Second)
			require.ErrorContains(c, a.Transfer(c.atMost(time.Minute), 0, "b"), "needs Mode Exclusive and Nomination Open")
			require.True(c, a.IsLeader())
		})
	}
}

// transferring calls Transfer on a goroutine.
func (m *Member) transferring(ctx context.Context, role int, to string) <-chan error {
	result := make(chan error, 1)
	go func() { result <- m.Transfer(ctx, role, to) }()
	return result
}

// The barrier holds the hand-over back until the work is done, for DrainTimeout at
// most.
func TestTransferDrains(t *testing.T) {
	for _, work := range []time.Duration{3 * time.Second, 25 * time.Second} {
		simulate(t, nelitest.Options{}, func(c *Cluster) {
			from, others := trio(c, Open)
			from.Hold(work)
			result := from.transferring(context.Background(), 0, others[0].As)
			until := min(work, 10*time.Second)
			c.Pass(until - 10*time.Millisecond)
			require.True(c, from.IsLeader())
			require.False(c, others[0].IsLeader())
			c.Eventually(50*time.Millisecond, "it leads", others[0].IsLeader)
			require.NoError(c, <-result)
			c.Pass(20 * time.Second)
		})
	}
}

// The one that was meant dies while the application finishes: another one leads, and
// Transfer says so.
func TestTransferToOneThatDies(t *testing.T) {
	for _, how := range []string{"crash", "close", "sick"} {
		t.Run(how, func(t *testing.T) {
			simulate(t, nelitest.Options{}, func(c *Cluster) {
				var health sick
				a, d := c.Work("a", Open), c.Work("d", Open)
				c.Leader(0, 2*silence)
				b := c.Work("b", func(cfg *neli.Config) { Open(cfg); health.config(cfg) })
				c.Pass(7 * time.Second)
				if d.IsLeader() {
					a, d = d, a
				}
				a.Hold(4 * time.Second)
				result := a.transferring(context.Background(), 0, "b")
				c.Pass(time.Second)
				switch how {
				case "crash":
					c.Crash(b)
				case "close":
					require.NoError(c, b.Close())
				case "sick":
					health.yes.Store(true)
				}
				c.Pass(3*time.Second - 10*time.Millisecond)
				c.Gap()
				c.Eventually(200*time.Millisecond, "Transfer returns", func() bool { return len(result) == 1 })
				require.LessOrEqual(c, c.Gap(), 120*time.Millisecond, "a head start is not T′")
				require.ErrorIs(c, <-result, neli.ErrNotTransferred)
				require.NotEqual(c, a.IsLeader(), d.IsLeader(), "somebody else leads")
			})
		})
	}
}

// pings is how often a member was asked in the log of p to say that it is there.
func (c *Cluster) pings(p int) int { return len(c.Records(p, lease.Ping)) }

// Whom it was to be handed to does not answer: the term goes on, and the application
// hears of nothing.
func TestTransferToTheSilent(t *testing.T) {
	for how, links := range map[string]nelitest.Link{"crash": 0, "leaves": nelitest.Reads, "cut off": nelitest.All, "deaf": nelitest.Reads, "mute": nelitest.Appends} {
		t.Run(how, func(t *testing.T) {
			simulate(t, nelitest.Options{}, func(c *Cluster) {
				a := c.Work("a", Open)
				c.Leader(0, 2*silence)
				b := c.Work("b", Open)
				c.Pass(7 * time.Second)
				c.Broker.CutOff("b", links)
				if how == "crash" {
					c.Crash(b)
				}
				c.Gap()
				result := a.transferring(context.Background(), 0, "b")
				c.Pass(500 * time.Millisecond)
				if how != "leaves" {
					c.Pass(490 * time.Millisecond)
				}
				require.Empty(c, result)
				if how == "leaves" {
					require.NoError(c, b.Close()) // that is heard at once
				}
				c.Pass(20 * time.Millisecond)
				require.Len(c, result, 1)
				require.ErrorIs(c, <-result, neli.ErrNoAnswer)
				c.Pass(5 * time.Second)
				require.Equal(c, []string{"acquired"}, a.Kinds())
				require.Zero(c, c.Gap())
				require.Equal(c, 1, c.pings(0))
			})
		})
	}
}

// A leader that closes does not release in favour of a member that has not answered:
// the others would leave that a head start.
func TestCloseBesideTheSilent(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *Cluster) {
		a := c.Work("a", Open)
		c.Leader(0, 2*silence)
		c.Work("b", func(cfg *neli.Config) { Open(cfg); cfg.Priority = 10 })
		d := c.Work("d", Open)
		c.Pass(7 * time.Second)
		c.Broker.CutOff("b", nelitest.All)
		c.Gap()
		began := time.Now()
		require.NoError(c, a.Close())
		require.InDelta(c, time.Second, time.Since(began), float64(50*time.Millisecond))
		c.Eventually(time.Second, "the other one leads", d.IsLeader)
		// Its rank is the second: three round trips at most, taken for less than 7 ms each
		// after the two Hellos that it has said, and two records. A head start would be ten
		// round trips.
		require.LessOrEqual(c, c.Gap(), 25*time.Millisecond)
		require.Equal(c, 1, c.pings(0))
	})
}

// The one that was meant dies while the application finishes, and there is nobody who
// would lead instead: Transfer does not wait for ever.
func TestTransferToNobody(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *Cluster) {
		var health sick
		a := c.Work("a", func(cfg *neli.Config) { Open(cfg); health.config(cfg) })
		c.Leader(0, 2*silence)
		b := c.Work("b", Open)
		c.Pass(7 * time.Second)
		a.Hold(4 * time.Second)
		began := time.Now()
		result := a.transferring(context.Background(), 0, "b")
		c.Pass(time.Second)
		c.Crash(b)
		health.yes.Store(true)
		require.ErrorIs(c, <-result, neli.ErrNotTransferred)
		require.InDelta(c, time.Second+10*time.Second+2*silence, time.Since(began), float64(time.Second),
			"an answer, a drain and two T′; it is looked at once a second")
		require.Equal(c, []string{"acquired", "revoked"}, a.Kinds())
	})
}

// The end of the context ends the call, not the hand-over.
func TestTransferEndsWithItsContext(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *Cluster) {
		from, others := trio(c, Open)
		from.Hold(4 * time.Second)
		ctx, cancel := context.WithCancelCause(context.Background())
		result := from.transferring(ctx, 0, others[1].As)
		c.Pass(time.Second)
		cancel(errEnough)
		require.ErrorIs(c, <-result, errEnough)
		require.True(c, from.IsLeader())
		c.Eventually(3100*time.Millisecond, "it leads all the same", others[1].IsLeader)
	})
}

// Close while a Transfer is under way ends both.
func TestCloseEndsTransfer(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *Cluster) {
		from, others := trio(c, Open)
		from.Hold(4 * time.Second)
		result := from.transferring(context.Background(), 0, others[1].As)
		c.Pass(time.Second)
		began := time.Now()
		require.NoError(c, from.Close())
		// The work, round trips, and the 100 ms that a reader may wait for its log to say something.
		require.LessOrEqual(c, time.Since(began), 3*time.Second+130*time.Millisecond)
		if err := <-result; err != nil {
			require.ErrorIs(c, err, neli.ErrClosed)
		}
		c.Eventually(50*time.Millisecond, "the one that was meant leads", others[1].IsLeader)
	})
}

// A process that is cut off while a Transfer is under way is told of its end.
func TestTransferOfOneThatIsCutOff(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *Cluster) {
		from, others := trio(c, Open)
		told := from.Hold(time.Second)
		result := from.transferring(context.Background(), 0, others[0].As)
		<-told
		c.Broker.CutOff(from.As, nelitest.All)
		c.Eventually(2*silence, "another leads", func() bool { return others[0].IsLeader() || others[1].IsLeader() })
		c.Pass(time.Second)
		require.Empty(c, result, "nothing is known yet")
		c.Broker.Restore(from.As, nelitest.All)
		c.Pass(2 * time.Second)
		err := <-result
		if others[0].IsLeader() {
			require.NoError(c, err)
		} else {
			require.ErrorIs(c, err, neli.ErrNotTransferred)
		}
	})
}

// What was transferred stays, whoever has a better right, until its term ends.
func TestTransferredStays(t *testing.T) {
	const n = 6
	Simulate(t, nelitest.Options{}, wide(n), func(c *Cluster) {
		require.NoError(c, c.Broker.CreateTopic(topic, 1))
		a := c.Work("a", many(n, priority(10)))
		b := c.Work("b", many(n))
		c.Eventually(2*silence, "a leads all", c.leadsAll("a", n))
		c.Pass(steady)
		require.NoError(c, a.Transfer(c.atMost(time.Minute), 0, "b"))
		require.NoError(c, a.Transfer(c.atMost(time.Minute), 3, "b"))
		c.Pass(4 * time.Minute)
		require.True(c, b.IsLeaderOf(0) && b.IsLeaderOf(3))
		require.Equal(c, n-2, c.shares(n)["a"])
		c.orderly()
		c.Broker.CutOff("b", nelitest.All) // the term ends
		c.Eventually(2*silence, "a leads all", c.leadsAll("a", n))
		c.Broker.Restore("b", nelitest.All)
		c.Pass(2 * time.Minute)
		require.Equal(c, n, c.shares(n)["a"])
	})
}

// A Transfer moves one role, and nothing else that lives on its partition.
func TestTransferMovesOneRole(t *testing.T) {
	for _, m := range []int{1, 2} {
		Simulate(t, nelitest.Options{}, wide(6), func(c *Cluster) {
			a := c.Work("a", manyOn(m, 6, rebalanceOff))
			c.Eventually(2*silence, "a leads all", c.leadsAll("a", 6))
			b := c.Work("b", manyOn(m, 6, rebalanceOff))
			c.Pass(6 * time.Second)
			require.NoError(c, a.Transfer(c.atMost(time.Minute), 3, "b"))
			c.Eventually(20*time.Millisecond, "b leads it", func() bool { return b.IsLeaderOf(3) })
			require.Equal(c, map[string]int{"a": 5, "b": 1}, c.shares(6))
			c.orderly()
		})
	}
}

// Two Transfers of a role at the same time: one is refused.
func TestTransferTwice(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *Cluster) {
		from, others := trio(c, Open)
		from.Hold(2 * time.Second)
		first := from.transferring(context.Background(), 0, others[0].As)
		c.Pass(time.Second)
		require.ErrorIs(c, from.Transfer(c.atMost(time.Minute), 0, others[1].As), neli.ErrNotLeader)
		require.NoError(c, <-first)
	})
}
