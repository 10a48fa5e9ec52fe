package integration

import (
	"testing"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"
	"github.com/goneli/neli/nelitest/providertest"
	"github.com/goneli/neli/testkit/kafkatest"
	"github.com/stretchr/testify/require"
)

// Each provider keeps to what the library rests on, on a real broker: nelitest does so
// too, by the same tests, so that what is shown with it goes for Kafka.
func TestProviderContract(t *testing.T) {
	cluster := kafkatest.Run(t, kafkatest.Options{BrokerProps: hostileBroker()})
	admin := newHostileAdmin(t, cluster.Bootstrap())
	bed := providertest.Bed{
		Properties: map[string]string{"bootstrap.servers": cluster.Bootstrap()},
		CreateTopic: func(t *testing.T, topic string, partitions int) {
			admin.create(t, topic, partitions, 1, nil)
		},
		DeleteHead: func(t *testing.T, topic string, partition int, before int64) {
			p := kafka.TopicPartition{Topic: &topic, Partition: int32(partition), Offset: kafka.Offset(before)}
			_, err := admin.DeleteRecords(t.Context(), []kafka.TopicPartition{p})
			require.NoError(t, err)
		},
	}
	for name, provider := range clients {
		t.Run(name, func(t *testing.T) {
			bed.Provider = provider()
			providertest.Run(t, func(t *testing.T, test func(*testing.T, providertest.Bed)) { test(t, bed) })
		})
	}
}
