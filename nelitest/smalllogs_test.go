package nelitest_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/internal/scenario"
	"github.com/goneli/neli/internal/seeded"
	"github.com/goneli/neli/nelitest"
)

// internal/scenario tests elections, crashes and cuts on small logs, and internal/sim all kinds of faults at random.

func TestSmallLogsMayFailOneAtATime(t *testing.T) {
	small(t, 5, func(g *smallGroup) {
		g.join("a", "b", "c")
		before := g.leaders()
		for log := range 3 {
			g.Logs.Forget(log)
			g.staysLed(2 * smallT)
		}
		for log := range 3 {
			g.Logs.Stop(log)
			g.staysLed(2 * smallT)
			g.Logs.Start(log)
			g.staysLed(2 * smallT)
		}
		require.Equal(g, before, g.leaders())
		for _, m := range g.Members {
			require.LessOrEqual(g, len(m.Events()), 1, "%v", m.Events())
		}
	})
}

func TestSmallLogsHandOverWhenALeaderCloses(t *testing.T) {
	small(t, 1, func(g *smallGroup) {
		g.join("a", "b", "c")
		g.staysLed(3 * smallT)
		leader := g.Leader(0, 0)
		g.Gap()
		done := make(chan error, 1)
		go func() { done <- leader.Close() }()
		took := g.until(5*smallT, noneOf(leader.As))
		gap := g.Gap()
		require.NoError(g, <-done)
		g.Logf("hand-over: %v, of which without a leader %v", took, gap)
		require.LessOrEqual(g, took, 4*smallTrip+5*time.Millisecond) // 5 ms for the sampler and the application
		require.LessOrEqual(g, gap, 2*smallTrip+4*time.Millisecond)
	})
}

func TestSmallLogsTransferARole(t *testing.T) {
	small(t, 3, func(g *smallGroup) {
		g.join("a", "b", "c")
		g.staysLed(2 * smallT)
		from := g.Leader(1, 0)
		to := "a"
		if from.As == "a" {
			to = "b"
		}
		ctx, cancel := context.WithTimeout(g.Context(), 5*time.Second)
		defer cancel()
		require.NoError(g, from.Transfer(ctx, 1, to))
		g.until(time.Second, func(leaders []string) bool { return leaders[1] == to })
		g.staysLed(2 * smallT)
		require.Equal(g, to, g.leaders()[1])
	})
}

func TestSmallLogsAreWatched(t *testing.T) {
	small(t, 2, func(g *smallGroup) {
		g.join("a", "b")
		g.staysLed(smallT)
		o := g.joinWith("watcher", func(c *neli.Config) { c.Observer = true })
		g.staysLed(2 * smallT)
		for role, name := range g.leaders() {
			h, ok := o.Holder(role)
			require.True(g, ok, "role %d", role)
			require.Equal(g, name, h.Name)
			require.Zero(g, h.Token, "nobody but the holder knows it")
			own, ok := g.Members[name].Holder(role)
			require.True(g, ok)
			token, _ := g.Members[name].Token(role)
			require.Equal(g, token, own.Token)
		}
		leader := g.leaders()[0]
		ctx, cancel := context.WithCancel(g.Context())
		defer cancel()
		moved := make(chan string)
		go func() {
			for s := range o.Watch(ctx) {
				if s.Status == neli.StatusHeld && slices.Contains(slices.Collect(s.Roles()), 0) && s.Holder.Name != leader {
					moved <- s.Holder.Name
					return
				}
			}
			close(moved)
		}()
		for log := range 3 {
			g.Logs.CutOff(leader, log, nelitest.LinkAll)
		}
		g.until(5*time.Second, noneOf(leader))
		require.Equal(g, g.leaders()[0], <-moved)
	})
}

func TestSmallLogsHaveNoConsumerGroup(t *testing.T) {
	_, err := neli.New(neli.Config{Provider: nelitest.NewSmallLogs(3, smallTrip).Provider("a"), LeaderGroupID: "g",
		Mode: neli.NonExclusive, Nomination: neli.NominationAssigned, KafkaConfig: neli.KafkaConfigMap{"bootstrap.servers": "x"}})
	require.ErrorContains(t, err, "Mode")
	require.ErrorContains(t, err, "Nomination")
	require.ErrorContains(t, err, "KafkaConfig")
	_, err = neli.New(neli.Config{Provider: nelitest.NewSmallLogs(2, smallTrip).Provider("a"), LeaderGroupID: "g"})
	require.ErrorContains(t, err, "2 small logs")
}

