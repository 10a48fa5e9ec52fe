package kafkalog

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/internal/elector"
	"github.com/goneli/neli/kafka"
)

// A reader stands still if Poll has waited for long after an acknowledgement of an own record. Records
// that were handed over before the last one was read do not count.
func TestStillness(t *testing.T) {
	const lease = 10 * time.Second
	at := func(s int) time.Time { return time.Unix(1000+int64(s), 0) }
	for _, c := range []struct {
		name   string
		do     func(s *stillness)
		waited time.Duration
		want   []int
	}{
		{"nothing was appended", func(*stillness) {}, time.Hour, nil},
		{"acknowledged, for T", func(s *stillness) { s.acknowledged(1, at(1)) }, lease, []int{1}},
		{"acknowledged, for less than T", func(s *stillness) { s.acknowledged(1, at(1)) }, lease - 1, nil},
		{"read before the acknowledgement", func(s *stillness) { s.got(1, 0, at(2)); s.acknowledged(1, at(1)) }, time.Hour, nil},
		{"read afterwards", func(s *stillness) { s.acknowledged(1, at(1)); s.got(1, 0, at(2)) }, time.Hour, nil},
		{"another partition is read", func(s *stillness) { s.acknowledged(1, at(1)); s.got(0, 0, at(2)) }, lease, []int{1}},
		{"a replacement in vain doubles the time", func(s *stillness) { s.restart(at(2), []int{1}); s.acknowledged(1, at(3)) }, 2*lease - 1, nil},
		{"and no more", func(s *stillness) { s.restart(at(2), []int{1}); s.acknowledged(1, at(3)) }, 2 * lease, []int{1}},
		{"a record read undoes that", func(s *stillness) {
			s.restart(at(2), []int{1})
			s.got(1, 0, at(3))
			s.acknowledged(1, at(4))
		}, lease, []int{1}},
		{"it ends where reading is", func(s *stillness) { s.got(1, 6, at(1)); s.end(1, 7) }, time.Hour, nil},
		{"it ends behind, for less than half of T", func(s *stillness) { s.got(1, 6, at(1)); s.end(1, 8) }, lease/2 - 1, nil},
		{"it ends behind, for half of T", func(s *stillness) { s.got(1, 6, at(1)); s.end(1, 8) }, lease / 2, []int{1}},
		{"what it ended with was read", func(s *stillness) { s.end(1, 8); s.got(1, 7, at(1)) }, time.Hour, nil},
		{"reading begins anew", func(s *stillness) { s.end(1, 8); s.begin(1, 8, at(1)) }, time.Hour, nil},
	} {
		s := newStillness(2, lease)
		c.do(s)
		require.Equal(t, c.want, s.waited(c.waited), c.name)
	}
	s := newStillness(1, time.Second)
	s.end(0, 1)
	require.Empty(t, s.waited(stillAfter-1), "never before five seconds")
	require.Equal(t, []int{0}, s.waited(1))
}

// The ends of logs are asked for only if nothing at all is read.
func TestStillnessIsSilentIfNothingIsRead(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(1000+int64(s), 0) }
	s := newStillness(2, time.Second)
	s.begin(0, 0, at(0))
	s.begin(1, 0, at(0))
	require.False(t, s.silent(5*time.Second, at(4)))
	require.True(t, s.silent(5*time.Second, at(5)))
	s.got(1, 0, at(3))
	require.False(t, s.silent(5*time.Second, at(7)), "one of them is read")
}

// A partition that stands still while others are read is assigned again, once. After that, or if
// nothing is read at all, the client is replaced.
func TestStillnessOfOnePartition(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(1000+int64(s), 0) }
	s := newStillness(3, time.Second)
	s.got(0, 0, at(9))
	require.True(t, s.assignAnew([]int{1}, at(10)))
	require.Empty(t, s.waited(time.Hour), "it begins anew")
	s.acknowledged(1, at(11))
	require.Equal(t, []int{1}, s.waited(stillAfter))
	s.got(0, 1, at(16))
	require.False(t, s.assignAnew([]int{1}, at(16)), "it was tried")
	require.True(t, s.assignAnew([]int{2}, at(16)), "of that one it was not")
	s.got(1, 0, at(17))
	require.True(t, s.assignAnew([]int{1}, at(18)), "it was read meanwhile")
	require.False(t, s.assignAnew([]int{0, 1, 2}, at(18)), "nothing else is read")
	s = newStillness(2, time.Second)
	s.got(0, 0, at(0))
	require.False(t, s.assignAnew([]int{1}, at(5)), "the other one is not read either")
}

// If one partition is not read while another one is, the other one is not disturbed.
func TestPartitionThatStandsStillIsAssignedAgain(t *testing.T) {
	scriptedLog(t, []kafka.OffsetRange{{Start: 0, End: 10}, {Start: 0, End: 10}}, func(t *testing.T, k *kafkaLog, e *extents, r *scriptedReader) {
		k.still = newStillness(2, time.Second)
		require.Len(t, entries(t, k, time.Second), 2)
		e.set([]kafka.OffsetRange{{Start: 0, End: 30}, {Start: 0, End: 11}}...)
		require.NoError(t, k.Append(1, nil, func(error) {}))
		var got []elector.Entry
		for o := range int64(7) {
			r.polls = []polled{{rec: kafka.Record{Partition: 0, Offset: 10 + o}}}
			got = append(got, entries(t, k, time.Second)...)
		}
		resets := slices.DeleteFunc(got, func(e elector.Entry) bool { return !e.Reset })
		require.Equal(t, []elector.Entry{{Partition: 1, Offset: 0, Reset: true, End: 11, Whole: true}}, resets)
		require.Zero(t, r.closed.Load())
		for o := range int64(7) {
			r.polls = []polled{{rec: kafka.Record{Partition: 0, Offset: 17 + o}}}
			require.NoError(t, k.Append(1, nil, func(error) {}))
			_ = entries(t, k, time.Second)
		}
		require.EqualValues(t, 1, r.closed.Load(), "the client is replaced after that")
	})
}

// busyReader returns a record of partition 0 after each twentieth of a second, and none of others.
type busyReader struct {
	scriptedReader
	next    int64
	assigns int
}

func (r *busyReader) Assign(topic string, offsets []int64) error {
	r.assigns++
	return r.scriptedReader.Assign(topic, offsets)
}

func (r *busyReader) Poll(time.Duration) (kafka.Record, bool, error) {
	time.Sleep(50 * time.Millisecond)
	r.next++
	return kafka.Record{Partition: 0, Offset: r.next}, true, nil
}

// A partition that stands still is noticed even if records of another partition make every Poll return something.
func TestStillPartitionIsFoundBesideABusyOne(t *testing.T) {
	scriptedLog(t, []kafka.OffsetRange{{Start: 0, End: 10}, {Start: 0, End: 10}}, func(t *testing.T, k *kafkaLog, e *extents, _ *scriptedReader) {
		k.still = newStillness(2, time.Second)
		busy := &busyReader{next: 9}
		k.reader = busy
		_ = entries(t, k, time.Second)
		e.set([]kafka.OffsetRange{{Start: 0, End: 1000}, {Start: 0, End: 11}}...)
		require.NoError(t, k.Append(1, nil, func(error) {}))
		got := entries(t, k, 10*time.Second)
		require.Equal(t, 1, busy.assigns, "it was not assigned anew")
		require.Contains(t, got, elector.Entry{Partition: 1, Offset: 0, Reset: true, End: 11, Whole: true})
	})
}
