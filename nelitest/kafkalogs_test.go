package nelitest_test

import (
	"context"
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
	"github.com/goneli/neli/internal/inside"
	"github.com/goneli/neli/internal/seeded"
	"github.com/goneli/neli/kafka"
	"github.com/goneli/neli/nelitest"
)

// onePerBroker is the name of the topic of three logs in Kafka.
const onePerBroker = "app.neli.logs-3.t-1s.rho-0.0005"

// brokerOf returns the broker that has a log.
func brokerOf(g *smallGroup, log int) int {
	g.Helper()
	p := g.Broker.Provider("admin")
	info, err := newAdmin(g.T, p, newProducer(g.T, p, nil)).Topic(g.Context(), onePerBroker)
	require.NoError(g, err)
	require.Equal(g, 3, info.Partitions)
	require.Len(g, info.Brokers[log], 1)
	return info.Brokers[log][0]
}

// Brokers crash and come back, one at a time, with and without their data. No leader is disturbed, since
// each broker has one log.
func TestKafkaLogsRideThroughTheCrashOfABroker(t *testing.T) {
	kafkaLogs(t, 5, func(g *smallGroup) {
		g.join("a", "b", "c")
		before := g.leaders()
		for broker := 1; broker <= 3; broker++ {
			require.NoError(g, g.Broker.StopBroker(broker))
			g.staysLed(5 * smallT)
			require.NoError(g, g.Broker.StartBroker(broker))
			g.staysLed(3 * smallT)
		}
		for broker := 1; broker <= 3; broker++ {
			require.NoError(g, g.Broker.StopBroker(broker))
			g.staysLed(2 * smallT)
			require.NoError(g, g.Broker.WipeBroker(broker))
			g.staysLed(3 * smallT)
		}
		require.Equal(g, before, g.leaders())
		for _, m := range g.Members {
			require.LessOrEqual(g, len(m.Events()), 1, "%v", m.Events())
			require.Positive(g, m.Stats().LogResets)
		}
	})
}

// A reader cannot distinguish a hidden entry, such as the end of a transaction, from a loss. So members
// begin again in that log, and leaders continue on the others.
func TestKafkaLogsBeginAnewAtAGap(t *testing.T) {
	kafkaLogs(t, 3, func(g *smallGroup) {
		g.join("a", "b", "c")
		g.staysLed(2 * smallT)
		before := g.leaders()
		for log := range 3 {
			_, err := g.Broker.Skip(onePerBroker, log, 1)
			require.NoError(g, err)
			g.staysLed(3 * smallT)
			for _, m := range g.Members {
				require.EqualValues(g, log+1, m.Stats().LogResets)
			}
		}
		require.Equal(g, before, g.leaders())
	})
}

func TestKafkaLogsReplaceACrashedLeaderAndABroker(t *testing.T) {
	kafkaLogs(t, 1, func(g *smallGroup) {
		g.join("a", "b", "c")
		g.staysLed(3 * smallT)
		leader := g.leaders()[0]
		broker := brokerOf(g, 2)
		g.Broker.CutOff(leader, nelitest.LinkAll)
		require.NoError(g, g.Broker.StopBroker(broker))
		took := g.until(5*time.Second, noneOf(leader))
		g.Logf("leader and a broker crashed: %v", took)
		require.LessOrEqual(g, took, silence+smallT/4)
		g.staysLed(3 * smallT)
		require.NoError(g, g.Broker.StartBroker(broker))
		g.Broker.Restore(leader, nelitest.LinkAll)
		g.staysLed(3 * smallT)
	})
}

