package integration

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/kafka"
	"github.com/goneli/neli/lab/kafkatest"
)

// sentinelTimeout is T in tests where something must take much less than T. It is long, so that T/2 is long enough for a busy
// machine.
const sentinelTimeout = 10 * time.Second

// The fail-over of a killed leader takes T, and with a sentinel only a small part of it.
func TestSentinel(t *testing.T) {
	if os.Getenv(kafkatest.EnvBootstrap) != "" {
		kafkatest.NotForeign(t)
	}
	cluster := kafkatest.Run(t, kafkatest.Options{Brokers: 3, Secure: true, BrokerProps: quickGroups})
	e := &env{bootstrap: cluster.Bootstrap(), cluster: cluster, session: 2 * time.Second}
	t.Run("with one", func(t *testing.T) {
		took := sentinelKill(t, e, startSentinel(t, e, client()))
		assert.Less(t, took, sentinelTimeout/2, "round trips, on a busy machine")
	})
	t.Run("on three logs, on the other client", func(t *testing.T) {
		other := byClient(clients["franz"], clients["confluent"])()
		took := sentinelKill(t, e, startSentinel(t, e, other), func(p *contenderParams) { p.Logs, p.Partitions = 3, 0 })
		assert.Less(t, took, sentinelTimeout/2)
	})
	t.Run("rights", func(t *testing.T) { sentinelRights(t, cluster) })
	t.Run("without", func(t *testing.T) {
		took := sentinelKill(t, e, "")
		assert.Greater(t, took, sentinelTimeout*3/4-busyMachine, "its lease has to run out")
	})
	t.Run("the only member is started anew", func(t *testing.T) {
		el := sentinelElection(t, e, startSentinel(t, e, client()))
		el.start("first")
		old := el.leader(0, firstLeader)
		old.logs(watchedLine, 1, patience)
		waitPast(t, old.since+sentinelTimeout)
		at := old.Kill()
		el.start("again")
		next := el.leader(0, el.bound+patience, old.member)
		t.Logf("killed → leads again: %v", (next.since - at).Round(time.Millisecond))
		assert.Greater(t, next.token, old.token)
		// Without the release the new process would have to wait for T of silence, after it has started.
		assert.Less(t, next.since-at, sentinelTimeout*3/4, "the process has to start, too")
	})
}

// watchedLine is a member's log message when a sentinel watches it.
const watchedLine = "a sentinel watches this process"

// A sentinel needs READ and WRITE on the topic. Without them, members log which one it lacks, and lead as without a sentinel.
func sentinelRights(t *testing.T, cluster *kafkatest.Cluster) {
	admin := newHostileAdmin(t, cluster.Bootstrap())
	for _, c := range []struct {
		name   string
		rights []hostileRight
		lacks  string // in the log of the member; empty: nothing
	}{
		{"both", []hostileRight{readTopic, writeTopic}, ""},
		{"READ only", []hostileRight{readTopic}, "WRITE topic"},
		{"WRITE only", []hostileRight{writeTopic}, "READ topic"},
		{"none", nil, "DESCRIBE topic"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg, log := hostileConfig(cluster.Bootstrap(), "watched", hostileModes[0].set)
			of := neli.Config{LeaderGroupID: cfg.LeaderGroupID, LeaderTopic: cfg.LeaderTopic, KafkaConfig: neli.KafkaConfigMap{}}
			secured(t, cluster, &of, c.rights...)
			admin.create(t, cfg.LeaderTopic, 1, 1, nil)
			cfg.Sentinel = startSentinelWith(t, of.KafkaConfig, client())
			m := hostileStart(t, cfg, log)
			m.leads(t, patience)
			// The first refusal may have another reason: the socket is not there yet, or no broker has answered the sentinel.
			hostileUntil(t, patience, func() bool {
				if c.lacks == "" {
					return m.Stats().Sentinel == "watching"
				}
				return m.Stats().Sentinel == "refused" && len(log.with("level=WARN", "no sentinel watches this process", c.lacks)) > 0
			}, "the member knows what the sentinel does for it")
			m.leads(t, patience) // T is short, so it may have lapsed
		})
	}
}

// startSentinel runs a sentinel in this process, and returns its socket.
func startSentinel(t *testing.T, e *env, p kafka.Provider) string {
	t.Helper()
	return startSentinelWith(t, neli.KafkaConfigMap{"bootstrap.servers": e.bootstrap}, p)
}

func startSentinelWith(t *testing.T, props neli.KafkaConfigMap, p kafka.Provider) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "neli-sentinel-") // the path of a socket must be short
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o750))
	socket := filepath.Join(dir, "s")
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	logger, _ := newHostileLogger()
	go func() {
		ended <- neli.RunSentinel(ctx, neli.Config{Sentinel: socket, KafkaConfig: props, Provider: p, Logger: logger})
	}()
	t.Cleanup(func() {
		stop()
		assert.NoError(t, <-ended)
		assert.NoError(t, os.RemoveAll(dir))
	})
	return socket
}

func sentinelElection(t *testing.T, e *env, socket string, change ...func(*contenderParams)) *election {
	return exclusive(t, e, neli.NominationOpen, sentinelTimeout, append(change, func(p *contenderParams) { p.Sentinel = socket })...)
}

// sentinelKill kills a leader whose term is T old, and returns how long it took until the next one led.
func sentinelKill(t *testing.T, e *env, socket string, change ...func(*contenderParams)) time.Duration {
	el := sentinelElection(t, e, socket, change...)
	el.start("first")
	old := el.leader(0, firstLeader)
	el.follow("second", "third")
	if socket != "" {
		for _, m := range el.members {
			m.logs(watchedLine, 1, patience)
		}
	}
	waitPast(t, old.since+sentinelTimeout+sentinelTimeout/10)
	at := old.Kill()
	next := el.leader(0, el.bound+patience, old.member)
	assert.Greater(t, next.token, old.token)
	took := next.since - at
	t.Logf("killed → next leader: %v", took.Round(time.Millisecond))
	return took
}
