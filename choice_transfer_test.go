package neli_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
	"github.com/stretchr/testify/require"
)

// trio starts three members, of which the first that comes back leads.
func trio(c *cluster, change func(*neli.Config)) (leader *member, others []*member) {
	c.Helper()
	for _, name := range []string{"a", "b", "d"} {
		c.work(name, change)
	}
	leader = c.leader(0, 2*silence)
	for _, name := range c.names {
		if name != leader.name {
			others = append(others, c.members[name])
		}
	}
	c.pass(6 * time.Second)
	return leader, others
}

// Transfer brings a role to the member that is named, by name or by id, in a few
// round trips.
func TestTransfer(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *cluster) {
		from, others := trio(c, open)
		ctx := c.atMost(time.Hour)
		first := from
		made, won := c.contest(1)
		for i, to := range []*member{others[0], others[1], first} {
			began := time.Now()
			c.gap()
			require.NoError(c, from.Transfer(ctx, 0, map[bool]string{true: to.name, false: to.idOf()}[i%2 == 0]))
			c.eventually(10*time.Millisecond, "it leads", func() bool { return to.IsLeaderOf(0) })
			require.Less(c, time.Since(began), 30*time.Millisecond, fmt.Sprint(from.name, " to ", to.name))
			require.LessOrEqual(c, c.gap(), 10*time.Millisecond)
			require.Equal(c, neli.ReasonTransferred, from.last().(neli.LeaderRevoked).Reason)
			require.ErrorIs(c, from.Transfer(ctx, 0, to.name), neli.ErrNotLeader)
			from = to
		}
		c.orderly()
		claims, wins := c.contest(1)
		require.Equal(c, 3, claims-made)
		require.Equal(c, 3, wins-won)
	})
}

// Whoever comes first on a partition leaves it to the one in whose favour it was
// released.
func TestHeirClaimsAlone(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *cluster) {
		for _, name := range []string{"a", "b", "d", "e", "f", "g"} {
			c.work(name, open)
		}
		from := c.leader(0, 2*silence)
		c.pass(6 * time.Second)
		made, won := c.contest(1)
		for i := range 12 {
			to := c.members[c.names[(i+1)%len(c.names)]]
			if to == from {
				continue
			}
			require.NoError(c, from.Transfer(c.atMost(time.Minute), 0, to.idOf()))
			c.eventually(20*time.Millisecond, "it leads", to.IsLeader)
			from = to
		}
		claims, wins := c.contest(1)
		require.GreaterOrEqual(c, wins-won, 10)
		require.Equal(c, wins-won, claims-made)
	})
}

// What is refused has no effect.
func TestTransferRefuses(t *testing.T) {
	simulateWith(t, nelitest.Options{}, overlapping, func(c *cluster) {
		var health sick
		l := c.work("l", open)
		c.leader(0, 2*silence)
		c.work("s", func(cfg *neli.Config) { open(cfg); health.config(cfg) })
		for _, as := range []string{"twin1", "twin2"} {
			c.work(as, func(cfg *neli.Config) { open(cfg); cfg.Name = "twin" })
		}
		o := c.join("o", func(cfg *neli.Config) { open(cfg); observer(cfg) })
		c.join("lazy", open) // does not contend
		other := c.join("x", func(cfg *neli.Config) { open(cfg); cfg.LeaderGroupID, cfg.LeaderTopic = "other", "app.neli" })
		health.yes.Store(true)
		c.pass(10 * time.Second)
		told := len(l.kinds())
		ctx := c.atMost(time.Hour)
		for _, to := range []string{"", "nobody", "l", l.idOf(), "twin", "s", "o", "lazy", c.members["s"].idOf(), other.idOf(), "x"} {
			require.ErrorIs(c, l.Transfer(ctx, 0, to), neli.ErrNoMember, to)
		}
		for _, role := range []int{-1, 1, 1 << 40} {
			require.ErrorIs(c, l.Transfer(ctx, role, "twin1"), neli.ErrNotLeader, role)
		}
		require.ErrorIs(c, c.members["twin1"].Transfer(ctx, 0, "l"), neli.ErrNotLeader)
		require.ErrorIs(c, o.Transfer(ctx, 0, "l"), neli.ErrNotLeader)
		c.pass(time.Second)
		require.Len(c, l.kinds(), told)
		require.NoError(c, l.Transfer(ctx, 0, c.members["twin2"].idOf()), "one of two names goes by its id")
		c.eventually(20*time.Millisecond, "it leads", c.members["twin2"].IsLeader)
		require.NoError(c, l.Close())
		require.ErrorIs(c, l.Transfer(ctx, 0, "twin"), neli.ErrClosed)
	})
	for _, with := range []func(*neli.Config){nil, shared} {
		simulateWith(t, nelitest.Options{}, overlapping, func(c *cluster) {
			a := c.work("a", with)
			c.leader(0, time.Minute)
			c.work("b", with)
			c.pass(10 * time.Second)
			require.ErrorContains(c, a.Transfer(c.atMost(time.Minute), 0, "b"), "needs Mode Exclusive and Nomination Open")
			require.True(c, a.IsLeader())
		})
	}
}

