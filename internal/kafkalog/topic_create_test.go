package kafkalog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/said"
	"github.com/goneli/neli/kafka"
)

// missingTopic returns a topic that is to be created in a cluster that refuses some topics.
func missingTopic(brokers int, refuse func(kafka.TopicSpec) error) (*Topic, *toldAdmin, *said.Text) {
	leader, admin, out := told(nil)
	leader.create = &kafka.TopicSpec{Name: "t", Partitions: 2}
	admin.brokers, admin.refuse = brokers, refuse
	return leader, admin, out
}

func policy(words string) error { return errors.Join(kafka.ErrSettings, errors.New(words)) }

// forbidding refuses settings, whatever their values.
func forbidding(names ...string) func(kafka.TopicSpec) error {
	return func(s kafka.TopicSpec) error {
		for _, name := range names {
			if _, ok := s.Settings[name]; ok {
				return policy("a policy forbids " + name)
			}
		}
		return nil
	}
}

// created returns the topic that was created in the end. It must be the only one.
func (a *toldAdmin) created(t *testing.T) kafka.TopicSpec {
	t.Helper()
	var all []kafka.TopicSpec
	for _, s := range a.specs {
		if !s.ValidateOnly && (a.refuse == nil || a.refuse(s) == nil) {
			all = append(all, s)
		}
	}
	require.Len(t, all, 1)
	return all[0]
}

func names(settings map[string]string) []string { return slices.Sorted(maps.Keys(settings)) }

// Whatever single setting a cluster refuses, the topic gets all others. The missing one is named
// once, with its consequences.
func TestTopicLacksOnlyTheSettingThatIsRefused(t *testing.T) {
	for _, refused := range topicSettings(3) {
		t.Run(refused.name, func(t *testing.T) {
			leader, admin, out := missingTopic(3, forbidding(refused.name))
			require.NoError(t, leader.make(t.Context()))
			require.Equal(t, map[string]string{refused.name: refused.without}, leader.health.Refusals.Meaning())
			made := admin.created(t)
			require.Equal(t, 3, made.Replicas)
			require.Equal(t, 2, made.Partitions)
			want := map[string]string{}
			for _, s := range topicSettings(3) {
				if s.name != refused.name {
					want[s.name] = s.values[0]
				}
			}
			require.Equal(t, want, made.Settings)
			require.Equal(t, 1, strings.Count(out.String(), "level=WARN"))
			require.Contains(t, out.String(), "setting="+refused.name+" wanted="+refused.values[0])
			require.Contains(t, out.String(), fmt.Sprintf("meaning=%q", refused.without))
			require.Contains(t, out.String(), "a policy forbids "+refused.name)
		})
	}
}

// A topic gets all settings that the cluster does not refuse, above all LogAppendTime. These are
// clusters that are known to refuse something.
func TestTopicGetsSettingsThatAreNotRefused(t *testing.T) {
	for _, c := range []struct {
		name    string
		brokers int
		refuse  func(kafka.TopicSpec) error
		want    map[string]string // settings that differ from those asked for
		lacks   []string
		copies  int
	}{
		{"segments of 50 MiB", 6, func(s kafka.TopicSpec) error {
			switch v, ok := s.Settings["segment.bytes"]; {
			case s.Replicas != 3:
				return policy("replication factor must be 3")
			case ok && v != "52428800":
				return policy("segment.bytes must be at least 52428800")
			}
			return nil
		}, map[string]string{"segment.bytes": "52428800"}, nil, 3},
		{"seven settable properties", 3, forbidding("min.insync.replicas", "unclean.leader.election.enable", "segment.bytes", "segment.ms"),
			nil, []string{"min.insync.replicas", "unclean.leader.election.enable", "segment.bytes", "segment.ms"}, 3},
		{"a setting that needs another one", 3, func(s kafka.TopicSpec) error {
			_, bounded := s.Settings["retention.bytes"]
			_, kept := s.Settings["retention.ms"]
			if _, ok := s.Settings["segment.ms"]; ok || kept && !bounded {
				return policy("no")
			}
			return nil
		}, nil, []string{"segment.ms"}, 3},
		{"a setting that has to be there", 3, func(s kafka.TopicSpec) error {
			_, has := s.Settings["retention.ms"]
			if _, ok := s.Settings["segment.ms"]; ok || !has {
				return policy("no")
			}
			return nil
		}, nil, []string{"segment.ms"}, 3},
		{"one broker shown, and three replicas wanted", 1, func(s kafka.TopicSpec) error {
			if s.Replicas != 3 {
				return policy("replication factor must be 3")
			}
			return nil
		}, nil, nil, 3},
		{"its own number of replicas only", 9, func(s kafka.TopicSpec) error {
			if s.Replicas != 0 {
				return policy("replication factor must be left out")
			}
			return nil
		}, nil, []string{}, 0},
		{"none", 3, func(s kafka.TopicSpec) error {
			if len(s.Settings) > 0 {
				return policy("no settings")
			}
			return nil
		}, nil, names(allOf(3)), 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			leader, admin, out := missingTopic(c.brokers, c.refuse)
			require.NoError(t, leader.make(t.Context()))
			made := admin.created(t)
			want := allOf(c.copies)
			maps.Copy(want, c.want)
			for _, name := range c.lacks {
				delete(want, name)
			}
			require.Equal(t, want, made.Settings)
			require.Equal(t, c.copies, made.Replicas)
			require.Equal(t, len(c.lacks)+len(c.want), strings.Count(out.String(), "level=WARN"), out.String())
			for name := range c.want {
				require.Contains(t, out.String(), "instead="+c.want[name], name)
			}
		})
	}
}

