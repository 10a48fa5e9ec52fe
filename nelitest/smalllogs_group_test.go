package nelitest_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/kafka"
	"github.com/goneli/neli/nelitest"
)

// smallGroup has members on small logs, in a bubble, and records what their barriers were told.
type smallGroup struct {
	*testing.T
	logs  *nelitest.SmallLogs
	roles int
	// of those on logs in Kafka
	provider    func(member string) kafka.Provider
	logsInKafka int

	members []*smallMember
	tokens  map[int]int64 // role → newest token led
	last    map[int]string
}

type smallMember struct {
	*neli.Neli
	name string
	mu   sync.Mutex
	told []string
	p    neli.Pulser
}

// small runs a test with members on three logs. While the test waits, it checks every millisecond who
// leads.
func small(t *testing.T, roles int, test func(g *smallGroup)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		logs := nelitest.NewSmallLogs(3, smallTrip)
		g := &smallGroup{T: t, logs: logs, provider: logs.Provider, roles: roles, tokens: map[int]int64{}, last: map[int]string{}}
		defer g.close()
		test(g)
	})
}

func (g *smallGroup) close() {
	for _, m := range g.members {
		if g.Failed() {
			g.Logf("%s was told %q", m.name, m.told)
		}
		assert.NoError(g, m.Close())
		if m.p == nil {
			continue
		}
		if err := m.p.Close(); !errors.Is(err, neli.ErrTopicPlacement) { // the error of the member that is refused
			assert.NoError(g, err)
		}
	}
}

func (g *smallGroup) join(names ...string) {
	for _, name := range names {
		g.joinWith(name, func(*neli.Config) {})
	}
}

func (g *smallGroup) joinWith(name string, change func(*neli.Config)) *smallMember {
	g.Helper()
	m := &smallMember{name: name}
	level := slog.LevelWarn
	if os.Getenv("NELI_TRACE") != "" {
		level = slog.LevelDebug
	}
	cfg := neli.Config{Provider: g.provider(name), LeaderGroupID: "g", Name: name, Roles: g.roles, HeartbeatTimeout: smallT, Logs: g.logsInKafka,
		Logger: slog.New(slog.NewTextHandler(g.Output(), &slog.HandlerOptions{Level: level})).With("member", name)}
	change(&cfg)
	n, err := neli.New(cfg, func(e neli.Event) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.told = append(m.told, fmt.Sprint(e))
	})
	require.NoError(g, err)
	m.Neli = n
	if !cfg.Observer {
		m.p, err = n.Background(func() { time.Sleep(time.Millisecond) })
		require.NoError(g, err)
	}
	g.members = append(g.members, m)
	return m
}

// leaders returns who leads each role. It asserts that each role has at most one leader, and that tokens
// increase from one leader to the next.
func (g *smallGroup) leaders() []string {
	g.Helper()
	out := make([]string, g.roles)
	for role := range out {
		for _, m := range g.members {
			token, ok := m.Token(role)
			if !ok {
				continue
			}
			require.Empty(g, out[role], "role %d has two leaders", role)
			out[role] = m.name
			if newest := g.tokens[role]; g.last[role] != m.name {
				require.Greater(g, token, newest, "token of role %d went back", role)
			} else {
				require.GreaterOrEqual(g, token, newest, "token of role %d went back", role)
			}
			g.tokens[role], g.last[role] = token, m.name
		}
	}
	return out
}

// until waits until wanted holds for the leaders, and returns how long that took.
func (g *smallGroup) until(within time.Duration, wanted func(leaders []string) bool) time.Duration {
	g.Helper()
	for begun := time.Now(); ; time.Sleep(time.Millisecond) {
		if leaders := g.leaders(); wanted(leaders) {
			return time.Since(begun)
		} else if time.Since(begun) > within {
			require.Fail(g, "not led as wanted", "after %v: %q", within, leaders)
		}
	}
}

// pass lets time pass. If all is true, every role must be led throughout.
func (g *smallGroup) pass(d time.Duration, all bool) {
	g.Helper()
	for begun := time.Now(); time.Since(begun) < d; time.Sleep(time.Millisecond) {
		if leaders := g.leaders(); all {
			require.NotContains(g, leaders, "", "after %v", time.Since(begun))
		}
	}
}

func allLed(leaders []string) bool { return !slices.Contains(leaders, "") }

// noneOf holds if every role is led by a member other than name.
func noneOf(name string) func([]string) bool {
	return func(leaders []string) bool { return allLed(leaders) && !slices.Contains(leaders, name) }
}

func (g *smallGroup) member(name string) *smallMember {
	return g.members[slices.IndexFunc(g.members, func(m *smallMember) bool { return m.name == name })]
}

const (
	smallT    = time.Second
	smallTrip = 10 * time.Millisecond
)

// silence is T′ at the default ρ.
const silence = smallT + smallT/1000 + 2*time.Millisecond
