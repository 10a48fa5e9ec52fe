package neli_test

import (
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
	"github.com/stretchr/testify/require"
)

// Whole curators, unchanged, over the in-memory broker in simulated time. A
// sampler looks at all members every millisecond and asserts the promise.

// cluster is a broker with members, in a synctest bubble.
type cluster struct {
	*testing.T
	broker  *nelitest.Broker
	members map[string]*member
	names   []string
	began   time.Time

	mu     sync.Mutex
	log    []string
	tokens map[int]int64 // role → newest token led by
	owners map[string]string

	leaving    []*member // being closed, or closed
	gone       []*member // crashed
	closing    sync.WaitGroup
	exclusive  bool
	roles      int
	stop       chan struct{}
	sampled    chan struct{}
	period     time.Duration // between looks
	leaderless time.Duration // of role 0, since the last reset
}

// member is one process: a Neli, driven in one of several ways.
type member struct {
	*neli.Neli
	name    string
	c       *cluster
	mu      sync.Mutex
	events  []neli.Event
	onEvent func(neli.Event) // runs in the barrier
	inside  bool             // the barrier or the task runs
	tasks   int
}

// simulate runs a test in a bubble with a cluster, and asserts exclusiveness
// throughout.
func simulate(t *testing.T, opts nelitest.Options, test func(c *cluster)) {
	t.Helper()
	simulateWith(t, opts, func(*cluster) {}, test)
}

// simulateWith is simulate for clusters that have more than one role, or may have
// more than one leader.
func simulateWith(t *testing.T, opts nelitest.Options, prepare, test func(c *cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{T: t, broker: nelitest.NewBroker(opts), members: map[string]*member{}, began: time.Now(),
			tokens: map[int]int64{}, owners: map[string]string{}, exclusive: true, roles: 1, period: time.Millisecond,
			stop: make(chan struct{}), sampled: make(chan struct{})}
		prepare(c)
		go c.sample()
		defer func() {
			if t.Failed() {
				c.mu.Lock()
				defer c.mu.Unlock()
				t.Log("transcript:\n" + strings.Join(c.log, "\n"))
			}
		}()
		defer c.end()
		test(c)
	})
}

// end stops everything, also after a failure: a bubble must not leave anything
// behind.
func (c *cluster) end() {
	close(c.stop)
	<-c.sampled
	for _, name := range c.names {
		c.broker.Resume(name)
		c.broker.Restore(name, nelitest.All)
		_ = c.members[name].Close()
	}
	c.closing.Wait()
	c.broker.Close()
}

func (c *cluster) say(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.log = append(c.log, fmt.Sprintf("%10v  ", time.Since(c.began))+fmt.Sprintf(format, args...))
}

// config is what a member has if it has nothing special.
func (c *cluster) config(name string) neli.Config {
	cfg := neli.Config{LeaderGroupID: "app", Name: name, Provider: c.broker.Provider(name), Roles: c.roles, Partitions: 1,
		Nomination: neli.Assigned}
	if os.Getenv("NELI_DEBUG") != "" {
		cfg.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})).With("me", name)
	}
	return cfg
}

// join starts a member that is driven by nothing yet.
func (c *cluster) join(name string, change func(*neli.Config)) *member {
	c.Helper()
	m := &member{name: name, c: c}
	cfg := c.config(name)
	if change != nil {
		change(&cfg)
	}
	n, err := neli.New(cfg, m.barrier)
	require.NoError(c, err)
	m.Neli = n
	c.mu.Lock()
	if c.members[name] == nil {
		c.names = append(c.names, name)
	}
	c.members[name] = m
	c.mu.Unlock()
	return m
}

// work joins and pulses in the background.
func (c *cluster) work(name string, change func(*neli.Config)) *member {
	c.Helper()
	m := c.join(name, change)
	_, err := m.Background(m.task)
	require.NoError(c, err)
	return m
}

func open(cfg *neli.Config) { cfg.Nomination = neli.Open }

func (m *member) barrier(e neli.Event) {
	m.enter()
	defer m.leave()
	m.c.say("%s: %s", m.name, e)
	m.mu.Lock()
	m.events = append(m.events, e)
	f := m.onEvent
	m.mu.Unlock()
	if f != nil {
		f(e)
	}
}

