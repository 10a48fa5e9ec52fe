package integration

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/lab/kafkatest"
	"github.com/goneli/neli/lab/proxy"
)

// The leader topic is created or missing, has unsafe settings, loses its head, or is replaced.
func TestTopic(t *testing.T) {
	t.Parallel()
	cluster := kafkatest.Run(t, kafkatest.Options{Brokers: 3, ProxiedListeners: 1, BrokerProps: autoCreating()})
	admin := newHostileAdmin(t, cluster.Bootstrap())
	way, err := proxy.New(cluster, 0)
	require.NoError(t, err)
	t.Cleanup(way.Close)

	t.Run("created", func(t *testing.T) { testCreated(t, cluster, admin) })
	t.Run("not created", func(t *testing.T) { testNotCreated(t, cluster, admin) })
	t.Run("unsafe", func(t *testing.T) { testUnsafe(t, cluster, admin) })
	t.Run("head deleted", func(t *testing.T) { testHeadDeleted(t, cluster, admin) })
	t.Run("replaced", func(t *testing.T) {
		t.Parallel()
		testReplaced(t, cluster, admin)
	})
	t.Run("head deleted unread", func(t *testing.T) {
		t.Parallel()
		testHeadDeletedUnread(t, cluster, admin, way)
	})
}

// Two members start at the same time, and there is no topic. It is created once, with the settings that a lease needs.
func testCreated(t *testing.T, cluster *kafkatest.Cluster, admin hostileAdmin) {
	for _, mode := range hostileModes {
		t.Run(mode.name, func(t *testing.T) {
			cfg, log := hostileConfig(cluster.Bootstrap(), "created", mode.set)
			cfg.Partitions, cfg.Roles = 5, 5
			a := hostileStart(t, cfg, log)
			b := hostileStart(t, cfg, log)
			hostileUntil(t, patience, func() bool {
				led := 0
				for role := range cfg.Roles {
					if a.IsLeaderOf(role) || b.IsLeaderOf(role) {
						led++
					}
				}
				return led == cfg.Roles
			}, "all roles are led")
			t.Logf("all roles led after %v", time.Since(a.began).Round(time.Millisecond))
			saidOnce(t, log, "created the leader topic")
			assert.Empty(t, log.with("unsafe setting"))

			partitions := admin.describe(t, cfg.LeaderTopic).Partitions
			require.Len(t, partitions, cfg.Partitions)
			for _, p := range partitions {
				assert.Len(t, p.Replicas, 3)
			}
			s := admin.settings(t, cfg.LeaderTopic)
			assert.Equal(t, "2", s["min.insync.replicas"])
			assert.Equal(t, "false", s["unclean.leader.election.enable"])
			assert.Equal(t, "delete", s["cleanup.policy"])
			assert.Equal(t, "604800000", s["retention.ms"])
			assert.Equal(t, "LogAppendTime", s["message.timestamp.type"])
		})
	}
}

// saidOnce checks that the creator of the topic logs this once. The line may be missing if the broker took so long that
// the creator asked again: then the topic was there already, and nobody knows who created it.
func saidOnce(t *testing.T, log *hostileLog, text string) {
	t.Helper()
	lines := log.with(text)
	assert.LessOrEqual(t, len(lines), 1, lines)
	if len(log.with("cannot create the leader topic, retrying"))+len(log.with("no broker reached, retrying")) == 0 {
		assert.Len(t, lines, 1, text)
	}
}

// Members that may not create the topic wait for it, and log that. M is then the topic's number of partitions, not theirs.
func testNotCreated(t *testing.T, cluster *kafkatest.Cluster, admin hostileAdmin) {
	for _, mode := range hostileModes {
		t.Run(mode.name, func(t *testing.T) {
			cfg, log := hostileConfig(cluster.Bootstrap(), "not-created", mode.set)
			cfg.DisableTopicCreation = true
			cfg.Partitions, cfg.Roles = 7, 3
			m := hostileStart(t, cfg, log)
			hostileUntil(t, patience, func() bool {
				return len(log.with("level=WARN", "DisableTopicCreation", cfg.LeaderTopic)) > 0
			}, "it says what it waits for")
			assert.False(t, m.IsLeader())
			assert.Equal(t, neli.StateLive, m.State())
			assert.Zero(t, admin.partitions(t, cfg.LeaderTopic), "nobody created it")

			admin.create(t, cfg.LeaderTopic, 2, 3, nil)
			hostileUntil(t, patience, func() bool {
				zero, _ := m.Token(0)
				two, _ := m.Token(2)
				return zero == two && m.IsLeaderOf(0) && m.IsLeaderOf(1) && m.IsLeaderOf(2)
			}, "it leads all roles, which share two partitions: 0 and 2, with one token, live on one of them")
			assert.Empty(t, log.with("created the leader topic"))
		})
	}
}

