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

// At the first election, after a crash and after a join everybody has a share, and
// then nothing moves any more; on one partition as on several.
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
				require.Zero(c, c.shares(n)["e"]+c.shares(n)["f"], "not before they have been there for a while")
				c.level(n, 30*time.Second)
				before := c.terms()
				c.Pass(2 * time.Minute)
				require.Equal(c, before, c.terms(), "and then nothing moves")
				c.orderly()
			})
		})
	}
}

// A cold start of many gives each its share at once: every role is claimed once, and
// nothing is moved afterwards.
func TestColdStartSharesAtOnce(t *testing.T) {
	const n = 120
	for _, m := range []int{1, 4} {
		for _, size := range []int{2, 12} {
			t.Run(fmt.Sprintf("%d members, %d partitions", size, m), func(t *testing.T) {
				Simulate(t, nelitest.Options{}, wide(n), func(c *Cluster) {
					require.NoError(c, c.Broker.CreateTopic(topic, m)) // all start at the same time
					for i := range size {
						c.Work(fmt.Sprint("m", i), manyOn(m, n))
					}
					c.level(n, election)
					k := c.Contest(m)
					c.Logf("%d claims in %d records, %d won", k.Claims, k.Records, k.Won)
					require.Equal(c, n, k.Won, "each role once")
					require.LessOrEqual(c, k.Claims, n+n/5)
					c.Pass(time.Minute)
					require.Equal(c, n, c.terms(), "nothing is moved")
				})
			})
		}
	}
}

// Whatever a member had when it crashes, all others get their part of it in about
// T′. Each role is claimed by one of them only where all hear the same at the same
// time; where latencies vary by more than a round trip takes otherwise, a fifth of the
// claims may be too many.
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

// A join moves what is needed to level, no more, in one batch: one orderly revocation
// that the next leader follows in a few round trips, within 30 s.
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
			require.Equal(c, n/2, k.Claims, "half of all moves, each once")
			require.Equal(c, n/2, k.Won)
			require.LessOrEqual(c, k.Records, m, "in one batch")
			require.LessOrEqual(c, c.Gap(), 30*time.Millisecond)
			c.orderly()
			roles, why := a.revoked()
			require.Len(c, roles, n/2)
			require.Equal(c, []neli.Reason{neli.ReasonRebalanced}, why, "one event")
		})
	}
}

// Without rebalancing a leader stays, whoever joins.
func TestRebalanceOff(t *testing.T) {
	const n = 6
	Simulate(t, nelitest.Options{}, wide(n), func(c *Cluster) {
		a := c.Work("a", many(n, rebalanceOff))
		c.Eventually(2*silence, "a leads all", c.leadsAll("a", n))
		c.Pass(time.Second)
		told := len(a.Kinds())
		c.Work("b", many(n, rebalanceOff))
		c.Work("d", many(n, rebalanceOff, priority(100)))
		c.Pass(5 * time.Minute)
		require.Equal(c, map[string]int{"a": n}, c.shares(n))
		require.Len(c, a.Kinds(), told)
		c.Crash(a)
		c.Eventually(takeover, "the preferred one leads all", c.leadsAll("d", n))
	})
}

// Close, the return of Lead and StepDown spread what was held over all others, in round
// trips: who is to lead each role was named before.
func TestWhatIsGivenUpIsSharedOut(t *testing.T) {
	const n = 30
	for _, m := range []int{1, 3} {
		for _, how := range []string{"close", "resign", "step down"} {
			t.Run(fmt.Sprintf("%s, %d partitions", how, m), func(t *testing.T) {
				Simulate(t, nelitest.Options{}, wide(n), func(c *Cluster) {
					a := c.Join("a", manyOn(m, n))
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
					require.Equal(c, n, k.Claims, "each has one claimant")
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

// What a process leads by Lead moves together, however many functions have to end: one
// Release, one Claim, and five round trips from the call of Close on.
func TestManyRolesMoveTogether(t *testing.T) {
	const n = 1000
	Simulate(t, nelitest.Options{}, wide(n), func(c *Cluster) {
		a := c.Join("a", many(n))
		go func() {
			_ = a.Lead(context.Background(), func(ctx context.Context, l neli.Leadership) error {
				<-ctx.Done()
				time.Sleep(time.Duration(l.Role) * time.Microsecond) // some wake up before others
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

// All forget each other while the broker is down. When it is back all is led again
// within 2 T, each claims its share, and nothing has to be moved.
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

// On a slow log nobody hears of others' claims in time. Members claim their share and
// see what has become of that, not everything at once.
func TestFewClaimsOnASlowLog(t *testing.T) {
	const n, size = 192, 12
	slow := nelitest.Options{AppendLatency: 300 * time.Millisecond, ReadLatency: 300 * time.Millisecond, Jitter: 200 * time.Millisecond}
	timeouts := []time.Duration{5 * time.Second, time.Minute}
	if seeded.Race {
		timeouts = timeouts[:1] // make sim has both, without the race detector
	}
	for _, timeout := range timeouts {
		Simulate(t, slow, wide(n), func(c *Cluster) {
			require.NoError(c, c.Broker.CreateTopic(topic, 4)) // all begin together
			for i := range size {
				c.Work(fmt.Sprint("m", i), manyOn(4, n, leaseOf(timeout)))
			}
			c.Eventually(2*timeout+5*time.Second, "all is led", c.allLed(n))
			k := c.Contest(4)
			c.Logf("T = %v: %d claims in %d records, %d won", timeout, k.Claims, k.Records, k.Won)
			require.LessOrEqual(c, k.Records, 3*4*size, "a record for the share on each partition, and two for what is left")
		})
	}
}

// What all begin to want at the same instant each claims once: nobody knows yet that
// the others want it, too. What the first one gets it shares afterwards.
func TestRolesThatAllBeginToWant(t *testing.T) {
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
		c.Eventually(time.Second, "all is led", c.allLed(n))
		k := c.Contest(1).Less(before)
		c.Logf("%d claims in %d records, %d won", k.Claims, k.Records, k.Won)
		require.Equal(c, n-1, k.Won)
		require.LessOrEqual(c, k.Records, size)
		c.level(n, 30*time.Second)
	})
}

// What was released in its favour a member claims at once, however much that is.
func TestSuccessorOfMany(t *testing.T) {
	const n = 25_000 // three Claims
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