func (m *member) task() {
	m.enter()
	defer m.leave()
	m.mu.Lock()
	m.tasks++
	m.mu.Unlock()
	time.Sleep(5 * time.Millisecond)
}

// enter asserts that barrier and task never run side by side.
func (m *member) enter() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.inside {
		m.c.Errorf("%s: barrier and task run side by side", m.name)
	}
	m.inside = true
}

func (m *member) leave() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.inside = false
}

// upon sets what the barrier does.
func (m *member) upon(f func(neli.Event)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.onEvent = f
}

// kinds are the events so far, as one word each.
func (m *member) kinds() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []string
	for _, e := range m.events {
		switch e.(type) {
		case neli.LeaderAcquired:
			out = append(out, "acquired")
		case neli.LeaderRevoked:
			out = append(out, "revoked")
		case neli.LeaderFenced:
			out = append(out, "fenced")
		}
	}
	return out
}

func (m *member) last() neli.Event {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.events) == 0 {
		return nil
	}
	return m.events[len(m.events)-1]
}

// crash ends a member as SIGKILL would; what is left of it in this process is
// not looked at any more.
func (c *cluster) crash(m *member) {
	c.say("%s crashes", m.name)
	c.mu.Lock()
	delete(c.members, m.name)
	c.names = slices.DeleteFunc(c.names, func(n string) bool { return n == m.name })
	c.mu.Unlock()
	c.broker.Kill(m.name)
	c.gone = append(c.gone, m)
	c.closing.Go(func() { _ = m.Close() })
}

// sample asserts the promise every millisecond.
func (c *cluster) sample() {
	defer close(c.sampled)
	tick := time.NewTicker(c.period)
	defer tick.Stop()
	for {
		select {
		case <-c.stop:
			return
		case <-tick.C:
		}
		for role := range c.roles {
			c.look(role)
		}
	}
}

func (c *cluster) look(role int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var leaders []string
	present := slices.Collect(maps.Values(c.members))
	for _, m := range append(present, c.leaving...) {
		name := m.name
		if !m.IsLeaderOf(role) {
			continue
		}
		leaders = append(leaders, name)
		if token, ok := m.Token(role); ok && c.exclusive {
			key := fmt.Sprint(role, "/", token)
			if by := c.owners[key]; by != "" && by != name {
				c.Errorf("%v: token %d of role %d was %s's and is %s's", time.Since(c.began), token, role, by, name)
			}
			c.owners[key] = name
			if token < c.tokens[role] {
				c.Errorf("%v: token of role %d went back from %d to %d", time.Since(c.began), role, c.tokens[role], token)
			}
			c.tokens[role] = token
		}
	}
	if c.exclusive && len(leaders) > 1 {
		c.Errorf("%v: role %d is led by %v", time.Since(c.began), role, leaders)
	}
	if role == 0 && len(leaders) == 0 {
		c.leaderless += c.period
	}
}

// gap returns for how long role 0 had no leader since the last call.
func (c *cluster) gap() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.leaderless
	c.leaderless = 0
	return g
}

// leader waits until role has a leader and returns it.
func (c *cluster) leader(role int, within time.Duration) *member {
	c.Helper()
	var leader *member
	c.eventually(within, fmt.Sprintf("a leader of role %d", role), func() bool {
		for _, name := range c.names {
			if m := c.members[name]; m.IsLeaderOf(role) {
				leader = m
				return true
			}
		}
		return false
	})
	return leader
}

func (c *cluster) eventually(within time.Duration, what string, ok func() bool) {
	c.Helper()
	for deadline := time.Now().Add(within); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			require.FailNow(c, "not within "+within.String()+": "+what)
		}
	}
}

// pass lets time pass.
func (c *cluster) pass(d time.Duration) { time.Sleep(d) }

func roles(n int) func(*cluster) { return func(c *cluster) { c.roles = n } }

// overlapping is for modes and tests in which a role may have several leaders.
func overlapping(c *cluster) { c.exclusive = false }
