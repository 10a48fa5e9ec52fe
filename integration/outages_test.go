package integration

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/kafka"
	"github.com/goneli/neli/testkit/kafkatest"
	"github.com/goneli/neli/testkit/witness"
)

// envOutages sets the number of outages of one broker, and as many of three brokers.
const envOutages = "NELI_OUTAGES"

const (
	outageLasts    = 30 * time.Second
	outageAim      = 15 * time.Second // of the brokers' return; what took longer is counted
	outageClusters = 3                // in parallel, of each size, if envOutages is set; they share the outages
)

// restarting makes the clusters' restarts take turns. Brokers that start take both cores of a small machine: with twelve that
// start at once nobody else does anything.
var restarting sync.Mutex

// outagesFromEnv returns the number of outages for each size of a cluster. By default it is a small one, for one broker only.
func outagesFromEnv(t *testing.T) map[int]int {
	t.Helper()
	s := os.Getenv(envOutages)
	if s == "" {
		return map[int]int{1: 2}
	}
	n, err := strconv.Atoi(s)
	require.NoError(t, err, envOutages)
	require.Positive(t, n, envOutages)
	return map[int]int{1: n, 3: n}
}

// outageKind is a kind of process that must recover from an outage by itself.
type outageKind struct {
	name   string
	groups int           // with one process on each client
	within time.Duration // of the brokers' return
	set    func(*neli.Config)
	well   func(*neli.Neli) bool
}

// outageKinds lists the kinds that use different clients, or watch them in different ways. If a group assigns partitions,
// there are two partitions, so that each member must get one. That shows that both are in the group again. For a member that
// is not, this takes a session timeout, T until it is noticed, and a rebalance. A reader that stands still costs 5 s, then a
// producer 10 s. All that several times: what stands still for ever, or until somebody restarts it, is seen all the same.
var outageKinds = []outageKind{
	{"open", 3, 45 * time.Second, func(*neli.Config) {}, leadsOrFollows},
	{"observer", 3, 45 * time.Second, func(c *neli.Config) { c.Observer = true }, leadsOrFollows},
	{"assigned", 2, 90 * time.Second, func(c *neli.Config) {
		c.Nomination, c.Roles, c.Partitions = neli.Assigned, 2, 2
	}, leadsOne},
	{"non-exclusive", 2, 90 * time.Second, func(c *neli.Config) {
		c.Mode, c.HeartbeatTimeout, c.Roles, c.Partitions = neli.NonExclusive, 10*time.Second, 2, 2
	}, leadsOne},
}

func leadsOrFollows(n *neli.Neli) bool {
	h, known := n.Holder(0)
	return n.IsLeader() || known && h.Age <= n.Config().HeartbeatTimeout
}

// leadsOne reports whether a member leads exactly one role: not none, as after a lapse, and not both, as a member that is
// alone in the group.
func leadsOne(n *neli.Neli) bool { return n.IsLeaderOf(0) != n.IsLeaderOf(1) }

type outageMember struct {
	*neli.Neli
	outageKind
	log *hostileLog
}

// TestOutages takes all brokers down for half a minute, again and again, alternately by shutdown and by kill. A client may
// stand still forever after that (docs/clients.md). Soon after the brokers' return, each process must lead, know who leads,
// or be in its group again. No process is restarted. Many processes in parallel give many outages of each client.
func TestOutages(t *testing.T) {
	t.Parallel()
	for brokers, outages := range outagesFromEnv(t) {
		for c := range min(outages, outageClusters) {
			share := (outages + c) / min(outages, outageClusters)
			t.Run(fmt.Sprintf("brokers %d/cluster %d", brokers, c+1), func(t *testing.T) {
				t.Parallel()
				outagesOf(t, brokers, share)
			})
		}
	}
}

