package kafkalog

import (
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/kafka"
)

// If a read position lies outside its log, the reader checks the topic. If it is another topic,
// nothing more is appended, because the producer addresses a topic by name.
func TestReplacedTopicGetsNoAppends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		id := "id"
		leader, _, _ := told(func() (kafka.TopicInfo, error) { return kafka.TopicInfo{ID: id, Partitions: 1}, nil })
		producer, reader := &fakeProducer{}, &scriptedReader{polls: []polled{{rec: kafka.Record{}}, {err: kafka.ErrOutOfRange}}}
		log := newKafkaLog(leader, producer, func() (kafka.LogReader, error) { return reader, nil }, slog.New(slog.DiscardHandler))
		m, opened, err := log.Open(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1, m)
		require.Equal(t, "id", opened)
		reports := make(chan error, 1)
		require.NoError(t, log.Append(0, []byte("x"), func(err error) { reports <- err }))
		require.NoError(t, <-reports)
		for _, jump := range []bool{true, false} {
			e, ok, err := log.Next(t.Context(), pollSlice)
			require.NoError(t, err)
			require.True(t, ok)
			require.Equal(t, jump, e.Reset)
		}
		id = "another"
		_, _, err = log.Next(t.Context(), pollSlice)
		require.ErrorIs(t, err, ErrTopicReplaced)
		require.ErrorIs(t, log.Append(0, []byte("y"), func(err error) { reports <- err }), errSealed)
		require.Empty(t, reports, "a report of what was not handed over")
		require.Equal(t, []string{"Append", "Purge"}, producer.calls)
		log.Close()
		require.Equal(t, []string{"Append", "Purge", "Purge"}, producer.calls)
		require.True(t, producer.closed)
	})
}

// A record that the producer gets just after the topic was found replaced is purged, too.
func TestLateRecordForAReplacedTopicIsPurged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leader, _, _ := told(func() (kafka.TopicInfo, error) { return kafka.TopicInfo{ID: "id", Partitions: 1}, nil })
		producer, reader := &sealedProducer{}, &scriptedReader{}
		log := newKafkaLog(leader, producer, func() (kafka.LogReader, error) { return reader, nil }, slog.New(slog.DiscardHandler))
		_, _, err := log.Open(t.Context())
		require.NoError(t, err)
		producer.seal = log.seal
		_ = log.Append(0, []byte("x"), func(error) {})
		synctest.Wait()
		require.Equal(t, []string{"Purge", "Append", "Purge"}, producer.calls)
		log.Close()
	})
}
