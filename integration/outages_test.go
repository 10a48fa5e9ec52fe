package integration

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/testkit/kafkatest"
	"github.com/goneli/neli/testkit/witness"
)

// envOutages is how many outages there are, and envOutageBrokers how many brokers are away
// at once.
const (
	envOutages       = "NELI_OUTAGES"
	envOutageBrokers = "NELI_OUTAGE_BROKERS"
)

func fromEnv(t *testing.T, name string, otherwise int) int {
	t.Helper()
	s := os.Getenv(name)
	if s == "" {
		return otherwise
	}
	n, err := strconv.Atoi(s)
	require.NoError(t, err, name)
	require.Positive(t, n, name)
	return n
}

const (
	outageLasts  = 30 * time.Second
	outageGroups = 10 // of one member on either client
	outageOver   = 15 * time.Second
)

// TestOutages has all brokers away for half a minute, again and again, by turns shut down
// and killed. A client may stand still for ever after that (docs/clients.md). Each member
// must lead, or know who does, within 15 s of the brokers' return, and no process is
// restarted. Many members side by side make many outages of each client.
func TestOutages(t *testing.T) {
	t.Parallel()
	brokers := fromEnv(t, envOutageBrokers, 1)
	cluster := kafkatest.Run(t, kafkatest.Options{Brokers: brokers, BrokerProps: hostileBroker()})
	var members []*neli.Neli
	for g := range outageGroups {
		group := fmt.Sprintf("outages-%d", g)
		for name, provider := range clients {
			n, err := neli.New(neli.Config{
				KafkaConfig: neli.KafkaConfigMap{"bootstrap.servers": cluster.Bootstrap()},
				Provider:    provider(), LeaderGroupID: group, Name: name, HeartbeatTimeout: 3 * time.Second,
				Logger: slog.New(slog.DiscardHandler),
			})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, n.Close()) })
			p, err := n.Background(func() { <-time.After(100 * time.Millisecond) })
			require.NoError(t, err)
			t.Cleanup(func() { _ = p.Close() })
			members = append(members, n)
		}
	}
	lost := func() (out []string) {
		for i := 0; i < len(members); i += len(clients) {
			leaders := 0
			for _, n := range members[i : i+len(clients)] {
				h, known := n.Holder(0)
				switch {
				case n.IsLeader():
					leaders++
				case !known || h.Age > n.HeartbeatTimeout():
					out = append(out, fmt.Sprintf("%s on %s", n.Group(), n.Name()))
				}
			}
			require.LessOrEqual(t, leaders, 1, members[i].Group())
		}
		return out
	}
	waitUntil(t, time.Minute, "all are led at first", func() bool { return len(lost()) == 0 })

	readers := uint64(0)
	for o := range fromEnv(t, envOutages, 2) {
		each(t, cluster, func(b *kafkatest.Broker) error {
			if o%2 == 0 {
				return b.Terminate(t.Context())
			}
			b.Kill()
			return nil
		})
		waitPast(t, witness.Now()+outageLasts)
		each(t, cluster, func(b *kafkatest.Broker) error { return b.Restart(t.Context()) })
		back := witness.Now()
		for len(lost()) > 0 {
			if still := lost(); witness.Now() > back+outageOver {
				require.Empty(t, still, "outage %d: these neither lead nor follow since the brokers are back", o+1)
			}
			<-time.After(20 * time.Millisecond)
		}
		replaced := uint64(0)
		for _, n := range members {
			replaced += n.Stats().ReadersReplaced
		}
		t.Logf("outage %d: all lead or follow after %v; %d readers were replaced", o+1,
			(witness.Now() - back).Round(time.Millisecond), replaced-readers)
		readers = replaced
	}
}

// each does something with all brokers at once: it takes a majority of them to bring one back.
func each(t *testing.T, cluster *kafkatest.Cluster, do func(*kafkatest.Broker) error) {
	t.Helper()
	brokers := cluster.Brokers()
	errs := make([]error, len(brokers))
	var group sync.WaitGroup
	for i, b := range brokers {
		group.Go(func() { errs[i] = do(b) })
	}
	group.Wait()
	require.NoError(t, errors.Join(errs...))
}
