package scenario

import (
	"slices"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
)

// These tests play scenarios of documents that propose elections by quorum, priority or gossip, on
// a majority of small logs. Each test's name names its document.

const (
	smallT    = time.Second
	smallTrip = 10 * time.Millisecond
	// smallSilence is how long a claimant waits, with 500 ppm.
	smallSilence = smallT + smallT/1000 + 2*time.Millisecond
	// smallElection is how long a first election takes: silence, Hellos, and some round trips.
	smallElection = smallSilence + 12*smallTrip
	// smallTakeover is how long it takes until everything that a dead member led is led again.
	smallTakeover = smallSilence + 8*smallTrip
)

// onSmallLogs prepares an election on a number of logs, with n roles that are checked all the time.
func onSmallLogs(logs, n int) func(*Cluster) {
	return func(c *Cluster) {
		c.Logs = nelitest.NewSmallLogs(logs, smallTrip)
		c.Roles, c.Period = n, 5*time.Millisecond
	}
}

// small configures a member on small logs.
func small(changes ...func(*neli.Config)) func(*neli.Config) {
	return func(cfg *neli.Config) {
		cfg.HeartbeatTimeout = smallT
		for _, change := range changes {
			change(cfg)
		}
	}
}

// machines lets only members and logs of the same part reach each other. Member i and log i are on one machine.
func (c *Cluster) machines(names []string, parts ...[]int) {
	part := make([]int, len(names))
	for p, some := range parts {
		for _, i := range some {
			part[i] = p + 1
		}
	}
	for i, name := range names {
		for log := range names {
			if part[i] == part[log] {
				c.Logs.Restore(name, log)
			} else {
				c.Logs.CutOff(name, log, nelitest.LinkAll)
			}
		}
	}
}

// reaches leaves a member connected only to the given logs, of n.
func (c *Cluster) reaches(name string, n int, logs ...int) {
	for log := range n {
		if slices.Contains(logs, log) {
			c.Logs.Restore(name, log)
		} else {
			c.Logs.CutOff(name, log, nelitest.LinkAll)
		}
	}
}

// leads returns the leader of role 0, or nil.
func (c *Cluster) leads() *Member {
	for _, name := range c.Names {
		if m := c.Members[name]; m.IsLeader() {
			return m
		}
	}
	return nil
}

// spread returns the smallest and the largest number of n roles that a member leads.
func (c *Cluster) spread(n int) (least, most int) {
	least = n
	of := c.shares(n)
	for _, name := range c.Names {
		least, most = min(least, of[name]), max(most, of[name])
	}
	return least, most
}
