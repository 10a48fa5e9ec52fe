package providertest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/drive"
	"github.com/goneli/neli/kafka"
)

var logPoints = []point{
	{"records come in order, each once", "", inOrder},
	{"assign starts at explicit offsets", "", explicitOffsets},
	{"partitions may be left out", "", leftOut},
	{"positions outside the log are out of range", "", outOfRange},
	{"a position before the log's start is out of range", DeleteHead, headDeleted},
	{"a log that lost its end is truncated, even if it has grown again", Truncate, truncated},
	{"offsets need not be consecutive", Gap, gaps},
	{"an unknown topic is reported", "", unknownTopic},
	{"a topic that is created later is read", "", topicComes},
	{"Poll returns early when a record comes", "", pollEarly},
	{"Poll times out", "", pollTimeout},
	{"reading continues when brokers answer again", Freeze, readsOn},
}

func inOrder(t *testing.T, b Bed) {
	topic := b.topic(t, 3)
	p, r := b.writer(t), b.reader(t)
	require.NoError(t, r.Assign(topic, []int64{0, 0, 0}))
	const n = 50
	for i := range n {
		for part := range 3 {
			require.NoError(t, p.Append(topic, part, fmt.Append(nil, i), func(error) {}))
		}
	}
	next := make([]int64, 3)
	for _, rec := range drive.Read(t, r, 3*n) {
		require.Equal(t, next[rec.Partition], rec.Offset)
		require.Equal(t, fmt.Sprint(rec.Offset), string(rec.Value))
		next[rec.Partition]++
	}
	_, ok, err := r.Poll(time.Second)
	require.NoError(t, err)
	require.False(t, ok)
}

func explicitOffsets(t *testing.T, b Bed) {
	topic := b.topic(t, 2)
	p, r := b.writer(t), b.reader(t)
	drive.AppendAll(t, p, topic, 0, "0", "1", "2")
	drive.AppendAll(t, p, topic, 1, "3")
	require.NoError(t, r.Assign(topic, []int64{1, 1}))
	require.Equal(t, []string{"1", "2"}, drive.Values(drive.Read(t, r, 2)))
	drive.AppendAll(t, p, topic, 1, "4")
	require.Equal(t, []string{"4"}, drive.Values(drive.Read(t, r, 1)))

	require.NoError(t, r.Assign(topic, []int64{0, 2}))
	drive.Read(t, r, 1)
	require.NoError(t, r.Assign(topic, []int64{2, 2})) // drops what was fetched
	require.Equal(t, []string{"2"}, drive.Values(drive.Read(t, r, 1)))
	require.Error(t, r.Assign(topic, []int64{-1, 0}))
}

func leftOut(t *testing.T, b Bed) {
	topic := b.topic(t, 3)
	p, r := b.writer(t), b.reader(t)
	for part := range 3 {
		drive.AppendAll(t, p, topic, part, fmt.Sprint(part))
	}
	require.NoError(t, r.Assign(topic, []int64{kafka.NotRead, 0}))
	require.Equal(t, []string{"1"}, drive.Values(drive.Read(t, r, 1)))
	silent(t, r)
	require.NoError(t, r.Assign(topic, []int64{0, kafka.NotRead, 1}))
	require.Equal(t, []string{"0"}, drive.Values(drive.Read(t, r, 1)))
	drive.AppendAll(t, p, topic, 1, "unread")
	drive.AppendAll(t, p, topic, 2, "read")
	require.Equal(t, []string{"read"}, drive.Values(drive.Read(t, r, 1)))
}

func outOfRange(t *testing.T, b Bed) {
	topic := b.topic(t, 2)
	p, r := b.writer(t), b.reader(t)
	require.NoError(t, r.Assign(topic, []int64{0, 5}))
	readError(t, r, kafka.ErrOutOfRange)
	// The log grows past the position, and still no record of it may come before the next Assign.
	drive.AppendAll(t, p, topic, 1, "0", "1", "2", "3", "4", "5", "6")
	drive.AppendAll(t, p, topic, 0, "goes on")
	require.Equal(t, []string{"goes on"}, drive.Values(drive.Read(t, r, 1)))
	for range 3 {
		_, ok, _ := r.Poll(time.Second)
		require.False(t, ok, "a record before it was assigned again")
	}
}

func headDeleted(t *testing.T, b Bed) {
	topic := b.topic(t, 1)
	p, r := b.writer(t), b.reader(t)
	drive.AppendAll(t, p, topic, 0, "0", "1", "2")
	b.DeleteHead(t, topic, 0, 2)
	require.NoError(t, r.Assign(topic, []int64{1}))
	readError(t, r, kafka.ErrOutOfRange)
	ranges, err := b.admin(t, p).Offsets(t.Context(), topic, 1)
	require.NoError(t, err)
	require.Equal(t, []kafka.OffsetRange{{Start: 2, End: 3}}, ranges)
	require.NoError(t, r.Assign(topic, []int64{2}))
	require.Equal(t, []string{"2"}, drive.Values(drive.Read(t, r, 1)))
}

func unknownTopic(t *testing.T, b Bed) {
	none := newName()
	r := b.reader(t)
	require.NoError(t, r.Assign(none, []int64{0}))
	readError(t, r, kafka.ErrUnknownTopic)
	p := b.producer(t, "message.timeout.ms", "1000")
	done := make(chan error, 1)
	require.NoError(t, p.Append(none, 0, nil, func(err error) { done <- err }))
	require.Error(t, drive.Reported(t, done))
	_, err := b.admin(t, p).Topic(t.Context(), none)
	require.ErrorIs(t, err, kafka.ErrUnknownTopic)
}

