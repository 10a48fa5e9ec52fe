package neli_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
	"github.com/stretchr/testify/require"
)

// contest folds the log of n partitions as an outsider: how many claims were made,
// and how many of them won.
func (c *cluster) contest(n int) (claims, won int) {
	for p := range n {
		last, token := int64(-1), int64(-1)
		for _, raw := range c.broker.Records("app.neli", p) {
			r, ok := neli.DecodeWire(raw.Value, "app")
			if !ok || r.Kind == "hello" {
				continue
			}
			valid := r.Read >= last || r.Kind != "claim" && r.Token == token
			if valid {
				last = raw.Offset
			}
			switch r.Kind {
			case "claim":
				claims++
				if valid {
					won, token = won+1, raw.Offset
				}
			case "release":
				if valid {
					token = -1
				}
			}
		}
	}
	return claims, won
}

// orderly asserts that nobody lost anything but by an orderly revocation.
func (c *cluster) orderly() {
	c.Helper()
	for _, name := range c.names {
		require.NotContains(c, c.members[name].kinds(), "fenced", name)
	}
}

// Whatever a member had when it crashes, all others get their part of it in about
// T′. Each partition is claimed by one of them only where all hear the same at the
// same time; where latencies vary by more than a round trip takes otherwise, a fifth
// of the claims may be too many.
func TestCrashSpreadsOverAllSurvivors(t *testing.T) {
	const n = 60
	for _, jitter := range []time.Duration{0, time.Millisecond} {
		simulateWith(t, nelitest.Options{Jitter: jitter}, wide(n), func(c *cluster) {
			require.NoError(c, c.broker.CreateTopic("app.neli", n)) // all start at the same time
			for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
				c.work(name, many(n))
			}
			c.eventually(silence+200*time.Millisecond, "all are led", func() bool { return len(c.owned(n)) == n })
			c.level(n, steady+15*time.Second)
			claims, won := c.contest(n)
			require.LessOrEqual(c, claims-won, n/5)
			for _, dead := range []string{"b", "e", "a"} {
				c.pass(10 * time.Second)
				c.crash(c.members[dead])
				c.eventually(silence+200*time.Millisecond, "all are led again", func() bool { return len(c.owned(n)) == n })
				for name, has := range c.shares(n) {
					off := 0.5
					if jitter > 0 {
						off = 4
					}
					require.InDelta(c, n/len(c.names), has, off, "%s after %s", name, dead)
				}
			}
			made, wins := c.contest(n)
			made, wins = made-claims, wins-won
			require.GreaterOrEqual(c, wins, 10+12+15)
			if jitter == 0 {
				require.Equal(c, wins, made)
			}
			require.LessOrEqual(c, made-wins, made/5)
			c.orderly()
		})
	}
}

// A join moves what is needed to level, no more, and every move is an orderly
// revocation that the next leader follows in a few round trips.
func TestJoinIsOrderly(t *testing.T) {
	const n = 12
	prepare := func(c *cluster) { c.roles, c.period = n, time.Millisecond }
	simulateWith(t, nelitest.Options{}, prepare, func(c *cluster) {
		a := c.work("a", many(n))
		c.leader(0, 2*silence)
		c.pass(steady)
		c.gap()
		claims, won := c.contest(n)
		c.work("b", many(n))
		c.level(n, steady+15*time.Second)
		after, _ := c.contest(n)
		require.Equal(c, n/2, after-claims, "half of all moves, each once")
		_, wins := c.contest(n)
		require.Equal(c, n/2, wins-won)
		require.LessOrEqual(c, c.gap(), 30*time.Millisecond)
		c.orderly()
		a.mu.Lock()
		defer a.mu.Unlock()
		for _, e := range a.events {
			if r, ok := e.(neli.LeaderRevoked); ok {
				require.Equal(c, neli.ReasonRebalanced, r.Reason)
				require.Len(c, r.Partitions(), 1, "one at a time")
			}
		}
	})
}

