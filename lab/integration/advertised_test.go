package integration

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/lab/kafkatest"
)

// A broker answers and sends its clients to an address at which nobody listens, as with a wrong advertised.listeners. Members on
// both clients, and neli check, say that, and not that no broker was reached.
func TestAdvertisedAddressThatCannotBeReached(t *testing.T) {
	t.Parallel()
	cluster := kafkatest.Run(t, kafkatest.Options{ProxiedListeners: 1, BrokerProps: steadyBroker()})
	routes, err := cluster.Routes(0) // without a proxy
	require.NoError(t, err)
	const says = "an address that the brokers advertise (advertised.listeners)"
	t.Run("members", func(t *testing.T) {
		for name, provider := range clients {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				cfg, log := hostileConfig(routes[0].Upstream, "advertised", func(c *neli.Config) {
					c.Nomination, c.Provider = neli.NominationOpen, provider()
				})
				m := hostileStart(t, cfg, log)
				hostileUntil(t, patience, func() bool { return len(log.with("level=WARN", "retrying", says, routes[0].Advertised)) > 0 }, "it says so")
				assert.Empty(t, log.with("no broker reached"))
				assert.True(t, m.Stats().Reached)
			})
		}
	})
	out, err := exec.CommandContext(t.Context(), buildCommand(t), "check", "--bootstrap", routes[0].Upstream, "--group", "advertised", "--for", "1s").CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(out), "broker 1 cannot be reached at "+routes[0].Advertised+", which it advertises")
}
