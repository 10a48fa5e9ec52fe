package scenario

import (
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
	"github.com/stretchr/testify/require"
)

// The member with the highest priority leads from the first election on. When it is gone, the
// next one leads. When it comes back, it waits until it is steady.
func TestPriority(t *testing.T) {
	const n = 4
	Simulate(t, nelitest.Options{}, wide(n), func(c *Cluster) {
		require.NoError(c, c.Broker.CreateTopic(topic, 1))
		for i, name := range []string{"a", "b", "d"} {
			c.Work(name, many(n, priority(10-i)))
		}
		c.Eventually(takeover, "the highest leads", c.leadsAll("a", n))
		require.Equal(c, Contest{n, n, 1}, c.Contest(1))
		c.Pass(steady)
		c.Crash(c.Members["a"])
		c.Eventually(takeover, "the next one leads", c.leadsAll("b", n))
		back := c.Work("a", many(n, priority(10)))
		c.Pass(14900 * time.Millisecond)
		require.True(c, c.leadsAll("b", n)(), "takes over before it is steady")
		c.Eventually(steady-14900*time.Millisecond+3*time.Second, "the highest leads again", c.leadsAll("a", n))
		require.Equal(c, 1, c.Members["b"].count("revoked"), "all together")
		before := len(back.Kinds())
		c.Pass(5 * time.Minute)
		require.Len(c, back.Kinds(), before)
		c.orderly()
	})
}

// SetPriority moves leadership as another Config.Priority would, and back, each role at most once in 30 s.
func TestSetPriority(t *testing.T) {
	const n = 4
	Simulate(t, nelitest.Options{}, wide(n), func(c *Cluster) {
		a, b := c.Work("a", many(n, priority(1))), c.Work("b", many(n))
		c.Eventually(steady+15*time.Second, "the highest leads", c.leadsAll("a", n))
		c.Pass(steady)
		require.Error(c, b.SetPriority(1_000_001))
		require.NoError(c, b.SetPriority(2))
		c.Eventually(6*time.Second, "the highest leads now", c.leadsAll("b", n))
		require.Equal(c, 1, a.count("revoked"), "all together")
		for _, m := range a.Members() {
			require.Equal(c, map[string]int{"a": 1, "b": 2}[m.Name], m.Priority)
		}
		moved := time.Now()
		require.NoError(c, b.SetPriority(-1))
		c.Eventually(40*time.Second, "and back", c.leadsAll("a", n))
		require.GreaterOrEqual(c, time.Since(moved), 29*time.Second, "a role moves once in 30 s")
		before := c.terms()
		c.Pass(2 * time.Minute)
		require.Equal(c, before, c.terms())
		c.orderly()
	})
}

// With ByZone all roles are led in the first zone that has a member, there by the highest priority.
func TestByZone(t *testing.T) {
	const n = 6
	zone := func(z string, p int) func(*neli.Config) {
		return func(cfg *neli.Config) { cfg.Zone, cfg.Priority, cfg.Preference = z, p, neli.ByZone("x", "y") }
	}
	Simulate(t, nelitest.Options{}, wide(n), func(c *Cluster) {
		c.Work("a", many(n, zone("x", 0)))
		b := c.Work("b", many(n, zone("x", 0)))
		c.Work("d", many(n, zone("y", 9)))
		c.Work("e", many(n, zone("", 9)))
		c.Eventually(steady+15*time.Second, "both of the first zone lead", func() bool { s := c.shares(n); return s["a"] == n/2 && s["b"] == n/2 })
		c.Pass(steady)
		require.NoError(c, b.SetPriority(1))
		c.Eventually(40*time.Second, "the one with the higher priority", c.leadsAll("b", n))
		c.Crash(b)
		c.Eventually(takeover, "the other one of its zone", c.leadsAll("a", n))
		c.Crash(c.Members["a"])
		c.Eventually(takeover, "the second zone", c.leadsAll("d", n))
		c.Crash(c.Members["d"])
		c.Eventually(takeover, "the member without a zone", c.leadsAll("e", n))
		c.orderly()
	})
}

