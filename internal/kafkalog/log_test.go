package kafkalog

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/elector"
	"github.com/goneli/neli/kafka"
)

// extents is an admin that gives the extents of a topic's logs.
type extents struct {
	*toldAdmin
	mu   sync.Mutex
	logs []kafka.OffsetRange
}

func (e *extents) Offsets(context.Context, string, int) ([]kafka.OffsetRange, error) {
	return e.get(), nil
}

func (e *extents) get() []kafka.OffsetRange {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.logs)
}

func (e *extents) set(logs ...kafka.OffsetRange) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.logs = logs
}

// polled is the result of one Poll.
type polled struct {
	rec kafka.Record
	err error
}

// scriptedReader returns scripted results from Poll, and then nothing.
type scriptedReader struct {
	polls    []polled
	assigned []int64 // by the last Assign
	closed   atomic.Int32
}

func (r *scriptedReader) Assign(_ string, offsets []int64) error {
	r.assigned = slices.Clone(offsets)
	return nil
}

func (r *scriptedReader) Poll(timeout time.Duration) (kafka.Record, bool, error) {
	if len(r.polls) == 0 {
		time.Sleep(timeout)
		return kafka.Record{}, false, nil
	}
	p := r.polls[0]
	r.polls = r.polls[1:]
	return p.rec, p.err == nil, p.err
}

func (r *scriptedReader) Throttled() time.Duration { return 0 }

func (r *scriptedReader) Close() error {
	r.closed.Add(1)
	return nil
}

// scriptedLog opens a log on extents and a reader, in a bubble, while the topic is watched.
func scriptedLog(t *testing.T, logs []kafka.OffsetRange, test func(t *testing.T, k *kafkaLog, e *extents, r *scriptedReader)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var e *extents
		leader, told, _ := told(func() (kafka.TopicInfo, error) { return kafka.TopicInfo{ID: "id", Partitions: len(e.get())}, nil })
		r := &scriptedReader{}
		e = &extents{toldAdmin: told, logs: logs}
		leader.Admin = e
		producer := &fakeProducer{}
		k := newKafkaLog(leader, producer, func() (kafka.LogReader, error) { return r, nil }, slog.New(slog.DiscardHandler))
		k.T = time.Hour // the reader returns its script, whatever the extents are
		ctx, stop := context.WithCancel(t.Context())
		m, id, err := k.Open(ctx)
		require.NoError(t, err)
		require.Equal(t, len(logs), m)
		require.Equal(t, "id", id)
		watched := make(chan error, 1)
		go func() { watched <- k.Watch(ctx) }()
		test(t, k, e, r)
		stop()
		<-watched
	})
}

// entries returns the entries that come within d, without Origin and Why.
func entries(t *testing.T, k *kafkaLog, d time.Duration) (out []elector.Entry) {
	t.Helper()
	out = entriesWithOrigin(t, k, d)
	for i := range out {
		out[i].Origin, out[i].Why = false, ""
	}
	return out
}

// entriesWithOrigin returns the entries that come within d.
func entriesWithOrigin(t *testing.T, k *kafkaLog, d time.Duration) (out []elector.Entry) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); {
		e, ok, err := k.Next(t.Context(), min(pollSlice, time.Until(end)))
		require.NoError(t, err)
		if ok {
			out = append(out, e)
		}
	}
	return out
}

// Reading begins 200 records before the end, but not before the log's start. A log that was never
// written to is distinguished from one whose records were deleted.
func TestReadingBeginsBeforeTheEnd(t *testing.T) {
	scriptedLog(t, []kafka.OffsetRange{{Start: 0, End: 0}, {Start: 0, End: 7}, {Start: 0, End: 5000}, {Start: 4900, End: 5000}, {Start: 5000, End: 5000}}, func(t *testing.T, k *kafkaLog, _ *extents, r *scriptedReader) {
		k.untouched = untouched{}
		require.Equal(t, []int64{0, 0, 4800, 4900, 5000}, r.assigned)
	})
	scriptedLog(t, []kafka.OffsetRange{{Start: 0, End: 0}, {Start: 0, End: 7}, {Start: 7, End: 7}}, func(t *testing.T, k *kafkaLog, _ *extents, _ *scriptedReader) {
		got := entries(t, k, time.Second)
		require.Equal(t, []elector.Entry{{Partition: 0, Reset: true, Whole: true}, {Partition: 1, Reset: true, End: 7, Whole: true},
			{Partition: 2, Offset: 7, Reset: true, End: 7}}, got)
	})
}

