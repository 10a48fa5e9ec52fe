package neli_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
	"github.com/stretchr/testify/require"
)

// steady is how long a member must have been there to be given something, and how
// long a term lasts before it is moved, with room for the rest.
const (
	steady = 15*time.Second + 3*time.Second
	tenure = 30*time.Second + 6*time.Second
)

// many makes a topic of n partitions with as many roles.
func many(n int, changes ...func(*neli.Config)) func(*neli.Config) {
	return func(cfg *neli.Config) {
		cfg.Nomination, cfg.Partitions, cfg.Roles = neli.Open, n, n
		for _, change := range changes {
			change(cfg)
		}
	}
}

func priority(n int) func(*neli.Config) { return func(cfg *neli.Config) { cfg.Priority = n } }

// wide is a cluster of n roles that is not looked at every millisecond.
func wide(n int) func(*cluster) {
	return func(c *cluster) { c.roles, c.period = n, 50*time.Millisecond }
}

// atMost is a context for what must not take longer.
func (c *cluster) atMost(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	c.Cleanup(cancel)
	return ctx
}

// shares returns how many roles each member leads.
func (c *cluster) shares(n int) map[string]int {
	out := map[string]int{}
	for _, name := range c.names {
		for role := range n {
			if c.members[name].IsLeaderOf(role) {
				out[name]++
			}
		}
	}
	return out
}

// level waits until all n roles are led and no member has more than one more than
// another.
func (c *cluster) level(n int, within time.Duration) {
	c.Helper()
	c.eventually(within, "everybody has a share", func() bool {
		total, most, least := 0, 0, n
		of := c.shares(n)
		for _, name := range c.names {
			total, most, least = total+of[name], max(most, of[name]), min(least, of[name])
		}
		return total == n && most-least <= 1
	})
}

// terms counts how often leadership began anywhere.
func (c *cluster) terms() (n int) {
	for _, name := range c.names {
		for _, k := range c.members[name].kinds() {
			if k == "acquired" {
				n++
			}
		}
	}
	return n
}

// At the first election, after a crash and after a join everybody has a share, and
// then nothing moves any more.
func TestOpenSpreadsPartitions(t *testing.T) {
	const n = 24
	simulateWith(t, nelitest.Options{}, wide(n), func(c *cluster) {
		for _, name := range []string{"a", "b", "c", "d"} {
			c.work(name, many(n))
		}
		c.leader(0, 2*silence)
		c.level(n, steady+10*time.Second)
		c.crash(c.members["d"])
		c.level(n, silence+time.Second)
		c.work("e", many(n))
		c.work("f", many(n))
		c.pass(14 * time.Second)
		require.Zero(c, c.shares(n)["e"]+c.shares(n)["f"], "not before they have been there for a while")
		c.level(n, 30*time.Second)
		before := c.terms()
		c.pass(2 * time.Minute)
		require.Equal(c, before, c.terms(), "and then nothing moves")
	})
}

var errSick = errors.New("sick")
