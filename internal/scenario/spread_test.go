package scenario

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/internal/seeded"
	"github.com/goneli/neli/nelitest"
	"github.com/stretchr/testify/require"
)

// At the first election, after a crash, and after a join, every member gets a share, and then
// nothing moves. This holds for one partition and for several.
func TestOpenSpreadsRoles(t *testing.T) {
	const n = 24
	for _, m := range []int{1, 3, 24} {
		t.Run(fmt.Sprint(m, " partitions"), func(t *testing.T) {
			Simulate(t, nelitest.Options{}, wide(n), func(c *Cluster) {
				for _, name := range []string{"a", "b", "c", "d"} {
					c.Work(name, manyOn(m, n))
				}
				c.Leader(0, 2*silence)
				c.level(n, steady+10*time.Second)
				c.Crash(c.Members["d"])
				c.level(n, silence+time.Second)
				c.Work("e", manyOn(m, n))
				c.Work("f", manyOn(m, n))
				c.Pass(14 * time.Second)
				require.Zero(c, c.shares(n)["e"]+c.shares(n)["f"], "given roles before they are steady")
				c.level(n, 30*time.Second)
				before := c.terms()
				c.Pass(2 * time.Minute)
				require.Equal(c, before, c.terms(), "roles still move")
				c.orderly()
			})
		})
	}
}

// After a cold start of many members, each has its share at once: every role is claimed once, and
// nothing moves afterwards.
func TestColdStartSharesAtOnce(t *testing.T) {
	const n = 120
	for _, m := range []int{1, 4} {
		for _, size := range []int{2, 12} {
			t.Run(fmt.Sprintf("%d members, %d partitions", size, m), func(t *testing.T) {
				Simulate(t, nelitest.Options{}, wide(n), func(c *Cluster) {
					require.NoError(c, c.Broker.CreateTopic(topic, m)) // so that all start at the same time
					for i := range size {
						c.Work(fmt.Sprint("m", i), manyOn(m, n))
					}
					c.level(n, election)
					k := c.Contest(m)
					c.Logf("%d claims in %d records, %d won", k.Claims, k.Records, k.Won)
					require.Equal(c, n, k.Won, "a role was won more than once")
					require.LessOrEqual(c, k.Claims, n+n/5)
					c.Pass(time.Minute)
					require.Equal(c, n, c.terms(), "roles have moved")
				})
			})
		}
	}
}

// When a member has crashed, all others get their part of its roles in about W(T). Only if all hear
// everything at the same time does exactly one of them claim each role. If latencies vary by more
// than the time reserved for a round trip, up to a fifth of the claims may be superfluous.
func TestCrashSpreadsOverAllSurvivors(t *testing.T) {
	const n = 60
	for _, m := range []int{1, 5} {
		for _, jitter := range []time.Duration{0, time.Millisecond} {
			t.Run(fmt.Sprintf("%d partitions, jitter %v", m, jitter), func(t *testing.T) {
				Simulate(t, nelitest.Options{Jitter: jitter}, wide(n), func(c *Cluster) {
					require.NoError(c, c.Broker.CreateTopic(topic, m))
					for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
						c.Work(name, manyOn(m, n))
					}
					c.Eventually(election, "all are led", c.allLed(n))
					c.level(n, steady+15*time.Second)
					first := c.Contest(m)
					require.LessOrEqual(c, first.Claims-first.Won, n/5)
					for _, dead := range []string{"b", "e", "a"} {
						c.Pass(10 * time.Second)
						c.Crash(c.Members[dead])
						c.Eventually(takeover, "all are led again", c.allLed(n))
						for name, has := range c.shares(n) {
							off := 0.5
							if jitter > 0 {
								off = 4
							}
							require.InDelta(c, n/len(c.Names), has, off, "%s after %s", name, dead)
						}
					}
					k := c.Contest(m).Less(first)
					require.GreaterOrEqual(c, k.Won, 10+12+15)
					if jitter == 0 {
						require.Equal(c, k.Won, k.Claims)
					}
					require.LessOrEqual(c, k.Claims-k.Won, k.Claims/5)
					c.orderly()
				})
			})
		}
	}
}

// A join moves only as many roles as balance needs, within 30 s and in one batch: one orderly
// revocation, after which the next leader leads within a few round trips.
func TestJoinIsOneOrderlyBatch(t *testing.T) {
	const n = 12
	for _, m := range []int{1, 3} {
		Simulate(t, nelitest.Options{}, Roles(n), func(c *Cluster) {
			a := c.Work("a", manyOn(m, n))
			c.Eventually(2*silence, "a leads all", c.leadsAll("a", n))
			c.Pass(steady)
			c.Gap()
			before := c.Contest(m)
			c.Work("b", manyOn(m, n))
			c.level(n, 30*time.Second)
			k := c.Contest(m).Less(before)
			require.Equal(c, n/2, k.Claims, "does not move half of the roles, each once")
			require.Equal(c, n/2, k.Won)
			require.LessOrEqual(c, k.Records, m, "in more than one batch")
			require.LessOrEqual(c, c.Gap(), 30*time.Millisecond)
			c.orderly()
			roles, why := a.revoked()
			require.Len(c, roles, n/2)
			require.Equal(c, []neli.Reason{neli.ReasonRebalanced}, why, "one event")
		})
	}
}

