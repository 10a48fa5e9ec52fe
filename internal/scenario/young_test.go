package scenario

import (
	"testing"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
	"github.com/stretchr/testify/require"
)

// Members of a new group that start soon after each other have their shares within 5 s of the last start,
// though the first one claims everything at once. Others wait as usual. No role moves twice.
func TestNewGroupIsSharedOutSoon(t *testing.T) {
	for _, g := range []struct {
		members       int
		apart, within time.Duration
	}{{3, 0, 5 * time.Second}, {3, 500 * time.Millisecond, 5 * time.Second}, {3, 2 * time.Second, 5 * time.Second}, {3, 3 * time.Second, 5 * time.Second},
		{5, 2 * time.Second, 5 * time.Second}, {3, 5 * time.Second, 20 * time.Second}, {3, 10 * time.Second, 20 * time.Second}} {
		Simulate(t, nelitest.Options{}, wide(64), func(c *Cluster) {
			c.Work("a", many(64))
			c.Eventually(300*time.Millisecond, "a leads", c.led0)
			for i := 1; i < g.members; i++ {
				c.Pass(g.apart)
				c.Work(string(rune('a'+i)), many(64))
			}
			c.level(64, g.within)
			terms := c.terms()
			require.LessOrEqual(c, terms, 64+64-64/g.members, "%v: roles have moved twice", g)
			c.Pass(time.Minute)
			require.Equal(c, terms, c.terms(), "%v: roles have moved again", g)
		})
	}
}

// led0 reports whether role 0 is led.
func (c *Cluster) led0() bool { return c.led(0) }

// A member that flaps while the group is young gets roles once, and a preferred one gets none.
func TestFlappingMemberOfAYoungGroup(t *testing.T) {
	for name, change := range map[string]func(*neli.Config){"equal": func(*neli.Config) {}, "preferred": priority(10)} {
		Simulate(t, nelitest.Options{}, wide(4), func(c *Cluster) {
			a := c.Work("a", many(4))
			c.Eventually(300*time.Millisecond, "a leads all", c.leadsAll("a", 4))
			for range 3 {
				b := c.Work("b", many(4, change))
				c.Pass(4500 * time.Millisecond)
				c.Crash(b)
				c.Pass(500 * time.Millisecond)
			}
			most := 1
			if name == "preferred" {
				most = 0
			}
			require.Equal(c, most, a.count("revoked"), name)
		})
	}
}