// hold makes the barrier of m take a time for revocations, and returns when it was
// told of the last one.
func (m *member) hold(d time.Duration) (told chan neli.LeaderRevoked) {
	told = make(chan neli.LeaderRevoked, 10)
	m.upon(func(e neli.Event) {
		if r, ok := e.(neli.LeaderRevoked); ok {
			told <- r
			time.Sleep(d)
		}
	})
	return told
}

// transferring calls Transfer on a goroutine.
func (m *member) transferring(ctx context.Context, role int, to string) <-chan error {
	result := make(chan error, 1)
	go func() { result <- m.Transfer(ctx, role, to) }()
	return result
}

// The barrier holds the hand-over back until the work is done, for DrainTimeout at
// most.
func TestTransferDrains(t *testing.T) {
	for _, work := range []time.Duration{3 * time.Second, 25 * time.Second} {
		simulate(t, nelitest.Options{}, func(c *cluster) {
			from, others := trio(c, open)
			from.hold(work)
			result := from.transferring(context.Background(), 0, others[0].name)
			until := min(work, 10*time.Second)
			c.pass(until - 10*time.Millisecond)
			require.True(c, from.IsLeader())
			require.False(c, others[0].IsLeader())
			c.eventually(50*time.Millisecond, "it leads", others[0].IsLeader)
			require.NoError(c, <-result)
			c.pass(20 * time.Second)
		})
	}
}

// The one that was meant dies while the application finishes: another one leads, and
// Transfer says so.
func TestTransferToOneThatDies(t *testing.T) {
	for _, how := range []string{"crash", "close", "sick"} {
		t.Run(how, func(t *testing.T) {
			simulate(t, nelitest.Options{}, func(c *cluster) {
				var health sick
				a, d := c.work("a", open), c.work("d", open)
				c.leader(0, 2*silence)
				b := c.work("b", func(cfg *neli.Config) { open(cfg); health.config(cfg) })
				c.pass(7 * time.Second)
				if d.IsLeader() {
					a, d = d, a
				}
				a.hold(4 * time.Second)
				result := a.transferring(context.Background(), 0, "b")
				c.pass(time.Second)
				switch how {
				case "crash":
					c.crash(b)
				case "close":
					require.NoError(c, b.Close())
				case "sick":
					health.yes.Store(true)
				}
				c.pass(3*time.Second - 10*time.Millisecond)
				c.gap()
				c.eventually(200*time.Millisecond, "Transfer returns", func() bool { return len(result) == 1 })
				require.LessOrEqual(c, c.gap(), 120*time.Millisecond, "a head start is not T′")
				require.ErrorIs(c, <-result, neli.ErrNotTransferred)
				require.NotEqual(c, a.IsLeader(), d.IsLeader(), "somebody else leads")
			})
		})
	}
}