// Close, the return of Lead, and StepDown spread the roles over all others within round trips,
// because successors are named beforehand.
func TestRolesGivenUpAreSpreadOverAll(t *testing.T) {
	const n = 30
	for _, m := range []int{1, 3} {
		for _, how := range []string{"close", "resign", "step down"} {
			t.Run(fmt.Sprintf("%s, %d partitions", how, m), func(t *testing.T) {
				Simulate(t, nelitest.Options{}, wide(n), func(c *Cluster) {
					a := c.Join("a", manyOn(m, n, rebalanceOff))
					ctx, cancel := context.WithCancel(context.Background())
					ended := make(chan error, 1)
					go func() {
						ended <- a.Lead(ctx, func(ctx context.Context, _ neli.Leadership) error { <-ctx.Done(); return nil })
					}()
					c.Eventually(2*silence, "a leads all", c.leadsAll("a", n))
					for _, name := range []string{"b", "d", "e"} {
						c.Work(name, manyOn(m, n, rebalanceOff))
					}
					c.Pass(5 * time.Second)
					before := c.Contest(m)
					began := time.Now()
					switch how {
					case "close":
						require.NoError(c, a.Close())
						require.ErrorIs(c, <-ended, neli.ErrClosed)
					case "resign":
						cancel()
						require.NoError(c, <-ended)
					case "step down":
						require.NoError(c, a.StepDown(c.atMost(time.Minute)))
					}
					c.Eventually(20*time.Millisecond, "each has its share", func() bool {
						s := c.shares(n)
						return s["b"] == n/3 && s["d"] == n/3 && s["e"] == n/3
					})
					require.Less(c, time.Since(began), 30*time.Millisecond)
					k := c.Contest(m).Less(before)
					require.Equal(c, n, k.Claims, "a role has more than one claimant")
					require.Equal(c, n, k.Won)
					cancel()
					if how == "step down" {
						require.NoError(c, <-ended)
					}
				})
			})
		}
	}
}

// Roles that a process leads with Lead move together, however many functions have to end. They take
// one Release, one Claim, and no more than five round trips from the call of Close.
func TestManyRolesMoveTogether(t *testing.T) {
	const n = 1000
	Simulate(t, nelitest.Options{}, wide(n), func(c *Cluster) {
		a := c.Join("a", many(n, rebalanceOff))
		go func() {
			_ = a.Lead(context.Background(), func(ctx context.Context, l neli.Leadership) error {
				<-ctx.Done()
				time.Sleep(time.Duration(l.Role) * time.Microsecond) // not all wake up at the same time
				return nil
			})
		}()
		c.Eventually(2*silence, "a leads all", c.leadsAll("a", n))
		c.Work("b", many(n, rebalanceOff))
		c.Work("d", many(n, rebalanceOff, priority(-1)))
		c.Pass(5 * time.Second)
		claims, releases := len(c.Records(0, lease.Claim)), len(c.Records(0, lease.Release))
		began := time.Now()
		require.NoError(c, a.Close())
		c.Eventually(20*time.Millisecond, "b leads all", c.leadsAll("b", n))
		require.LessOrEqual(c, time.Since(began), 5*2*time.Millisecond)
		require.Len(c, c.Records(0, lease.Claim), claims+1)
		require.Len(c, c.Records(0, lease.Release), releases+1)
	})
}

// While the broker is down, all members forget each other. When it is back, everything is led
// again within 2 T, each member claims its share, and nothing has to be moved.
func TestAllAreLedAgainAfterAnOutage(t *testing.T) {
	const n = 40
	for _, m := range []int{1, 4} {
		for range 3 {
			Simulate(t, nelitest.Options{}, wide(n), func(c *Cluster) {
				for _, name := range []string{"a", "b", "d", "e"} {
					c.Work(name, manyOn(m, n))
				}
				c.Eventually(2*silence, "all are led", c.allLed(n))
				c.Pass(30 * time.Second)
				before := c.Contest(m)
				c.Broker.Stop()
				c.Pass(40 * time.Second)
				require.Empty(c, c.owned(n))
				c.Broker.Start()
				c.Eventually(2*defaultT, "all are led again", c.allLed(n))
				k := c.Contest(m).Less(before)
				c.Logf("%d claims in %d records, %d won", k.Claims, k.Records, k.Won)
				require.LessOrEqual(c, k.Claims, n+n/5, "of %d", n*len(c.Names))
				c.level(n, time.Second)
			})
		}
	}
}