// Settings that endanger a lease are logged, each in a line of its own.
func testUnsafe(t *testing.T, cluster *kafkatest.Cluster, admin hostileAdmin) {
	cfg, log := hostileConfig(cluster.Bootstrap(), "unsafe", hostileModes[0].set)
	admin.create(t, cfg.LeaderTopic, 1, 3, map[string]string{
		"unclean.leader.election.enable": "true",
		"min.insync.replicas":            "1",
		"retention.ms":                   "1000",
	})
	m := hostileStart(t, cfg, log)
	m.leads(t, patience)
	for _, setting := range []string{
		"unclean.leader.election.enable=true", "min.insync.replicas=1 with 3 replicas", "retention.ms=1000",
	} {
		assert.Len(t, log.with("level=WARN", "unsafe setting", setting, cfg.LeaderTopic), 1, setting)
	}

	// A compacted topic accepts no records without keys.
	compacted, log := hostileConfig(cluster.Bootstrap(), "compacted", hostileModes[0].set)
	admin.create(t, compacted.LeaderTopic, 1, 3, map[string]string{"cleanup.policy": "compact"})
	m = hostileStart(t, compacted, log)
	hostileUntil(t, patience, func() bool {
		return len(log.with("level=WARN", "cannot write to the leader topic", compacted.LeaderTopic)) > 0
	}, "it says that it cannot write")
	assert.Len(t, log.with("level=WARN", "unsafe setting", "cleanup.policy=compact"), 1)
	assert.False(t, m.IsLeader())
}

// If the topic is replaced by another one, every member, leader or not, ends quickly, and none leads on the new log.
func testReplaced(t *testing.T, cluster *kafkatest.Cluster, admin hostileAdmin) {
	// Every member checks every 10 s. It takes the topic for deleted only after another minute. A leader in exclusive
	// mode notices earlier that its own records are missing. On a busy machine brokers answer late, and learn late of
	// what was done to the topic.
	const soon, late = time.Minute, 2 * time.Minute
	for _, what := range []struct {
		name string
		do   func(t *testing.T, topic string)
		err  error
		// Each member must fail within this time.
		bound time.Duration
	}{
		{"deleted", admin.remove, neli.ErrTopicChanged, late},
		{"recreated", func(t *testing.T, topic string) {
			admin.remove(t, topic)
			hostileUntil(t, patience, func() bool { return admin.partitions(t, topic) == 0 }, "it is gone")
			admin.create(t, topic, 1, 3, nil)
		}, neli.ErrTopicChanged, soon},
		{"partitions added", func(t *testing.T, topic string) {
			changed, err := admin.UpdatePartitions(t.Context(), 2, topic)
			require.NoError(t, err)
			require.NoError(t, changed.Error())
		}, neli.ErrTopicChanged, soon},
	} {
		t.Run(what.name, func(t *testing.T) {
			t.Parallel()
			type pair struct {
				leader, follower *hostileMember
				topic            string
				done             time.Time
			}
			pairs := map[string]*pair{}
			for _, mode := range hostileModes {
				cfg, log := hostileConfig(cluster.Bootstrap(), strings.ReplaceAll(what.name, " ", "-"), mode.set)
				p := &pair{topic: cfg.LeaderTopic, leader: hostileStart(t, cfg, log)}
				p.leader.leads(t, patience)
				cfg.Logger, log = newHostileLogger()
				p.follower = hostileStart(t, cfg, log)
				pairs[mode.name] = p
			}
			for _, p := range pairs {
				hostileUntil(t, patience, func() bool {
					return p.follower.Stats().Records > 0 || len(p.follower.log.with("the group assigned")) > 0
				}, "the follower follows")
				what.do(t, p.topic)
				p.done = time.Now()
			}
			for _, mode := range hostileModes {
				t.Run(mode.name, func(t *testing.T) {
					p := pairs[mode.name]
					for role, m := range map[string]*hostileMember{"leader": p.leader, "follower": p.follower} {
						err := m.fails(t, what.bound)
						t.Logf("%s failed after %v: %v", role, m.endedAt.Sub(p.done).Round(time.Millisecond), err)
						assert.ErrorIs(t, err, what.err)
						assert.ErrorContains(t, err, p.topic)
						assert.Less(t, m.endedAt.Sub(p.done), what.bound)
					}
					if what.name != "recreated" {
						return
					}
					// Records in flight may have reached the new log, since producers use the topic's name. No member
					// can lead by them, and no more follow.
					end := admin.end(t, p.topic, 0)
					t.Logf("the new log has %d records", end)
					require.NoError(t, p.leader.Close())
					require.NoError(t, p.follower.Close())
					assert.Equal(t, end, admin.end(t, p.topic, 0))
					assert.False(t, p.leader.IsLeader() || p.follower.IsLeader())
				})
			}
		})
	}
}

