package clients

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/kafka"
	"github.com/goneli/neli/nelitest"
)

func TestObserved(t *testing.T) {
	broker := nelitest.NewBroker(nelitest.Options{})
	now := 3 * time.Second
	o := Observe(broker.Provider("m"), func() time.Duration { return now })
	silent := slog.New(slog.DiscardHandler)
	producer, reader := o.Properties()
	assert.Nil(t, producer)
	assert.Nil(t, reader)

	p, err := o.Producer(map[string]string{"acks": "all"}, silent)
	require.NoError(t, err)
	defer p.Close()
	r, err := o.LogReader(map[string]string{"auto.offset.reset": "error"}, silent)
	require.NoError(t, err)
	defer r.Close()
	producer, reader = o.Properties()
	assert.Equal(t, map[string]string{"acks": "all"}, producer)
	assert.Equal(t, map[string]string{"auto.offset.reset": "error"}, reader)

	a, err := o.Admin(p)
	require.NoError(t, err)
	defer a.Close()
	_, err = a.Topic(t.Context(), "log")
	require.ErrorIs(t, err, kafka.ErrUnknownTopic)
	assert.Zero(t, o.Metadata(), "there is no topic yet")
	require.NoError(t, a.CreateTopic(t.Context(), kafka.TopicSpec{Name: "log", Partitions: 1, Replicas: 1}))
	_, err = a.Topic(t.Context(), "log")
	require.NoError(t, err)
	now += time.Second
	_, err = a.Topic(t.Context(), "log")
	require.NoError(t, err)
	assert.Equal(t, 3*time.Second, o.Metadata(), "the first time counts")
}

func TestChosen(t *testing.T) {
	for name, version := range map[string]string{"": "librdkafka", "confluent": "librdkafka", "franz": "franz-go"} {
		t.Setenv(Env, name)
		p, err := Chosen()
		require.NoError(t, err)
		require.NotNil(t, p)
		require.Contains(t, Version(), version)
	}
	t.Setenv(Env, "sarama")
	_, err := Chosen()
	require.ErrorContains(t, err, `NELI_PROVIDER: no client is called "sarama"`)
}
