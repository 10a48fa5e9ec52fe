package integration

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/lab/kafkatest"
	"github.com/goneli/neli/lab/witness"
)

// envVersions set to all tests all versions; otherwise only those with always are tested.
const envVersions = "NELI_VERSIONS"

// versions are those of Apache Kafka for which docs/brokers.md makes promises.
var versions = []struct {
	version   string
	zookeeper bool
	brokers   int
	always    bool // the oldest, one in the middle, the newest
}{
	{"2.8.2", true, 3, true},
	{"2.8.2", false, 1, false}, // a preview: a broker cannot read what it, or another one, has registered before
	{"3.3.2", false, 3, true},
	{"3.9.2", true, 3, false},
	{"3.9.2", false, 3, false},
	{"4.0.2", false, 3, false},
	{"4.1.2", false, 3, false},
	{"4.3.1", false, 3, false},
	{kafkatest.KafkaVersion, false, 3, true},
}

// versionTimeout is T, and the session timeout of groups. A dozen members that start at the same time as three brokers may
// delay each of them by a second or two.
const versionTimeout = 5 * time.Second

// For each version of Kafka, each client and each way to elect: there is a first leader, and another one after a crash; a
// member that joins disturbs no one; Close hands over; and a broker that is restarted (or, in nightly runs, killed) costs at
// most a short time. All elections of a version run in parallel on one cluster, step by step.
func TestVersions(t *testing.T) {
	for _, v := range versions {
		if !v.always && os.Getenv(envVersions) != "all" {
			continue
		}
		name := v.version
		if v.zookeeper {
			name += " with ZooKeeper"
		}
		t.Run(name, func(t *testing.T) {
			testVersion(t, kafkatest.Options{Version: v.version, ZooKeeper: v.zookeeper, Brokers: v.brokers})
		})
	}
}

func testVersion(t *testing.T, opts kafkatest.Options) {
	opts.BrokerProps = maps.Clone(quickGroups)
	opts.BrokerProps["zookeeper.session.timeout.ms"] = "6000"
	cluster := kafkatest.Run(t, opts)
	e := &env{bootstrap: cluster.Bootstrap(), cluster: cluster, session: versionTimeout}
	if opts.ZooKeeper {
		testEpochsNotKept(t, cluster)
	}

	var all []*election
	for _, client := range slices.Sorted(maps.Keys(clients)) {
		for _, set := range []func(*contenderParams){
			func(p *contenderParams) { p.Nomination = neli.NominationOpen },
			func(p *contenderParams) { p.Nomination = neli.NominationAssigned },
			func(p *contenderParams) { p.Nomination, p.Logs = neli.NominationOpen, 3 },
		} {
			var p contenderParams
			if set(&p); p.Logs > opts.Brokers || p.Logs > 0 && opts.ZooKeeper {
				continue
			}
			all = append(all, exclusive(t, e, p.Nomination, versionTimeout, set, func(p *contenderParams) { p.Client = client }))
		}
	}
	heldBy := make([]held, len(all))
	began := witness.Now()
	for _, el := range all {
		el.start("first")
	}
	for i, el := range all {
		heldBy[i] = el.leader(0, 2*firstLeader)
	}
	tellTimes(t, "first leader", all, heldBy, began)
	if os.Getenv(envVersions) == "all" {
		for _, el := range all { // a broker may not know yet what another one has just created; this must not cause a warning
			assert.NotRegexp(t, `(?m)^.*level=WARN.*unknown topic`, el.members[0].tail(1<<20), "%v", el)
		}
	}

	joins(t, "second", all, heldBy)
	killed := make([]time.Duration, len(all))
	for i := range all {
		killed[i] = heldBy[i].Kill()
	}
	for i, el := range all {
		next := el.leader(0, el.bound+30*time.Second, heldBy[i].member)
		// TestExclusiveOpen checks how soon: here a dozen members delay each other. But it must be soon enough to show
		// that the member knew the holder. Otherwise a member waits for the longest lease that there can be, a minute.
		assert.Greater(t, next.token, heldBy[i].token, "%v", el)
		assert.Less(t, next.since-killed[i], el.bound+30*time.Second, "%v", el)
		heldBy[i] = next
	}
	tellTimes(t, "after SIGKILL", all, heldBy, killed...)

	joins(t, "third", all, heldBy)
	closed := make([]time.Duration, len(all))
	for i := range all {
		closed[i] = heldBy[i].close(patience)
	}
	for i, el := range all {
		next := el.leader(0, patience, heldBy[i].member)
		assert.Greater(t, next.token, heldBy[i].token, "%v", el)
		heldBy[i] = next
	}
	tellTimes(t, "after Close", all, heldBy, closed...)

	if opts.Brokers == 1 {
		return
	}
	for _, el := range all {
		el.bound = 30 * time.Second // a broker goes, and its partitions and groups move
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	require.NoError(t, cluster.Brokers()[0].Restart(ctx))
	if os.Getenv(envVersions) == "all" {
		cluster.Brokers()[1].Kill() // it cannot register again before its session is over
		require.NoError(t, cluster.Brokers()[1].Restart(ctx))
	}
	for i, el := range all {
		el.leader(0, patience)
		heldBy[i].readsMore(5, patience)
	}
}

// joins lets another member join each election. No leader gives way to it. But a leader that was delayed for longer
// than T on this busy machine may have lost its term.
func joins(t *testing.T, name string, all []*election, led []held) {
	t.Helper()
	for i, el := range all {
		el.follow(name)
		assert.Empty(t, led[i].events("revoked"), "%v", el)
	}
	for i, el := range all {
		led[i] = el.leader(0, patience)
	}
}

func (e *election) String() string {
	how := e.params.Nomination.String()
	if e.params.Logs > 0 {
		how = fmt.Sprint("logs ", e.params.Logs)
	}
	return e.params.Client + ", " + how
}

// tellTimes logs how long each election took, since a common time or since its own.
func tellTimes(t *testing.T, what string, all []*election, led []held, since ...time.Duration) {
	t.Helper()
	for i, el := range all {
		t.Logf("%-14s %-20v %v", what, el, (led[i].since - since[min(i, len(since)-1)]).Round(time.Millisecond))
	}
}

// With ZooKeeper leader epochs may stay the same although a broker has lost records, so Logs is refused before a topic is created.
func testEpochsNotKept(t *testing.T, cluster *kafkatest.Cluster) {
	for name, provider := range clients {
		cfg, log := hostileConfig(cluster.Bootstrap(), "logs", func(c *neli.Config) {
			c.Nomination, c.Logs, c.Provider = neli.NominationOpen, 3, provider()
		})
		err := hostileStart(t, cfg, log).fails(t, patience)
		assert.ErrorIs(t, err, neli.ErrUnsupported, name)
		assert.ErrorContains(t, err, "KRaft", name)
		topics, err := newHostileAdmin(t, cluster.Bootstrap()).ListTopics(t.Context())
		require.NoError(t, err)
		for topic := range topics {
			assert.NotContains(t, topic, cfg.LeaderTopic)
		}
	}
}
