package integration

import (
	"testing"

	"github.com/goneli/neli/nelitest/providertest"
)

// Each provider keeps to what the library rests on, on a real broker: nelitest does so
// too, by the same tests, so that what is shown with it goes for Kafka.
func TestProviderContract(t *testing.T) {
	t.Parallel()
	for name, provider := range clients {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newContractCluster(t)
			providertest.Run(t, func(t *testing.T, test func(*testing.T, providertest.Bed)) { test(t, c.bed(t, provider(), c.plain())) })
		})
	}
}
