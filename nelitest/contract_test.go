package nelitest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/nelitest"
	"github.com/goneli/neli/nelitest/providertest"
)

func TestContract(t *testing.T) {
	providertest.Run(t, func(t *testing.T, test func(*testing.T, providertest.Bed)) {
		synctest.Test(t, func(t *testing.T) {
			b := nelitest.NewBroker(nelitest.Options{Jitter: time.Millisecond, Seed: 1})
			test(t, providertest.Bed{
				Provider: b.Provider("a"),
				CreateTopic: func(t *testing.T, topic string, partitions int) {
					require.NoError(t, b.CreateTopic(topic, partitions))
				},
				DeleteHead: func(t *testing.T, topic string, partition int, before int64) {
					require.NoError(t, b.DeleteHead(topic, partition, before))
				},
			})
		})
	})
}
