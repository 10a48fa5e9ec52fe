package franz_test

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/goneli/neli/franz"
	"github.com/goneli/neli/nelitest/providertest"
)

// The provider keeps the contract that the library depends on. The suite in lab/integration runs the
// same tests with a real broker, including those that this one cannot run.
func TestContract(t *testing.T) {
	t.Parallel()
	const elsewhere = "the broker in this process has no such thing, the real one of the integration suite has"
	providertest.Run(t, func(t *testing.T, test func(*testing.T, providertest.Bed)) {
		t.Parallel()
		test(t, contractBed(t))
	},
		providertest.Without(providertest.Truncate, "TestTruncatedLogStopsReading scripts it"),
		providertest.Without(providertest.Gap, elsewhere),
		providertest.Without(providertest.Restrict, elsewhere),
		providertest.Without(providertest.Stranger, "TestCredentials scripts it"),
		providertest.Without(providertest.Throttle, "TestThrottled scripts it"),
		providertest.Without(providertest.BadSettings, elsewhere))
}

// contractBed is a broker in this process, for one point of the contract.
func contractBed(t *testing.T) providertest.Bed {
	c := cluster(t)
	var frozen atomic.Bool
	c.Control(func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		return nil, nil, frozen.Load() // neither an answer nor an error
	})
	return providertest.Bed{
		Provider:   franz.Provider(),
		Properties: map[string]string{"bootstrap.servers": c.ListenAddrs()[0]},
		CreateTopic: func(t *testing.T, topic string, partitions int) {
			require.NoError(t, c.CreateTopic(topic, int32(partitions), nil))
		},
		DeleteTopic: func(t *testing.T, topic string) { require.NoError(t, c.DeleteTopic(topic)) },
		DeleteHead: func(t *testing.T, topic string, partition int, start int64) {
			require.NoError(t, c.DeleteRecords(topic, int32(partition), start))
		},
		Freeze: func(*testing.T) func() {
			frozen.Store(true)
			return func() { frozen.Store(false) }
		},
	}
}