// On small logs, too, an observer may ask, and the holder decides, even while one log is down.
func TestSmallLogsCarryRequests(t *testing.T) {
	small(t, 3, func(g *smallGroup) {
		var refuses atomic.Bool
		decides := func(neli.Request) error {
			if refuses.Load() {
				return errors.New("not now")
			}
			return nil
		}
		for _, name := range []string{"a", "b", "c"} {
			g.joinWith(name, func(cfg *neli.Config) { cfg.DisableRebalance, cfg.Requests = true, decides })
		}
		g.until(5*time.Second, allLed)
		o := g.joinWith("o", func(cfg *neli.Config) { cfg.Observer = true })
		g.staysLed(2 * smallT)
		ctx, cancel := context.WithTimeout(g.Context(), time.Minute)
		defer cancel()
		for _, down := range []int{-1, 0, 1, 2} {
			if down >= 0 {
				g.Logs.Stop(down)
				g.Pass(3 * smallT)
			}
			to := map[bool]string{true: "b", false: "a"}[g.leaders()[1] == "a"]
			refuses.Store(false)
			require.NoError(g, o.Ask(ctx, neli.Request{Role: 1, To: to}), "log %d is down", down)
			g.until(time.Second, func(leaders []string) bool { return leaders[1] == to })
			refuses.Store(true)
			err := o.Ask(ctx, neli.Request{Role: 1, StepDown: true})
			require.ErrorIs(g, err, neli.ErrRefused)
			require.ErrorContains(g, err, "not now")
			if down >= 0 {
				g.Logs.Start(down)
				g.Pass(3 * smallT)
			}
			require.Equal(g, to, g.leaders()[1])
		}
	})
}

const (
	smallT    = time.Second
	smallTrip = 10 * time.Millisecond
	// silence is W(T) at the default ρ.
	silence = smallT + smallT/1000 + 2*time.Millisecond
)

// smallGroup has members on three logs: [nelitest.SmallLogs], or a topic in Kafka.
type smallGroup struct {
	*scenario.Cluster
	logsInKafka int
}

// small runs a test with members on small logs.
func small(t *testing.T, roles int, test func(g *smallGroup)) {
	t.Helper()
	prepare := func(c *scenario.Cluster) { c.Logs, c.Roles = nelitest.NewSmallLogs(3, smallTrip), roles }
	scenario.Simulate(t, nelitest.Options{}, prepare, func(c *scenario.Cluster) { test(&smallGroup{c, 0}) })
}

// kafkaLogs runs a test with members on logs in Kafka, each on a broker of its own.
func kafkaLogs(t *testing.T, roles int, test func(g *smallGroup)) {
	t.Helper()
	opts := nelitest.Options{Seed: 1, Racks: []string{"x", "y", "z"}}
	scenario.Simulate(t, opts, scenario.Roles(roles), func(c *scenario.Cluster) { test(&smallGroup{c, 3}) })
}

// join starts members, and waits until each role has a leader.
func (g *smallGroup) join(names ...string) {
	g.Helper()
	for _, name := range names {
		g.joinWith(name, func(*neli.Config) {})
	}
	g.until(5*time.Second, allLed)
}

// joinWith starts a member. Nothing drives it if it is an observer.
func (g *smallGroup) joinWith(name string, change func(*neli.Config)) *scenario.Member {
	g.Helper()
	observer := false
	m := g.Join(name, func(cfg *neli.Config) {
		cfg.HeartbeatTimeout, cfg.Nomination, cfg.Partitions, cfg.Logs = smallT, neli.NominationOpen, 0, g.logsInKafka
		change(cfg)
		observer = cfg.Observer
	})
	if !observer {
		m.Start()
	}
	return m
}

// leaders returns the leader of each role.
func (g *smallGroup) leaders() []string {
	out := make([]string, g.Roles)
	for _, name := range g.Names {
		for role := range out {
			if g.Members[name].IsLeaderOf(role) {
				out[role] = name
			}
		}
	}
	return out
}

// until waits until wanted holds for the leaders, and returns how long that took.
func (g *smallGroup) until(within time.Duration, wanted func(leaders []string) bool) time.Duration {
	g.Helper()
	begun := time.Now()
	g.Eventually(within, "led as wanted", func() bool { return wanted(g.leaders()) })
	return time.Since(begun)
}

