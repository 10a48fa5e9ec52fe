package scenario

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
)

// lasting sets T.
func lasting(t time.Duration) func(*neli.Config) {
	return func(cfg *neli.Config) { cfg.HeartbeatTimeout = t }
}

// Members on one log may have different T. A holder with a shorter lease than another holder counts
// as silent when its own lease is over, not when the other's would be.
func TestHolderOfAShortLeaseIsFoundSilentInTime(t *testing.T) {
	Simulate(t, nelitest.Options{}, wide(2), func(c *Cluster) {
		c.Work("a", many(2, lasting(time.Minute)))
		c.Eventually(3*time.Minute, "a leads all", c.leadsAll("a", 2))
		b := c.Work("b", many(2, lasting(2*time.Second)))
		c.Eventually(5*time.Minute, "b leads one", func() bool { return c.shares(2)["b"] == 1 })
		c.Crash(b)
		c.Eventually(4*time.Second, "a leads all again", c.leadsAll("a", 2))
	})
}

// The same, for a holder that an observer took for silent while the observer was cut off, and has
// heard again.
func TestHolderOfAShortLeaseIsFoundSilentAgain(t *testing.T) {
	Simulate(t, nelitest.Options{}, wide(2), func(c *Cluster) {
		c.Work("a", many(1, lasting(time.Minute)))
		c.Eventually(3*time.Minute, "a leads role 0", func() bool { return c.shares(2)["a"] == 1 })
		c.Work("b", many(2, lasting(2*time.Second)))
		c.Eventually(5*time.Minute, "b leads role 1", func() bool { return c.shares(2)["b"] == 1 })
		o := c.Join("o", many(2, lasting(time.Minute), observer))
		var told atomic.Value // of role 1
		watching, stop := context.WithCancel(context.Background())
		var watch sync.WaitGroup
		watch.Go(func() {
			for s := range o.Watch(watching) {
				for role := range s.Roles() {
					if role == 1 {
						told.Store(s.Status)
					}
				}
			}
		})
		defer watch.Wait()
		defer stop()
		is := func(want neli.Status) func() bool { return func() bool { return told.Load() == want } }
		c.Eventually(time.Minute, "o knows that b leads", is(neli.StatusHeld))
		c.Broker.CutOff("o", nelitest.LinkReads)
		c.Eventually(4*time.Second, "o takes b for silent", is(neli.StatusVacant))
		c.Broker.Restore("o", nelitest.LinkReads)
		c.Eventually(4*time.Second, "o has heard b", is(neli.StatusHeld))
		c.Crash(c.Members["b"])
		c.Eventually(4*time.Second, "o finds b silent", is(neli.StatusVacant))
	})
}