// Without rebalancing a leader stays, whoever joins.
func TestRebalanceOff(t *testing.T) {
	const n = 6
	off := func(cfg *neli.Config) { cfg.Rebalance = neli.RebalanceOff }
	simulateWith(t, nelitest.Options{}, wide(n), func(c *cluster) {
		a := c.work("a", many(n, off))
		c.leader(0, 2*silence)
		c.pass(time.Second)
		told := len(a.kinds())
		c.work("b", many(n, off))
		c.work("d", many(n, off, priority(100)))
		c.pass(5 * time.Minute)
		require.Equal(c, map[string]int{"a": n}, c.shares(n))
		require.Len(c, a.kinds(), told)
		c.crash(a)
		c.eventually(silence+100*time.Millisecond, "the preferred one leads all", func() bool { return c.shares(n)["d"] == n })
	})
}

// Close, and the return of Lead, spread what was held over all others at once.
func TestHeirs(t *testing.T) {
	const n = 30
	for _, how := range []string{"close", "resign", "step down"} {
		t.Run(how, func(t *testing.T) {
			simulateWith(t, nelitest.Options{}, wide(n), func(c *cluster) {
				a := c.join("a", many(n))
				ctx, cancel := context.WithCancel(context.Background())
				ended := make(chan error, 1)
				go func() {
					ended <- a.Lead(ctx, func(ctx context.Context, _ neli.Leadership) error { <-ctx.Done(); return nil })
				}()
				c.eventually(2*silence, "a leads all", func() bool { return c.shares(n)["a"] == n })
				off := func(cfg *neli.Config) { cfg.Rebalance = neli.RebalanceOff }
				for _, name := range []string{"b", "d", "e"} {
					c.work(name, many(n, off))
				}
				c.pass(5 * time.Second)
				claims, won := c.contest(n)
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
				c.eventually(20*time.Millisecond, "each has its share", func() bool {
					s := c.shares(n)
					return s["b"] == n/3 && s["d"] == n/3 && s["e"] == n/3
				})
				require.Less(c, time.Since(began), 30*time.Millisecond)
				made, wins := c.contest(n)
				require.Equal(c, n, made-claims, "each has one claimant")
				require.Equal(c, n, wins-won)
				cancel()
				if how == "step down" {
					require.NoError(c, <-ended)
				}
			})
		})
	}
}

// workOn is work on a machine whose random source always returns 0.
func (c *cluster) workOn(name string, change func(*neli.Config)) *member {
	c.Helper()
	m := c.joinOn(name, change)
	_, err := m.Background(m.task)
	require.NoError(c, err)
	return m
}

var serial atomic.Int64

func (c *cluster) joinOn(name string, change func(*neli.Config)) *member {
	c.Helper()
	m := &member{name: name, c: c}
	cfg := c.config(name)
	change(&cfg)
	n, err := neli.NewOn(neli.Machine{
		Now: func() (mono, wall time.Duration) {
			d := time.Since(c.began) + time.Hour
			return d, d
		},
		Random: func(time.Duration) time.Duration { return 0 },
		NewID:  func() string { return fmt.Sprint("id", serial.Add(1)) },
	}, cfg, m.barrier)
	require.NoError(c, err)
	m.Neli = n
	c.mu.Lock()
	c.names = append(c.names, name)
	c.members[name] = m
	c.mu.Unlock()
	return m
}

// Candidates of equal rank without any jitter, who do not know each other and so
// claim at the same instant, still elect one, in T′ and two round trips (4 ms; and
// 6 ms of slack for the pulse loop): the log decides.
func TestEqualRanksElectInTime(t *testing.T) {
	const bound = 10 * time.Millisecond
	contests := 0
	for _, others := range []int{2, 5, 12} {
		for _, early := range []time.Duration{-2, -1, 0, 1, 2, 3, 4, 50} { // when they begin to contend, before T′ is over
			simulate(t, nelitest.Options{}, func(c *cluster) {
				quick := func(cfg *neli.Config) { cfg.Nomination = neli.Open; cfg.HeartbeatTimeout = 200 * time.Millisecond }
				wait := neli.SilenceOf(200*time.Millisecond, 0.0005)
				a := c.workOn("a", quick)
				c.leader(0, time.Second)
				var rest []*member
				for i := range others {
					rest = append(rest, c.joinOn(fmt.Sprint("m", i), quick))
				}
				c.pass(3 * time.Second)
				beats := len(c.records("app.neli", 0, "beat"))
				c.eventually(time.Second, "a beat", func() bool { return len(c.records("app.neli", 0, "beat")) > beats })
				c.crash(a)
				c.pass(wait - early*time.Millisecond)
				for _, m := range rest {
					_, err := m.Background(m.task)
					require.NoError(c, err)
				}
				claims, won := c.contest(1)
				c.leader(0, max(0, early*time.Millisecond)+bound)
				c.pass(20 * time.Millisecond)
				made, wins := c.contest(1)
				require.Equal(c, 1, wins-won)
				if made-claims == others {
					contests++
				}
				c.pass(2 * time.Second)
				_, wins = c.contest(1)
				require.Equal(c, 1, wins-won, "and it stays")
			})
		}
	}
	require.GreaterOrEqual(t, contests, 9, "all did claim at the same instant mostly")
}

