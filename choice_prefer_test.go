package neli_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
	"github.com/stretchr/testify/require"
)

// sick is a process's own check, which a test answers.
type sick struct {
	yes   atomic.Bool
	calls atomic.Int64
}

func (s *sick) check() error {
	s.calls.Add(1)
	if s.yes.Load() {
		return errSick
	}
	return nil
}

func (s *sick) config(cfg *neli.Config) { cfg.Healthy = s.check }

// count returns how often a kind of event was told.
func (m *member) count(kind string) (n int) {
	for _, k := range m.kinds() {
		if k == kind {
			n++
		}
	}
	return n
}

// The highest priority leads from the first election on; of those left the next
// one; and one that comes back waits until it is steady.
func TestPriority(t *testing.T) {
	const n = 4
	simulateWith(t, nelitest.Options{}, wide(n), func(c *cluster) {
		require.NoError(c, c.broker.CreateTopic("app.neli", n))
		for i, name := range []string{"a", "b", "d"} {
			c.work(name, many(n, priority(10-i)))
		}
		leadsAll := func(name string) func() bool { return func() bool { return c.shares(n)[name] == n } }
		c.eventually(silence+100*time.Millisecond, "the highest leads", leadsAll("a"))
		claims, won := c.contest(n)
		require.Equal(c, []int{n, n}, []int{claims, won})
		c.pass(steady)
		c.crash(c.members["a"])
		c.eventually(silence+100*time.Millisecond, "the next one leads", leadsAll("b"))
		back := c.work("a", many(n, priority(10)))
		c.pass(14900 * time.Millisecond)
		require.True(c, leadsAll("b")(), "not before it is steady")
		c.eventually(steady-14900*time.Millisecond+3*time.Second, "the highest leads again", leadsAll("a"))
		require.Equal(c, n, c.members["b"].count("revoked"), "one at a time")
		before := len(back.kinds())
		c.pass(5 * time.Minute)
		require.Len(c, back.kinds(), before)
		c.orderly()
	})
}

// A preferred member that is never steady takes nothing over, however it flaps: by
// crashes, by its health, or by being cut off so that its leases lapse.
func TestFlappingMemberTakesNothingOver(t *testing.T) {
	for _, how := range []string{"crash", "health", "restart"} {
		t.Run(how, func(t *testing.T) {
			const n = 3
			simulateWith(t, nelitest.Options{}, wide(n), func(c *cluster) {
				var health sick
				with := many(n, priority(10), health.config)
				b := c.work("b", many(n))
				c.eventually(2*silence, "b leads", func() bool { return c.shares(n)["b"] == n })
				told := len(b.kinds())
				a := c.work("a", with)
				for range 12 {
					c.pass(10 * time.Second)
					switch how {
					case "crash":
						c.crash(a)
						a = c.work("a", with)
					case "restart":
						require.NoError(c, a.Close())
						a = c.work("a", with)
					case "health":
						health.yes.Store(true)
						c.pass(2 * time.Second)
						health.yes.Store(false)
					}
					require.Equal(c, n, c.shares(n)["b"])
				}
				require.Len(c, b.kinds(), told)
				c.eventually(steady+5*time.Second, "until it is steady", func() bool { return c.shares(n)["a"] == n })
			})
		})
	}
}

// A preferred leader whose lease lapsed is not given back what it lost before it has
// been there for a while.
func TestLapsedLeaderIsNotSteady(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *cluster) {
		a, b := c.work("a", many(1, priority(10))), c.work("b", many(1))
		c.eventually(steady+10*time.Second, "a leads", a.IsLeader)
		c.pass(steady)
		for range 3 {
			c.broker.CutOff("a", nelitest.All)
			c.eventually(defaultT+silence, "b leads", b.IsLeader)
			c.pass(500 * time.Millisecond)
			c.broker.Restore("a", nelitest.All)
			c.pass(14 * time.Second)
			require.True(c, b.IsLeader(), "not before a is steady")
			c.eventually(10*time.Second, "a leads again", a.IsLeader)
			c.pass(time.Minute)
			require.True(c, a.IsLeader())
		}
	})
}

// With a function each partition is led by the member that is preferred there, and
// by the next one if that is not.
func TestPreferenceByPartition(t *testing.T) {
	const n = 9
	order := []string{"a", "b", "d"}
	prefer := func(cfg *neli.Config) {
		cfg.Priority = 5 // plays no part
		cfg.Preference = func(m neli.Member, p int) int {
			for i, name := range order {
				if m.Name == name {
					return -((i + p) % 3)
				}
			}
			return -100
		}
	}
	simulateWith(t, nelitest.Options{}, wide(n), func(c *cluster) {
		for _, name := range append(order, "z") {
			c.work(name, many(n, prefer))
		}
		placed := func() bool {
			for role := range n {
				if !c.members[order[(3-role%3)%3]].IsLeaderOf(role) {
					return false
				}
			}
			return true
		}
		c.eventually(steady+15*time.Second, "all are where they belong", placed)
		before := c.terms()
		c.pass(2 * time.Minute)
		require.Equal(c, before, c.terms())
		c.crash(c.members["b"])
		c.eventually(silence+100*time.Millisecond, "the next one in the order leads", func() bool {
			return c.shares(n)["a"]+c.shares(n)["d"] == n
		})
		for role := range n {
			if role%3 == 2 { // b's: after it comes d
				require.True(c, c.members["d"].IsLeaderOf(role))
			}
		}
		require.Zero(c, c.shares(n)["z"], "whom the function wants least")
		c.work("b", many(n, prefer))
		c.eventually(steady+15*time.Second, "all are where they belong again", placed)
		c.orderly()
	})
}

// Members whose functions contradict each other hand partitions to and fro no more
// than once in 30 s, always in order, and there is always a leader.
func TestContradictoryPreferences(t *testing.T) {
	const n = 3
	members := []string{"a", "b", "d"}
	for _, want := range []string{"itself", "the next one", "anybody else"} {
		t.Run(want, func(t *testing.T) {
			simulateWith(t, nelitest.Options{}, wide(n), func(c *cluster) {
				for i, name := range members {
					chosen := map[string]string{"itself": name, "the next one": members[(i+1)%3]}[want]
					c.work(name, many(n, func(cfg *neli.Config) {
						cfg.Preference = func(m neli.Member, _ int) int {
							if m.Name == chosen || chosen == "" && m.Name != name {
								return 1
							}
							return 0
						}
					}))
				}
				c.eventually(2*silence, "all are led", func() bool { return len(c.owned(n)) == n })
				c.pass(time.Minute)
				_, before := c.contest(n)
				c.gap()
				c.pass(10 * time.Minute)
				_, after := c.contest(n)
				require.LessOrEqual(c, after-before, n*10*60/30+n)
				if want == "itself" {
					require.Zero(c, after-before)
				} else {
					require.Greater(c, after-before, n*5, "they do contradict each other")
				}
				require.LessOrEqual(c, c.gap(), 2*time.Second, "a few round trips for each move: 50 ms is the sampler's grain")
				c.orderly()
			})
		})
	}
}
