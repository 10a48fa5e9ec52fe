package sim

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
)

// Many members and many roles in simulated time. Only messages and a busy broker take time. The
// tests measure how soon everything is led again after an outage, or after many members have
// died.

// Size is the size of a crowd.
type Size struct {
	Members, Partitions, Roles int
}

// crowd is a large cluster. Only how many roles each leads is checked.
type crowd struct {
	*testing.T
	Size
	broker  *nelitest.Broker
	members []*neli.Neli
	dead    []*neli.Neli
	born    int
	timeout time.Duration // T
	reading *toil         // what reading costs
}

func inCrowd(t *testing.T, size Size, timeout time.Duration, run func(*crowd)) {
	began := time.Now()
	synctest.Test(t, func(t *testing.T) {
		c := &crowd{T: t, Size: size, broker: nelitest.NewBroker(nelitest.Options{}), timeout: timeout, reading: &toil{}}
		defer c.broker.Close()
		defer c.close()
		run(c)
	})
	t.Logf("%d members, %d partitions, %d roles: %v", size.Members, size.Partitions, size.Roles, time.Since(began).Round(time.Millisecond))
}

func (c *crowd) join(n int) {
	for range n {
		c.born++
		id := fmt.Sprint("m", c.born)
		m, err := neli.New(neli.Config{LeaderGroupID: simGroup, Name: id, Provider: laborious{c.broker.Provider(id), c.reading}, Partitions: c.Partitions,
			Roles: c.Roles, HeartbeatTimeout: c.timeout})
		if err != nil {
			c.Fatal(err)
		}
		if _, err = m.Background(func() { time.Sleep(100 * time.Millisecond) }); err != nil {
			c.Fatal(err)
		}
		c.members = append(c.members, m)
	}
}

// crash kills the first n members.
func (c *crowd) crash(n int) {
	for _, m := range c.members[:n] {
		c.broker.Kill(m.Config().Name)
	}
	c.dead = append(c.dead, c.members[:n]...)
	c.members = slices.Clone(c.members[n:])
}

// close kills all members, since closing hundreds in good order takes a long time.
func (c *crowd) close() {
	c.crash(len(c.members))
	done := make(chan struct{})
	for _, m := range c.dead {
		go func() {
			_ = m.Close()
			done <- struct{}{}
		}()
	}
	for range c.dead {
		<-done
	}
}

// led returns how many roles are led now.
func (c *crowd) led() (n int) {
	for _, k := range c.shares() {
		n += k
	}
	return n
}

// shares returns how many roles each member leads.
func (c *crowd) shares() []int {
	out := make([]int, len(c.members))
	for i, m := range c.members {
		for range m.Led() {
			out[i]++
		}
	}
	return out
}

// allLed waits until all roles are led, and asserts that this takes no longer than d.
func (c *crowd) allLed(what string, d time.Duration) {
	c.Helper()
	began := time.Now()
	for {
		n, took := c.led(), time.Since(began)
		if n == c.Roles {
			break
		}
		if took >= d {
			c.Fatalf("%s: %d of %d roles are led after %v, of T %v", what, n, c.Roles, d, c.timeout)
		}
		time.Sleep(50 * time.Millisecond)
	}
	c.report(fmt.Sprintf("%s: all led after %v (bound %v)", what, time.Since(began).Round(time.Millisecond), d))
}

func (c *crowd) report(what string) {
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	shares := c.shares()
	c.Logf("%s; the most that one leads is %.2f of the mean; heap %d MiB", what,
		float64(slices.Max(shares))*float64(len(c.members))/float64(c.Roles), mem.HeapAlloc>>20)
}

// patience returns W(T) with the default ρ.
func (c *crowd) patience() time.Duration {
	const rho = 0.0005
	return time.Duration(float64(c.timeout)*(1+rho)/(1-rho)) + time.Millisecond
}