func allOf(replicas int) map[string]string {
	all := map[string]string{}
	for _, s := range topicSettings(replicas) {
		all[s.name] = s.values[0]
	}
	return all
}

// A cluster that refuses nothing is asked only once.
func TestTopicIsCreatedByOneRequest(t *testing.T) {
	for brokers, want := range map[int]int{1: 0, 2: 3, 3: 3, 7: 3} {
		leader, admin, _ := missingTopic(brokers, nil)
		require.NoError(t, leader.make(t.Context()))
		require.Len(t, admin.specs, 1)
		require.Equal(t, want, admin.specs[0].Replicas, "%d brokers", brokers)
		require.Equal(t, allOf(want), admin.specs[0].Settings)
	}
	// A third broker may exist and be down. Two replicas are asked for only if there is none.
	leader, admin, _ := missingTopic(2, func(s kafka.TopicSpec) error {
		if s.Replicas > 2 {
			return policy("2 brokers")
		}
		return nil
	})
	require.NoError(t, leader.make(t.Context()))
	require.Equal(t, 2, admin.created(t).Replicas)
	// No other error is a reason to leave out a setting.
	leader, admin, _ = missingTopic(3, func(kafka.TopicSpec) error { return errReported })
	require.ErrorIs(t, leader.make(t.Context()), errReported)
	require.Len(t, admin.specs, 1)
}

// A cluster that does not create the topic at all is not asked again and again for each setting. The
// log says that the topic cannot be created, not that it cannot be found. Once the topic exists,
// whoever created it, it is used.
func TestTopicRefusedOutright(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leader, admin, out := missingTopic(3, func(kafka.TopicSpec) error { return policy("topics are made by the platform's team") })
		began, asked := time.Now(), 0
		admin.topic = func() (kafka.TopicInfo, error) {
			if time.Since(began) < time.Minute {
				asked++
				return kafka.TopicInfo{}, kafka.ErrUnknownTopic
			}
			return kafka.TopicInfo{ID: "id", Partitions: 1, Replicas: 3}, nil
		}
		require.NoError(t, leader.Open(t.Context()))
		require.Equal(t, "id", leader.id)
		require.Contains(t, out.String(), "cannot create the leader topic, retrying")
		require.Contains(t, out.String(), "create it by hand")
		require.Contains(t, out.String(), "topics are made by the platform's team")
		require.NotContains(t, out.String(), "cannot find the leader topic")
		negotiations := 2 * (2 + len(allOf(3))) // for each number of replicas: without settings, with each, and with both values of one
		// Each time it asks with all settings and, for each number of replicas, without settings.
		require.LessOrEqual(t, len(admin.specs), (1+2)*asked+negotiations)
	})
}

// A cluster of two brokers first refuses the topic altogether. When its policy has changed, it creates the
// topic with two replicas, which are all that it can have.
func TestTopicOfTwoBrokersAfterItWasRefusedOutright(t *testing.T) {
	allowed := false
	leader, admin, _ := missingTopic(2, func(s kafka.TopicSpec) error {
		switch {
		case !allowed:
			return policy("topics are made by the platform's team")
		case s.Replicas != 2:
			return policy("2 replicas")
		}
		return nil
	})
	require.ErrorContains(t, leader.make(t.Context()), "create it by hand")
	require.ErrorContains(t, leader.make(t.Context()), "create it by hand")
	allowed = true
	require.NoError(t, leader.make(t.Context()))
	require.Equal(t, 2, admin.created(t).Replicas)
}

// Kafka's own topic shows that a cluster gives topics no ids, before the leader topic is created in vain.
func TestTopicIsNotCreatedWithoutTopicIDs(t *testing.T) {
	leader, admin, _ := missingTopic(3, nil)
	admin.old = kafka.TopicInfo{ID: noTopicID, Partitions: 50, Replicas: 3}
	err := leader.make(t.Context())
	require.ErrorIs(t, err, ErrNoTopicID)
	require.True(t, final(err))
	require.ErrorContains(t, err, "topic t was not created")
	require.ErrorContains(t, err, "inter.broker.protocol.version")
	require.Empty(t, admin.specs)
	admin.old.ID = "some"
	require.NoError(t, leader.make(t.Context()))
	require.Len(t, admin.specs, 1)
}

