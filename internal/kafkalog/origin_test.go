package kafkalog

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/elector"
	"github.com/goneli/neli/kafka"
)

// originAdmin is a cluster whose brokers keep leader epochs, or not.
type originAdmin struct {
	*extents
	keeps bool
	err   error
	asked int
	ids   []string // of the topic, in answers to come; the last one stays
}

func (a *originAdmin) KeepsEpochs(context.Context) (bool, error) {
	a.asked++
	return a.keeps, a.err
}

func (a *originAdmin) Topic(context.Context, string) (kafka.TopicInfo, error) {
	id := a.ids[0]
	if len(a.ids) > 1 {
		a.ids = a.ids[1:]
	}
	if id == "" {
		return kafka.TopicInfo{}, errReported
	}
	return kafka.TopicInfo{ID: id, Partitions: len(a.get())}, nil
}

// A record is of the log's origin if all before it were read since offset 0, and nothing can have been
// lost before. Otherwise the entry says why not.
func TestOriginOfALog(t *testing.T) {
	first := []polled{{rec: kafka.Record{Offset: 0}}, {rec: kafka.Record{Offset: 1}}}
	one := []kafka.OffsetRange{{}}
	for _, c := range []struct {
		name   string
		logs   []kafka.OffsetRange
		change func(*originAdmin)
		polls  []polled
		why    string // of the last record
	}{
		{"new topic", one, nil, first, ""},
		{"records are there", []kafka.OffsetRange{{End: 2}}, nil, first, ""},
		{"two partitions with records", []kafka.OffsetRange{{End: 2}, {End: 1}}, nil, first, ""},
		{"long log", []kafka.OffsetRange{{End: 201}}, nil, []polled{{rec: kafka.Record{Offset: 1}}}, notFirst},
		{"deleted head", []kafka.OffsetRange{{Start: 1, End: 2}}, nil, []polled{{rec: kafka.Record{Offset: 1}}}, deleted},
		{"everything deleted", []kafka.OffsetRange{{Start: 2, End: 2}}, nil, []polled{{rec: kafka.Record{Offset: 2}}}, deleted},
		{"added partition", []kafka.OffsetRange{{}, {End: 1}}, nil, first, empty},
		{"a gap", one, nil, []polled{{rec: kafka.Record{Offset: 0}}, {rec: kafka.Record{Offset: 2}}}, gap},
		{"a gap at the beginning", one, nil, []polled{{rec: kafka.Record{Offset: 1}}}, gap},
		{"a broker was away", one, nil, []polled{{rec: kafka.Record{Offset: 0, Epoch: 2}}}, later},
		{"a broker was away after the first record", one, nil, []polled{{rec: kafka.Record{Offset: 0}}, {rec: kafka.Record{Offset: 1, Epoch: 1}}}, later},
		{"no epochs", one, nil, []polled{{rec: kafka.Record{Offset: 0, Epoch: -1}}}, noEpoch},
		{"ZooKeeper, or a broker that was downgraded", one, func(a *originAdmin) { a.keeps = false }, first, noEpochs},
		{"nobody may ask", one, func(a *originAdmin) { a.err = kafka.ErrAuthorization }, first, noEpochs},
		{"no answer about the topic", one, func(a *originAdmin) { a.ids = []string{"id", ""} }, first, unverified},
	} {
		t.Run(c.name, func(t *testing.T) {
			openOrigin(t, c.logs, c.change, func(t *testing.T, k *kafkaLog, a *originAdmin, r *scriptedReader) {
				r.polls = c.polls
				got := entriesWithOrigin(t, k, time.Second)
				last := got[len(got)-1]
				assert.False(t, last.Reset)
				assert.Equal(t, c.why, last.Why)
				assert.Equal(t, c.why == "", last.Origin, "read from the origin")
				assert.LessOrEqual(t, a.asked, 1)
			})
		})
	}
}