// staysLed lets time pass, and asserts that every role is led throughout.
func (g *smallGroup) staysLed(d time.Duration) {
	g.Helper()
	for begun := time.Now(); time.Since(begun) < d; time.Sleep(time.Millisecond) {
		require.NotContains(g, g.leaders(), "", "after %v", time.Since(begun))
	}
}

func allLed(leaders []string) bool { return !slices.Contains(leaders, "") }

// noneOf holds if every role is led by a member other than name.
func noneOf(name string) func([]string) bool {
	return func(leaders []string) bool { return allLed(leaders) && !slices.Contains(leaders, name) }
}

// On small logs, too, a leader knows how long its term lasts, and Stats knows how old the evidence is. At
// each instant the two add up to 0.9 T, whichever logs sustain the term.
func TestSmallLogsReportHowLongATermLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logs := nelitest.NewSmallLogs(3, smallTrip)
		n, err := neli.New(neli.Config{Provider: logs.Provider("a"), LeaderGroupID: "g", Name: "a", HeartbeatTimeout: smallT})
		require.NoError(t, err)
		defer func() { _ = n.Close() }()
		terms, ended := make(chan neli.Leadership, 10), make(chan error, 1)
		go func() {
			ended <- n.Lead(context.Background(), func(ctx context.Context, l neli.Leadership) error {
				terms <- l
				<-ctx.Done()
				return nil
			})
		}()
		term := <-terms
		const hold = smallT * 9 / 10
		oldest := time.Duration(0)
		look := func(during time.Duration) {
			for end := time.Now().Add(during); time.Now().Before(end); time.Sleep(time.Millisecond) {
				synctest.Wait() // so that no beat comes back between the two readings
				age, left := n.Stats().EvidenceAge, term.Remaining()
				require.Positive(t, age)
				require.Positive(t, left)
				require.Equal(t, hold, age+left)
				oldest = max(oldest, age)
			}
		}
		look(5 * time.Second)
		require.Less(t, oldest, smallT/2, "a beat each T/5")
		for log := range 3 { // another set of logs sustains the term each time
			logs.CutOff("a", log, nelitest.LinkAll)
			look(3 * time.Second)
			logs.Restore("a", log)
			look(3 * time.Second)
		}

		oldest = 0
		for log := range 3 {
			logs.CutOff("a", log, nelitest.LinkAll)
		}
		look(term.Remaining())
		require.Equal(t, hold-time.Millisecond, oldest, "it grows until the lapse")
		require.False(t, term.Valid())
		require.Zero(t, term.Remaining())
		synctest.Wait()
		require.Zero(t, n.Stats().EvidenceAge, "nothing is held any more")
		require.NoError(t, n.Close())
		require.ErrorIs(t, <-ended, neli.ErrClosed)
	})
}

// Five members that start together share a hundred thousand roles, and lead them within a second after the
// wait. With the race detector, which takes ten times as long, there are a tenth of the roles.
func TestSmallLogsWithVeryManyRoles(t *testing.T) {
	roles := 100_000
	if seeded.Race {
		roles = 10_000
	}
	const lease = 10 * time.Second
	wait := lease + lease/999 + time.Millisecond // W(T)
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		logs := nelitest.NewSmallLogs(3, smallTrip)
		var members []*neli.Neli
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			n, err := neli.New(neli.Config{Provider: logs.Provider(name), LeaderGroupID: "g", Name: name, Roles: roles, HeartbeatTimeout: lease})
			require.NoError(t, err)
			p, err := n.Background(func() { time.Sleep(100 * time.Millisecond) })
			require.NoError(t, err)
			members = append(members, n)
			defer func() {
				assert.NoError(t, n.Close())
				assert.NoError(t, p.Close())
			}()
		}
		led := make([]int, len(members))
		for time.Sleep(wait); ; time.Sleep(20 * time.Millisecond) {
			took, all := time.Since(begun), 0
			clear(led)
			for role := range roles {
				leaders := 0
				for i, n := range members {
					if n.IsLeaderOf(role) {
						led[i]++
						leaders++
					}
				}
				all += min(leaders, 1)
				require.LessOrEqual(t, leaders, 1, "role %d", role)
			}
			if all == roles {
				t.Logf("all are led after %v, by %v", took, led)
				break
			}
			require.Less(t, took, wait+time.Second, "%d are led: %v", all, led)
		}
		for _, n := range led {
			assert.InDelta(t, roles/len(members), n, float64(roles)/20)
		}
	})
}
