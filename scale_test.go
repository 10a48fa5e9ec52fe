package neli_test

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
	"github.com/stretchr/testify/require"
)

// Many members and many partitions in simulated time: how soon all is led, and how
// evenly. NELI_SCALE=members,partitions,roles sets the size (make scale-sim).

// crowd is a cluster that is only counted.
type crowd struct {
	*testing.T
	broker     *nelitest.Broker
	members    []*neli.Neli
	born       int
	partitions int
	roles      int
	timeout    time.Duration
}

func TestScale(t *testing.T) {
	members, partitions, roles := 30, 120, 12_000
	if v := os.Getenv("NELI_SCALE"); v != "" {
		_, err := fmt.Sscanf(v, "%d,%d,%d", &members, &partitions, &roles)
		require.NoError(t, err)
	}
	synctest.Test(t, func(t *testing.T) {
		c := &crowd{T: t, broker: nelitest.NewBroker(nelitest.Options{}), partitions: partitions, roles: roles, timeout: time.Minute}
		defer c.broker.Close()
		defer func() { c.leave(len(c.members)) }()
		wait := neli.SilenceOf(c.timeout, 0.0005)
		tenth := members / 10

		began := time.Now()
		c.join(members)
		c.led(wait + 2*time.Second)
		c.report("all led after the start", began)
		c.even(2 * time.Minute)
		c.report("shared out", began)

		began = time.Now()
		c.crash(tenth)
		c.led(wait + 2*time.Second)
		c.report(fmt.Sprintf("all led after %d died", tenth), began)
		share := float64(partitions) / float64(members-tenth)
		require.LessOrEqual(t, float64(slices.Max(c.shares())), max(1.5*share, math.Ceil(share)), "their partitions go to all the others")
		c.even(time.Minute)
		c.report("shared out", began)

		began = time.Now()
		c.join(tenth)
		c.even(2 * time.Minute)
		c.report(fmt.Sprintf("shared out after %d joined", tenth), began)
		require.Equal(t, partitions, c.count(), "nothing is without a leader")
	})
}

func (c *crowd) join(n int) {
	for range n {
		c.born++
		m, err := neli.New(neli.Config{LeaderGroupID: "app", Name: fmt.Sprint("m", c.born), Nomination: neli.Open,
			Provider: c.broker.Provider(fmt.Sprint("m", c.born)), Partitions: c.partitions, Roles: c.roles, HeartbeatTimeout: c.timeout})
		require.NoError(c, err)
		_, err = m.Background(func() { time.Sleep(time.Second) })
		require.NoError(c, err)
		c.members = append(c.members, m)
	}
}

// crash ends the first n members without a word.
func (c *crowd) crash(n int) {
	for i, m := range c.members[:n] {
		c.broker.Kill(m.Name())
		c.members[i] = nil
		defer func() { _ = m.Close() }()
	}
	c.members = c.members[n:]
}

func (c *crowd) leave(n int) {
	done := make(chan struct{})
	for _, m := range c.members[:n] {
		go func() {
			_ = m.Close()
			done <- struct{}{}
		}()
	}
	for range n {
		<-done
	}
	c.members = c.members[n:]
}

// shares returns how many partitions each member leads.
func (c *crowd) shares() []int {
	out := make([]int, len(c.members))
	for i, m := range c.members {
		for p := range c.partitions {
			if m.IsLeaderOf(p) {
				out[i]++
			}
		}
	}
	return out
}

func (c *crowd) count() (n int) {
	for _, k := range c.shares() {
		n += k
	}
	return n
}

// spread is how much the member that leads most leads, over the mean.
func (c *crowd) spread() float64 {
	return float64(slices.Max(c.shares())) * float64(len(c.members)) / float64(c.partitions)
}

func (c *crowd) within(d time.Duration, what string, ok func() bool) {
	c.Helper()
	// A look at all members and partitions takes a while.
	pause := 10*time.Millisecond + time.Duration(len(c.members)*c.partitions)*100*time.Nanosecond
	for deadline := time.Now().Add(d); !ok(); time.Sleep(pause) {
		require.True(c, time.Now().Before(deadline), "not within %v: %s", d, what)
	}
}

func (c *crowd) led(d time.Duration) {
	c.Helper()
	c.within(d, "all partitions are led", func() bool { return c.count() == c.partitions })
}

// even waits until nobody leads more than another, but for one partition or a tenth.
func (c *crowd) even(d time.Duration) {
	c.Helper()
	slack := max(1, c.partitions/len(c.members)/10)
	c.within(d, fmt.Sprintf("nobody leads %d partitions more than another", slack+1), func() bool {
		of := c.shares()
		return c.count() == c.partitions && slices.Max(of)-slices.Min(of) <= slack
	})
}

func (c *crowd) report(what string, since time.Time) {
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	c.Logf("%-32s %8v   max/mean %.2f   heap %d MiB", what, time.Since(since).Round(time.Millisecond), c.spread(), mem.HeapAlloc>>20)
}

// All read what each says of itself, so the cost grows with the square of their
// number: many say it seldom, also while they come.
func TestAnnouncementsOfManyAreFew(t *testing.T) {
	const members = 60
	synctest.Test(t, func(t *testing.T) {
		c := &crowd{T: t, broker: nelitest.NewBroker(nelitest.Options{}), partitions: 1, roles: 1, timeout: 20 * time.Second}
		defer c.broker.Close()
		defer func() { c.leave(len(c.members)) }()
		hellos := func() (n int) {
			for _, r := range c.broker.Records("app.neli", 0) {
				if w, ok := neli.DecodeWire(r.Value, "app"); ok && w.Kind == "hello" {
					n++
				}
			}
			return n
		}
		c.join(members)
		time.Sleep(time.Minute)
		atFirst := hellos()
		require.Less(t, atFirst, 20*60+members, "twenty a second, and the first of each")
		for range 4 {
			time.Sleep(15 * time.Second)
			for _, m := range c.members {
				require.Len(t, m.Members(), members)
			}
		}
		require.InDelta(t, 5*60, hellos()-atFirst, 60, "five a second")
	})
}
