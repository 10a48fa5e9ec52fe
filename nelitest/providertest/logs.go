package providertest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
)

func inOrder(t *testing.T, b Bed) {
	topic := b.topic(t, 3)
	p, r := b.producer(t), b.reader(t)
	require.NoError(t, r.Assign(topic, []int64{0, 0, 0}))
	const n = 50
	for i := range n {
		for part := range 3 {
			require.NoError(t, p.Append(topic, part, fmt.Append(nil, i), func(error) {}))
		}
	}
	next := make([]int64, 3)
	for _, rec := range read(t, r, 3*n) {
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
	p, r := b.producer(t), b.reader(t)
	appendAll(t, p, topic, 0, "0", "1", "2")
	appendAll(t, p, topic, 1, "3")
	require.NoError(t, r.Assign(topic, []int64{1, 1}))
	require.Equal(t, []string{"1", "2"}, values(read(t, r, 2)))
	appendAll(t, p, topic, 1, "4")
	require.Equal(t, []string{"4"}, values(read(t, r, 1)))

	require.NoError(t, r.Assign(topic, []int64{0, 2}))
	read(t, r, 1)
	require.NoError(t, r.Assign(topic, []int64{2, 2})) // drops what was fetched
	require.Equal(t, []string{"2"}, values(read(t, r, 1)))
	require.Error(t, r.Assign(topic, []int64{-1, 0}))
}

func valueCopied(t *testing.T, b Bed) {
	topic := b.topic(t, 1)
	p := b.producer(t)
	v := []byte("abc")
	done := make(chan error, 1)
	require.NoError(t, p.Append(topic, 0, v, func(err error) { done <- err }))
	v[0] = 'x'
	require.NoError(t, <-done)
	for range 2 { // and a record is its receiver's
		r := b.reader(t)
		require.NoError(t, r.Assign(topic, []int64{0}))
		rec := read(t, r, 1)[0]
		require.Equal(t, "abc", string(rec.Value))
		rec.Value[1] = 'y'
	}
}

func outOfRange(t *testing.T, b Bed) {
	topic := b.topic(t, 2)
	p, r := b.producer(t), b.reader(t)
	require.NoError(t, r.Assign(topic, []int64{0, 5}))
	readError(t, r, neli.ErrOutOfRange)
	appendAll(t, p, topic, 0, "goes on")
	require.Equal(t, []string{"goes on"}, values(read(t, r, 1)))
}

func headDeleted(t *testing.T, b Bed) {
	topic := b.topic(t, 1)
	p, r := b.producer(t), b.reader(t)
	appendAll(t, p, topic, 0, "0", "1", "2")
	b.DeleteHead(t, topic, 0, 2)
	require.NoError(t, r.Assign(topic, []int64{1}))
	readError(t, r, neli.ErrOutOfRange)
	ranges, err := b.admin(t, p).Offsets(t.Context(), topic, 1)
	require.NoError(t, err)
	require.Equal(t, []neli.OffsetRange{{Start: 2, End: 3}}, ranges)
	require.NoError(t, r.Assign(topic, []int64{2}))
	require.Equal(t, []string{"2"}, values(read(t, r, 1)))
}

func unknownTopic(t *testing.T, b Bed) {
	none := newName()
	r := b.reader(t)
	require.NoError(t, r.Assign(none, []int64{0}))
	readError(t, r, neli.ErrUnknownTopic)
	p := b.producer(t, "message.timeout.ms", "1000")
	done := make(chan error, 1)
	require.NoError(t, p.Append(none, 0, nil, func(err error) { done <- err }))
	require.Error(t, <-done)
	_, err := b.admin(t, p).Topic(t.Context(), none)
	require.ErrorIs(t, err, neli.ErrUnknownTopic)
}

func pollEarly(t *testing.T, b Bed) {
	topic := b.topic(t, 1)
	p, r := b.producer(t), b.reader(t)
	require.NoError(t, r.Assign(topic, []int64{0}))
	begin := time.Now()
	time.AfterFunc(time.Second, func() { _ = p.Append(topic, 0, nil, func(error) {}) })
	read(t, r, 1)
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
		require.Equal(t, neli.GroupIdle, ev.Kind)
		took := time.Since(begin)
		require.GreaterOrEqual(t, took, 2*max(d, 0)-10*time.Millisecond)
		require.Less(t, took, 2*max(d, 0)+time.Second)
	}
}

