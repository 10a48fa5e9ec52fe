package franz_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/franz"
	"github.com/goneli/neli/nelitest/providertest"
)

// The provider keeps to what the library rests on; integration has the same tests, and
// those that need more than kfake can do, on a real broker.
func TestContract(t *testing.T) {
	c := cluster(t)
	bed := providertest.Bed{
		Provider:   franz.Provider(),
		Properties: map[string]string{"bootstrap.servers": c.ListenAddrs()[0]},
		CreateTopic: func(t *testing.T, topic string, partitions int) {
			require.NoError(t, c.CreateTopic(topic, int32(partitions), nil))
		},
		DeleteTopic: func(t *testing.T, topic string) { require.NoError(t, c.DeleteTopic(topic)) },
		DeleteHead: func(t *testing.T, topic string, partition int, start int64) {
			require.NoError(t, c.DeleteRecords(topic, int32(partition), start))
		},
	}
	const real = "integration has it, on a real broker"
	providertest.Run(t, func(t *testing.T, test func(*testing.T, providertest.Bed)) { test(t, bed) },
		providertest.Without(providertest.Truncate, real), providertest.Without(providertest.Gap, real),
		providertest.Without(providertest.Freeze, real), providertest.Without(providertest.Restrict, real),
		providertest.Without(providertest.Stranger, real), providertest.Without(providertest.Throttle, real),
		providertest.Without(providertest.BadSettings, real))
}
