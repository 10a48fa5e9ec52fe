package nelitest_test

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/kafka"
	"github.com/goneli/neli/nelitest"
)

// onePerBroker is the name of the topic of three logs in Kafka.
const onePerBroker = "g.neli.logs-3.t-1s.rho-0.0005"

// kafkaLogs does the same as small, with three logs in Kafka, each on a broker of its own.
func kafkaLogs(t *testing.T, roles int, test func(g *smallGroup, b *nelitest.Broker)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := nelitest.NewBroker(nelitest.Options{Seed: 1, Racks: []string{"x", "y", "z"}})
		g := &smallGroup{T: t, provider: b.Provider, logsInKafka: 3, roles: roles, tokens: map[int]int64{}, last: map[int]string{}}
		defer b.Close()
		defer g.close()
		test(g, b)
	})
}

// brokerOf returns the broker that has a log.
func brokerOf(g *smallGroup, b *nelitest.Broker, log int) int {
	g.Helper()
	p := b.Provider("admin")
	pr := newProducer(g.T, p, nil)
	info, err := newAdmin(g.T, p, pr).Topic(g.Context(), onePerBroker)
	require.NoError(g, err)
	require.Equal(g, 3, info.Partitions)
	require.Len(g, info.Brokers[log], 1)
	return info.Brokers[log][0]
}

func TestKafkaLogsElectAfterTheSilence(t *testing.T) {
	kafkaLogs(t, 1, func(g *smallGroup, b *nelitest.Broker) {
		g.join("a", "b", "c")
		took := g.until(5*time.Second, allLed)
		g.Logf("cold start: %v", took)
		require.LessOrEqual(g, took, silence+smallT/4)
		g.pass(5*smallT, true)
		on := map[int]bool{}
		for log := range 3 {
			on[brokerOf(g, b, log)] = true
		}
		require.Len(g, on, 3, "one log on each broker")
	})
}

// Brokers crash and come back, one at a time, with and without their data. No leader is disturbed.
func TestKafkaLogsRideThroughTheCrashOfABroker(t *testing.T) {
	kafkaLogs(t, 5, func(g *smallGroup, b *nelitest.Broker) {
		g.join("a", "b", "c")
		g.until(5*time.Second, allLed)
		before := g.leaders()
		for broker := 1; broker <= 3; broker++ {
			require.NoError(g, b.StopBroker(broker))
			g.pass(5*smallT, true)
			require.NoError(g, b.StartBroker(broker))
			g.pass(3*smallT, true)
		}
		for broker := 1; broker <= 3; broker++ {
			require.NoError(g, b.StopBroker(broker))
			g.pass(2*smallT, true)
			require.NoError(g, b.WipeBroker(broker))
			g.pass(3*smallT, true)
		}
		require.Equal(g, before, g.leaders())
		for _, m := range g.members {
			require.LessOrEqual(g, len(m.told), 1, "%q", m.told)
			require.Positive(g, m.Stats().LogResets)
		}
	})
}

// A reader cannot distinguish a hidden entry, such as the end of a transaction, from a loss. So members
// begin again in that log, and leaders continue on the others.
func TestKafkaLogsBeginAnewAtAGap(t *testing.T) {
	kafkaLogs(t, 3, func(g *smallGroup, b *nelitest.Broker) {
		g.join("a", "b", "c")
		g.until(5*time.Second, allLed)
		g.pass(2*smallT, true)
		before := g.leaders()
		for log := range 3 {
			_, err := b.Skip(onePerBroker, log, 1)
			require.NoError(g, err)
			g.pass(3*smallT, true)
			for _, m := range g.members {
				require.EqualValues(g, log+1, m.Stats().LogResets)
			}
		}
		require.Equal(g, before, g.leaders())
	})
}

// A log that has come back counts again: the next one may fail.
func TestKafkaLogsThatForgotAreClaimedAgain(t *testing.T) {
	kafkaLogs(t, 1, func(g *smallGroup, b *nelitest.Broker) {
		g.join("a", "b")
		g.until(5*time.Second, allLed)
		require.NoError(g, b.WipeBroker(brokerOf(g, b, 0)))
		g.pass(2*smallT, true)
		require.NoError(g, b.StopBroker(brokerOf(g, b, 1)))
		g.pass(3*smallT, true)
		require.Len(g, g.tokens, 1)
	})
}

func TestKafkaLogsReplaceACrashedLeaderAndABroker(t *testing.T) {
	kafkaLogs(t, 1, func(g *smallGroup, b *nelitest.Broker) {
		g.join("a", "b", "c")
		g.until(5*time.Second, allLed)
		g.pass(3*smallT, true)
		leader := g.leaders()[0]
		broker := brokerOf(g, b, 2)
		b.CutOff(leader, nelitest.LinkAll)
		require.NoError(g, b.StopBroker(broker))
		took := g.until(5*time.Second, noneOf(leader))
		g.Logf("leader and a broker crashed: %v", took)
		require.LessOrEqual(g, took, silence+smallT/4)
		g.pass(3*smallT, true)
		require.NoError(g, b.StartBroker(broker))
		b.Restore(leader, nelitest.LinkAll)
		g.pass(3*smallT, true)
	})
}