// openOrigin opens a log in a bubble.
func openOrigin(t *testing.T, logs []kafka.OffsetRange, change func(*originAdmin), test func(*testing.T, *kafkaLog, *originAdmin, *scriptedReader)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		leader, told, _ := told(nil)
		a := &originAdmin{extents: &extents{toldAdmin: told, logs: logs}, keeps: true, ids: []string{"id"}}
		if change != nil {
			change(a)
		}
		leader.Admin = a
		r := &scriptedReader{}
		k := newKafkaLog(leader, &fakeProducer{}, func() (kafka.LogReader, error) { return r, nil }, slog.New(slog.DiscardHandler))
		k.T = time.Hour
		_, _, err := k.Open(t.Context())
		require.NoError(t, err)
		test(t, k, a, r)
	})
}

// A log that is read again from offset 0 is read from its origin again, but not if its partition may have been added.
func TestOriginAfterAReset(t *testing.T) {
	openOrigin(t, []kafka.OffsetRange{{}}, nil, func(t *testing.T, k *kafkaLog, a *originAdmin, r *scriptedReader) {
		r.polls = []polled{{rec: kafka.Record{Offset: 0}}, {rec: kafka.Record{Offset: 2}}}
		require.Len(t, entriesWithOrigin(t, k, time.Second), 3)
		a.set(kafka.OffsetRange{End: 3})
		r.polls = []polled{{err: kafka.ErrTruncated}, {rec: kafka.Record{Offset: 0}}}
		got := entriesWithOrigin(t, k, time.Second)
		require.True(t, got[0].Reset && got[0].Origin && got[1].Origin)
		a.set(kafka.OffsetRange{Start: 1, End: 3})
		r.polls = []polled{{err: kafka.ErrTruncated}, {rec: kafka.Record{Offset: 1}}}
		require.Equal(t, deleted, entriesWithOrigin(t, k, time.Second)[0].Why)
		require.Equal(t, 1, a.asked)
	})
	openOrigin(t, []kafka.OffsetRange{{}, {End: 1}}, nil, func(t *testing.T, k *kafkaLog, _ *originAdmin, r *scriptedReader) {
		r.polls = []polled{{err: kafka.ErrTruncated}}
		for _, e := range entriesWithOrigin(t, k, time.Second) {
			require.Equal(t, empty, e.Why)
		}
	})
}

// A topic that was replaced between Open and the first record ends the log: records of this process
// went into another one.
func TestTopicReplacedBeforeTheFirstRecord(t *testing.T) {
	openOrigin(t, []kafka.OffsetRange{{}}, func(a *originAdmin) { a.ids = []string{"id", "other"} }, func(t *testing.T, k *kafkaLog, _ *originAdmin, r *scriptedReader) {
		r.polls = []polled{{rec: kafka.Record{Offset: 0}}}
		var err error
		for range 3 {
			var e error
			if _, _, e = k.Next(t.Context(), time.Second); e != nil {
				err = errors.Join(err, e)
			}
		}
		require.ErrorIs(t, err, ErrTopicReplaced)
		require.ErrorIs(t, k.Append(0, nil, nil), errSealed)
	})
}

// The brokers are asked only if a log may be read from its origin.
func TestEpochsAreAskedForOnlyWhereNeeded(t *testing.T) {
	for _, logs := range [][]kafka.OffsetRange{{{Start: 1, End: 2}}, {{End: 201}}, {{}, {End: 1}}} {
		openOrigin(t, logs, nil, func(t *testing.T, _ *kafkaLog, a *originAdmin, _ *scriptedReader) {
			require.Zero(t, a.asked, "%v", logs)
		})
	}
	openOrigin(t, []kafka.OffsetRange{{End: 201}}, nil, func(t *testing.T, k *kafkaLog, a *originAdmin, _ *scriptedReader) {
		k.Back(0, func() bool { return true })
		got := entriesWithOrigin(t, k, time.Second)
		require.True(t, got[len(got)-1].Origin)
		require.Equal(t, 1, a.asked)
	})
}

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

// A request to read again from farther back is dropped if the holders are known by the time it would be carried out.
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
