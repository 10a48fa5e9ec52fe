package scenario

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
	"github.com/stretchr/testify/require"
)

const (
	defaultT = 5 * time.Second
	silence  = 5006 * time.Millisecond // how long a claimant waits for a holder with T = defaultT, with 500 ppm

	// steady is how long a member must have been up before it is given roles, plus some time for the hand-over.
	steady = 15*time.Second + 3*time.Second
	// election is how long the first election of a new topic takes: silence, and a few round trips
	// for Hellos, shares and claims.
	election = silence + 400*time.Millisecond
	// takeover is how long it takes until everything that a dead member led is led again.
	takeover = silence + 200*time.Millisecond

	sharedT  = 18 * time.Second // the default T of non-exclusive mode
	interval = sharedT / 20
)

// simulate is Simulate with one role.
func simulate(t *testing.T, opts nelitest.Options, test func(c *Cluster)) {
	t.Helper()
	Simulate(t, opts, nil, test)
}

// many configures Open nomination and n roles, all on one partition.
func many(n int, changes ...func(*neli.Config)) func(*neli.Config) { return manyOn(1, n, changes...) }

// manyOn configures Open nomination and n roles on m partitions.
func manyOn(m, n int, changes ...func(*neli.Config)) func(*neli.Config) {
	return func(cfg *neli.Config) {
		cfg.Nomination, cfg.Partitions, cfg.Roles = neli.NominationOpen, m, n
		for _, change := range changes {
			change(cfg)
		}
	}
}

func priority(n int) func(*neli.Config) { return func(cfg *neli.Config) { cfg.Priority = n } }
func rebalanceOff(cfg *neli.Config)     { cfg.DisableRebalance = true }
func observer(cfg *neli.Config)         { cfg.Observer = true }
func shared(cfg *neli.Config)           { cfg.Mode = neli.NonExclusive }

func leaseOf(d time.Duration) func(*neli.Config) {
	return func(cfg *neli.Config) { cfg.HeartbeatTimeout = d }
}

// wide prepares a cluster of n roles that is not checked every millisecond.
func wide(n int) func(*Cluster) {
	return func(c *Cluster) { c.Roles, c.Period = n, 50*time.Millisecond }
}

// atMost returns a context for a call that must not take longer than d.
func (c *Cluster) atMost(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	c.Cleanup(cancel)
	return ctx
}

// shares returns how many of n roles each member leads.
func (c *Cluster) shares(n int) map[string]int {
	out := map[string]int{}
	for _, name := range c.Names {
		m, led := c.Members[name], 0
		for role := range n {
			if m.IsLeaderOf(role) {
				led++
			}
		}
		if led > 0 {
			out[name] = led
		}
	}
	return out
}

// owned returns the roles that have a leader.
func (c *Cluster) owned(n int) (out []int) {
	for role := range n {
		if c.led(role) {
			out = append(out, role)
		}
	}
	return out
}

// led reports whether a role has a leader.
func (c *Cluster) led(role int) bool {
	for _, name := range c.Names {
		if c.Members[name].IsLeaderOf(role) {
			return true
		}
	}
	return false
}

// leadsAll reports whether a member leads all n roles.
func (c *Cluster) leadsAll(name string, n int) func() bool {
	return func() bool {
		m, up := c.Members[name]
		for role := range n {
			if !up || !m.IsLeaderOf(role) {
				return false
			}
		}
		return true
	}
}

// allLed reports whether each of n roles has a leader.
func (c *Cluster) allLed(n int) func() bool {
	return func() bool {
		for role := range n {
			if !c.led(role) {
				return false
			}
		}
		return true
	}
}

// level waits until all n roles are led, and no member leads over one more than another.
func (c *Cluster) level(n int, within time.Duration) {
	c.Helper()
	c.Eventually(within, "everybody has a share", func() bool {
		total, most, least := 0, 0, n
		of := c.shares(n)
		for _, name := range c.Names {
			total, most, least = total+of[name], max(most, of[name]), min(least, of[name])
		}
		return total == n && most-least <= 1
	})
}

// terms returns how many terms began at the present members.
func (c *Cluster) terms() (n int) {
	for _, name := range c.Names {
		for _, e := range c.Members[name].Events() {
			if a, ok := e.(neli.LeaderAcquired); ok {
				n += len(a.Roles())
			}
		}
	}
	return n
}

// orderly asserts that terms ended only by orderly revocations.
func (c *Cluster) orderly() {
	c.Helper()
	for _, name := range c.Names {
		require.NotContains(c, c.Members[name].Kinds(), "fenced", name)
	}
}

// count returns how many events of a kind there were.
func (m *Member) count(kind string) (n int) {
	for _, k := range m.Kinds() {
		if k == kind {
			n++
		}
	}
	return n
}

// revoked returns the roles that m was told to give up, and the reasons.
func (m *Member) revoked() (roles []int, why []neli.Reason) {
	for _, e := range m.Events() {
		if r, ok := e.(neli.LeaderRevoked); ok {
			roles, why = append(roles, r.Roles()...), append(why, r.Reason)
		}
	}
	return roles, why
}

var errSick = errors.New("sick")

// sick is a health check whose result the test sets.
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

var errEnough = errors.New("enough")
