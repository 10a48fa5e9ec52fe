package providertest

import (
	"context"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/drive"
	"github.com/goneli/neli/kafka"
)

var adminPoints = []point{
	{"topics are described", "", topicsDescribed},
	{"a topic that was created again has another id", DeleteTopic, recreated},
	{"settings may be refused", BadSettings, settingsRefused},
	{"too many replicas are refused, and the number may be left out", "", replicasRefused},
	{"a topic that is only validated is not created", "", onlyValidated},
	{"a topic is placed on the given brokers", "", topicPlaced},
	{"one log is described, with the leader epoch of its records", "", logDescribed},
	{"admin calls end with their context", "", adminContext},
	{"admin calls end with their context, even if no broker answers", Freeze, adminBounded},
}

func topicsDescribed(t *testing.T, b Bed) {
	topic := newName()
	p := b.producer(t)
	a := b.admin(t, p)
	ctx := t.Context()
	brokers, err := a.Brokers(ctx, false)
	require.NoError(t, err)
	n := len(brokers)
	require.Positive(t, n)
	spec := kafka.TopicSpec{Name: topic, Partitions: 4, Replicas: n, Settings: map[string]string{"retention.ms": "123456000"}}
	require.NoError(t, a.CreateTopic(ctx, spec))
	require.ErrorIs(t, a.CreateTopic(ctx, kafka.TopicSpec{Name: topic, Partitions: 1, Replicas: 1}), kafka.ErrTopicExists)
	var info kafka.TopicInfo
	eventually(t, patience, "it is described", func() bool { // metadata lag behind
		info, err = a.Topic(ctx, topic)
		return err == nil && info.Partitions > 0 && info.ID != ""
	})
	require.Equal(t, 4, info.Partitions)
	require.Equal(t, n, info.Replicas)
	var s map[string]string
	eventually(t, patience, "its settings are told", func() bool {
		s, err = a.Settings(ctx, topic)
		return err == nil
	})
	require.Equal(t, "123456000", s["retention.ms"])
	require.Equal(t, "delete", s["cleanup.policy"])
	var ranges []kafka.OffsetRange
	eventually(t, patience, "its extents are told", func() bool {
		ranges, err = a.Offsets(ctx, topic, 4)
		return err == nil
	})
	require.Equal(t, make([]kafka.OffsetRange, 4), ranges)
	_, err = a.Offsets(ctx, topic, 5)
	require.Error(t, err)
}

func topicPlaced(t *testing.T, b Bed) {
	a := b.admin(t, b.producer(t))
	ctx := t.Context()
	brokers, err := a.Brokers(ctx, true)
	require.NoError(t, err)
	spec := kafka.TopicSpec{Name: newName(), Partitions: len(brokers), Replicas: 1}
	for _, on := range brokers { // in reverse order, which a cluster would not choose
		spec.Brokers = append([][]int{{on.ID}}, spec.Brokers...)
	}
	require.NoError(t, a.CreateTopic(ctx, spec))
	eventually(t, patience, "it is described", func() bool {
		info, err := a.Topic(ctx, spec.Name)
		if err != nil || info.Partitions == 0 {
			return false
		}
		require.Equal(t, len(brokers), info.Partitions)
		require.Equal(t, 1, info.Replicas)
		require.Equal(t, spec.Brokers, info.Brokers)
		return true
	})
}

func logDescribed(t *testing.T, b Bed) {
	topic := b.topic(t, 2)
	p, r := b.writer(t), b.reader(t)
	a := b.admin(t, p)
	drive.AppendAll(t, p, topic, 1, "0", "1", "2")
	info, err := a.Log(t.Context(), topic, 1)
	require.NoError(t, err)
	require.Equal(t, kafka.OffsetRange{Start: 0, End: 3}, info.OffsetRange)
	require.GreaterOrEqual(t, info.Epoch, 0)
	require.NoError(t, r.Assign(topic, []int64{kafka.NotRead, 0}))
	for _, rec := range drive.Read(t, r, 3) {
		require.Equal(t, info.Epoch, rec.Epoch)
	}
	_, err = a.Log(t.Context(), topic, 2)
	require.Error(t, err)
}

func adminContext(t *testing.T, b Bed) {
	a := b.admin(t, b.producer(t))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for what, err := range callAll(ctx, a, newName()) {
		require.ErrorIs(t, err, context.Canceled, what)
	}
}