// Without a majority no member leads. When all brokers have come back, empty, a member leads with a larger token.
func TestKafkaLogsWithoutAMajority(t *testing.T) {
	kafkaLogs(t, 1, func(g *smallGroup) {
		g.join("a", "b", "c")
		g.staysLed(smallT)
		for broker := 1; broker <= 2; broker++ {
			require.NoError(g, g.Broker.StopBroker(broker))
		}
		g.until(smallT, func(leaders []string) bool { return leaders[0] == "" })
		g.Gap()
		g.Pass(5 * smallT)
		require.InDelta(g, 5*smallT, g.Gap(), float64(2*time.Millisecond))
		for broker := 1; broker <= 3; broker++ {
			require.NoError(g, g.Broker.WipeBroker(broker))
		}
		took := g.until(5*time.Second, allLed) // the cluster checks the tokens
		g.Logf("all logs empty: led after %v", took)
		require.LessOrEqual(g, took, silence+smallT)
		g.staysLed(5 * smallT)
	})
}

// An existing topic of that name with another layout is refused. The error lists everything that is wrong.
func TestKafkaLogsRefuseAnotherPlacement(t *testing.T) {
	kafkaLogs(t, 1, func(g *smallGroup) {
		p := g.Broker.Provider("admin")
		admin := newAdmin(g.T, p, newProducer(g.T, p, nil))
		require.NoError(g, admin.CreateTopic(g.Context(), kafka.TopicSpec{Name: onePerBroker, Partitions: 4, Replicas: 1,
			Brokers: [][]int{{1}, {2}, {2}, {3}}}))
		err := g.joinWith("a", func(*neli.Config) {}).Await()
		require.ErrorIs(g, err, neli.ErrTopicPlacement)
		require.ErrorContains(g, err, "4 partitions: must be as many as Logs, 3")
		require.ErrorContains(g, err, "partitions 1 and 2 are on broker 2")
	})
}

// With too few brokers no member leads, and the log says why. One more broker is enough to lead.
func TestKafkaLogsWaitForBrokers(t *testing.T) {
	kafkaLogs(t, 1, func(g *smallGroup) {
		require.NoError(g, g.Broker.StopBroker(2))
		var said strings.Builder
		m := g.joinWith("a", func(c *neli.Config) { c.Logger = slog.New(slog.NewTextHandler(&said, nil)) })
		g.Pass(5 * smallT)
		require.Empty(g, m.Events())
		require.NoError(g, g.Broker.StartBroker(2))
		g.until(10*smallT, allLed)
		synctest.Wait()
		require.Contains(g, said.String(), "2 brokers are up, and Logs is 3")
	})
}

// TestKafkaLogsWithoutMercy lets all kinds of faults happen to members and brokers, in random orders from
// seeds. With the race detector each seed takes seconds, so it runs fewer.
func TestKafkaLogsWithoutMercy(t *testing.T) {
	seeds := 10
	if seeded.Race {
		seeds = 3
	}
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			kafkaLogs(t, 4, func(g *smallGroup) {
				r, b := rand.New(rand.NewPCG(seed, 14)), g.Broker
				for _, name := range []string{"m0", "m1", "m2"} {
					g.joinWith(name, func(*neli.Config) {})
				}
				for step := range 50 {
					broker, name := r.IntN(3)+1, g.Names[r.IntN(len(g.Names))]
					switch r.IntN(8) {
					case 0:
						assert.NoError(g, b.StopBroker(broker))
					case 1, 2:
						assert.NoError(g, b.StartBroker(broker))
					case 3:
						assert.NoError(g, b.WipeBroker(broker))
					case 4:
						b.CutOff(name, nelitest.Link(r.IntN(int(nelitest.LinkAll)+1)))
					case 5, 6:
						b.Restore(name, nelitest.LinkAll)
					case 7:
						b.DelayNext(name, time.Duration(r.Int64N(int64(3*smallT))))
						if r.IntN(4) == 0 {
							g.joinWith(fmt.Sprintf("late%d", step), func(*neli.Config) {})
						}
					}
					g.Pass(time.Duration(r.Int64N(int64(smallT))))
				}
				for broker := 1; broker <= 3; broker++ {
					assert.NoError(g, b.StartBroker(broker))
				}
				for _, name := range g.Names {
					b.Restore(name, nelitest.LinkAll)
				}
				g.until(10*smallT, allLed)
				for range 6 { // roles that are handed over meanwhile are led again at once
					g.Pass(smallT / 2)
					g.until(smallT/4, allLed)
				}
			})
		})
	}
}

