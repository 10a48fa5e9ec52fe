package neli

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goneli/neli/internal/said"
	"github.com/goneli/neli/kafka"
	"github.com/stretchr/testify/require"
)

// These tests run a Neli against a Kafka that refuses, hangs or loses data.

// If the brokers refuse a process that has worked before, because a certificate has expired or the
// users are lost, the process retries however long that lasts. It logs the refusal, but not too
// often.
func TestLaterRefusalIsRetriedForEver(t *testing.T) {
	for _, refusal := range []error{kafka.ErrAuthentication, kafka.ErrAuthorization, kafka.ErrTopicAuthorization, kafka.ErrGroupAuthorization} {
		var out said.Text
		cfg := Config{Nomination: NominationAssigned, Logger: slog.New(slog.NewTextHandler(&out, nil))}
		mocked(t, cfg, nothing, func(t *testing.T, k *mockKafka, n *Neli) {
			ok, err := n.Pulse(time.Minute)
			require.NoError(t, err)
			require.True(t, ok)
			const minutes = 10
			until := time.Now().Add(minutes * time.Minute)
			k.refuse(refusal, until)
			p, err := n.Background(func() { time.Sleep(time.Second) })
			require.NoError(t, err)
			defer p.Close()
			time.Sleep(time.Until(until))
			require.Equal(t, StateLive, n.State())
			require.False(t, n.IsLeader())
			lines := strings.Count(out.String(), "level=WARN")
			require.Greater(t, lines, minutes)
			require.Less(t, lines, minutes*60)
			require.True(t, strings.Contains(out.String(), "cannot WRITE topic g.neli"))
			require.True(t, strings.Contains(out.String(), "cannot READ topic g.neli"))
			require.Eventually(t, n.IsLeader, time.Minute, 100*time.Millisecond)
		})
	}
}

// One of several brokers refuses credentials that the others accept. That ends no member, whether
// it has just started or has worked before.
func TestRefusalByOneBrokerOfSeveralEndsNoMember(t *testing.T) {
	for _, call := range []string{"Poll", "Group.Poll"} {
		mocked(t, Config{Nomination: NominationAssigned}, func(k *mockKafka) {
			k.fail(call, slices.Repeat([]error{kafka.ErrAuthentication}, 3000)...) // while the member starts
		}, func(t *testing.T, k *mockKafka, n *Neli) {
			p, err := n.Background(func() { time.Sleep(time.Second) })
			require.NoError(t, err)
			defer p.Close()
			require.Eventually(t, n.IsLeader, 2*time.Minute, 100*time.Millisecond, call)
			for range 60 { // and later, again and again, between polls that return nothing
				k.mu.Lock()
				k.fail(call, kafka.ErrAuthentication)
				k.mu.Unlock()
				time.Sleep(time.Second)
			}
			require.True(t, n.IsLeader(), call)
		})
	}
}

// A producer whose records are never acknowledged is replaced together with its admin client, and
// the process leads again.
func TestProducerWithoutAcknowledgementsIsReplaced(t *testing.T) {
	var out said.Text
	cfg := Config{Nomination: NominationOpen, Logger: slog.New(slog.NewTextHandler(&out, nil))}
	mocked(t, cfg, nothing, func(t *testing.T, k *mockKafka, n *Neli) {
		p, err := n.Background(func() { time.Sleep(time.Second) })
		require.NoError(t, err)
		defer p.Close()
		require.Eventually(t, n.IsLeader, time.Minute, 100*time.Millisecond)
		k.mu.Lock()
		k.dead = errors.Join(errReported, errors.New("message timed out")) // of the present producer only
		k.mu.Unlock()
		require.Eventually(t, func() bool { return k.count("Producer") == 2 }, 30*time.Second, 100*time.Millisecond, "it is replaced")
		require.Eventually(t, n.IsLeader, 30*time.Second, 100*time.Millisecond, "it leads again")
		time.Sleep(time.Minute)
		require.Equal(t, 2, k.count("Producer"), "and the new one stays")
		require.Equal(t, 1, k.count("Admin.Close"))
	})
	require.Equal(t, 1, strings.Count(out.String(), "nothing was acknowledged or answered for some time: replacing the producer"))
}