// Truncation makes everything that was read void, even if the log has grown past the position
// again. Reading begins again in every log, as at boot.
func TestTruncationVoidsTheState(t *testing.T) {
	scriptedLog(t, []kafka.OffsetRange{{Start: 0, End: 3000}, {Start: 0, End: 10}}, func(t *testing.T, k *kafkaLog, e *extents, r *scriptedReader) {
		require.Len(t, entries(t, k, time.Second), 2)
		e.set([]kafka.OffsetRange{{Start: 0, End: 3020}, {Start: 0, End: 12}}...)
		r.polls = []polled{
			{rec: kafka.Record{Partition: 0, Offset: 3000}}, {rec: kafka.Record{Partition: 1, Offset: 10}}, {err: kafka.ErrTruncated},
		}
		got := entries(t, k, 3*time.Second)
		require.Equal(t, []elector.Entry{{Partition: 0, Offset: 3000}, {Partition: 1, Offset: 10},
			{Partition: 0, Offset: 2820, Reset: true, End: 3020}, {Partition: 1, Offset: 0, Reset: true, End: 12, Whole: true}}, got)
		require.Equal(t, []int64{2820, 0}, r.assigned)
	})
	// If the log still ends before the position after a second, it has lost records. That error is final.
	scriptedLog(t, []kafka.OffsetRange{{Start: 0, End: 3000}}, func(t *testing.T, k *kafkaLog, e *extents, r *scriptedReader) {
		require.Len(t, entries(t, k, time.Second), 1)
		e.set([]kafka.OffsetRange{{Start: 0, End: 2990}}...)
		r.polls = []polled{{rec: kafka.Record{Offset: 3000}}, {err: kafka.ErrTruncated}}
		_, ok, err := k.Next(t.Context(), pollSlice)
		require.NoError(t, err)
		require.True(t, ok)
		_, _, err = k.Next(t.Context(), pollSlice)
		require.ErrorIs(t, err, ErrTopicReplaced)
	})
}

// Beside logs in use, a log that was never written to may belong to a partition that was just
// added. Members that were there before may take until their next look at the topic to find it.
func TestUntouchedLogBesideUsedOnesIsDelayed(t *testing.T) {
	logs := []kafka.OffsetRange{{Start: 0, End: 5000}, {Start: 0, End: 0}, {Start: 0, End: 0}}
	scriptedLog(t, logs, func(t *testing.T, k *kafkaLog, _ *extents, r *scriptedReader) {
		opened := time.Now()
		require.Equal(t, []elector.Entry{{Partition: 0, Offset: 4800, Reset: true, End: 5000}}, entries(t, k, 5*time.Second))
		r.polls = []polled{{rec: kafka.Record{Partition: 0, Offset: 3000}}, {rec: kafka.Record{Partition: 2, Offset: 0}}}
		require.Equal(t, []elector.Entry{{Partition: 0, Offset: 3000}, {Partition: 2, Reset: true, Whole: true}, {Partition: 2}},
			entries(t, k, time.Second), "others are read, and whoever writes there knows of it")
		got := entries(t, k, time.Until(opened.Add(11*time.Second)))
		require.Equal(t, []elector.Entry{{Partition: 1, Reset: true, Whole: true}}, got)
		require.Empty(t, entries(t, k, 30*time.Second))
	})
	scriptedLog(t, logs, func(t *testing.T, k *kafkaLog, _ *extents, _ *scriptedReader) {
		require.Len(t, entries(t, k, 9900*time.Millisecond), 1, "not before everybody has looked")
	})
	// If the topic has changed meanwhile, reading of the log does not begin at all.
	scriptedLog(t, logs, func(t *testing.T, k *kafkaLog, e *extents, _ *scriptedReader) {
		e.set(append(e.get(), kafka.OffsetRange{})...)
		require.Len(t, entries(t, k, time.Minute), 1)
		require.True(t, k.sealed.Load())
	})
	// If no log is in use, it is a first start: nothing is delayed.
	scriptedLog(t, []kafka.OffsetRange{{Start: 0, End: 20}, {Start: 0, End: 0}}, func(t *testing.T, k *kafkaLog, _ *extents, _ *scriptedReader) {
		require.Len(t, entries(t, k, time.Second), 2)
	})
	// When reading begins again, logs that are still untouched stay delayed, and all others are released.
	scriptedLog(t, logs, func(t *testing.T, k *kafkaLog, e *extents, r *scriptedReader) {
		require.Len(t, entries(t, k, time.Second), 1)
		e.set([]kafka.OffsetRange{{Start: 0, End: 5000}, {Start: 0, End: 0}, {Start: 0, End: 3}}...)
		r.polls = []polled{{err: kafka.ErrClientFatal}}
		require.Equal(t, []elector.Entry{{Partition: 0, Offset: 4800, Reset: true, End: 5000}, {Partition: 2, Reset: true, End: 3, Whole: true}},
			entries(t, k, time.Second))
		require.EqualValues(t, 1, r.closed.Load())
		require.Equal(t, []elector.Entry{{Partition: 1, Reset: true, Whole: true}}, entries(t, k, 10*time.Second))
	})
}

