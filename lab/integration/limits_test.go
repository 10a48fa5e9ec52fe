package integration

import (
	"context"
	"net"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/lab/kafkatest"
)

// A broker serves no more connections than it is allowed to: it closes further ones from the same address, or lets all
// further ones wait. Members on both clients, and neli check, name the limits, and members go on once there is room.
func TestBrokerWithTooManyConnections(t *testing.T) {
	t.Parallel()
	program := buildCommand(t)
	const says = "a broker that can be reached does not serve this client"
	for _, limit := range []string{"max.connections.per.ip", "max.connections"} {
		t.Run(limit, func(t *testing.T) {
			t.Parallel()
			props := steadyBroker()
			props[limit] = "30" // the broker itself has some
			cluster := kafkatest.Run(t, kafkatest.Options{BrokerProps: props})
			others, leave := context.WithCancel(t.Context())
			var connected atomic.Int64
			var ended sync.WaitGroup
			for range 30 {
				ended.Go(func() { occupy(others, cluster.Bootstrap(), &connected) })
			}
			t.Cleanup(ended.Wait)
			hostileUntil(t, patience, func() bool { return connected.Load() >= 30 }, "they take all room")
			var members []*hostileMember
			for name, provider := range clients {
				cfg, log := hostileConfig(cluster.Bootstrap(), "crowded-"+name, func(c *neli.Config) {
					c.Nomination, c.Provider = neli.NominationOpen, provider()
				})
				members = append(members, hostileStart(t, cfg, log))
			}
			for _, m := range members {
				hostileUntil(t, patience, func() bool { return len(m.log.with("level=WARN", "no broker reached, retrying", says, limit)) > 0 }, "it says so")
			}
			out, err := exec.CommandContext(t.Context(), program, "check", "--bootstrap", cluster.Bootstrap(), "--group", "crowded", "--for", "1s").CombinedOutput()
			require.Error(t, err)
			assert.Contains(t, string(out), says)
			leave()
			ended.Wait()
			for _, m := range members {
				m.leads(t, patience)
			}
		})
	}
}

// occupy keeps a connection to a broker. If the broker refuses it, room may come later: the test kit's own connections end.
func occupy(ctx context.Context, addr string, connected *atomic.Int64) {
	for ctx.Err() == nil {
		if c, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr); err == nil {
			connected.Add(1)
			stop := context.AfterFunc(ctx, func() { _ = c.Close() })
			_, _ = c.Read(make([]byte, 1)) // returns when either end closes it
			stop()
			_ = c.Close()
		}
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Millisecond):
		}
	}
}

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