// A member leads no more roles than it wants while others have room, whoever is preferred, dies or joins.
func TestMaxRoles(t *testing.T) {
	const n = 12
	most := func(m int) func(*neli.Config) { return func(cfg *neli.Config) { cfg.MaxRoles = m } }
	var log raw
	Simulate(t, nelitest.Options{}, wide(n), func(c *Cluster) {
		c.Work("a", many(n, most(3), priority(10), func(cfg *neli.Config) { cfg.Logger = slog.New(&log) }))
		b := c.Work("b", many(n))
		c.Work("d", many(n, most(5)))
		c.Eventually(steady+15*time.Second, "a, which is preferred, leads three, the others the rest", func() bool {
			s := c.shares(n)
			return s["a"] == 3 && s["b"] >= 4 && s["d"] >= 4 && s["b"]+s["d"] == 9
		})
		c.Pass(steady)
		before := c.terms()
		c.Pass(2 * time.Minute)
		require.Equal(c, before, c.terms())
		require.NotContains(c, log.String(), "MaxRoles,")
		c.Crash(b)
		c.Eventually(takeover, "not enough for all: those with least get more", func() bool { s := c.shares(n); return s["a"]+s["d"] == n && s["a"] >= 5 })
		c.Pass(2 * time.Second)
		require.Equal(c, 1, strings.Count(log.String(), "MaxRoles,"))
		c.Work("b", many(n))
		c.Eventually(steady+15*time.Second, "a and d give back what is too much", func() bool { s := c.shares(n); return s["a"] <= 3 && s["d"] <= 5 && s["b"] >= 4 })
		c.orderly()
	})
}

// A preferred member that is never steady takes nothing over, whether it crashes, restarts, or becomes unhealthy.
func TestFlappingMemberTakesNothingOver(t *testing.T) {
	for _, how := range []string{"crash", "health", "restart"} {
		t.Run(how, func(t *testing.T) {
			const n = 3
			Simulate(t, nelitest.Options{}, wide(n), func(c *Cluster) {
				var health sick
				with := many(n, priority(10), health.config)
				b := c.Work("b", many(n))
				c.Eventually(2*silence, "b leads", c.leadsAll("b", n))
				told := len(b.Kinds())
				a := c.Work("a", with)
				for range 12 {
					c.Pass(10 * time.Second)
					switch how {
					case "crash":
						c.Crash(a)
						a = c.Work("a", with)
					case "restart":
						require.NoError(c, a.Close())
						a = c.Work("a", with)
					case "health":
						health.yes.Store(true)
						c.Pass(2 * time.Second)
						health.yes.Store(false)
					}
					require.Equal(c, n, c.shares(n)["b"])
				}
				require.Len(c, b.Kinds(), told)
				c.Eventually(steady+5*time.Second, "a leads all once it is steady", c.leadsAll("a", n))
			})
		})
	}
}

// A preferred leader whose lease lapsed gets back what it lost only when it has been up for a while.
func TestLapsedLeaderIsNotSteady(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *Cluster) {
		a, b := c.Work("a", many(1, priority(10))), c.Work("b", many(1))
		c.Eventually(steady+10*time.Second, "a leads", a.IsLeader)
		c.Pass(steady)
		for range 3 {
			c.Broker.CutOff("a", nelitest.LinkAll)
			c.Eventually(defaultT+silence, "b leads", b.IsLeader)
			c.Pass(500 * time.Millisecond)
			c.Broker.Restore("a", nelitest.LinkAll)
			c.Pass(14 * time.Second)
			require.True(c, b.IsLeader(), "a takes over before it is steady")
			c.Eventually(10*time.Second, "a leads again", a.IsLeader)
			c.Pass(time.Minute)
			require.True(c, a.IsLeader())
		}
	})
}

