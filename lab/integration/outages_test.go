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
	"github.com/goneli/neli/lab/kafkatest"
	"github.com/goneli/neli/lab/witness"
)

// envOutages sets the number of outages for each size of cluster: one broker, and three.
const envOutages = "NELI_OUTAGES"

const (
	outageLasts    = 30 * time.Second
	outageAim      = 15 * time.Second // after the brokers' return; longer times are counted
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
	within time.Duration // after the brokers' return
	set    func(*neli.Config)
	acts   func(*neli.Neli) bool // it leads or follows
	well   func(*neli.Neli) bool // it also leads what it should
}

// outageKinds lists the kinds that use different clients, or watch them in different ways. If a group assigns
// partitions, there are two partitions, so that each member must get one. That shows that both are in the group again.
// A member outside the group takes a session timeout to get back, T until that is noticed, and a rebalance. A stalled
// reader costs 5 s, then a stalled producer 10 s. All this may happen several times. A client that stands still for
// ever, or until somebody restarts it, is still found.
var outageKinds = []outageKind{
	{"open", 3, 45 * time.Second, func(*neli.Config) {}, leadsOrFollows, leadsOrFollows},
	{"observer", 3, 45 * time.Second, func(c *neli.Config) { c.Observer = true }, leadsOrFollows, leadsOrFollows},
	{"assigned", 2, 90 * time.Second, func(c *neli.Config) {
		c.Nomination, c.Roles, c.Partitions = neli.NominationAssigned, 2, 2
	}, leadsAny, leadsOne},
	{"non-exclusive", 2, 90 * time.Second, func(c *neli.Config) {
		c.Mode, c.HeartbeatTimeout, c.Roles, c.Partitions = neli.NonExclusive, 10*time.Second, 2, 2
	}, leadsAny, leadsOne},
}

func leadsOrFollows(n *neli.Neli) bool {
	h, known := n.Holder(0)
	return n.IsLeader() || known && h.Age <= n.Config().HeartbeatTimeout
}

// leadsAny reports whether a member leads a role. In a group of two with two partitions, one that leads none is not in the
// group, or waits for a member that has gone: it does not follow either.
func leadsAny(n *neli.Neli) bool { return n.IsLeaderOf(0) || n.IsLeaderOf(1) }

// leadsOne reports whether a member leads exactly one role. It leads none after a lapse, and both while it is alone in
// the group.
func leadsOne(n *neli.Neli) bool { return n.IsLeaderOf(0) != n.IsLeaderOf(1) }

type outageMember struct {
	*neli.Neli
	outageKind
	log *hostileLog
}

func (n outageMember) String() string {
	return fmt.Sprintf("%s (%s) on %s", n.Config().LeaderGroupID, n.name, n.Config().Name)
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
	waitUntil(t, 2*time.Minute, "all are well at first", func() bool {
		soleLeaders(t, members)
		return len(unwell(members)) == 0
	})

	replaced := map[string]uint64{}
	acted, recovered := map[string][]time.Duration{}, map[string][]time.Duration{} // by kind
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
		act, well := recovery(t, o+1, members)
		for _, kind := range outageKinds {
			acted[kind.name] = append(acted[kind.name], act[kind.name])
			recovered[kind.name] = append(recovered[kind.name], well[kind.name])
		}
		replaced = logReplaced(t, o+1, members, replaced)
		t.Logf("outage %d: the last of each kind led or followed after %v, and was well after %v", o+1, act, well)
	}
	logRecoveries(t, "led or followed", acted)
	logRecoveries(t, "were well", recovered)
}

// recovery waits until all members are well after an outage. It returns, for each kind, after what time the last one led or
// followed, and after what time the last one was well.
func recovery(t *testing.T, outage int, members []outageMember) (acted, well map[string]time.Duration) {
	t.Helper()
	back := witness.Now()
	acted, well = map[string]time.Duration{}, map[string]time.Duration{}
	told := map[*neli.Neli]bool{}
	for still := unwell(members); len(still) > 0; still = unwell(members) {
		passed := witness.Now() - back
		var late []string
		for _, n := range still {
			well[n.name] = passed.Round(time.Millisecond)
			if !n.acts(n.Neli) {
				acted[n.name] = passed.Round(time.Millisecond)
			}
			if passed > outageAim && !told[n.Neli] {
				told[n.Neli] = true
				t.Logf("outage %d: %v is not well yet: leads 0: %v, leads 1: %v\n%s", outage, n, n.IsLeaderOf(0), n.IsLeaderOf(1), n.log.tail(50))
			}
			if passed > n.within {
				t.Logf("%v:\n%s", n, n.log.tail(200))
				logGroup(t, members, n.Config().LeaderGroupID)
				late = append(late, fmt.Sprintf("%v, replaced %d", n, n.Stats().ReadersReplaced))
			}
		}
		require.Empty(t, late, "outage %d: these are not well after %v with the brokers", outage, passed)
		soleLeaders(t, members)
		<-time.After(20 * time.Millisecond)
	}
	return acted, well
}

func unwell(members []outageMember) (out []outageMember) {
	for _, n := range members {
		if !n.well(n.Neli) {
			out = append(out, n)
		}
	}
	return out
}

// logReplaced logs how many clients of each kind were replaced since the last outage, and returns the totals so far.
func logReplaced(t *testing.T, outage int, members []outageMember, before map[string]uint64) map[string]uint64 {
	t.Helper()
	replaced := map[string]uint64{}
	for _, n := range members {
		replaced[n.name+" on "+n.Config().Name] += n.Stats().ReadersReplaced
	}
	for who, n := range replaced {
		if n -= before[who]; n > 0 {
			t.Logf("outage %d: %s: %d clients were replaced", outage, who, n)
		}
	}
	return replaced
}

func logRecoveries(t *testing.T, what string, byKind map[string][]time.Duration) {
	t.Helper()
	for kind, all := range byKind {
		slices.Sort(all)
		after, _ := slices.BinarySearch(all, outageAim+1)
		t.Logf("%s: %d outages, all members %s after %v (median) and %v (longest); after more than %v: %d",
			kind, len(all), what, all[len(all)/2], all[len(all)-1], outageAim, len(all)-after)
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
			t.Logf("%s (%s) of %s: %s", n.Config().Name, n.name, group, known)
		}
	}
}

// soleLeaders requires that no two processes of an exclusive group lead one role. They are asked one after the other, and one
// may hand over meanwhile. So two lead at once only if the former is still in its term when the latter leads, too.
func soleLeaders(t *testing.T, members []outageMember) {
	t.Helper()
	type leader struct {
		outageMember
		token int64
	}
	leaders := map[string]leader{}
	for _, n := range members {
		for role := range n.Led() {
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