// All forget each other while the broker is down, and their claims reach it at the
// same time when it is back.
func TestEqualRanksAfterAnOutage(t *testing.T) {
	const n = 4
	for range 5 {
		simulateWith(t, nelitest.Options{}, wide(n), func(c *cluster) {
			for _, name := range []string{"a", "b", "d", "e"} {
				c.workOn(name, many(n))
			}
			c.eventually(2*silence, "all are led", func() bool { return len(c.owned(n)) == n })
			c.pass(5 * time.Second)
			c.broker.Stop()
			c.pass(40 * time.Second)
			require.Empty(c, c.owned(n))
			c.broker.Start()
			c.eventually(silence+2*time.Second, "all are led again", func() bool { return len(c.owned(n)) == n })
		})
	}
}

// owned returns the roles that somebody leads.
func (c *cluster) owned(n int) (out []int) {
	for role := range n {
		if slices.ContainsFunc(c.names, func(name string) bool { return c.members[name].IsLeaderOf(role) }) {
			out = append(out, role)
		}
	}
	return out
}

// On a slow log nobody hears of others' claims in time. Members claim their share and
// see what has become of that, not everything at once.
func TestFewClaimsOnASlowLog(t *testing.T) {
	const n, size = 192, 12
	slow := nelitest.Options{AppendLatency: 300 * time.Millisecond, ReadLatency: 300 * time.Millisecond, Jitter: 200 * time.Millisecond}
	for _, timeout := range []time.Duration{5 * time.Second, time.Minute} {
		simulateWith(t, slow, wide(n), func(c *cluster) {
			require.NoError(c, c.broker.CreateTopic("app.neli", n)) // all begin together
			for i := range size {
				c.work(fmt.Sprint("m", i), many(n, func(cfg *neli.Config) { cfg.HeartbeatTimeout = timeout }))
			}
			c.eventually(2*timeout+5*time.Second, "all is led", func() bool { return len(c.owned(n)) == n })
			claims, won := c.contest(n)
			c.Logf("T = %v: %d claims for %d partitions", timeout, claims, won)
			require.LessOrEqual(c, claims, n+n/4, "of %d", n*size)
		})
	}
}

// What is wanted long after it became vacant is claimed by rank as well, and one has
// its share of claims under way: twenty times as many would be sent otherwise.
func TestFewClaimWhatWasVacantForLong(t *testing.T) {
	const n, size = 192, 12
	simulateWith(t, nelitest.Options{}, wide(n), func(c *cluster) {
		for i := range size {
			c.work(fmt.Sprint("m", i), many(n, func(cfg *neli.Config) { cfg.Roles = 1 }))
		}
		c.leader(0, 2*silence)
		c.pass(time.Minute)
		claims, won := c.contest(n)
		for _, m := range c.members {
			require.NoError(c, m.SetRoles(n))
		}
		c.eventually(time.Second, "all is led", func() bool { return len(c.owned(n)) == n })
		made, wins := c.contest(n)
		made, wins = made-claims, wins-won
		c.Logf("%d claims for %d partitions", made, wins)
		require.Equal(c, n-1, wins)
		require.LessOrEqual(c, made, n+n/5)
	})
}

// What was released in its favour a member claims at once, however much that is.
func TestHeirOfMany(t *testing.T) {
	const n = 320
	off := func(cfg *neli.Config) { cfg.Rebalance = neli.RebalanceOff }
	simulateWith(t, nelitest.Options{}, wide(n), func(c *cluster) {
		a := c.work("a", many(n, off))
		c.eventually(2*silence, "a leads all", func() bool { return c.shares(n)["a"] == n })
		c.work("b", many(n, off))
		c.pass(5 * time.Second)
		require.NoError(c, a.Close())
		c.eventually(10*time.Millisecond, "b leads all", func() bool { return c.shares(n)["b"] == n })
	})
}
