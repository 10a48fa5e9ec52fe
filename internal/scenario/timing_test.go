package scenario

import (
	"testing"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/internal/lease"
	"github.com/goneli/neli/nelitest"
	"github.com/stretchr/testify/require"
)

// A claimant's wait begins when it has received the holder's last record, not when it began to
// wait for it. So the claim follows the last beat by T′ at least.
func TestClaimantsWaitBeginsAtTheLastRecord(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *Cluster) {
		c.Work("a", Open)
		c.Work("b", Open)
		old := c.Leader(0, 2*silence)
		c.Pass(10 * time.Second)
		beats := len(c.Records(0, lease.Beat))
		c.Eventually(2*time.Second, "a beat", func() bool { return len(c.Records(0, lease.Beat)) > beats })
		last := time.Now().Add(-time.Millisecond) // the beat is at most that old
		c.Crash(old)
		claims := len(c.Records(0, lease.Claim))
		c.Eventually(2*silence, "a claim", func() bool { return len(c.Records(0, lease.Claim)) > claims })
		require.GreaterOrEqual(c, time.Since(last), silence)
	})
}

// A process that boots begins to wait after the broker has reported the end of the log, however
// long that takes.
func TestBootingProcessWaitsFromTheEndOfTheLog(t *testing.T) {
	simulate(t, nelitest.Options{RequestLatency: 2 * time.Second}, func(c *Cluster) {
		c.Aged(1)
		c.Work("a", Open)
		began := time.Now()
		c.Eventually(time.Minute, "a claim", func() bool { return len(c.Records(0, lease.Claim)) > 0 })
		// The requests: describe the topic, its settings (two requests), and its offsets.
		require.GreaterOrEqual(c, time.Since(began), 4*2*time.Second+silence)
	})
}

// A holder that was cut off from the log, and comes back with a live application, starts a new
// term, since the old one has lapsed.
func TestLapseStartsANewTerm(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *Cluster) {
		a := c.Work("a", Open)
		c.Leader(0, 2*silence)
		first, _ := a.Token(0)
		c.Broker.CutOff("a", nelitest.LinkReads)
		c.Eventually(2*defaultT, "fenced", func() bool { return len(a.Kinds()) == 2 })
		c.Broker.Restore("a", nelitest.LinkReads)
		c.Eventually(2*silence, "again", a.IsLeader)
		second, _ := a.Token(0)
		require.Greater(c, second, first)
		require.Equal(c, []string{"acquired", "fenced", "acquired"}, a.Kinds())
	})
}

// A long group session does not affect a leader: in exclusive mode T does not depend on the session
// timeout.
func TestTDoesNotDependOnTheGroupSession(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *Cluster) {
		with := func(cfg *neli.Config) {
			cfg.HeartbeatTimeout = 300 * time.Millisecond
			cfg.KafkaConfig = neli.KafkaConfigMap{"session.timeout.ms": 45000}
		}
		a := c.Work("a", with)
		c.Leader(0, 2*time.Second)
		c.Gap()
		c.Pass(10 * time.Minute)
		require.Zero(c, c.Gap())
		require.Equal(c, []string{"acquired"}, a.Kinds())
	})
}

// A nominated process that cannot reach the log makes room for one that can, because the group does
// not notice by itself. When it reaches the log again, it takes part again.
func TestNomineeThatCannotClaimMakesRoom(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *Cluster) {
		a := c.Work("a", nil)
		require.Same(c, a, c.Leader(0, 2*silence))
		b := c.Work("b", nil)
		c.Pass(10 * time.Second)
		c.Broker.CutOff("a", nelitest.LinkAppends|nelitest.LinkReads)
		c.Eventually(silence+defaultT+15*time.Second+3*time.Second, "b leads", b.IsLeader)
		c.Pass(time.Minute)
		require.True(c, b.IsLeader())
		require.Equal(c, []string{"acquired", "fenced"}, a.Kinds())
		c.Broker.Restore("a", nelitest.LinkAll)
		c.Pass(20 * time.Second)
		require.True(c, a.IsLeader() != b.IsLeader())
		c.Crash(map[bool]*Member{true: a, false: b}[a.IsLeader()])
		c.Leader(0, 10*time.Second)
	})
}

// If no process can reach the log, all leave the group in turn. They come back after a while, since
// another log may be available. When the log is back, a process leads.
func TestNomineesThatCouldNotClaimComeBack(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *Cluster) {
		a, b := c.Work("a", nil), c.Work("b", nil)
		c.Leader(0, 2*silence)
		for _, m := range []*Member{a, b} {
			c.Broker.CutOff(m.As, nelitest.LinkAppends|nelitest.LinkReads)
		}
		left := map[string]bool{}
		nobody := 0
		for range 240 {
			c.Pass(500 * time.Millisecond)
			in := 0
			for _, m := range []*Member{a, b} {
				left[m.As] = left[m.As] || len(c.Broker.Assigned(m.As)) == 0
				in += len(c.Broker.Assigned(m.As))
			}
			if in == 0 {
				nobody++
			}
		}
		require.Equal(c, map[string]bool{"a": true, "b": true}, left)
		require.LessOrEqual(c, nobody, 60, "no leader for more than 60 half seconds of two minutes")
		require.False(c, a.IsLeader() || b.IsLeader())
		for _, m := range []*Member{a, b} {
			c.Broker.Restore(m.As, nelitest.LinkAll)
		}
		c.Leader(0, 20*time.Second)
	})
}
