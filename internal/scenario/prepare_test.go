package scenario

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
	"github.com/stretchr/testify/require"
)

// kitchen is an application that prepares roles.
type kitchen struct {
	mu    sync.Mutex
	ready map[int]bool // what is prepared, until it is let go
	led   []int        // what was let go because the member leads it
	fails func(ctx context.Context, role int) error
}

// prepares configures a member that takes a second to prepare a role, two at once.
func (k *kitchen) prepares(cfg *neli.Config) {
	k.ready = map[int]bool{}
	cfg.MaxPrepares, cfg.PrepareTimeout = 2, 5*time.Second
	cfg.Prepare = func(ctx context.Context, role int) error {
		if k.fails != nil {
			return k.fails(ctx, role)
		}
		time.Sleep(time.Second)
		k.set(role, true)
		context.AfterFunc(ctx, func() {
			if errors.Is(context.Cause(ctx), neli.ErrLed) {
				k.mu.Lock()
				k.led = append(k.led, role)
				k.mu.Unlock()
			}
			k.set(role, false)
		})
		return nil
	}
}

func (k *kitchen) set(role int, ready bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ready[role] = ready; !ready {
		delete(k.ready, role)
	}
}

func (k *kitchen) counts() (ready, led int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.ready), len(k.led)
}

// A role that is transferred is led on until its successor is ready for it, and then changes hands within round trips.
func TestTransferWaitsForPreparation(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *Cluster) {
		var k kitchen
		a := c.Work("a", Open)
		c.Eventually(2*silence, "a leads", a.IsLeader)
		b := c.Work("b", many(1, k.prepares))
		c.Pass(6 * time.Second)
		began := time.Now()
		c.Gap()
		require.NoError(c, a.Transfer(c.atMost(time.Minute), 0, "b"))
		require.GreaterOrEqual(c, time.Since(began), time.Second)
		require.Less(c, time.Since(began), 1200*time.Millisecond)
		c.Eventually(10*time.Millisecond, "b leads", b.IsLeader)
		require.LessOrEqual(c, c.Gap(), 10*time.Millisecond)
		c.Pass(time.Second)
		ready, led := k.counts()
		require.Equal(c, []int{0, 1}, []int{ready, led})
		require.Equal(c, neli.Preparation{Prepared: 1, Led: 1}, b.Stats().Preparation)
		require.Equal(c, neli.Preparation{GivenWarm: 1}, a.Stats().Preparation)
		c.orderly()
	})
}

// A closing process leads on while others prepare its roles.
func TestClosingWaitsForPreparation(t *testing.T) {
	const n = 8
	Simulate(t, nelitest.Options{}, wide(n), func(c *Cluster) {
		var kb, kd kitchen
		a := c.Work("a", many(n, rebalanceOff))
		c.Eventually(2*silence, "a leads all", c.leadsAll("a", n))
		c.Work("b", many(n, rebalanceOff, kb.prepares))
		c.Work("d", many(n, rebalanceOff, kd.prepares))
		c.Pass(6 * time.Second)
		began := time.Now()
		require.NoError(c, a.Close())
		require.GreaterOrEqual(c, time.Since(began), time.Second)
		require.Less(c, time.Since(began), 5*time.Second)
		c.Eventually(time.Second, "the others lead all", c.allLed(n))
		c.Pass(time.Second)
		_, b := kb.counts()
		_, d := kd.counts()
		require.Equal(c, n, b+d, "prepared")
	})
}

// Whatever Prepare does instead of preparing, its process goes on, the leader keeps the role, and Close ends.
func TestMisbehavingPrepareDoesNoHarm(t *testing.T) {
	for name, fails := range map[string]func(context.Context, int) error{
		"returns an error":      func(context.Context, int) error { return errors.New("no") },
		"panics":                func(context.Context, int) error { panic("no") },
		"ends its goroutine":    func(context.Context, int) error { runtime.Goexit(); return nil },
		"hangs":                 func(ctx context.Context, _ int) error { <-ctx.Done(); return nil },
		"ignores its context":   func(context.Context, int) error { time.Sleep(7 * time.Second); return nil },
		"returns nil, but late": func(context.Context, int) error { time.Sleep(5100 * time.Millisecond); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, nelitest.Options{}, func(c *Cluster) {
				k := kitchen{fails: fails}
				a := c.Work("a", Open)
				c.Eventually(2*silence, "a leads", a.IsLeader)
				b := c.Work("b", many(1, k.prepares))
				c.Pass(6 * time.Second)
				require.ErrorIs(c, a.Transfer(c.atMost(time.Minute), 0, "b"), neli.ErrNoAnswer)
				require.True(c, a.IsLeader())
				c.Pass(10 * time.Second)
				require.Equal(c, neli.Preparation{Failed: 1}, b.Stats().Preparation)
				require.Equal(c, neli.Preparation{CalledOff: 1}, a.Stats().Preparation)
				require.NoError(c, b.Close())
			})
		})
	}
}

// Members that prepare nothing act like those of older versions, which ignore offers. They are replaced, one after the
// other, by members that prepare roles and stand by, and these then by members that do not. No role is lost on the way,
// and nothing stays prepared in the end.
func TestRollingUpgradeToPreparation(t *testing.T) {
	const n = 6
	Simulate(t, nelitest.Options{}, wide(n), func(c *Cluster) {
		kitchens := map[string]*kitchen{}
		members := map[string]*Member{}
		start := func(name string, prepares bool) {
			change := func(*neli.Config) {}
			if prepares {
				kitchens[name] = &kitchen{}
				change = func(cfg *neli.Config) { kitchens[name].prepares(cfg); cfg.Standby = true }
			}
			members[name] = c.Work(name, many(n, change))
		}
		replace := func(from, to string, prepares bool) {
			start(to, prepares)
			c.Pass(20 * time.Second)
			began := time.Now()
			require.NoError(c, members[from].Close())
			require.Less(c, time.Since(began), 12*time.Second, "DrainTimeout and a wait for the successor")
			c.Eventually(time.Second, "all roles are led", c.allLed(n))
			c.Pass(5 * time.Second)
		}
		for _, name := range []string{"a1", "b1", "d1"} {
			start(name, false)
		}
		c.Eventually(2*silence, "all roles are led", c.allLed(n))
		for _, name := range []string{"a", "b", "d"} {
			replace(name+"1", name+"2", true)
		}
		c.Pass(20 * time.Second)
		ready, led := 0, 0
		for _, k := range kitchens {
			r, l := k.counts()
			ready, led = ready+r, led+l
		}
		require.Equal(c, n, ready, "a standby for each role")
		require.NotZero(c, led)
		for _, name := range []string{"a", "b", "d"} {
			replace(name+"2", name+"3", false)
		}
		for name, k := range kitchens {
			ready, _ := k.counts()
			require.Zero(c, ready, name)
		}
		c.orderly()
	})
}
