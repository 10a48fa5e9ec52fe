package franz_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/franz"
	"github.com/goneli/neli/nelitest/providertest"
)

// The provider keeps to what the library rests on; integration has the same tests on a
// real broker.
func TestContract(t *testing.T) {
	c := cluster(t)
	bed := providertest.Bed{
		Provider:   franz.Provider(),
		Properties: map[string]string{"bootstrap.servers": c.ListenAddrs()[0]},
		CreateTopic: func(t *testing.T, topic string, partitions int) {
			require.NoError(t, c.CreateTopic(topic, int32(partitions), nil))
		},
		DeleteHead: func(t *testing.T, topic string, partition int, before int64) {
			require.NoError(t, c.DeleteRecords(topic, int32(partition), before))
		},
	}
	providertest.Run(t, func(t *testing.T, test func(*testing.T, providertest.Bed)) { test(t, bed) })
}