// One broker has described the topic, and the next one does not know it yet. That is not logged as
// a warning unless it lasts.
func TestNewTopicCausesNoWarning(t *testing.T) {
	for lasts, warned := range map[time.Duration]bool{3 * time.Second: false, 20 * time.Second: true} {
		synctest.Test(t, func(t *testing.T) {
			leader, _, out := told(func() (kafka.TopicInfo, error) { return kafka.TopicInfo{ID: "id", Partitions: 1, Replicas: 1}, nil })
			require.NoError(t, leader.Open(t.Context()))
			began := time.Now()
			require.NoError(t, leader.retry(t.Context(), "read the ends of the leader topic", func(context.Context) error {
				if time.Since(began) < lasts {
					return kafka.ErrUnknownTopic
				}
				return nil
			}))
			require.Equal(t, warned, strings.Contains(out.String(), "level=WARN"), out.String())
		})
	}
}

// Settings of an existing topic that differ are logged, unless they are as good or another warning names them.
func TestDifferingSettingsAreLogged(t *testing.T) {
	require.Empty(t, differences(allOf(3), 3))
	require.Empty(t, differences(nil, 3), "nothing is told")
	good := allOf(5)
	good["min.insync.replicas"] = "3"
	require.Empty(t, differences(good, 5), "three of five do")
	stock := map[string]string{"retention.bytes": "-1", "retention.ms": "604800000", "segment.bytes": "1073741824", "segment.ms": "604800000",
		"message.timestamp.type": "CreateTime", "min.insync.replicas": "1", "cleanup.policy": "delete"}
	got := differences(stock, 1)
	require.Len(t, got, 3, "the rest is complained of, or one replica")
	require.Contains(t, got[0], "retention.bytes is -1, and the library would create it with 16777216: ")
}

// lateAdmin describes the settings of a topic only once it knows the topic.
type lateAdmin struct {
	*toldAdmin
	since    time.Time
	settings map[string]string
}

func (a lateAdmin) Settings(context.Context, string) (map[string]string, error) {
	if time.Now().Before(a.since) {
		return nil, kafka.ErrUnknownTopic
	}
	return a.settings, nil
}

// The settings of a topic are checked even if brokers do not know the topic at first.
func TestSettingsOfANewTopicAreChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leader, admin, out := told(func() (kafka.TopicInfo, error) { return kafka.TopicInfo{ID: "id", Partitions: 1, Replicas: 1}, nil })
		leader.Admin = lateAdmin{admin, time.Now().Add(time.Second), map[string]string{"cleanup.policy": "compact"}}
		require.NoError(t, leader.Open(t.Context()))
		require.Contains(t, out.String(), "cleanup.policy=compact")
	})
}

// A trial asks for what a first member would create. It creates nothing, whatever the cluster answers.
func TestTrialCreatesNothing(t *testing.T) {
	for _, c := range []struct {
		name   string
		refuse func(kafka.TopicSpec) error
		want   error
	}{
		{"accepted", nil, nil},
		{"a setting is refused", func(s kafka.TopicSpec) error {
			if s.Settings["segment.bytes"] == "4194304" {
				return kafka.ErrSettings
			}
			return nil
		}, nil},
		{"everything is refused", func(kafka.TopicSpec) error { return kafka.ErrSettings }, kafka.ErrSettings},
		{"it was created meanwhile", func(kafka.TopicSpec) error { return kafka.ErrTopicExists }, nil},
		{"no right", func(kafka.TopicSpec) error { return kafka.ErrAuthorization }, kafka.ErrAuthorization},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, admin, _ := told(nil)
			admin.refuse = c.refuse
			require.ErrorIs(t, TryCreate(t.Context(), admin, "t", time.Second), c.want)
			require.NotEmpty(t, admin.specs)
			for _, s := range admin.specs {
				require.True(t, s.ValidateOnly)
			}
		})
	}
}

// A topic that was created is asked for again after 5, 10, 20 ms and so on: brokers describe it soon.
func TestNewTopicIsAskedForSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var asked []time.Duration
		leader, _, _ := told(func() (kafka.TopicInfo, error) {
			asked = append(asked, time.Since(began))
			if len(asked) < 5 {
				return kafka.TopicInfo{}, kafka.ErrUnknownTopic
			}
			return kafka.TopicInfo{ID: "id", Partitions: 1}, nil
		})
		leader.create = &kafka.TopicSpec{Name: "topic", Partitions: 1}
		require.NoError(t, leader.Open(t.Context()))
		ms := time.Millisecond
		require.Equal(t, []time.Duration{0, 5 * ms, 15 * ms, 35 * ms, 75 * ms}, asked[:5])
	})
}
