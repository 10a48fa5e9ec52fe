package integration

import (
	"testing"

	"github.com/goneli/neli/nelitest/providertest"
)

// Each provider fulfils the contract of the library on a real broker. nelitest passes the same tests, so results with
// nelitest apply to Kafka.
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