// calls returns how many members were asked in the log of p to say that they are there.
func (c *cluster) calls(p int) (n int) {
	for _, r := range c.records("app.neli", p, "hello") {
		if w, ok := neli.DecodeWire(r.Value, "app"); ok && w.To != "" {
			n++
		}
	}
	return n
}

// Whom it was to be handed to does not answer: the term goes on, and the application
// hears of nothing.
func TestTransferToTheSilent(t *testing.T) {
	for how, links := range map[string]nelitest.Link{"crash": 0, "leaves": nelitest.Reads, "cut off": nelitest.All, "deaf": nelitest.Reads, "mute": nelitest.Appends} {
		t.Run(how, func(t *testing.T) {
			simulate(t, nelitest.Options{}, func(c *cluster) {
				a := c.work("a", open)
				c.leader(0, 2*silence)
				b := c.work("b", open)
				c.pass(7 * time.Second)
				c.broker.CutOff("b", links)
				if how == "crash" {
					c.crash(b)
				}
				c.gap()
				result := a.transferring(context.Background(), 0, "b")
				c.pass(500 * time.Millisecond)
				if how != "leaves" {
					c.pass(490 * time.Millisecond)
				}
				require.Empty(c, result)
				if how == "leaves" {
					require.NoError(c, b.Close()) // that is heard at once
				}
				c.pass(20 * time.Millisecond)
				require.Len(c, result, 1)
				require.ErrorIs(c, <-result, neli.ErrNoAnswer)
				c.pass(5 * time.Second)
				require.Equal(c, []string{"acquired"}, a.kinds())
				require.Zero(c, c.gap())
				require.Equal(c, 1, c.calls(0))
			})
		})
	}
}

// A leader that closes does not release in favour of a member that has not answered:
// the others would leave that a head start.
func TestCloseBesideTheSilent(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *cluster) {
		a := c.work("a", open)
		c.leader(0, 2*silence)
		c.work("b", func(cfg *neli.Config) { open(cfg); cfg.Priority = 10 })
		d := c.work("d", open)
		c.pass(7 * time.Second)
		c.broker.CutOff("b", nelitest.All)
		c.gap()
		began := time.Now()
		require.NoError(c, a.Close())
		require.InDelta(c, time.Second, time.Since(began), float64(50*time.Millisecond))
		c.eventually(time.Second, "the other one leads", d.IsLeader)
		// Its rank is the second: three round trips at most, taken for less than 7 ms each
		// after the two Hellos that it has said, and two records. A head start would be ten
		// round trips.
		require.LessOrEqual(c, c.gap(), 25*time.Millisecond)
		require.Equal(c, 1, c.calls(0))
	})
}

// The one that was meant dies while the application finishes, and there is nobody who
// would lead instead: Transfer does not wait for ever.
func TestTransferToNobody(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *cluster) {
		var health sick
		a := c.work("a", func(cfg *neli.Config) { open(cfg); health.config(cfg) })
		c.leader(0, 2*silence)
		b := c.work("b", open)
		c.pass(7 * time.Second)
		a.hold(4 * time.Second)
		began := time.Now()
		result := a.transferring(context.Background(), 0, "b")
		c.pass(time.Second)
		c.crash(b)
		health.yes.Store(true)
		err := <-result
		require.ErrorIs(c, err, neli.ErrNotTransferred)
		require.ErrorContains(c, err, "nobody leads yet")
		require.Equal(c, time.Second+10*time.Second+2*5*time.Second, time.Since(began), "an answer, a drain and two T")
		require.Equal(c, []string{"acquired", "revoked"}, a.kinds())
	})
}

var errEnough = errors.New("enough")

// The end of the context ends the call, not the hand-over.
func TestTransferEndsWithItsContext(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *cluster) {
		from, others := trio(c, open)
		from.hold(4 * time.Second)
		ctx, cancel := context.WithCancelCause(context.Background())
		result := from.transferring(ctx, 0, others[1].name)
		c.pass(time.Second)
		cancel(errEnough)
		require.ErrorIs(c, <-result, errEnough)
		require.True(c, from.IsLeader())
		c.eventually(3100*time.Millisecond, "it leads all the same", others[1].IsLeader)
	})
}