func pollEarly(t *testing.T, b Bed) {
	topic := b.topic(t, 1)
	p, r := b.writer(t), b.reader(t)
	require.NoError(t, r.Assign(topic, []int64{0}))
	begin := time.Now()
	time.AfterFunc(time.Second, func() { _ = p.Append(topic, 0, nil, func(error) {}) })
	drive.Read(t, r, 1)
	require.Less(t, time.Since(begin), patience/4)
}

func pollTimeout(t *testing.T, b Bed) {
	topic := b.topic(t, 1)
	r, g := b.reader(t), b.member(t, newName())
	require.NoError(t, r.Assign(topic, []int64{0}))
	for _, d := range []time.Duration{0, -1, 300 * time.Millisecond} {
		begin := time.Now()
		_, ok, err := r.Poll(d)
		require.NoError(t, err)
		require.False(t, ok)
		ev, err := g.Poll(d)
		require.NoError(t, err)
		require.Equal(t, kafka.GroupIdle, ev.Kind)
		took := time.Since(begin)
		require.GreaterOrEqual(t, took, 2*max(d, 0)-10*time.Millisecond)
		require.Less(t, took, 2*max(d, 0)+patience/4)
	}
}

func truncated(t *testing.T, b Bed) {
	topic := b.topic(t, 1)
	p, r := b.writer(t), b.reader(t)
	for i := range 6 { // each in a batch of its own
		drive.AppendAll(t, p, topic, 0, fmt.Sprint(i))
	}
	require.NoError(t, r.Assign(topic, []int64{0}))
	former := drive.Read(t, r, 6)[5].Epoch
	b.Truncate(t, topic, 0, 3)
	q := b.writer(t) // a new one, which knows nothing of the lost records
	for i := range 8 {
		drive.AppendAll(t, q, topic, 0, fmt.Sprint("new ", i))
	}
	readError(t, r, kafka.ErrTruncated)
	for range 5 {
		_, ok, _ := r.Poll(100 * time.Millisecond)
		require.False(t, ok, "a record before it was assigned again")
	}
	require.NoError(t, r.Assign(topic, []int64{2}))
	again := drive.Read(t, r, 3)
	require.Equal(t, []string{"2", "new 0", "new 1"}, drive.Values(again))
	require.Equal(t, former, again[0].Epoch)
	require.Greater(t, again[1].Epoch, former)
}

func gaps(t *testing.T, b Bed) {
	topic := b.topic(t, 1)
	p, r := b.writer(t), b.reader(t)
	a := b.admin(t, p)
	end := func() int64 {
		ranges, err := a.Offsets(t.Context(), topic, 1)
		require.NoError(t, err)
		require.Zero(t, ranges[0].Start)
		return ranges[0].End
	}
	drive.AppendAll(t, p, topic, 0, "before")
	b.Gap(t, topic, 0)
	after := end()
	require.Greater(t, after, int64(1), "hidden entries have offsets, too")
	require.NoError(t, r.Assign(topic, []int64{0}))
	require.Equal(t, []string{"before"}, drive.Values(drive.Read(t, r, 1)))
	silent(t, r) // the end is beyond the last record
	drive.AppendAll(t, p, topic, 0, "after")
	rec := drive.Read(t, r, 1)[0]
	require.Equal(t, after, rec.Offset)
	require.Equal(t, "after", string(rec.Value))
	b.Gap(t, topic, 0)
	for _, at := range []int64{1, after} { // in the gap, and after it
		require.NoError(t, r.Assign(topic, []int64{at}))
		require.Equal(t, after, drive.Read(t, r, 1)[0].Offset)
	}
	require.NoError(t, r.Assign(topic, []int64{end()}))
	silent(t, r)
}

// silent requires that no record comes, and no error.
func silent(t *testing.T, r kafka.LogReader) {
	t.Helper()
	_, ok, err := r.Poll(time.Second)
	require.NoError(t, err)
	require.False(t, ok)
}

func topicComes(t *testing.T, b Bed) {
	topic := newName()
	r := b.reader(t)
	require.NoError(t, r.Assign(topic, []int64{0}))
	readError(t, r, kafka.ErrUnknownTopic)
	b.CreateTopic(t, topic, 1)
	drive.AppendAll(t, b.producer(t), topic, 0, "0")
	for end := time.Now().Add(patience); ; {
		rec, ok, err := r.Poll(100 * time.Millisecond)
		if ok {
			require.Equal(t, "0", string(rec.Value))
			return
		}
		if err != nil { // the library assigns again after it has verified the topic
			require.ErrorIs(t, err, kafka.ErrUnknownTopic)
			require.NoError(t, r.Assign(topic, []int64{0}))
		}
		require.True(t, time.Now().Before(end), "no record")
	}
}

func readsOn(t *testing.T, b Bed) {
	topic := b.topic(t, 1)
	p, r := b.writer(t), b.reader(t)
	drive.AppendAll(t, p, topic, 0, "0")
	require.NoError(t, r.Assign(topic, []int64{0}))
	drive.Read(t, r, 1)
	thaw := b.Freeze(t)
	defer thaw()
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); {
		_, ok, err := r.Poll(time.Second)
		require.False(t, ok)
		for _, kind := range drive.Kinds {
			require.NotErrorIs(t, err, kind)
		}
	}
	thaw()
	drive.AppendAll(t, p, topic, 0, "1", "2")
	require.Equal(t, []string{"1", "2"}, drive.Values(drive.Read(t, r, 2)))
}
