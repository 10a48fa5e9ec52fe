package kafkalog

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/elector"
	"github.com/goneli/neli/kafka"
)

// Reading begins again farther back each time that it is asked for, three times at most, and never
// before the log's start. The other logs are read on where they were.
func TestReadingBeginsFartherBack(t *testing.T) {
	scriptedLog(t, []kafka.OffsetRange{{Start: 0, End: 500_000}, {Start: 0, End: 1500}, {Start: 4900, End: 5000}}, func(t *testing.T, k *kafkaLog, _ *extents, r *scriptedReader) {
		require.Len(t, entries(t, k, time.Second), 3)
		r.polls = []polled{{rec: kafka.Record{Partition: 0, Offset: 500_000}}, {rec: kafka.Record{Partition: 1, Offset: 1500}}}
		require.Len(t, entries(t, k, time.Second), 2)

		k.Back(0, always)
		k.Back(0, always)
		require.Equal(t, []elector.Entry{{Partition: 0, Offset: 498_000, Reset: true, End: 500_001}}, entries(t, k, time.Second))
		require.Equal(t, []int64{498_000, 1501, 4900}, r.assigned)
		k.Back(1, always)
		k.Back(2, always) // it was read from its start
		require.Equal(t, []elector.Entry{{Partition: 1, Offset: 0, Reset: true, End: 1501, Whole: true}}, entries(t, k, time.Second))
		for _, want := range []int64{484_000, 372_000} {
			k.Back(0, always)
			got := entries(t, k, time.Second)
			require.Len(t, got, 1)
			require.Equal(t, want, got[0].Offset)
		}
		k.Back(0, always)
		k.Back(1, always)
		require.Empty(t, entries(t, k, time.Second), "it has been far enough")
	})
}

// A request to read again from farther back is dropped if the holders are known by the time it
// would be carried out.
func TestRequestToReadAgainIsDroppedIfNoLongerWanted(t *testing.T) {
	scriptedLog(t, []kafka.OffsetRange{{Start: 0, End: 500_000}, {Start: 0, End: 500_000}}, func(t *testing.T, k *kafkaLog, _ *extents, r *scriptedReader) {
		require.Len(t, entries(t, k, time.Second), 2)
		known := false
		k.Back(0, func() bool { return !known })
		k.Back(1, always)
		known = true
		require.Equal(t, []elector.Entry{{Partition: 1, Offset: 498_000, Reset: true, End: 499_800}}, entries(t, k, time.Second))
		require.Equal(t, []int64{499_800, 498_000}, r.assigned)
	})
}

func always() bool { return true }
