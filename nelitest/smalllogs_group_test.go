package nelitest_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/internal/scenario"
	"github.com/goneli/neli/nelitest"
)

const (
	smallT    = time.Second
	smallTrip = 10 * time.Millisecond
	// silence is T′ at the default ρ.
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
