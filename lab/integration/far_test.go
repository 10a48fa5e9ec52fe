package integration

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/lab/witness"
)

// With T = 10 s, brokers with a round trip of half a second cause no trouble: there are no warnings, the first term
// lasts, and Close hands over. No other test runs at the same time: a busy machine gives reasons for warnings of its own.
func TestFarBrokers(t *testing.T) {
	testFar(t, 1, 500*time.Millisecond, func(p *contenderParams) { p.Nomination = neli.NominationOpen }, func(p *contenderParams) { p.Nomination = neli.NominationAssigned })
}

// Three brokers, each with a log, are no trouble with a round trip of T/25. The first record to a log may take five round
// trips with franz-go (the answer to an earlier request, metadata on a new connection, the record on another one), and a
// record that takes T/4 is given up with a warning.
func TestFarLogs(t *testing.T) {
	testFar(t, 3, 400*time.Millisecond, func(p *contenderParams) { p.Nomination, p.Logs = neli.NominationOpen, 3 })
}

func testFar(t *testing.T, brokers int, away time.Duration, ways ...func(*contenderParams)) {
	const timeout, quiet = 10 * time.Second, 12 * time.Second
	e := newEnv(t, brokers, 1, nil)
	e.session = 6 * time.Second
	p := e.proxy(t)
	require.NoError(t, p.Latency(away))
	for client := range clients {
		for _, set := range ways {
			var how contenderParams
			set(&how)
			how.Client = client
			t.Run((&election{params: how}).String(), func(t *testing.T) {
				t.Parallel()
				el := exclusive(t, e, how.Nomination, timeout, func(c *contenderParams) { c.Client, c.Logs = how.Client, how.Logs })
				el.start("first", through(p))
				old := el.leader(0, 2*firstLeader)
				second := el.start("second", through(p))
				el.follows(second)
				waitPast(t, witness.Now()+quiet)
				el.soleTerm(old)
				old.close(patience)
				el.leader(0, patience, old.member)
				for _, m := range el.members {
					assert.Empty(t, m.warnings(), "%s warns", m)
				}
			})
		}
	}
}

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