// outagesOf takes all brokers of one cluster down, outages times.
func outagesOf(t *testing.T, brokers, outages int) {
	t.Helper()
	cluster := kafkatest.Run(t, kafkatest.Options{Brokers: brokers, BrokerProps: hostileBroker()})
	var members []outageMember
	for _, kind := range outageKinds {
		for g := range kind.groups {
			for name, provider := range clients {
				group := fmt.Sprintf("outages-%s-%d", kind.name, g)
				if kind.name == "observer" {
					group = fmt.Sprintf("outages-open-%d", g)
				}
				members = append(members, startOutageMember(t, cluster, kind, group, name, provider()))
			}
		}
	}
	unwell := func() (out []outageMember) {
		for _, n := range members {
			if !n.well(n.Neli) {
				out = append(out, n)
			}
		}
		return out
	}
	waitUntil(t, 2*time.Minute, "all are well at first", func() bool {
		soleLeaders(t, members)
		return len(unwell()) == 0
	})

	before := map[string]uint64{}
	recovered := map[string][]time.Duration{} // by kind
	for o := range outages {
		each(t, cluster, func(b *kafkatest.Broker) error {
			if o%2 == 0 {
				return b.Terminate(t.Context())
			}
			b.Kill()
			return nil
		})
		waitPast(t, witness.Now()+outageLasts)
		restart(t, cluster)
		back := witness.Now()
		took := map[string]time.Duration{}
		told := false
		for still := unwell(); len(still) > 0; still = unwell() {
			passed := witness.Now() - back
			var late []string
			for _, n := range still {
				took[n.outageKind.name] = passed.Round(time.Millisecond)
				if passed > n.within {
					t.Logf("%s (%s) on %s:\n%s", n.Config().LeaderGroupID, n.outageKind.name, n.Config().Name, n.log.tail(200))
					logGroup(t, members, n.Config().LeaderGroupID)
					late = append(late, fmt.Sprintf("%s (%s) on %s, replaced %d", n.Config().LeaderGroupID, n.outageKind.name, n.Config().Name, n.Stats().ReadersReplaced))
				}
			}
			if passed > outageAim && !told {
				told = true
				for _, n := range still {
					t.Logf("outage %d: %s (%s) on %s is not well yet: leads 0: %v, leads 1: %v", o+1, n.Config().LeaderGroupID,
						n.outageKind.name, n.Config().Name, n.IsLeaderOf(0), n.IsLeaderOf(1))
				}
			}
			require.Empty(t, late, "outage %d: these are not well after %v with the brokers", o+1, passed)
			soleLeaders(t, members)
			<-time.After(20 * time.Millisecond)
		}
		replaced := map[string]uint64{}
		for _, n := range members {
			replaced[n.outageKind.name+" on "+n.Config().Name] += n.Stats().ReadersReplaced
		}
		for who, n := range replaced {
			if n -= before[who]; n > 0 {
				t.Logf("outage %d: %s: %d clients were replaced", o+1, who, n)
			}
		}
		before = replaced
		for _, kind := range outageKinds {
			recovered[kind.name] = append(recovered[kind.name], took[kind.name])
		}
		t.Logf("outage %d: the last of each kind was well after %v", o+1, took)
	}
	for kind, all := range recovered {
		slices.Sort(all)
		after, _ := slices.BinarySearch(all, outageAim+1)
		t.Logf("%s: %d outages, all members were well after %v (median) and %v (longest); after more than %v: %d",
			kind, len(all), all[len(all)/2], all[len(all)-1], outageAim, len(all)-after)
	}
}

// restart brings all brokers of a cluster back, while no other cluster does so.
func restart(t *testing.T, cluster *kafkatest.Cluster) {
	t.Helper()
	restarting.Lock()
	defer restarting.Unlock()
	each(t, cluster, func(b *kafkatest.Broker) error { return b.Restart(t.Context()) })
}

func startOutageMember(t *testing.T, cluster *kafkatest.Cluster, kind outageKind, group, name string, provider kafka.Provider) outageMember {
	t.Helper()
	logger, log := newHostileLogger()
	cfg := neli.Config{
		KafkaConfig: neli.KafkaConfigMap{"bootstrap.servers": cluster.Bootstrap()},
		Provider:    provider, LeaderGroupID: group, Name: name, HeartbeatTimeout: 3 * time.Second,
		Logger: logger,
	}
	kind.set(&cfg)
	n, err := neli.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, n.Close()) })
	if !cfg.Observer {
		p, err := n.Background(func() { <-time.After(100 * time.Millisecond) })
		require.NoError(t, err)
		t.Cleanup(func() { _ = p.Close() })
	}
	return outageMember{n, kind, log}
}

// logGroup logs what each member of a group knows.
func logGroup(t *testing.T, members []outageMember, group string) {
	t.Helper()
	for _, n := range members {
		if n.Config().LeaderGroupID == group {
			known, err := json.Marshal(map[string]any{"stats": n.Stats(), "standings": n.Standings(), "members": n.Members()})
			require.NoError(t, err)
			t.Logf("%s (%s) of %s: %s", n.Config().Name, n.outageKind.name, group, known)
		}
	}
}

// soleLeaders requires that no two processes of an exclusive group lead one role. They are asked one after the other, and one
// may hand over meanwhile: two lead at once only if the former is still in its term when the latter leads, too.
func soleLeaders(t *testing.T, members []outageMember) {
	t.Helper()
	type leader struct {
		outageMember
		token int64
	}
	leaders := map[string]leader{}
	for _, n := range members {
		for role := range n.Roles() {
			token, leads := n.Token(role) // never in non-exclusive mode
			if !leads {
				continue
			}
			id := fmt.Sprintf("role %d of %s", role, n.Config().LeaderGroupID)
			if former, known := leaders[id]; known {
				still, leads := former.Token(role)
				require.False(t, leads && still == former.token, "%s: %s in term %d, and %s in term %d", id,
					former.Config().Name, still, n.Config().Name, token)
			}
			leaders[id] = leader{n, token}
		}
	}
}

// each calls a function for all brokers in parallel, since it takes a majority of them to bring one back.
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
