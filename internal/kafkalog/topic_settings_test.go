package kafkalog

import (
	"strings"
	"testing"

	"github.com/goneli/neli/kafka"
	"github.com/stretchr/testify/require"
)

func TestUnsafeSettings(t *testing.T) {
	good := map[string]string{"unclean.leader.election.enable": "false", "cleanup.policy": "delete",
		"min.insync.replicas": "2", "retention.ms": "604800000", "message.timestamp.type": "LogAppendTime"}
	for _, c := range []struct {
		name, setting, value string
		replicas             int
		want                 string // the beginning of the warning; empty: none
		advice               string // the end of the warning
	}{
		{"as created", "", "", 3, "", ""},
		{"unclean election", "unclean.leader.election.enable", "true", 3, "unclean.leader.election.enable=true:", "set it to false"},
		{"compaction", "cleanup.policy", "compact", 3, "cleanup.policy=compact:", "set it to delete"},
		{"compaction as well", "cleanup.policy", "compact,delete", 3, "cleanup.policy=compact,delete:", "set it to delete"},
		{"acknowledged by one of three", "min.insync.replicas", "1", 3, "min.insync.replicas=1 with 3 replicas: an acknowledged record may be lost", "set it to 2"},
		{"acknowledged by one of five", "min.insync.replicas", "1", 5, "min.insync.replicas=1 with 5 replicas:", "set it to 4"},
		{"acknowledged by all of three", "min.insync.replicas", "3", 3, "min.insync.replicas=3 with 3 replicas: one broker down stops all elections", "set it to 2"},
		{"acknowledged by more than there are", "min.insync.replicas", "4", 3, "min.insync.replicas=4 with 3 replicas:", "set it to 2"},
		{"acknowledged by two of one", "min.insync.replicas", "2", 1, "min.insync.replicas=2 with 1 replica: brokers of earlier Kafka versions refuse every record", "set it to 1"},
		{"one of two", "min.insync.replicas", "1", 2, "2 replicas: either an acknowledged record may be lost", "have 3 replicas"},
		{"both of two", "min.insync.replicas", "2", 2, "2 replicas: either an acknowledged record may be lost", "have 3 replicas"},
		{"one replica is what was asked for", "min.insync.replicas", "1", 1, "", ""},
		{"three of five", "min.insync.replicas", "3", 5, "", ""},
		{"retention below a minute", "retention.ms", "59999", 3, "retention.ms=59999:", "set it to 604800000 (7 days)"},
		{"no retention", "retention.ms", "0", 3, "retention.ms=0:", "set it to 604800000 (7 days)"},
		{"the sender's clock", "message.timestamp.type", "CreateTime", 3, "message.timestamp.type=CreateTime: a process whose wall clock", "set it to LogAppendTime"},
		{"acknowledged before it is on a disk", "write.caching", "true", 3, "write.caching=true: brokers acknowledge a record before", "set it to false"},
		{"acknowledged when it is on a disk", "write.caching", "false", 3, "", ""},
		{"acknowledged before it has a place", "warpstream.topic.type", "lightning", 3, "warpstream.topic.type=lightning: a record is acknowledged before", "use a topic of the usual type"},
		{"a minute", "retention.ms", "60000", 3, "", ""},
		{"for ever", "retention.ms", "-1", 3, "", ""},
		{"a value that nobody understands", "retention.ms", "an hour", 3, "", ""},
		{"a number of replicas that nobody understands", "min.insync.replicas", "some", 3, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			settings := map[string]string{}
			for k, v := range good {
				settings[k] = v
			}
			if c.setting != "" {
				settings[c.setting] = c.value
			}
			got := unsafeSettings(settings, c.replicas)
			if c.want == "" {
				require.Empty(t, got)
				return
			}
			require.Len(t, got, 1)
			require.True(t, strings.HasPrefix(got[0], c.want), got[0])
			require.True(t, strings.HasSuffix(got[0], c.advice), got[0])
		})
	}
	require.Empty(t, unsafeSettings(nil, 3), "what was not told is not wrong")
	require.Len(t, unsafeSettings(map[string]string{"unclean.leader.election.enable": "true", "cleanup.policy": "compact",
		"min.insync.replicas": "1", "retention.ms": "1"}, 3), 4, "all that is wrong")
}

// The library does not warn of a topic as it creates it, except with two brokers, where no number
// of replicas is right.
func TestCreatedTopicCausesNoWarning(t *testing.T) {
	for brokers := 1; brokers <= 7; brokers++ {
		leader, admin, _ := missingTopic(brokers, func(s kafka.TopicSpec) error {
			if s.Replicas > brokers {
				return policy("too many replicas")
			}
			return nil
		})
		require.NoError(t, leader.make(t.Context()))
		made := admin.created(t)
		replicas := max(made.Replicas, 1) // 0: the cluster's default
		require.Equal(t, min(3, brokers), replicas)
		got := unsafeSettings(made.Settings, replicas)
		require.Empty(t, differences(made.Settings, replicas))
		if brokers == 2 {
			require.Len(t, got, 1)
			require.Contains(t, got[0], "have 3 replicas")
			continue
		}
		require.Empty(t, got, "%d brokers", brokers)
	}
	// A topic that follows a warning's advice must not cause the next warning.
	for replicas := 3; replicas <= 7; replicas++ {
		advised := map[string]string{"min.insync.replicas": string(rune('0' + replicas - 1))}
		require.Empty(t, unsafeSettings(advised, replicas), "%d replicas", replicas)
	}
}
