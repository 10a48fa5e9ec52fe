package kafkalog

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/elector"
	"github.com/goneli/neli/kafka"
)

// brokenReader reads the offsets of one partition, but cannot read a batch from first to last, nor any part of it.
type brokenReader struct {
	scriptedReader
	first, last, end int64
	says             int64 // what its error reports as Next
	at               int64
	failed           int
}

func (r *brokenReader) Assign(topic string, offsets []int64) error {
	r.at = offsets[0]
	return r.scriptedReader.Assign(topic, offsets)
}

func (r *brokenReader) Poll(timeout time.Duration) (kafka.Record, bool, error) {
	switch {
	case r.at >= r.first && r.at <= r.last:
		r.failed++
		return kafka.Record{}, false, &kafka.UnreadableError{Next: r.says, Err: errors.New("it is broken")}
	case r.at < r.end:
		r.at++
		return kafka.Record{Offset: r.at - 1}, true, nil
	}
	time.Sleep(timeout)
	return kafka.Record{}, false, nil
}

// A record that cannot be read makes the state void, and reading goes on after its batch, whether or not the client
// knows where that ends. Reading never returns to before it.
func TestReadingGoesOnAfterAnUnreadableRecord(t *testing.T) {
	for _, c := range []struct {
		name                   string
		first, last, end, says int64
		goesOn                 int64 // the first offset that is read after the batch; end: none
		failed                 int
	}{
		{"one record", 4900, 4900, 5000, 0, 4901, 1},
		{"a batch whose end the client knows", 4900, 4950, 5000, 4951, 4951, 1},
		{"a batch whose beginning the client knows", 4900, 4950, 5000, 4901, 4963, 6},
		{"the last record", 4999, 4999, 5000, 0, 5000, 1},
		{"the batch at the end", 4900, 4999, 5000, 0, 5000, 7},
	} {
		t.Run(c.name, func(t *testing.T) {
			scriptedLog(t, []kafka.OffsetRange{{Start: 0, End: c.end}}, func(t *testing.T, k *kafkaLog, e *extents, _ *scriptedReader) {
				r := &brokenReader{first: c.first, last: c.last, end: c.end, says: c.says}
				k.reader = r
				require.NoError(t, r.Assign("log", k.position))
				read := func() (resets []elector.Entry, newest int64) {
					newest = -1
					for _, e := range entries(t, k, 10*time.Second) {
						if e.Reset {
							resets = append(resets, e)
						} else {
							newest = e.Offset
						}
					}
					return resets, newest
				}
				resets, newest := read()
				require.Equal(t, c.failed, r.failed)
				require.Equal(t, c.goesOn, resets[len(resets)-1].Offset)
				if c.goesOn < c.end {
					require.Equal(t, c.end-1, newest)
				} else {
					require.Equal(t, c.first-1, newest)
				}

				wanted := func() bool { return true }
				k.Back(0, wanted)
				resets, _ = read()
				require.Empty(t, resets, "nothing readable lies before")
				require.NoError(t, k.reposition(t.Context(), readAgain, nil))
				require.Equal(t, []int64{c.goesOn}, r.assigned)
				require.Equal(t, c.failed, r.failed)
			})
		})
	}
}

// If the client does not name the partition, reading goes on after the record in each partition in
// which it may be, and in no other.
func TestUnreadableRecordOfSomePartition(t *testing.T) {
	logs := []kafka.OffsetRange{{End: 100}, {End: 10}, {End: 10}, {End: 20}}
	for _, c := range []struct {
		name string
		err  kafka.UnreadableError
		want []int // partitions that begin anew
	}{
		{"named", kafka.UnreadableError{Partition: 2}, []int{2}},
		{"which the topic does not have", kafka.UnreadableError{Partition: 4}, nil},
		{"read up to the record", kafka.UnreadableError{Partition: -1, Next: 4}, []int{0}},
		{"none is read up to the record", kafka.UnreadableError{Partition: -1, Next: 8}, []int{0, 2, 3}},
		{"where is not known", kafka.UnreadableError{Partition: -1}, []int{0, 2, 3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			scriptedLog(t, logs, func(t *testing.T, k *kafkaLog, _ *extents, r *scriptedReader) {
				require.Len(t, entries(t, k, time.Second), 4)
				copy(k.position, []int64{3, 10, 5, 5})
				c.err.Err = errReported
				r.polls = []polled{{err: &c.err}}
				var anew []int
				for _, e := range entries(t, k, time.Second) {
					require.True(t, e.Reset)
					anew = append(anew, e.Partition)
				}
				require.Equal(t, c.want, anew)
			})
		})
	}
}