// The producer of a process that appends nothing is also replaced, if its requests get no answers.
func TestObserversProducerWithoutAnswersIsReplaced(t *testing.T) {
	mocked(t, Config{Observer: true}, nothing, func(t *testing.T, k *mockKafka, n *Neli) {
		time.Sleep(10 * time.Minute)
		require.Equal(t, 1, k.count("Producer"))
		k.refuse(errPassing, time.Now().Add(25*time.Second))
		time.Sleep(25 * time.Second)
		require.Equal(t, 2, k.count("Producer"), "it is replaced")
		time.Sleep(10 * time.Minute)
		require.Equal(t, 2, k.count("Producer"), "and the new one stays")
		require.Equal(t, 1, k.count("Admin.Close"))
	})
}

// A group client that stands still is replaced within ten seconds, in both modes. That is logged
// once and counted, and the process is in the group again.
func TestGroupConsumerThatStandsStillIsReplaced(t *testing.T) {
	for _, cfg := range []Config{{Nomination: NominationAssigned}, {Mode: NonExclusive}} {
		var out said.Text
		cfg.HeartbeatTimeout, cfg.Logger = 10*time.Second, slog.New(slog.NewTextHandler(&out, nil))
		mocked(t, cfg, func(k *mockKafka) { k.feeds = cfg.Mode == NonExclusive }, func(t *testing.T, k *mockKafka, n *Neli) {
			p, err := n.Background(func() { time.Sleep(time.Second) })
			require.NoError(t, err)
			defer p.Close()
			time.Sleep(time.Minute)
			require.Equal(t, 1, k.count("GroupConsumer"))
			joined := k.count("Join")
			k.mu.Lock()
			k.deaf = 1
			k.fail("GroupConsumer", errors.New("no memory"))
			k.mu.Unlock()
			time.Sleep(10 * time.Second)
			require.Equal(t, 3, k.count("GroupConsumer"), "replaced within 10 s")
			require.Equal(t, 1, k.count("GroupConsumer.Close"))
			time.Sleep(10 * time.Minute)
			require.Greater(t, k.count("Join"), joined)
			require.Equal(t, 3, k.count("GroupConsumer"), "one that reaches a broker is left alone")
			require.EqualValues(t, 1, n.Stats().ReadersReplaced)
		})
		require.Equal(t, 1, strings.Count(out.String(), "the client of the group stands still"))
		require.Equal(t, 1, strings.Count(out.String(), "cannot replace the client of the group, retrying"))
	}
}

// A group client is not replaced while no broker answers, nor while the process takes no part in the
// group, and not again and again.
func TestGroupConsumersAreNotReplacedRepeatedly(t *testing.T) {
	mocked(t, Config{Nomination: NominationAssigned}, func(k *mockKafka) { k.away = true }, func(t *testing.T, k *mockKafka, n *Neli) {
		p, err := n.Background(func() { time.Sleep(time.Second) })
		require.NoError(t, err)
		time.Sleep(time.Hour)
		require.Equal(t, 1, k.count("GroupConsumer"))
		k.mu.Lock()
		k.away, k.deaf = false, 1000
		k.mu.Unlock()
		time.Sleep(10 * time.Minute)
		made := k.count("GroupConsumer")
		require.Greater(t, made, 4)
		require.Less(t, made, 10)
		require.NoError(t, p.Close()) // it no longer contends
		time.Sleep(time.Hour)
		require.LessOrEqual(t, k.count("GroupConsumer"), made+1, "what was begun is ended")
	})
}