// Without a majority no member leads. When all brokers have come back, empty, one leads with a larger
// token.
func TestKafkaLogsWithoutAMajority(t *testing.T) {
	kafkaLogs(t, 1, func(g *smallGroup, b *nelitest.Broker) {
		g.join("a", "b", "c")
		g.until(5*time.Second, allLed)
		g.pass(smallT, true)
		for broker := 1; broker <= 2; broker++ {
			require.NoError(g, b.StopBroker(broker))
		}
		g.until(smallT, func(leaders []string) bool { return leaders[0] == "" })
		for range 5 {
			g.pass(smallT, false)
			require.Empty(g, g.leaders()[0])
		}
		for broker := 1; broker <= 3; broker++ {
			require.NoError(g, b.WipeBroker(broker))
		}
		took := g.until(5*time.Second, allLed) // until also checks the tokens
		g.Logf("all logs empty: led after %v", took)
		require.LessOrEqual(g, took, silence+smallT)
		g.pass(5*smallT, true)
	})
}

// An existing topic of that name with another layout is refused. The error lists everything that is wrong.
func TestKafkaLogsRefuseAnotherPlacement(t *testing.T) {
	kafkaLogs(t, 1, func(g *smallGroup, b *nelitest.Broker) {
		p := b.Provider("admin")
		admin := newAdmin(g.T, p, newProducer(g.T, p, nil))
		require.NoError(g, admin.CreateTopic(g.Context(), kafka.TopicSpec{Name: onePerBroker, Partitions: 4, Replicas: 1,
			Brokers: [][]int{{1}, {2}, {2}, {3}}}))
		m := g.joinWith("a", func(*neli.Config) {})
		err := m.Await()
		require.ErrorIs(g, err, neli.ErrTopicPlacement)
		require.ErrorContains(g, err, "4 partitions: must be as many as Logs, 3")
		require.ErrorContains(g, err, "partitions 1 and 2 are on broker 2")
	})
}

// With too few brokers no member leads, and the log says why. One more broker is enough to lead.
func TestKafkaLogsWaitForBrokers(t *testing.T) {
	kafkaLogs(t, 1, func(g *smallGroup, b *nelitest.Broker) {
		require.NoError(g, b.StopBroker(2))
		var said strings.Builder
		g.joinWith("a", func(c *neli.Config) { c.Logger = slog.New(slog.NewTextHandler(&said, nil)) })
		g.pass(5*smallT, false)
		require.Empty(g, g.leaders()[0])
		require.NoError(g, b.StartBroker(2))
		g.until(10*smallT, allLed)
		synctest.Wait()
		require.Contains(g, said.String(), "2 brokers are up, and Logs is 3")
	})
}

// TestKafkaLogsWithoutMercy lets all kinds of faults happen to members and brokers, in random orders from
// seeds.
func TestKafkaLogsWithoutMercy(t *testing.T) {
	for seed := range uint64(seedsWithoutMercy()) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			kafkaLogs(t, 4, func(g *smallGroup, b *nelitest.Broker) {
				r := rand.New(rand.NewPCG(seed, 14))
				g.join("m0", "m1", "m2")
				for step := range 50 {
					broker, m := r.IntN(3)+1, g.members[r.IntN(len(g.members))]
					switch r.IntN(8) {
					case 0:
						assert.NoError(g, b.StopBroker(broker))
					case 1, 2:
						assert.NoError(g, b.StartBroker(broker))
					case 3:
						assert.NoError(g, b.WipeBroker(broker))
					case 4:
						b.CutOff(m.name, nelitest.Link(r.IntN(int(nelitest.LinkAll)+1)))
					case 5, 6:
						b.Restore(m.name, nelitest.LinkAll)
					case 7:
						b.DelayNext(m.name, time.Duration(r.Int64N(int64(3*smallT))))
						if r.IntN(4) == 0 {
							g.join(fmt.Sprintf("late%d", step))
						}
					}
					g.pass(time.Duration(r.Int64N(int64(smallT))), false)
				}
				for broker := 1; broker <= 3; broker++ {
					assert.NoError(g, b.StartBroker(broker))
				}
				for _, m := range g.members {
					b.Restore(m.name, nelitest.LinkAll)
				}
				g.until(10*smallT, allLed)
				for range 6 { // roles that are handed over meanwhile are led again at once
					g.pass(smallT/2, false)
					g.until(smallT/4, allLed)
				}
			})
		})
	}
}