// callAll makes each request of an admin, and yields the errors.
func callAll(ctx context.Context, a kafka.Admin, topic string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for what, call := range map[string]func() error{
			"Brokers":     func() error { _, err := a.Brokers(ctx, false); return err },
			"Topic":       func() error { _, err := a.Topic(ctx, topic); return err },
			"CreateTopic": func() error { return a.CreateTopic(ctx, kafka.TopicSpec{Name: topic, Partitions: 1, Replicas: 1}) },
			"Settings":    func() error { _, err := a.Settings(ctx, topic); return err },
			"Offsets":     func() error { _, err := a.Offsets(ctx, topic, 1); return err },
			"Log":         func() error { _, err := a.Log(ctx, topic, 0); return err },
		} {
			if !yield(what, call()) {
				return
			}
		}
	}
}

func recreated(t *testing.T, b Bed) {
	topic := b.topic(t, 2)
	a := b.admin(t, b.producer(t))
	describe := func() (info kafka.TopicInfo) {
		eventually(t, patience, "it is described", func() (ok bool) {
			var err error
			info, err = a.Topic(t.Context(), topic)
			return err == nil && info.Partitions > 0 && info.ID != ""
		})
		return info
	}
	first := describe()
	require.Equal(t, first, describe())
	b.DeleteTopic(t, topic)
	_, err := a.Topic(t.Context(), topic)
	require.ErrorIs(t, err, kafka.ErrUnknownTopic)
	_, err = a.Settings(t.Context(), topic)
	require.ErrorIs(t, err, kafka.ErrUnknownTopic)
	b.CreateTopic(t, topic, 1)
	second := describe()
	require.NotEqual(t, first.ID, second.ID)
	require.Equal(t, 1, second.Partitions)
}

func settingsRefused(t *testing.T, b Bed) {
	a := b.admin(t, b.producer(t))
	err := a.CreateTopic(t.Context(), kafka.TopicSpec{Name: newName(), Partitions: 1, Replicas: 1,
		Settings: b.BadSettings})
	require.ErrorIs(t, err, kafka.ErrSettings)
}

func replicasRefused(t *testing.T, b Bed) {
	a := b.admin(t, b.producer(t))
	brokers, err := a.Brokers(t.Context(), false)
	require.NoError(t, err)
	spec := kafka.TopicSpec{Name: newName(), Partitions: 1, Replicas: len(brokers) + 1}
	require.ErrorIs(t, a.CreateTopic(t.Context(), spec), kafka.ErrSettings)
	spec.Replicas = 0
	require.NoError(t, a.CreateTopic(t.Context(), spec))
	eventually(t, patience, "it has as many as the cluster gives", func() bool {
		info, err := a.Topic(t.Context(), spec.Name)
		return err == nil && info.Replicas > 0
	})
}

func onlyValidated(t *testing.T, b Bed) {
	a := b.admin(t, b.producer(t))
	spec := kafka.TopicSpec{Name: newName(), Partitions: 2, Replicas: 1, ValidateOnly: true}
	require.NoError(t, a.CreateTopic(t.Context(), spec))
	_, err := a.Topic(t.Context(), spec.Name)
	require.ErrorIs(t, err, kafka.ErrUnknownTopic)
	if b.BadSettings != nil {
		spec.Settings = b.BadSettings
		require.ErrorIs(t, a.CreateTopic(t.Context(), spec), kafka.ErrSettings)
		spec.Settings = nil
	}
	spec.ValidateOnly = false
	require.NoError(t, a.CreateTopic(t.Context(), spec))
	spec.ValidateOnly = true
	require.ErrorIs(t, a.CreateTopic(t.Context(), spec), kafka.ErrTopicExists)
}

func adminBounded(t *testing.T, b Bed) {
	topic := b.topic(t, 1)
	a := b.admin(t, b.producer(t))
	_, err := a.Topic(t.Context(), topic)
	require.NoError(t, err)
	defer b.Freeze(t)()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	began := time.Now()
	for what, err := range callAll(ctx, a, topic) { // the first one waits until ctx is done
		require.ErrorIs(t, err, context.DeadlineExceeded, what)
		for _, kind := range drive.Kinds {
			require.NotErrorIs(t, err, kind, what)
		}
	}
	require.Less(t, time.Since(began), 5*time.Second)
}
