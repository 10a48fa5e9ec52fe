package nelitest_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/kafka"
	"github.com/goneli/neli/nelitest"
	"github.com/goneli/neli/nelitest/providertest"
)

func TestContract(t *testing.T) {
	providertest.Run(t, func(t *testing.T, test func(*testing.T, providertest.Bed)) {
		synctest.Test(t, func(t *testing.T) {
			b := nelitest.NewBroker(nelitest.Options{Jitter: time.Millisecond, Seed: 1})
			test(t, bedOf(b, "a"))
		})
	})
}

func TestSmallLogsContract(t *testing.T) {
	providertest.RunLogs(t, func(t *testing.T, test func(*testing.T, providertest.LogsBed)) {
		synctest.Test(t, func(t *testing.T) {
			logs := nelitest.NewSmallLogs(3, smallTrip)
			test(t, providertest.LogsBed{
				Provider: func(_ *testing.T, name string) kafka.SmallLogs { return logs.Provider(name).(kafka.SmallLogs) },
				Settings: kafka.LogSettings{Group: "g", HeartbeatTimeout: smallT},
				Restart:  func(_ *testing.T, log int) { logs.Forget(log) },
				Stop:     func(_ *testing.T, log int) { logs.Stop(log) },
			})
		})
	})
}

// bedOf returns a bed whose clients belong to a member. Its Freeze cuts off only that member, since the
// clients of the bed cannot see whether others are answered.
func bedOf(b *nelitest.Broker, member string) providertest.Bed {
	others := 0
	another := func(refuse func(member string)) providertest.Bed {
		others++
		name := fmt.Sprint(member, others)
		refuse(name)
		return bedOf(b, name)
	}
	return providertest.Bed{
		Provider: b.Provider(member),
		CreateTopic: func(t *testing.T, topic string, partitions int) {
			require.NoError(t, b.CreateTopic(topic, partitions))
		},
		BadSettings: map[string]string{"retention.ms": "a week"},
		DeleteTopic: func(t *testing.T, topic string) { require.NoError(t, b.DeleteTopic(topic)) },
		DeleteHead: func(t *testing.T, topic string, partition int, start int64) {
			require.NoError(t, b.DeleteHead(topic, partition, start))
		},
		Truncate: func(t *testing.T, topic string, partition int, end int64) {
			require.NoError(t, b.Truncate(topic, partition, end))
		},
		Gap: func(t *testing.T, topic string, partition int) {
			_, err := b.Skip(topic, partition, 1)
			require.NoError(t, err)
		},
		Freeze: func(*testing.T) func() {
			b.CutOff(member, nelitest.LinkAll)
			return func() { b.Restore(member, nelitest.LinkAll) }
		},
		Restrict: func(_ *testing.T, _, _ string, rights providertest.Rights) providertest.Bed {
			return another(func(member string) {
				b.Refuse(member, nelitest.LinkAdmin, kafka.ErrAuthorization)
				if !rights.ReadTopic {
					b.Refuse(member, nelitest.LinkReads, kafka.ErrTopicAuthorization)
				}
				if !rights.WriteTopic {
					b.Refuse(member, nelitest.LinkAppends, kafka.ErrTopicAuthorization)
				}
				if !rights.ReadGroup {
					b.Refuse(member, nelitest.LinkGroup, kafka.ErrGroupAuthorization)
				}
			})
		},
		Stranger: func(*testing.T) providertest.Bed {
			return another(func(member string) {
				b.Refuse(member, nelitest.LinkAll&^nelitest.LinkAcks, kafka.ErrAuthentication)
			})
		},
		Throttle: func(*testing.T) providertest.Bed {
			return another(func(member string) { b.Throttle(member, 100*time.Millisecond) })
		},
	}
}
