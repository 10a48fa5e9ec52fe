package peers

import (
	"testing"

	"github.com/goneli/neli/kafka"
	"github.com/goneli/neli/nelitest/providertest"
)

// TestLogSetContract runs the contract tests that nelitest's small logs pass, too, with three
// hosts that ListenAndServe runs.
func TestLogSetContract(t *testing.T) {
	t.Parallel()
	providertest.RunLogs(t, func(t *testing.T, test func(*testing.T, providertest.LogsBed)) {
		c := Config{Hosts: Hosts(t, 3), HeartbeatTimeout: testTimeout}
		hosts := startHosts(t, c)
		test(t, providertest.LogsBed{
			Provider: func(*testing.T, string) kafka.SmallLogs { return &provider{c} },
			Settings: kafka.LogSettings{Group: "test", HeartbeatTimeout: testTimeout, MaxClockDrift: defaultDrift},
			Stop:     func(t *testing.T, log int) { hosts[c.Hosts[log].ID].kill(t) },
			Restart: func(t *testing.T, log int) {
				own := c
				own.Self = c.Hosts[log].ID
				hosts[own.Self].kill(t)
				hosts[own.Self] = startHost(t, own)
			},
		})
	})
}