// Outage stops the broker of a crowd for 3 T, and asserts that everything is led within 2 T of
// its return. load is the share of time in which the broker is busy before the outage. Without
// restraint nobody would ever lead again, since repeated records would keep the broker as busy as
// the ones that did not come back.
func Outage(t *testing.T, size Size, load float64) {
	inCrowd(t, size, 5*time.Second, func(c *crowd) {
		c.join(size.Members)
		c.allLed("at the start", c.patience()+c.timeout)
		time.Sleep(2 * c.timeout) // the roles are still being shared out

		// Each member beats on each log five times in T, and all members together say Hello five times a second.
		perSecond := float64(size.Members*size.Partitions)*5/c.timeout.Seconds() + 5
		each := time.Duration(load / perSecond * float64(time.Second))
		c.broker.Busy(each)
		time.Sleep(2 * c.timeout)
		if n := c.led(); n < size.Roles {
			t.Errorf("at a load of %v only %d of %d roles are led, and nothing is wrong", load, n, size.Roles)
		}
		c.broker.Stop()
		time.Sleep(3 * c.timeout)
		if n := c.led(); n > 0 {
			t.Errorf("%d roles are led, and nobody has heard anything for 3 T", n)
		}
		c.broker.Start()
		c.allLed(fmt.Sprintf("after an outage at a load of %v (%v a record)", load, each), 2*c.timeout)
	})
}

// shared waits until all roles are led and no member leads over a tenth more than the mean. It
// asserts that this takes no longer than d from began.
func (c *crowd) shared(what string, began time.Time, d time.Duration) {
	c.Helper()
	mean := (c.Roles + len(c.members) - 1) / len(c.members)
	for {
		shares, took := c.shares(), time.Since(began)
		total := 0
		for _, k := range shares {
			total += k
		}
		if total == c.Roles && slices.Max(shares) <= mean+mean/10 {
			break
		}
		if took >= d {
			c.Fatalf("%s: not shared out after %v: %d of %d roles are led, shares %v", what, d, total, c.Roles, shares)
		}
		time.Sleep(50 * time.Millisecond)
	}
	c.report(fmt.Sprintf("%s: shared out after %v (bound %v)", what, time.Since(began).Round(time.Millisecond), d))
}

// Gather starts a crowd bit by bit, like the processes of a deployment. It asserts that
// everything is shared out half a minute after the first has started. It asserts the same after a
// quarter have died, and after as many have started one after the other.
func Gather(t *testing.T, size Size) {
	inCrowd(t, size, 5*time.Second, func(c *crowd) {
		const apart = 5 * time.Second // between the first and the last
		gather := func(n int) {
			for range n {
				c.join(1)
				time.Sleep(apart / time.Duration(n))
			}
		}
		began := time.Now()
		gather(size.Members)
		c.shared("at the start", began, 30*time.Second)
		time.Sleep(20 * time.Second)
		quarter := size.Members / 4
		began = time.Now()
		c.crash(quarter)
		c.allLed(fmt.Sprintf("after %d died", quarter), c.patience()+time.Second)
		c.shared("after that", began, 30*time.Second)
		began = time.Now()
		gather(quarter)
		c.shared(fmt.Sprintf("after %d joined", quarter), began, 30*time.Second)
	})
}

// Scale lets a tenth of a crowd die, and asserts that everything is led W(T) + 1 s later. Then as
// many start, and everything must be led at some time between T and 2 T later.
func Scale(t *testing.T, size Size) {
	inCrowd(t, size, 10*time.Second, func(c *crowd) {
		c.join(size.Members)
		c.allLed("at the start", c.patience()+2*time.Second)
		time.Sleep(2 * c.timeout)
		tenth := size.Members / 10
		c.crash(tenth)
		c.allLed(fmt.Sprintf("after %d died", tenth), c.patience()+time.Second)
		c.join(tenth)
		time.Sleep(c.timeout)
		c.allLed(fmt.Sprintf("after %d joined", tenth), c.timeout)
	})
}
