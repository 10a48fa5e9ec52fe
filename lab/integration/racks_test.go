package integration

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
)

// Members in three racks, on brokers that let them fetch from the replica in their own (client.rack): everybody leads a share,
// and a role can be handed to each of them.
func TestRacks(t *testing.T) {
	e := newEnv(t, 3, 0, map[string]string{"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"})
	const roles = 6
	var all []*neli.Neli
	for rack := 1; rack <= 3; rack++ {
		n, err := neli.New(neli.Config{LeaderGroupID: "racks", Name: fmt.Sprint("member", rack), Roles: roles, Partitions: 1, Nomination: neli.NominationOpen,
			Provider: client(), HeartbeatTimeout: 5 * time.Second, KafkaConfig: neli.KafkaConfigMap{"bootstrap.servers": e.bootstrap, "client.rack": fmt.Sprint("rack", rack)}})
		require.NoError(t, err)
		t.Cleanup(func() { _ = n.Close() })
		all = append(all, n)
		go func() {
			_ = n.Lead(context.Background(), func(ctx context.Context, _ neli.Leadership) error { <-ctx.Done(); return nil })
		}()
	}
	waitUntil(t, 2*time.Minute, "everybody leads a share", func() bool {
		for _, n := range all {
			if len(slices.Collect(n.Led())) != roles/len(all) {
				return false
			}
		}
		return true
	})
	for i := range 20 {
		role := slices.Collect(all[i%3].Led())[0]
		to := all[(i+1)%3].Config().Name
		began := time.Now()
		require.NoError(t, all[i%3].Transfer(t.Context(), role, to), "transfer %d", i)
		t.Logf("transfer %d: %v", i, time.Since(began).Round(time.Millisecond))
	}
}