// Retention costs little: deleting records that were read costs nothing, and deleting unread ones costs at most a term.
func testHeadDeleted(t *testing.T, cluster *kafkatest.Cluster, admin hostileAdmin) {
	for _, mode := range hostileModes {
		t.Run(mode.name, func(t *testing.T) {
			cfg, log := hostileConfig(cluster.Bootstrap(), "read", mode.set)
			// The term must not end for want of CPU, nor must a nominated leader's session.
			if cfg.HeartbeatTimeout = 5 * hostileTimeout; cfg.Mode == neli.Exclusive {
				cfg.HeartbeatTimeout, cfg.HeartbeatInterval = longTimeout, hostileTimeout
			}
			if mode.name == "assigned" {
				cfg.KafkaConfig["session.timeout.ms"] = 30_000
			}
			m := hostileStart(t, cfg, log)
			m.leads(t, patience)
			token, _ := m.Token(0)
			admin.behead(t, cfg.LeaderTopic, 0, -1)
			read := m.Stats().Records
			hostileUntil(t, patience, func() bool { return m.Stats().Records > read+4 }, "it reads on")
			m.leads(t, patience)
			again, _ := m.Token(0)
			assert.Equal(t, token, again, "the term lasts")
		})
	}
}

func testHeadDeletedUnread(t *testing.T, cluster *kafkatest.Cluster, admin hostileAdmin, way *proxy.Proxy) {
	type leader struct {
		*hostileMember
		topic string
		token int64
	}
	leaders := map[string]*leader{}
	for _, mode := range hostileModes {
		cfg, log := hostileConfig(way.Bootstrap(), "unread", mode.set)
		m := hostileStart(t, cfg, log)
		m.leads(t, patience)
		token, _ := m.Token(0)
		leaders[mode.name] = &leader{m, cfg.LeaderTopic, token}
	}
	require.NoError(t, way.CutOff(proxy.Both))
	for _, l := range leaders {
		hostileWrite(t, cluster.Bootstrap(), l.topic, slices.Repeat([][]byte{[]byte("rubbish")}, 500)...)
		admin.behead(t, l.topic, 0, -1)
		hostileUntil(t, patience, func() bool { return !l.IsLeader() }, "it lapses")
	}
	require.NoError(t, way.Restore())
	for _, mode := range hostileModes {
		t.Run(mode.name, func(t *testing.T) {
			l := leaders[mode.name]
			// No other member knows what it has missed, so it waits for the longest lease that
			// there can be, a minute.
			l.leads(t, time.Minute+patience)
			if again, exclusive := l.Token(0); exclusive {
				assert.Greater(t, again, l.token)
				assert.NotEmpty(t, l.log.with("level=WARN", "the head of the log was deleted", l.topic))
			}
		})
	}
}