// A producer that has failed permanently is replaced in both modes, whether the failure is returned
// at once or reported later. A leader stays the leader.
func TestProducerIsReplaced(t *testing.T) {
	for _, how := range []error{kafka.ErrClientFatal, errors.Join(errReported, kafka.ErrClientFatal)} {
		for _, mode := range []Mode{Exclusive, NonExclusive} {
			var out said.Text
			cfg := Config{Mode: mode, Logger: slog.New(slog.NewTextHandler(&out, nil))}
			mocked(t, cfg, nothing, func(t *testing.T, k *mockKafka, n *Neli) {
				p, err := n.Background(func() { time.Sleep(time.Second) })
				require.NoError(t, err)
				defer p.Close()
				if mode == Exclusive {
					require.Eventually(t, n.IsLeader, time.Minute, 100*time.Millisecond)
				} else {
					time.Sleep(10 * time.Second)
				}
				k.mu.Lock()
				k.dead = how // of the present producer only
				k.mu.Unlock()
				time.Sleep(time.Minute)
				require.Equal(t, 2, k.count("Producer"))
				require.Equal(t, 1, k.count("Producer.Close"))
				require.Equal(t, 1, k.count("Admin.Close"))
				require.Equal(t, mode == Exclusive, n.IsLeader(), "%v", how)
				require.Equal(t, StateLive, n.State())
			})
			require.Equal(t, 1, strings.Count(out.String(), "the producer has failed for good: replacing it"))
		}
	}
}

// If a producer cannot be replaced, the process retries and logs that, and Close is not delayed. If
// each new producer fails at once, the process pauses between replacements.
func TestReplacementOfAProducerIsRetried(t *testing.T) {
	var out said.Text
	cfg := Config{Logger: slog.New(slog.NewTextHandler(&out, nil))}
	mocked(t, cfg, nothing, func(t *testing.T, k *mockKafka, n *Neli) {
		ok, err := n.Pulse(time.Minute)
		require.NoError(t, err)
		require.True(t, ok)
		k.mu.Lock()
		k.dead = kafka.ErrClientFatal
		for range 1000 {
			k.fail("Producer", errors.New("no memory"))
		}
		k.mu.Unlock()
		time.Sleep(time.Minute)
		require.False(t, n.IsLeader())
		require.Equal(t, StateLive, n.State())
		made := k.count("Producer")
		require.Greater(t, made, 30)
		require.Less(t, made, 90)
		began := time.Now()
		require.NoError(t, n.Close())
		require.Less(t, time.Since(began), 30*time.Second)
	})
	require.Contains(t, out.String(), "cannot replace the producer, retrying")
	require.Contains(t, out.String(), "no memory")

	mocked(t, Config{}, func(k *mockKafka) { k.stillborn = true }, func(t *testing.T, k *mockKafka, n *Neli) {
		_, err := n.Pulse(time.Minute)
		require.NoError(t, err)
		require.Less(t, k.count("Producer"), 70)
		require.Greater(t, k.count("Producer"), 2)
	})
}

// The error lists everything that cannot be combined with Logs.
func TestLogsFaults(t *testing.T) {
	_, err := Config{LeaderGroupID: "g", Logs: 3, Mode: NonExclusive, Nomination: NominationAssigned, Partitions: 2,
		KafkaConfig: KafkaConfigMap{"enable.idempotence": true}}.resolve()
	for _, part := range []string{`Mode: "non-exclusive" must be Exclusive with Logs`, `Nomination: "assigned" must be Open with Logs`,
		`Partitions: "2" must be 0 or 1 with Logs`, `KafkaConfig[enable.idempotence]: "true" must be false with Logs`} {
		require.ErrorContains(t, err, part)
	}
	for _, n := range []int{-1, 2, 4, 7} {
		_, err = Config{LeaderGroupID: "g", Logs: n}.resolve()
		require.ErrorContains(t, err, "must be 3 or 5, or 0 for one replicated log", n)
	}
	_, err = Config{LeaderGroupID: "g", Logs: 3, LeaderTopic: strings.Repeat("t", 230)}.resolve()
	require.ErrorContains(t, err, "must be at most 249 bytes, completed for Logs")
	for n, small := range map[int]bool{0: false, 1: false, 3: true, 5: true} {
		s, err := Config{LeaderGroupID: "g", Logs: n, Partitions: 1, KafkaConfig: KafkaConfigMap{"enable.idempotence": "false"}}.resolve()
		require.NoError(t, err)
		require.Equal(t, small, s.majority)
		require.Equal(t, small, s.elector(nil).Majority)
	}
}