// An observer without the right to write cannot ask, but can do everything else.
func TestObserverThatMayNotWriteWatchesOn(t *testing.T) {
	kafkaLogs(t, 1, func(g *smallGroup) {
		g.join("a", "b", "c")
		g.Broker.Refuse("o", nelitest.LinkAppends, kafka.ErrAuthorization)
		o := g.joinWith("o", func(c *neli.Config) { c.Observer = true })
		g.staysLed(3 * smallT)
		_, known := o.Holder(0)
		require.True(g, known)
		ctx, stop := context.WithTimeout(g.Context(), 10*time.Second)
		defer stop()
		asked := time.Now()
		err := o.Ask(ctx, neli.Request{StepDown: true})
		require.ErrorIs(g, err, neli.ErrNoAnswer)
		require.ErrorContains(g, err, "cannot WRITE topic "+onePerBroker)
		require.InDelta(g, 3, time.Since(asked).Seconds(), 0.1, "no answer is waited for")
		asked = time.Now()
		require.ErrorIs(g, inside.CallMembers(ctx, o.Neli), neli.ErrNoAnswer)
		require.InDelta(g, 3, time.Since(asked).Seconds(), 0.1)
		g.staysLed(3 * smallT)
		require.Equal(g, neli.StateLive, o.State())
		_, known = o.Holder(0)
		require.True(g, known, "it watches on")
	})
}

// A member that may not write to any log fails at the start, and its error names the right that it lacks.
// A member that loses the right later leads nothing until it has the right again.
func TestMemberThatMayNotWrite(t *testing.T) {
	kafkaLogs(t, 1, func(g *smallGroup) {
		g.Broker.Refuse("a", nelitest.LinkAppends, kafka.ErrAuthorization)
		a := g.joinWith("a", func(*neli.Config) {})
		err := a.Await()
		require.ErrorIs(g, err, neli.ErrAccess)
		require.ErrorContains(g, err, "cannot WRITE topic "+onePerBroker)
		g.Broker.Refuse("b", nelitest.LinkAppends, nil)
		m := g.joinWith("b", func(*neli.Config) {})
		g.until(5*time.Second, func([]string) bool { return m.IsLeader() })
		g.Broker.Refuse("b", nelitest.LinkAppends, kafka.ErrAuthorization)
		g.until(2*smallT, func([]string) bool { return !m.IsLeader() })
		g.Pass(10 * smallT)
		require.Equal(g, neli.StateLive, m.State())
		g.Broker.Refuse("b", nelitest.LinkAppends, nil)
		g.until(5*time.Second, func([]string) bool { return m.IsLeader() })
	})
}

// A request applies to the term in which it was read, however long the application takes to decide.
func TestRequestOfAnEarlierTerm(t *testing.T) {
	kafkaLogs(t, 1, func(g *smallGroup) {
		called, goOn := make(chan struct{}), make(chan struct{})
		a := g.joinWith("a", func(c *neli.Config) {
			c.Requests = func(neli.Request) error { close(called); <-goOn; return nil }
		})
		g.until(5*time.Second, allLed)
		first, _ := a.Token(0)
		o := g.joinWith("o", func(c *neli.Config) { c.Observer = true })
		g.staysLed(3 * smallT)
		out := make(chan error, 1)
		go func() { out <- o.Ask(g.Context(), neli.Request{StepDown: true}) }()
		<-called
		g.Broker.CutOff("a", nelitest.LinkAll)
		time.Sleep(3 * smallT)
		require.False(g, a.IsLeader())
		g.Broker.Restore("a", nelitest.LinkAll)
		g.until(10*time.Second, allLed)
		time.Sleep(time.Second)
		second, ok := a.Token(0)
		require.True(g, ok)
		require.Greater(g, second, first)
		close(goOn)
		time.Sleep(2 * time.Second)
		require.True(g, a.IsLeader(), "the request was about an earlier term")
		require.ErrorIs(g, <-out, neli.ErrNotDone)
	})
}