// Close while a Transfer is under way ends both.
func TestCloseEndsTransfer(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *cluster) {
		from, others := trio(c, open)
		from.hold(4 * time.Second)
		result := from.transferring(context.Background(), 0, others[1].name)
		c.pass(time.Second)
		began := time.Now()
		require.NoError(c, from.Close())
		require.LessOrEqual(c, time.Since(began), 3100*time.Millisecond)
		if err := <-result; err != nil {
			require.ErrorIs(c, err, neli.ErrClosed)
		}
		c.eventually(50*time.Millisecond, "the one that was meant leads", others[1].IsLeader)
	})
}

// A process that is cut off while a Transfer is under way is told of its end.
func TestTransferOfOneThatIsCutOff(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *cluster) {
		from, others := trio(c, open)
		told := from.hold(time.Second)
		result := from.transferring(context.Background(), 0, others[0].name)
		<-told
		c.broker.CutOff(from.name, nelitest.All)
		c.eventually(2*silence, "another leads", func() bool { return others[0].IsLeader() || others[1].IsLeader() })
		c.pass(time.Second)
		require.Empty(c, result, "nothing is known yet")
		c.broker.Restore(from.name, nelitest.All)
		c.pass(2 * time.Second)
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
	simulateWith(t, nelitest.Options{}, wide(n), func(c *cluster) {
		require.NoError(c, c.broker.CreateTopic("app.neli", n))
		a := c.work("a", many(n, priority(10)))
		b := c.work("b", many(n))
		c.eventually(2*silence, "a leads all", func() bool { return c.shares(n)["a"] == n })
		c.pass(steady)
		require.NoError(c, a.Transfer(c.atMost(time.Minute), 0, "b"))
		require.NoError(c, a.Transfer(c.atMost(time.Minute), 3, "b"))
		c.pass(4 * time.Minute)
		require.True(c, b.IsLeaderOf(0) && b.IsLeaderOf(3))
		require.Equal(c, n-2, c.shares(n)["a"])
		c.orderly()
		c.broker.CutOff("b", nelitest.All) // the term ends
		c.eventually(2*silence, "a leads all", func() bool { return c.shares(n)["a"] == n })
		c.broker.Restore("b", nelitest.All)
		c.pass(2 * time.Minute)
		require.Equal(c, n, c.shares(n)["a"])
	})
}

// A Transfer moves a partition, with all roles that live there.
func TestRolesOnTheSamePartitionMoveTogether(t *testing.T) {
	simulateWith(t, nelitest.Options{}, wide(6), func(c *cluster) {
		two := func(cfg *neli.Config) { cfg.Nomination, cfg.Partitions = neli.Open, 2 }
		a := c.work("a", two)
		c.eventually(2*silence, "a leads all", func() bool { return c.shares(6)["a"] == 6 })
		b := c.work("b", two)
		c.pass(6 * time.Second)
		require.NoError(c, a.Transfer(c.atMost(time.Minute), 3, "b"))
		c.eventually(20*time.Millisecond, "b leads", func() bool { return b.IsLeaderOf(1) && b.IsLeaderOf(3) && b.IsLeaderOf(5) })
		require.True(c, a.IsLeaderOf(0) && a.IsLeaderOf(2) && a.IsLeaderOf(4))
	})
}

// Two Transfers of a role at the same time: one is refused.
func TestTransferTwice(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *cluster) {
		from, others := trio(c, open)
		from.hold(2 * time.Second)
		first := from.transferring(context.Background(), 0, others[0].name)
		c.pass(time.Second)
		require.ErrorIs(c, from.Transfer(c.atMost(time.Minute), 0, others[1].name), neli.ErrNotLeader)
		require.NoError(c, <-first)
	})
}
