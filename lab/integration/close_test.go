package integration

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/lab/kafkatest"
)

// Close works at any time, any number of times.
func testClose(t *testing.T, cluster *kafkatest.Cluster) {
	admin := newHostileAdmin(t, cluster.Bootstrap())
	for _, mode := range hostileModes {
		t.Run(mode.name, func(t *testing.T) {
			nothingStays(t)
			quick := func(n *neli.Neli, what string) {
				t.Helper()
				began := time.Now()
				var wg sync.WaitGroup
				for range 4 {
					wg.Go(func() { assert.NoError(t, n.Close(), what) })
				}
				wg.Wait()
				t.Logf("%s: closed in %v", what, time.Since(began).Round(time.Millisecond))
				assert.Less(t, time.Since(began), hostileCloseBound)
				assert.NoError(t, n.Close(), what)
			}
			after := func(n *neli.Neli, want error) {
				t.Helper()
				ok, err := n.Pulse(time.Hour)
				assert.False(t, ok)
				assert.ErrorIs(t, err, want)
				_, err = n.PulseCtx(t.Context())
				assert.ErrorIs(t, err, want)
				_, err = n.Background(func() {})
				assert.ErrorIs(t, err, want)
				err = n.Lead(t.Context(), func(context.Context, neli.Leadership) error { return nil })
				assert.ErrorIs(t, err, want)
				assert.False(t, n.IsLeader())
			}

			cfg, _ := hostileConfig(cluster.Bootstrap(), "close", mode.set)
			n, err := neli.New(cfg)
			require.NoError(t, err)
			quick(n, "before anything was connected")
			after(n, neli.ErrClosed)

			cfg, log := hostileConfig(cluster.Bootstrap(), "close", mode.set)
			n, err = neli.New(cfg)
			require.NoError(t, err)
			hostileUntil(t, time.Minute, func() bool { return len(log.with("created the leader topic")) > 0 }, "the topic is made")
			quick(n, "during the topic's creation")
			after(n, neli.ErrClosed)

			cfg, log = hostileConfig(cluster.Bootstrap(), "close", mode.set)
			m := hostileStart(t, cfg, log)
			m.leads(t, time.Minute)
			assert.Equal(t, "1", admin.settings(t, cfg.LeaderTopic)["min.insync.replicas"], "with one broker")
			quick(m.Neli, "as the leader")
			<-m.ended
			assert.ErrorIs(t, m.err, neli.ErrClosed)
			after(m.Neli, neli.ErrClosed)
			assert.Equal(t, neli.StateClosed, m.State())

			again := func() {
				admin.remove(t, cfg.LeaderTopic)
				// Until the broker knows that the topic is gone, it tells a new member the former topic's id.
				hostileUntil(t, time.Minute, func() bool { return admin.partitions(t, cfg.LeaderTopic) == 0 }, "it is gone")
				admin.create(t, cfg.LeaderTopic, 1, 1, nil)
			}
			again()
			m = hostileStart(t, cfg, log)
			m.leads(t, time.Minute)
			// Until the next look at the topic's id, a new log looks like the old one if it is as long as the
			// part that was read.
			hostileUntil(t, 20*time.Second, func() bool { return m.Stats().Records >= 10 }, "it has read a little")
			again()
			assert.ErrorIs(t, m.fails(t, time.Minute), neli.ErrTopicChanged)
			quick(m.Neli, "after a fatal error")
			after(m.Neli, neli.ErrTopicChanged)
		})
	}
}

// hostileCloseBound is the bound that Close's comment promises for the settings of these tests.
const hostileCloseBound = time.Second + 3200*time.Millisecond + 12*time.Second
