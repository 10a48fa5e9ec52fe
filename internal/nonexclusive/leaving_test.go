package nonexclusive_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/kafka"
	"github.com/goneli/neli/nelitest"
)

// pair starts two members, and returns the one that leads role 0, and the other one.
func pair(c *cluster, with func(string) func(*neli.Config)) (first, second *member) {
	first = c.Work("a", with("a"))
	c.Leader(0, time.Minute)
	second = c.Work("b", with("b"))
	c.Pass(2 * time.Minute)
	if second.IsLeader() && !first.IsLeader() {
		first, second = second, first
	}
	require.True(c, first.IsLeader() && !second.IsLeader())
	c.Gap()
	return first, second
}

// Members of a group with a slow heartbeat learn late that a starved member has left, so it leaves earlier.
func TestSharedDeafMemberMakesRoomInASlowGroup(t *testing.T) {
	simulateWith(t, nelitest.Options{RebalanceTime: 500 * time.Millisecond}, overlapping, func(c *cluster) {
		first, second := pair(c, func(string) func(*neli.Config) {
			return func(cfg *neli.Config) {
				shared(cfg)
				cfg.HeartbeatInterval = 100 * time.Millisecond
				cfg.KafkaConfig = neli.KafkaConfigMap{"session.timeout.ms": 10000, "heartbeat.interval.ms": 3000}
			}
		})
		for range 9 { // 370 ms later each time: at every phase of a heartbeat of 3 s
			c.Broker.CutOff(first.As, nelitest.LinkReads)
			c.Eventually(time.Minute, "the other one leads", second.IsLeader)
			c.Pass(time.Minute)
			require.Zero(c, c.Gap(), "nobody led for a while")
			c.Broker.Restore(first.As, nelitest.LinkReads)
			c.Pass(time.Minute)
			first, second = second, first
			if !first.IsLeader() {
				first, second = second, first
			}
			c.Pass(370 * time.Millisecond)
			c.Gap()
		}
	})
}

// A static member that leaves keeps its partitions until its session is over.
func TestSharedDeafStaticMemberMakesRoom(t *testing.T) {
	simulateWith(t, nelitest.Options{RebalanceTime: 500 * time.Millisecond}, overlapping, func(c *cluster) {
		first, second := pair(c, func(id string) func(*neli.Config) {
			return func(cfg *neli.Config) {
				shared(cfg)
				cfg.KafkaConfig = neli.KafkaConfigMap{"group.instance.id": id}
			}
		})
		c.Broker.CutOff(first.As, nelitest.LinkReads)
		c.Pass(5 * time.Minute)
		require.True(c, second.IsLeader(), "the other one has taken over")
		require.LessOrEqual(c, c.Gap(), session+2*time.Second, "as after a crash")
	})
}

// A static member that closes leads on until its session is over and another member leads.
func TestSharedStaticMemberClosesWithoutAGap(t *testing.T) {
	simulateWith(t, nelitest.Options{RebalanceTime: 500 * time.Millisecond}, overlapping, func(c *cluster) {
		first, second := pair(c, func(id string) func(*neli.Config) {
			return func(cfg *neli.Config) {
				shared(cfg)
				cfg.KafkaConfig = neli.KafkaConfigMap{"group.instance.id": id, "session.timeout.ms": 30000}
			}
		})
		require.NoError(c, first.Close())
		c.Pass(2 * time.Minute)
		require.True(c, second.IsLeader(), "the other one has taken over")
		require.Zero(c, c.Gap(), "nobody led for a while")
	})
}

// A member that may no longer read the topic makes room for one that may.
func TestSharedRefusedReaderMakesRoom(t *testing.T) {
	simulateWith(t, nelitest.Options{RebalanceTime: 500 * time.Millisecond}, overlapping, func(c *cluster) {
		first, second := pair(c, func(string) func(*neli.Config) { return shared })
		c.Broker.Refuse(first.As, nelitest.LinkReads, kafka.ErrTopicAuthorization)
		c.Pass(5 * time.Minute)
		require.True(c, second.IsLeader(), "the other one has taken over")
		require.Zero(c, c.Gap(), "nobody led for a while")
	})
}

// A process that leaves while the group waits for a dead member leads on until another one leads.
func TestSharedLeavesWhileTheGroupWaits(t *testing.T) {
	for _, session := range []time.Duration{6 * time.Second, 10 * time.Second} {
		t.Run(session.String(), func(t *testing.T) {
			simulateWith(t, nelitest.Options{RebalanceTime: 500 * time.Millisecond}, overlapping, func(c *cluster) {
				first, second := pair(c, func(string) func(*neli.Config) {
					return func(cfg *neli.Config) {
						shared(cfg)
						cfg.KafkaConfig = neli.KafkaConfigMap{"session.timeout.ms": session.Milliseconds()}
					}
				})
				c.Crash(second)
				c.Work("c", shared)
				c.Pass(time.Second)
				require.NoError(c, first.Close())
				c.Pass(2 * time.Minute)
				require.Zero(c, c.Gap(), "nobody led for a while")
			})
		})
	}
}
