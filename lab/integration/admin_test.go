package integration

import (
	"context"
	"encoding/base64"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// hostileAdmin is an admin client of a cluster. On a busy machine a broker that misses its heartbeats is fenced for a
// moment, and the cluster then has no brokers. A librdkafka client that learns of this may forget its broker for good
// (docs/clients.md). This is franz-go's, which goes on with the addresses that it was given.
type hostileAdmin struct{ *kadm.Client }

func newHostileAdmin(t *testing.T, bootstrap string) hostileAdmin {
	t.Helper()
	return hostileAdmin{kadm.NewClient(newAdmin(t, bootstrap).Client)}
}

// create creates a topic, and waits until the leader of each partition serves it.
func (a hostileAdmin) create(t *testing.T, topic string, partitions, replicas int, settings map[string]string) {
	t.Helper()
	configs := map[string]*string{}
	for name, value := range settings {
		configs[name] = &value
	}
	asked := false // by a request that got no answer
	hostileUntil(t, time.Minute, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err := a.CreateTopic(ctx, int32(partitions), int16(replicas), configs, topic)
		switch broker, refused := errors.AsType[*kerr.Error](err); {
		case !refused: // no error, or no answer
			asked = asked || err != nil
		case broker == kerr.TopicAlreadyExists && asked:
			return true
		case broker != kerr.InvalidReplicationFactor: // the answer while a broker is fenced
			require.NoError(t, err)
		}
		return err == nil
	}, "topic "+topic+" is created")
	a.served(t, topic, partitions)
}

// served waits until the leader of each of the topic's partitions answers for it.
func (a hostileAdmin) served(t *testing.T, topic string, partitions int) {
	t.Helper()
	hostileUntil(t, time.Minute, func() bool {
		ends, err := a.ListEndOffsets(t.Context(), topic)
		return err == nil && ends.Error() == nil && len(ends[topic]) == partitions
	}, "topic "+topic+" is served")
}

func (a hostileAdmin) remove(t *testing.T, topic string) {
	t.Helper()
	_, err := a.DeleteTopic(t.Context(), topic)
	require.NoError(t, err)
}

// describe returns the topic; without partitions if it does not exist.
func (a hostileAdmin) describe(t *testing.T, topic string) kadm.TopicDetail {
	t.Helper()
	topics, err := a.ListTopics(t.Context(), topic)
	require.NoError(t, err)
	return topics[topic]
}

func (a hostileAdmin) partitions(t *testing.T, topic string) int {
	return len(a.describe(t, topic).Partitions)
}

func (a hostileAdmin) settings(t *testing.T, topic string) map[string]string {
	t.Helper()
	described, err := a.DescribeTopicConfigs(t.Context(), topic)
	require.NoError(t, err)
	out := map[string]string{}
	for _, resource := range described {
		require.NoError(t, resource.Err)
		for _, c := range resource.Configs {
			out[c.Key] = c.MaybeValue()
		}
	}
	return out
}

// id returns the topic's id, which records name.
func (a hostileAdmin) id(t *testing.T, topic string) string {
	t.Helper()
	d := a.describe(t, topic)
	require.NoError(t, d.Err)
	return base64.RawStdEncoding.EncodeToString(d.ID[:]) // as clients write it
}

// end returns the offset after the last record of a partition.
func (a hostileAdmin) end(t *testing.T, topic string, partition int) int64 {
	t.Helper()
	ends, err := a.ListEndOffsets(t.Context(), topic)
	require.NoError(t, err)
	end, ok := ends.Lookup(topic, int32(partition))
	require.True(t, ok)
	require.NoError(t, end.Err)
	return end.Offset
}

// behead deletes the records of a partition before an offset, all of them if it is −1.
func (a hostileAdmin) behead(t *testing.T, topic string, partition int, before int64) {
	t.Helper()
	var to kadm.Offsets
	to.AddOffset(topic, int32(partition), before, -1)
	deleted, err := a.DeleteRecords(t.Context(), to)
	require.NoError(t, err)
	require.NoError(t, deleted.Error())
}