func reportsElsewhere(t *testing.T, b Bed) {
	topic := b.topic(t, 1)
	p := b.producer(t)
	var mu sync.Mutex // held during Append: a report from within would deadlock
	reported := make([]int, 20)
	for i := range reported {
		mu.Lock()
		require.NoError(t, p.Append(topic, 0, nil, func(error) {
			mu.Lock()
			defer mu.Unlock()
			reported[i]++
		}))
		mu.Unlock()
	}
	appendAll(t, p, topic, 0, "last")
	require.NoError(t, p.Close())
	for i := range reported {
		require.Equal(t, 1, reported[i])
	}
}

func closeReports(t *testing.T, b Bed) {
	none := newName()
	p := b.producer(t)
	reports := 0
	for range 10 {
		require.NoError(t, p.Append(none, 0, nil, func(err error) {
			if err != nil {
				reports++
			}
			wait(time.Millisecond)
		}))
	}
	require.NoError(t, p.Close())
	require.Equal(t, 10, reports) // without a lock: none is under way
	require.NoError(t, p.Close())
}

func purgeReports(t *testing.T, b Bed) {
	topic, none := b.topic(t, 1), newName()
	p := b.producer(t)
	reports := make(chan error, 20)
	failed := make(chan error, 10)
	for i := range 10 {
		to := reports
		if i%2 == 1 {
			to = failed
		}
		require.NoError(t, p.Append([]string{topic, none}[i%2], 0, nil, func(err error) { to <- err }))
	}
	p.Purge()
	for range 5 {
		<-reports // some may have got through
		require.Error(t, <-failed)
	}
	appendAll(t, p, topic, 0, "goes on")
	require.NoError(t, p.Close())
	require.Empty(t, reports)
	require.Empty(t, failed)
}

func closedRefuse(t *testing.T, b Bed) {
	p, r, g := b.producer(t), b.reader(t), b.member(t, newName())
	a := b.admin(t, p)
	a.Close()
	require.NoError(t, errors.Join(p.Close(), r.Close(), g.Close()))
	require.Error(t, p.Append("none", 0, nil, func(error) { t.Error("reported") }))
	_, _, err := r.Poll(time.Minute)
	require.Error(t, err)
	_, err = g.Poll(time.Minute)
	require.Error(t, err)
	_, err = a.Brokers(context.Background())
	require.Error(t, err)
	require.Error(t, r.Assign("none", nil))
	require.Error(t, g.Join("none", false))
	require.Zero(t, p.Throttled()+r.Throttled()+g.Throttled())
}

func topicsDescribed(t *testing.T, b Bed) {
	topic := newName()
	p := b.producer(t)
	a := b.admin(t, p)
	ctx := t.Context()
	n, err := a.Brokers(ctx)
	require.NoError(t, err)
	require.Positive(t, n)
	spec := neli.TopicSpec{Name: topic, Partitions: 4, Replicas: n, Settings: map[string]string{"retention.ms": "123456000"}}
	require.NoError(t, a.CreateTopic(ctx, spec))
	require.ErrorIs(t, a.CreateTopic(ctx, neli.TopicSpec{Name: topic, Partitions: 1, Replicas: 1}), neli.ErrTopicExists)
	var info neli.TopicInfo
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
	var ranges []neli.OffsetRange
	eventually(t, patience, "its extents are told", func() bool {
		ranges, err = a.Offsets(ctx, topic, 4)
		return err == nil
	})
	require.Equal(t, make([]neli.OffsetRange, 4), ranges)
	_, err = a.Offsets(ctx, topic, 5)
	require.Error(t, err)
}

func adminContext(t *testing.T, b Bed) {
	a := b.admin(t, b.producer(t))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := a.Brokers(ctx)
	require.ErrorIs(t, err, context.Canceled)
}
