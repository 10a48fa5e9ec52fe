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

// trio starts three members. leader is the one that leads first.
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

// Transfer moves a role to a member, given by name or by id, within a few round trips.
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

// Members that rank higher for a role leave it to the successor in whose favour it was released.
func TestSuccessorClaimsAlone(t *testing.T) {
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

// A member crashes and is restarted under its name. Until the former process is overdue, the name means two members,
// and the error lists the ids to choose from. After that the name means the one that lives.
func TestTransferToARestartedMemberByName(t *testing.T) {
	for _, ask := range []bool{false, true} {
		Simulate(t, nelitest.Options{}, nil, func(c *Cluster) {
			named := func(name string) func(*neli.Config) {
				return func(cfg *neli.Config) {
					Open(cfg)
					cfg.Name, cfg.DisableRebalance = name, true
					cfg.Requests = func(neli.Request) error { return nil }
				}
			}
			l := c.Work("l", named("l"))
			c.Leader(0, 2*silence)
			asker := c.Work("asker", named("asker"))
			old := c.Work("host", named("host"))
			c.Pass(20 * time.Second)
			c.Crash(old)
			c.Pass(300 * time.Millisecond)
			again := c.Work("again", named("host"))
			c.Pass(time.Second)
			transfer := func() error {
				if ask {
					return asker.Ask(c.atMost(time.Minute), neli.Request{Role: 0, To: "host"})
				}
				return l.Transfer(c.atMost(time.Minute), 0, "host")
			}
			err := transfer()
			require.ErrorContains(c, err, "2 members have this name")
			for _, id := range []string{old.ID(), again.ID()} {
				require.ErrorContains(c, err, id)
			}
			c.Pass(8 * time.Second)
			require.NoError(c, transfer())
			require.True(c, again.IsLeader())
		})
	}
}

// A Transfer that is refused has no effect.
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
		require.NoError(c, l.Transfer(ctx, 0, c.Members["twin2"].ID()), "of two members with one name, the id names one")
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

// transferring calls Transfer on a goroutine of its own.
func (m *Member) transferring(ctx context.Context, role int, to string) <-chan error {
	result := make(chan error, 1)
	go func() { result <- m.Transfer(ctx, role, to) }()
	return result
}

// The addressee dies while the application finishes. Another member leads, and Transfer reports it.
func TestTransferToAMemberThatDies(t *testing.T) {
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
				require.LessOrEqual(c, c.Gap(), 120*time.Millisecond, "the dead addressee delays the others by W(T)")
				require.ErrorIs(c, <-result, neli.ErrNotDone)
				require.NotEqual(c, a.IsLeader(), d.IsLeader(), "not exactly one other member leads")
			})
		})
	}
}

// pings returns how many Pings are in the log of p.
func (c *Cluster) pings(p int) int { return len(c.Records(p, lease.Ping)) }

// The addressee does not answer. The term goes on, and the application is told of nothing.
func TestTransferToASilentMember(t *testing.T) {
	for how, links := range map[string]nelitest.Link{"crash": 0, "leaves": nelitest.LinkReads, "cut off": nelitest.LinkAll, "deaf": nelitest.LinkReads, "mute": nelitest.LinkAppends} {
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
					require.NoError(c, b.Close()) // the others learn of that at once
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

// A closing leader does not release roles in favour of a member that has not answered, since the
// others would give that member a head start.
func TestCloseDoesNotNameASilentMember(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *Cluster) {
		a := c.Work("a", Open)
		c.Leader(0, 2*silence)
		c.Work("b", func(cfg *neli.Config) { Open(cfg); cfg.Priority = 10 })
		d := c.Work("d", Open)
		c.Pass(7 * time.Second)
		c.Broker.CutOff("b", nelitest.LinkAll)
		c.Gap()
		began := time.Now()
		require.NoError(c, a.Close())
		require.InDelta(c, time.Second, time.Since(began), float64(50*time.Millisecond))
		c.Eventually(time.Second, "the other member leads", d.IsLeader)
		// The second in rank claims. It waits for at most three round trips, which it assumes to be
		// shorter than 7 ms each, after its two Hellos and two records. A head start would take ten
		// round trips.
		require.LessOrEqual(c, c.Gap(), 25*time.Millisecond)
		require.Equal(c, 1, c.pings(0))
	})
}

// The addressee dies while the application finishes, and no other member could lead. Transfer does not wait for ever.
func TestTransferWithoutAnotherMember(t *testing.T) {
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
		require.ErrorIs(c, <-result, neli.ErrNotDone)
		require.InDelta(c, time.Second+10*time.Second+2*silence, time.Since(began), float64(time.Second),
			"longer than an answer, a drain, two W(T) and a second between two looks")
		require.Equal(c, []string{"acquired", "revoked"}, a.Kinds())
	})
}

// The end of the context ends the call, but not the hand-over.
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
		c.Eventually(3100*time.Millisecond, "the addressee leads", others[1].IsLeader)
	})
}

// Close during a Transfer ends both.
func TestCloseEndsTransfer(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *Cluster) {
		from, others := trio(c, Open)
		from.Hold(4 * time.Second)
		result := from.transferring(context.Background(), 0, others[1].As)
		c.Pass(time.Second)
		began := time.Now()
		require.NoError(c, from.Close())
		// The work, round trips, and the 100 ms that a reader may wait for a record.
		require.LessOrEqual(c, time.Since(began), 3*time.Second+130*time.Millisecond)
		if err := <-result; err != nil {
			require.ErrorIs(c, err, neli.ErrClosed)
		}
		c.Eventually(50*time.Millisecond, "the addressee leads", others[1].IsLeader)
	})
}

// A process that is cut off during a Transfer learns how the Transfer ended.
func TestTransferByACutOffLeader(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *Cluster) {
		from, others := trio(c, Open)
		told := from.Hold(time.Second)
		result := from.transferring(context.Background(), 0, others[0].As)
		<-told
		c.Broker.CutOff(from.As, nelitest.LinkAll)
		c.Eventually(2*silence, "another leads", func() bool { return others[0].IsLeader() || others[1].IsLeader() })
		c.Pass(time.Second)
		require.Empty(c, result, "returns before the result is known")
		c.Broker.Restore(from.As, nelitest.LinkAll)
		c.Pass(2 * time.Second)
		err := <-result
		if others[0].IsLeader() {
			require.NoError(c, err)
		} else {
			require.ErrorIs(c, err, neli.ErrNotDone)
		}
	})
}

// A transferred role stays where it is until its term ends, even if another member is preferred.
func TestTransferredRoleStays(t *testing.T) {
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
		c.Broker.CutOff("b", nelitest.LinkAll) // so that the term ends
		c.Eventually(2*silence, "a leads all", c.leadsAll("a", n))
		c.Broker.Restore("b", nelitest.LinkAll)
		c.Pass(2 * time.Minute)
		require.Equal(c, n, c.shares(n)["a"])
	})
}

// A Transfer moves one role, and nothing else on its partition.
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

// Of two Transfers of a role at the same time, one is refused.
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