// dyingReader is a reader whose client fails for good when it is assigned.
type dyingReader struct{ scriptedReader }

func (*dyingReader) Assign(string, []int64) error { return kafka.ErrClientFatal }

// A client that has failed permanently returns that error from every call. If an assignment is the
// first such call, another client replaces it.
func TestReaderThatFailsPermanentlyIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leader, _, _ := told(func() (kafka.TopicInfo, error) { return kafka.TopicInfo{ID: "id", Partitions: 1}, nil })
		first, second := &dyingReader{}, &scriptedReader{}
		k := newKafkaLog(leader, &fakeProducer{}, func() (kafka.LogReader, error) { return second, nil }, slog.New(slog.DiscardHandler))
		k.reader = first
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, _, err := k.Open(ctx)
		require.NoError(t, err)
		require.NoError(t, ctx.Err(), "it asks the same client for ever")
		require.NotEmpty(t, second.assigned)
		require.EqualValues(t, 1, first.closed.Load())
		k.Close()
	})
	// Readers that fail at once replace each other once a second.
	made := 0
	scriptedLog(t, []kafka.OffsetRange{{}}, func(t *testing.T, k *kafkaLog, _ *extents, r *scriptedReader) {
		k.newReader = func() (kafka.LogReader, error) {
			made++
			r.polls = []polled{{err: kafka.ErrClientFatal}}
			return r, nil
		}
		r.polls = []polled{{err: kafka.ErrClientFatal}}
		entries(t, k, 10*time.Second)
	})
	require.InDelta(t, 10, made, 1)
}

// When a producer is replaced, each record that it had not delivered yet is reported as failed, once.
func TestReplacedProducerReportsEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &fakeProvider{}
		l, err := newLastingProducer(k, noProperties, nil, slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		first := k.producers[0]
		first.silent = true
		reports := make(chan error, 3)
		for range 2 {
			require.NoError(t, l.Append("t", 0, nil, func(err error) { reports <- err }))
		}
		first.mu.Lock()
		first.dead = kafka.ErrClientFatal
		first.mu.Unlock()
		require.ErrorIs(t, l.Append("t", 0, nil, func(error) { t.Error("a report of what was not taken") }), kafka.ErrClientFatal)
		for range 2 {
			require.Error(t, <-reports)
		}
		time.Sleep(replaceEvery)
		require.NoError(t, l.Append("t", 0, nil, func(err error) { reports <- err }))
		require.NoError(t, <-reports)
		lastingAdmin{l}.Close()
		require.NoError(t, l.Close())
		require.Len(t, k.producers, 2)
		for _, p := range k.producers {
			require.True(t, p.closed)
		}
		require.Empty(t, reports)
	})
}

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