func TestSmallLogGoesOnAfterAnUnreadableRecord(t *testing.T) {
	onSmallLog(t, func(b *smallBed) {
		b.resets(5000-history, 5000, 5)
		for _, next := range []int64{5000 - history + 1, 5000 - history + 3, 5000 - history + 7} {
			b.polls <- polled{err: &kafka.UnreadableError{Partition: 1, Err: errReported}}
			b.resets(next, 5000, 5)
		}
		b.reads(4999, 5, "on")
		require.EqualValues(b, 4999, b.next().Offset)
		b.polls <- polled{err: &kafka.UnreadableError{Partition: 1, Next: 5005, Err: errReported}}
		b.resets(5000, 5000, 5)
		b.admin.tell(0, 10, 7, nil) // shorter than what was skipped
		b.polls <- polled{err: kafka.ErrTruncated}
		b.resets(10, 10, 7)
	})
}

// Several settings that let a record grow cause only one warning.
func TestSettingsThatLetRecordsGrowCauseOneWarning(t *testing.T) {
	for _, c := range []struct{ compression, size, want string }{
		{"uncompressed", "131072", ""},
		{"uncompressed", "1048588", ""},
		{"", "", ""},
		{"producer", "1048588", "compression.type=producer and max.message.bytes=1048588: "},
		{"zstd", "131072", "compression.type=zstd: "},
		{"uncompressed", "104857600", "max.message.bytes=104857600: "},
	} {
		got := unsafeSettings(map[string]string{"compression.type": c.compression, "max.message.bytes": c.size}, 1)
		if c.want == "" {
			require.Empty(t, got)
			continue
		}
		require.Len(t, got, 1)
		require.Contains(t, got[0], c.want)
		require.Contains(t, got[0], "set compression.type=uncompressed and max.message.bytes=131072")
	}
}

// A producer is barren if for ten seconds all reports were failures.
func TestBarren(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(1000+int64(s), 0) }
	gone := errors.New("message timed out")
	b := barren{patience: barrenAfter}
	require.False(t, b.failed(gone, at(0)), "the first failure")
	require.False(t, b.failed(gone, at(9)), "for less than ten seconds")
	b.acknowledged()
	require.False(t, b.failed(gone, at(10)), "something was acknowledged")
	require.False(t, b.failed(errors.Join(errReported, kafka.ErrTopicAuthorization), at(20)), "a broker has answered")
	require.False(t, b.failed(gone, at(21)), "a broker had answered")
	require.True(t, b.failed(gone, at(31)), "for ten seconds")
	require.False(t, b.failed(gone, at(32)), "the new one has failed once")
	require.False(t, b.failed(gone, at(51)), "a replacement in vain doubles the time")
	require.True(t, b.failed(gone, at(52)))
	b = barren{patience: stillMost}
	for s := 0; s < 1000; s += 301 {
		require.False(t, b.failed(gone, at(s)), "the first failure of each")
		require.False(t, b.failed(gone, at(s+299)))
		require.True(t, b.failed(gone, at(s+300)), "five minutes at most")
	}
	b.acknowledged()
	b.failed(gone, at(30_000))
	require.True(t, b.failed(gone, at(30_010)), "an acknowledgement makes it patient anew")
}