// With a preference function, each role is led by the member preferred for it, or by the next one if that is gone.
func TestPreferenceByRole(t *testing.T) {
	const n = 9
	order := []string{"a", "b", "d"}
	prefer := func(cfg *neli.Config) {
		cfg.Priority = 5 // the function overrides it
		cfg.Preference = func(m neli.Member, role int) int {
			for i, name := range order {
				if m.Name == name {
					return -((i + role) % 3)
				}
			}
			return -100
		}
	}
	Simulate(t, nelitest.Options{}, wide(n), func(c *Cluster) {
		for _, name := range append(order, "z") {
			c.Work(name, many(n, prefer))
		}
		placed := func() bool {
			for role := range n {
				if !c.Members[order[(3-role%3)%3]].IsLeaderOf(role) {
					return false
				}
			}
			return true
		}
		c.Eventually(steady+15*time.Second, "all roles are at their preferred members", placed)
		before := c.terms()
		c.Pass(2 * time.Minute)
		require.Equal(c, before, c.terms())
		c.Crash(c.Members["b"])
		c.Eventually(takeover, "the next one in the order leads", func() bool {
			return c.shares(n)["a"]+c.shares(n)["d"] == n
		})
		for role := range n {
			if role%3 == 2 { // one of b's roles, for which d comes next
				require.True(c, c.Members["d"].IsLeaderOf(role))
			}
		}
		require.Zero(c, c.shares(n)["z"], "z leads, whom the function prefers least")
		c.Work("b", many(n, prefer))
		c.Eventually(steady+15*time.Second, "all roles are at their preferred members again", placed)
		c.orderly()
	})
}

// Preference gets the same arguments for a member at every process, so that all get the same result.
func TestPreferenceGetsTheSameArgumentsEverywhere(t *testing.T) {
	const n = 3
	var mu sync.Mutex
	asked := map[string]map[neli.Member]bool{"a": {}, "b": {}} // by calling process
	Simulate(t, nelitest.Options{}, wide(n), func(c *Cluster) {
		for i, name := range []string{"a", "b"} {
			c.Work(name, many(n, func(cfg *neli.Config) {
				cfg.Priority, cfg.Advertise, cfg.Zone = i, name+":1", "zone-"+name
				cfg.Preference = func(m neli.Member, _ int) int {
					mu.Lock()
					defer mu.Unlock()
					asked[name][m] = true
					return m.Priority
				}
			}))
			c.Pass(10 * time.Second)
		}
	})
	require.Len(t, asked["a"], 2)
	for m := range asked["a"] {
		require.Equal(t, []string{m.Name + ":1", "zone-" + m.Name}, []string{m.Advertise, m.Zone})
	}
	require.Equal(t, asked["a"], asked["b"])
}

// Members whose functions contradict each other move a role at most once in 30 s, always in an
// orderly way, and the role always has a leader.
func TestContradictoryPreferences(t *testing.T) {
	const n = 3
	members := []string{"a", "b", "d"}
	for _, want := range []string{"itself", "the next one", "anybody else"} {
		t.Run(want, func(t *testing.T) {
			Simulate(t, nelitest.Options{}, wide(n), func(c *Cluster) {
				for i, name := range members {
					chosen := map[string]string{"itself": name, "the next one": members[(i+1)%3]}[want]
					c.Work(name, many(n, func(cfg *neli.Config) {
						cfg.Preference = func(m neli.Member, _ int) int {
							if m.Name == chosen || chosen == "" && m.Name != name {
								return 1
							}
							return 0
						}
					}))
				}
				c.Eventually(2*silence, "all are led", c.allLed(n))
				c.Pass(time.Minute)
				before := c.Contest(1)
				c.Gap()
				c.Pass(10 * time.Minute)
				moves := c.Contest(1).Less(before).Won
				require.LessOrEqual(c, moves, n*10*60/30+n)
				if want == "itself" {
					require.Zero(c, moves)
				} else {
					require.Greater(c, moves, n*5, "the functions do not contradict each other")
				}
				require.LessOrEqual(c, c.Gap(), 2*time.Second, "a few round trips for each move: 50 ms is the sampler's grain")
				c.orderly()
			})
		})
	}
}

// A function may end its goroutine, as t.FailNow does. The member that it was asked about is then not preferred, and the
// process goes on.
func TestPreferenceThatEndsItsGoroutine(t *testing.T) {
	const n = 3
	Simulate(t, nelitest.Options{}, wide(n), func(c *Cluster) {
		a := c.Work("a", many(n, func(cfg *neli.Config) {
			cfg.Preference = func(neli.Member, int) int { runtime.Goexit(); return 1 }
		}))
		c.Eventually(2*silence, "all are led", c.allLed(n))
		c.Pass(time.Minute)
		require.Equal(c, n, c.shares(n)["a"])
		require.NoError(c, a.Close())
	})
}