// On a slow log no member learns of others' claims in time. Members claim their share and wait
// for the result, rather than claim everything at once.
func TestFewClaimsOnASlowLog(t *testing.T) {
	const n, size = 192, 12
	slow := nelitest.Options{AppendLatency: 300 * time.Millisecond, ReadLatency: 300 * time.Millisecond, Jitter: 200 * time.Millisecond}
	timeouts := []time.Duration{5 * time.Second, time.Minute}
	if seeded.Race {
		timeouts = timeouts[:1] // make sim runs both, without the race detector
	}
	for _, timeout := range timeouts {
		Simulate(t, slow, wide(n), func(c *Cluster) {
			require.NoError(c, c.Broker.CreateTopic(topic, 4)) // so that all begin together
			for i := range size {
				c.Work(fmt.Sprint("m", i), manyOn(4, n, leaseOf(timeout)))
			}
			c.Eventually(2*timeout+5*time.Second, "all are led", c.allLed(n))
			k := c.Contest(4)
			c.Logf("T = %v: %d claims in %d records, %d won", timeout, k.Claims, k.Records, k.Won)
			require.LessOrEqual(c, k.Records, 3*4*size, "more than one record for the share on each partition, and two for the rest")
		})
	}
}

// If all begin to want the same new roles at the same instant, each member claims them, since it
// does not know yet that the others want them, too. The first one gets them, and shares them
// afterwards.
func TestNewRolesWantedByAllAreShared(t *testing.T) {
	const n, size = 192, 12
	Simulate(t, nelitest.Options{}, wide(n), func(c *Cluster) {
		for i := range size {
			c.Work(fmt.Sprint("m", i), many(n, func(cfg *neli.Config) { cfg.Roles = 1 }))
		}
		c.Leader(0, 2*silence)
		c.Pass(time.Minute)
		before := c.Contest(1)
		for _, m := range c.Members {
			require.NoError(c, m.SetRoles(n))
		}
		c.Eventually(time.Second, "all are led", c.allLed(n))
		k := c.Contest(1).Less(before)
		c.Logf("%d claims in %d records, %d won", k.Claims, k.Records, k.Won)
		require.Equal(c, n-1, k.Won)
		require.LessOrEqual(c, k.Records, size)
		c.level(n, 30*time.Second)
	})
}

// A member claims all roles that were released in its favour at once, however many.
func TestSuccessorClaimsManyRolesAtOnce(t *testing.T) {
	const n = 25_000 // takes three Claims
	prepare := func(c *Cluster) { c.Roles, c.Period = n, time.Second }
	Simulate(t, nelitest.Options{}, prepare, func(c *Cluster) {
		a := c.Work("a", many(n, rebalanceOff))
		c.Eventually(3*silence, "a leads all", c.leadsAll("a", n))
		c.Work("b", many(n, rebalanceOff))
		c.Pass(5 * time.Second)
		before := c.Contest(1)
		require.NoError(c, a.Close())
		c.Eventually(15*time.Millisecond, "b leads all", c.leadsAll("b", n))
		k := c.Contest(1).Less(before)
		require.Equal(c, Contest{n, n, 3}, k)
	})
}

// Members of a new group that start soon after each other have their shares within 5 s of the last start,
// though the first one claims everything at once. Others wait as usual. No role moves twice.
func TestNewGroupIsSharedOutSoon(t *testing.T) {
	for _, g := range []struct {
		members       int
		apart, within time.Duration
	}{{3, 0, 5 * time.Second}, {3, 500 * time.Millisecond, 5 * time.Second}, {3, 2 * time.Second, 5 * time.Second}, {3, 3 * time.Second, 5 * time.Second},
		{5, 2 * time.Second, 5 * time.Second}, {3, 5 * time.Second, 20 * time.Second}, {3, 10 * time.Second, 20 * time.Second}} {
		Simulate(t, nelitest.Options{}, wide(64), func(c *Cluster) {
			c.Work("a", many(64))
			c.Eventually(300*time.Millisecond, "a leads", c.led0)
			for i := 1; i < g.members; i++ {
				c.Pass(g.apart)
				c.Work(string(rune('a'+i)), many(64))
			}
			c.level(64, g.within)
			terms := c.terms()
			require.LessOrEqual(c, terms, 64+64-64/g.members, "%v: roles have moved twice", g)
			c.Pass(time.Minute)
			require.Equal(c, terms, c.terms(), "%v: roles have moved again", g)
		})
	}
}

// led0 reports whether role 0 is led.
func (c *Cluster) led0() bool { return c.led(0) }

// A member that flaps while the group is young gets roles once, and a preferred one gets none.
func TestFlappingMemberOfAYoungGroup(t *testing.T) {
	for name, change := range map[string]func(*neli.Config){"equal": func(*neli.Config) {}, "preferred": priority(10)} {
		Simulate(t, nelitest.Options{}, wide(4), func(c *Cluster) {
			a := c.Work("a", many(4))
			c.Eventually(300*time.Millisecond, "a leads all", c.leadsAll("a", 4))
			for range 3 {
				b := c.Work("b", many(4, change))
				c.Pass(4500 * time.Millisecond)
				c.Crash(b)
				c.Pass(500 * time.Millisecond)
			}
			most := 1
			if name == "preferred" {
				most = 0
			}
			require.Equal(c, most, a.count("revoked"), name)
		})
	}
}