// The topic's name contains the settings that must be the same for all members.
func TestLogsTopicName(t *testing.T) {
	name := func(c Config) string {
		c.LeaderGroupID = "g"
		s, err := c.resolve()
		require.NoError(t, err)
		require.Regexp(t, topicName, s.topic)
		return s.topic
	}
	require.Equal(t, "g.neli", name(Config{Logs: 1}))
	require.Equal(t, "g.neli.logs-3.t-5s.rho-0.0005", name(Config{Logs: 3}))
	require.Equal(t, "x.logs-5.t-500ms.rho-1e-05", name(Config{Logs: 5, LeaderTopic: "x", HeartbeatTimeout: 500 * time.Millisecond, MaxClockDrift: 1e-5}))
	require.Equal(t, "g.neli.logs-3.t-1m0s.rho-0.2", name(Config{Logs: 3, HeartbeatTimeout: time.Minute, MaxClockDrift: 0.2}))
}

func TestLogsProperties(t *testing.T) {
	p := resolved(t, Config{Logs: 3, HeartbeatTimeout: 8 * time.Second}).producerProperties()
	require.Equal(t, "2000", p["message.timeout.ms"], "T/4")
	require.Equal(t, "false", p["enable.idempotence"])
	p = resolved(t, Config{Logs: 3, HeartbeatTimeout: 500 * time.Millisecond}).producerProperties()
	require.Equal(t, "1000", p["message.timeout.ms"], "librdkafka's own granularity")
}

// A reader that stands still is replaced within T and five seconds. That is logged once and
// counted, and the process leads again.
func TestReaderThatStandsStillIsReplaced(t *testing.T) {
	var out said.Text
	cfg := Config{Nomination: NominationOpen, Logger: slog.New(slog.NewTextHandler(&out, nil))}
	mocked(t, cfg, nothing, func(t *testing.T, k *mockKafka, n *Neli) {
		p, err := n.Background(func() { time.Sleep(time.Second) })
		require.NoError(t, err)
		defer p.Close()
		require.Eventually(t, n.IsLeader, time.Minute, 100*time.Millisecond)
		k.mu.Lock()
		k.still = 1
		k.mu.Unlock()
		time.Sleep(12 * time.Second)
		require.Equal(t, 2, k.count("LogReader"), "replaced within T + 5 s")
		require.Equal(t, 1, k.count("LogReader.Close"))
		time.Sleep(10 * time.Second)
		require.True(t, n.IsLeader())
		time.Sleep(time.Minute)
		require.Equal(t, 2, k.count("LogReader"), "a reader that reads is left alone")
		require.EqualValues(t, 1, n.Stats().ReadersReplaced)
	})
	require.Equal(t, 1, strings.Count(out.String(), "the log reader stands still"))
}

// The reader of an observer, which appends nothing, is replaced too, but not while there is nothing to read.
func TestObserversReaderThatStandsStillIsReplaced(t *testing.T) {
	mocked(t, Config{Observer: true}, nothing, func(t *testing.T, k *mockKafka, n *Neli) {
		time.Sleep(time.Minute)
		require.Equal(t, 1, k.count("LogReader"), "nothing is there to be read")
		k.mu.Lock()
		k.still = 1
		k.write([]byte("x")) // of another process
		k.mu.Unlock()
		time.Sleep(10 * time.Second)
		require.Equal(t, 2, k.count("LogReader"), "replaced within T + 5 s")
		time.Sleep(10 * time.Minute)
		require.Equal(t, 2, k.count("LogReader"), "one that reads is left alone")
		require.EqualValues(t, 1, n.Stats().ReadersReplaced)
	})
}

// An observer writes no Hello that a member would answer with a Snapshot. When its reader has been
// replaced, it learns the holder from the records that it reads again, as after a start.
func TestObserverKnowsTheHolderOnceItsReaderIsReplaced(t *testing.T) {
	mocked(t, Config{Observer: true}, nothing, func(t *testing.T, k *mockKafka, observer *Neli) {
		n, err := New(Config{Provider: k, LeaderGroupID: "g", Name: "leader"})
		require.NoError(t, err)
		defer n.Close()
		p, err := n.Background(func() { time.Sleep(100 * time.Millisecond) })
		require.NoError(t, err)
		defer p.Close()
		require.Eventually(t, n.IsLeader, time.Minute, 100*time.Millisecond)
		k.mu.Lock()
		k.still = 1 // the observer's reader
		k.mu.Unlock()
		require.Eventually(t, func() bool { return observer.Stats().ReadersReplaced == 1 }, 15*time.Second, 100*time.Millisecond)
		time.Sleep(time.Second)
		h, known := observer.Holder(0)
		require.True(t, known)
		require.Equal(t, "leader", h.Name)
	})
}

