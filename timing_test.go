package neli_test

import (
	"testing"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
	"github.com/stretchr/testify/require"
)

// The silence that a claimant waits for begins when it has the holder's last
// record in hand, not when it began to wait for it: the claim follows the last
// beat by T′ at least.
func TestReadingComesBeforeTheClock(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *cluster) {
		c.work("a", open)
		c.work("b", open)
		old := c.leader(0, 2*silence)
		c.pass(10 * time.Second)
		beats := len(c.records("app.neli", 0, "beat"))
		c.eventually(2*time.Second, "a beat", func() bool { return len(c.records("app.neli", 0, "beat")) > beats })
		last := time.Now().Add(-time.Millisecond) // in the log since then at most
		c.crash(old)
		claims := len(c.records("app.neli", 0, "claim"))
		c.eventually(2*silence, "a claim", func() bool { return len(c.records("app.neli", 0, "claim")) > claims })
		require.GreaterOrEqual(c, time.Since(last), silence)
	})
}

// A process that boots counts the silence from after the broker has said where
// the log ends, however long that takes.
func TestBootClockComesAfterTheOffsets(t *testing.T) {
	simulate(t, nelitest.Options{RequestLatency: 2 * time.Second}, func(c *cluster) {
		require.NoError(c, c.broker.CreateTopic("app.neli", 1))
		c.work("a", open)
		began := time.Now()
		c.eventually(time.Minute, "a claim", func() bool { return len(c.records("app.neli", 0, "claim")) > 0 })
		// Describe the topic; its settings, which takes two requests; its offsets.
		require.GreaterOrEqual(c, time.Since(began), 4*2*time.Second+silence)
	})
}

// A holder that was cut off from the log and is back with its application alive
// starts a new term: the lapsed one is over.
func TestLapseStartsANewTerm(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *cluster) {
		a := c.work("a", open)
		c.leader(0, 2*silence)
		first, _ := a.Token(0)
		c.broker.CutOff("a", nelitest.Reads)
		c.eventually(2*defaultT, "fenced", func() bool { return len(a.kinds()) == 2 })
		c.broker.Restore("a", nelitest.Reads)
		c.eventually(2*silence, "again", a.IsLeader)
		second, _ := a.Token(0)
		require.Greater(c, second, first)
		require.Equal(c, []string{"acquired", "fenced", "acquired"}, a.kinds())
	})
}

// A long session changes nothing for a leader at work: T is free of
// the session timeout in exclusive mode.
func TestTIsFreeOfTheSession(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *cluster) {
		with := func(cfg *neli.Config) {
			cfg.HeartbeatTimeout = 300 * time.Millisecond
			cfg.KafkaConfig = neli.KafkaConfigMap{"session.timeout.ms": 45000}
		}
		a := c.work("a", with)
		c.leader(0, 2*time.Second)
		c.gap()
		c.pass(10 * time.Minute)
		require.Zero(c, c.gap())
		require.Equal(c, []string{"acquired"}, a.kinds())
	})
}

// A process that is nominated and cannot reach the log makes room for one that
// can: the group knows nothing of it. When it is back it takes part again.
func TestNomineeThatCannotClaimGivesWay(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *cluster) {
		a := c.work("a", nil)
		require.Same(c, a, c.leader(0, 2*silence))
		b := c.work("b", nil)
		c.pass(10 * time.Second)
		c.broker.CutOff("a", nelitest.Appends|nelitest.Reads)
		c.eventually(defaultT+silence+15*time.Second+3*time.Second, "b leads", b.IsLeader)
		c.pass(time.Minute)
		require.True(c, b.IsLeader())
		require.Equal(c, []string{"acquired", "fenced"}, a.kinds())
		c.broker.Restore("a", nelitest.All)
		c.pass(20 * time.Second)
		require.True(c, a.IsLeader() != b.IsLeader())
		c.crash(map[bool]*member{true: a, false: b}[a.IsLeader()])
		c.leader(0, 10*time.Second)
	})
}

// When nobody could reach the log everybody has left the group, and everybody
// comes back.
func TestAllThatCouldNotClaimComeBack(t *testing.T) {
	simulate(t, nelitest.Options{}, func(c *cluster) {
		a, b := c.work("a", nil), c.work("b", nil)
		c.leader(0, 2*silence)
		for _, m := range []*member{a, b} {
			c.broker.CutOff(m.name, nelitest.Appends|nelitest.Reads)
		}
		c.pass(2 * time.Minute)
		require.False(c, a.IsLeader() || b.IsLeader())
		require.Empty(c, append(c.broker.Assigned("a"), c.broker.Assigned("b")...), "nobody is in the group")
		for _, m := range []*member{a, b} {
			c.broker.Restore(m.name, nelitest.All)
		}
		c.leader(0, 30*time.Second)
	})
}
