package scenario

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

// Cluster is a broker with members, in a synctest bubble. Only the test's own goroutine may call
// methods other than Say. The exported fields from Logs on may be changed only before the test
// begins.
type Cluster struct {
	*testing.T
	Broker  *nelitest.Broker
	Members map[string]*Member // present, by name
	Names   []string           // their names, in the order in which they first joined
	Began   time.Time

	Logs      *nelitest.SmallLogs // logs for the election; nil: the broker has them
	Period    time.Duration       // time between two checks of the sampler
	Exclusive bool                // a role must not have two leaders
	Roles     int                 // the default number of roles of a member, and the number checked

	mu         sync.Mutex
	log        []string
	tokens     map[int]int64 // role → the newest token led
	owners     map[roleToken]string
	leaderless time.Duration // how long role 0 had no leader, since the last reset
	gone       sync.WaitGroup
	stop       chan struct{}
	sampled    chan struct{}
}

// roleToken is a term.
type roleToken struct {
	role  int
	token int64
}

// Simulate runs a test in a bubble with a cluster, and asserts the promise throughout. If prepare
// is not nil, it is called first.
func Simulate(t *testing.T, opts nelitest.Options, prepare, test func(c *Cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := &Cluster{T: t, Broker: nelitest.NewBroker(opts), Members: map[string]*Member{}, Began: time.Now(),
			tokens: map[int]int64{}, owners: map[roleToken]string{}, Exclusive: true, Roles: 1, Period: time.Millisecond,
			stop: make(chan struct{}), sampled: make(chan struct{})}
		if prepare != nil {
			prepare(c)
		}
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

// end stops everything, even after a failure, since a bubble must not leave a goroutine behind.
func (c *Cluster) end() {
	close(c.stop)
	<-c.sampled
	for _, name := range c.Names {
		c.Broker.Resume(name)
		c.Broker.Restore(name, nelitest.LinkAll)
		_ = c.Members[name].Close()
	}
	c.gone.Wait()
	c.Broker.Close()
}

// Say adds a line to the transcript, which is printed when the test fails.
func (c *Cluster) Say(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.log = append(c.log, fmt.Sprintf("%10v  ", time.Since(c.Began))+fmt.Sprintf(format, args...))
}

// Config returns the default configuration of a member: one partition, and Assigned nomination, or
// Open on small logs. With NELI_DEBUG in the environment, the member logs its decisions.
func (c *Cluster) Config(name string) neli.Config {
	cfg := neli.Config{LeaderGroupID: "app", Name: name, Provider: c.Broker.Provider(name), Roles: c.Roles, Partitions: 1,
		Nomination: neli.NominationAssigned}
	if c.Logs != nil {
		cfg.Provider, cfg.Nomination = c.Logs.Provider(name), neli.NominationOpen
	}
	if os.Getenv("NELI_DEBUG") != "" {
		cfg.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})).With("me", name)
	}
	return cfg
}

// Join starts a member that nothing drives yet.
func (c *Cluster) Join(name string, change func(*neli.Config)) *Member {
	c.Helper()
	m := &Member{As: name, c: c}
	cfg := c.Config(name)
	if change != nil {
		change(&cfg)
	}
	n, err := neli.New(cfg, m.Barrier)
	require.NoError(c, err)
	m.Neli = n
	c.Adopt(m)
	return m
}

// Adopt adds to the cluster a member whose Neli was made elsewhere.
func (c *Cluster) Adopt(m *Member) {
	m.c = c
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.Members[m.As] == nil {
		c.Names = append(c.Names, m.As)
	}
	c.Members[m.As] = m
}

// Work starts a member that pulses in the background.
func (c *Cluster) Work(name string, change func(*neli.Config)) *Member {
	c.Helper()
	m := c.Join(name, change)
	m.Start()
	return m
}

// Crash ends a member as SIGKILL does. Goroutines of it that still run in this process are ignored.
func (c *Cluster) Crash(m *Member) {
	c.Say("%s crashes", m.As)
	c.mu.Lock()
	delete(c.Members, m.As)
	c.Names = slices.DeleteFunc(c.Names, func(n string) bool { return n == m.As })
	c.mu.Unlock()
	if c.Logs != nil {
		c.Logs.Kill(m.As)
	}
	c.Broker.Kill(m.As)
	c.gone.Go(func() { _ = m.Close() })
}

// sample checks the promise again and again.
func (c *Cluster) sample() {
	defer close(c.sampled)
	tick := time.NewTicker(c.Period)
	defer tick.Stop()
	for {
		select {
		case <-c.stop:
			return
		case <-tick.C:
		}
		c.look()
	}
}

// look asks all members about all roles. The tests spend most of their time here.
func (c *Cluster) look() {
	c.mu.Lock()
	defer c.mu.Unlock()
	present := slices.Collect(maps.Values(c.Members))
	for role := range c.Roles {
		c.lookAt(role, present)
	}
}

func (c *Cluster) lookAt(role int, present []*Member) {
	var leaders []string
	for _, m := range present {
		if !m.IsLeaderOf(role) {
			continue
		}
		leaders = append(leaders, m.As)
		if token, ok := m.Token(role); ok && c.Exclusive {
			key := roleToken{role, token}
			if by := c.owners[key]; by != "" && by != m.As {
				c.Errorf("%v: token %d of role %d was %s's and is %s's", time.Since(c.Began), token, role, by, m.As)
			}
			c.owners[key] = m.As
			if token < c.tokens[role] {
				c.Errorf("%v: token of role %d went back from %d to %d", time.Since(c.Began), role, c.tokens[role], token)
			}
			c.tokens[role] = token
		}
	}
	if c.Exclusive && len(leaders) > 1 {
		c.Errorf("%v: role %d is led by %v", time.Since(c.Began), role, leaders)
	}
	if role == 0 && len(leaders) == 0 {
		c.leaderless += c.Period
	}
}

// Gap returns for how long role 0 had no leader, since the last call.
func (c *Cluster) Gap() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.leaderless
	c.leaderless = 0
	return g
}

// Leader waits until role has a leader, and returns it.
func (c *Cluster) Leader(role int, within time.Duration) *Member {
	c.Helper()
	var leader *Member
	c.Eventually(within, fmt.Sprintf("a leader of role %d", role), func() bool {
		for _, name := range c.Names {
			if m := c.Members[name]; m.IsLeaderOf(role) {
				leader = m
				return true
			}
		}
		return false
	})
	return leader
}

// Eventually waits until ok returns true, and fails the test if that takes longer than within.
func (c *Cluster) Eventually(within time.Duration, what string, ok func() bool) {
	c.Helper()
	for deadline := time.Now().Add(within); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			require.FailNow(c, "not within "+within.String()+": "+what)
		}
	}
}

// Aged creates the leader topic and changes the brokers that lead its partitions. Then nothing proves that
// no record was lost, so the first leader of a group waits for T.
func (c *Cluster) Aged(partitions int) {
	require.NoError(c, c.Broker.CreateTopic("app.neli", partitions))
	for p := range partitions {
		require.NoError(c, c.Broker.ChangeLeader("app.neli", p, 0))
	}
}

// Pass lets time pass.
func (c *Cluster) Pass(d time.Duration) { time.Sleep(d) }

// Roles gives members n roles.
func Roles(n int) func(*Cluster) { return func(c *Cluster) { c.Roles = n } }

// Overlapping allows a role several leaders, for the modes and tests in which that may happen.
func Overlapping(c *Cluster) { c.Exclusive = false }

// Open gives a member Open nomination.
func Open(cfg *neli.Config) { cfg.Nomination = neli.NominationOpen }