// If all readers stand still, they are not replaced again and again. A reader that reports why it
// does not read is not replaced.
func TestReadersAreNotReplacedRepeatedly(t *testing.T) {
	mocked(t, Config{Nomination: NominationOpen}, func(k *mockKafka) { k.still = 1000 }, func(t *testing.T, k *mockKafka, n *Neli) {
		_, err := n.Pulse(10 * time.Minute)
		require.NoError(t, err)
		require.Greater(t, k.count("LogReader"), 3)
		require.Less(t, k.count("LogReader"), 10)
	})
	mocked(t, Config{Nomination: NominationOpen}, nothing, func(t *testing.T, k *mockKafka, n *Neli) {
		ok, err := n.Pulse(time.Minute)
		require.NoError(t, err)
		require.True(t, ok)
		k.mu.Lock()
		k.fail("Poll", slices.Repeat([]error{kafka.ErrTopicAuthorization}, 60)...)
		k.mu.Unlock()
		time.Sleep(time.Minute)
		require.Equal(t, 1, k.count("LogReader"))
	})
}

func TestClusterWithoutTopicIDsIsUnsupported(t *testing.T) {
	mocked(t, Config{}, func(k *mockKafka) { k.ids = "AAAAAAAAAAAAAAAAAAAAAA" }, func(t *testing.T, _ *mockKafka, n *Neli) {
		_, err := n.Pulse(time.Minute)
		require.ErrorIs(t, err, ErrUnsupported)
	})
}

// If the broker refuses a record's timestamp, the log explains that.
func TestRefusedTimestampIsExplained(t *testing.T) {
	var out said.Text
	log := slog.New(slog.NewTextHandler(&out, nil))
	mocked(t, Config{Logger: log}, func(k *mockKafka) {
		for _, call := range []string{"Hello", "Append"} {
			k.fail(call, slices.Repeat([]error{errors.Join(errReported, kafka.ErrTimestamp)}, 1000)...)
		}
	}, func(t *testing.T, _ *mockKafka, n *Neli) {
		ok, err := n.Pulse(time.Minute)
		require.NoError(t, err)
		require.False(t, ok)
	})
	require.Contains(t, out.String(), "the wall clock of this machine is ahead of the broker's")
}

// Throttling by quotas is logged, not too often, and counted. That holds in both modes, for each
// client, and after a client has been replaced.
func TestThrottling(t *testing.T) {
	for _, mode := range []Mode{Exclusive, NonExclusive} {
		var out said.Text
		warnings := func() int { return strings.Count(out.String(), "a quota of its user or client.id is exceeded") }
		mocked(t, Config{Mode: mode, Logger: slog.New(slog.NewTextHandler(&out, nil))}, nothing, func(t *testing.T, k *mockKafka, n *Neli) {
			p, err := n.Background(func() { time.Sleep(time.Second) })
			require.NoError(t, err)
			defer p.Close()
			time.Sleep(time.Minute)
			require.Zero(t, warnings())
			require.Zero(t, n.Stats().Throttled)
			// At this very instant only one client's wait would be visible, and another line would follow.
			synctest.Wait()
			k.throttled.Store(int64(1500 * time.Millisecond)) // of each client: there are two
			require.Equal(t, 3*time.Second, n.Stats().Throttled)
			time.Sleep(time.Minute)
			require.Equal(t, 1, warnings())
			require.True(t, strings.Contains(out.String(), "wait=3s total=3s"))
			for range 60 {
				k.throttled.Add(int64(time.Second))
				time.Sleep(time.Second)
			}
			require.Greater(t, warnings(), 2)
			require.Less(t, warnings(), 9)
			require.Equal(t, 123*time.Second, n.Stats().Throttled)
			k.mu.Lock()
			k.dead = kafka.ErrClientFatal // of the producer; the mock lets its successor start with the same total
			k.mu.Unlock()
			time.Sleep(time.Minute)
			require.Equal(t, 2, k.count("Producer"))
			require.Equal(t, 3*61500*time.Millisecond, n.Stats().Throttled)
		})
	}
}
