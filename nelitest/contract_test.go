package nelitest_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
)

// The contract of the seam, without faults: what any Provider must do.
// A provider of another kind runs it by filling in a bench.

type bench struct {
	provider neli.Provider
	create   func(t *testing.T, topic string, partitions int)
	discard  func(t *testing.T, topic string, partition int, before int64)
}

var contract = []struct {
	name string
	run  func(t *testing.T, w bench)
}{
	{"records come in order, each once", inOrder},
	{"assign starts at explicit offsets", explicitOffsets},
	{"a value is the caller's again after Append", valueCopied},
	{"positions outside the log are out of range", outOfRange},
	{"a position before the log's start is out of range", headDeleted},
	{"an unknown topic is reported", unknownTopic},
	{"Poll returns early when a record comes", pollEarly},
	{"Poll times out", pollTimeout},
	{"reports come from elsewhere, once", reportsElsewhere},
	{"Close reports everything", closeReports},
	{"Purge reports everything", purgeReports},
	{"closed clients refuse", closedRefuse},
	{"topics are described", topicsDescribed},
	{"admin calls end with their context", adminContext},
	{"a group assigns everything, evenly: cooperative", assignsEvenly("cooperative-sticky")},
	{"a group assigns everything, evenly: range", assignsEvenly("range")},
	{"a leaver's partitions go to others", leaverReplaced},
	{"a member can join again", joinsAgain},
	{"a member reads from the end", groupReads},
	{"a group needs an id", groupNeedsID},
}

func TestContract(t *testing.T) {
	for _, c := range contract {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := nelitest.NewBroker(nelitest.Options{Jitter: time.Millisecond, Seed: 1})
				c.run(t, bench{
					provider: b.Provider("a"),
					create: func(t *testing.T, topic string, partitions int) {
						require.NoError(t, b.CreateTopic(topic, partitions))
					},
					discard: func(t *testing.T, topic string, partition int, before int64) {
						require.NoError(t, b.DeleteHead(topic, partition, before))
					},
				})
			})
		})
	}
}

func inOrder(t *testing.T, w bench) {
	w.create(t, "c", 3)
	p := newProducer(t, w.provider, nil)
	r := newReader(t, w.provider)
	require.NoError(t, r.Assign("c", []int64{0, 0, 0}))
	const n = 50
	for i := range n {
		for part := range 3 {
			require.NoError(t, p.Append("c", part, fmt.Append(nil, i), func(error) {}))
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

func explicitOffsets(t *testing.T, w bench) {
	w.create(t, "c", 2)
	p := newProducer(t, w.provider, nil)
	appendAll(t, p, "c", 0, "0", "1", "2")
	appendAll(t, p, "c", 1, "3")
	r := newReader(t, w.provider)
	require.NoError(t, r.Assign("c", []int64{1, 1}))
	require.Equal(t, []string{"1", "2"}, values(read(t, r, 2)))
	appendAll(t, p, "c", 1, "4")
	require.Equal(t, []string{"4"}, values(read(t, r, 1)))

	require.NoError(t, r.Assign("c", []int64{0, 2}))
	read(t, r, 1)
	require.NoError(t, r.Assign("c", []int64{2, 2})) // drops what was fetched
	require.Equal(t, []string{"2"}, values(read(t, r, 1)))
	require.Error(t, r.Assign("c", []int64{-1, 0}))
}

func valueCopied(t *testing.T, w bench) {
	w.create(t, "c", 1)
	p := newProducer(t, w.provider, nil)
	v := []byte("abc")
	done := make(chan error, 1)
	require.NoError(t, p.Append("c", 0, v, func(err error) { done <- err }))
	v[0] = 'x'
	require.NoError(t, <-done)
	for range 2 { // and a record is its receiver's
		r := newReader(t, w.provider)
		require.NoError(t, r.Assign("c", []int64{0}))
		rec := read(t, r, 1)[0]
		require.Equal(t, "abc", string(rec.Value))
		rec.Value[1] = 'y'
	}
}

func outOfRange(t *testing.T, w bench) {
	w.create(t, "c", 2)
	p := newProducer(t, w.provider, nil)
	r := newReader(t, w.provider)
	require.NoError(t, r.Assign("c", []int64{0, 5}))
	_, ok, err := r.Poll(time.Minute)
	require.ErrorIs(t, err, neli.ErrOutOfRange)
	require.False(t, ok)
	appendAll(t, p, "c", 0, "goes on")
	require.Equal(t, []string{"goes on"}, values(read(t, r, 1)))
}

func headDeleted(t *testing.T, w bench) {
	w.create(t, "c", 1)
	p := newProducer(t, w.provider, nil)
	appendAll(t, p, "c", 0, "0", "1", "2")
	w.discard(t, "c", 0, 2)
	r := newReader(t, w.provider)
	require.NoError(t, r.Assign("c", []int64{1}))
	_, _, err := r.Poll(time.Minute)
	require.ErrorIs(t, err, neli.ErrOutOfRange)
	a := newAdmin(t, w.provider, p)
	ranges, err := a.Offsets(context.Background(), "c", 1)
	require.NoError(t, err)
	require.Equal(t, []neli.OffsetRange{{Start: 2, End: 3}}, ranges)
	require.NoError(t, r.Assign("c", []int64{2}))
	require.Equal(t, []string{"2"}, values(read(t, r, 1)))
}

func unknownTopic(t *testing.T, w bench) {
	r := newReader(t, w.provider)
	require.NoError(t, r.Assign("none", []int64{0}))
	_, _, err := r.Poll(time.Minute)
	require.ErrorIs(t, err, neli.ErrUnknownTopic)
	p := newProducer(t, w.provider, map[string]string{"message.timeout.ms": "1000"})
	done := make(chan error, 1)
	require.NoError(t, p.Append("none", 0, nil, func(err error) { done <- err }))
	require.ErrorIs(t, <-done, neli.ErrUnknownTopic)
	_, err = newAdmin(t, w.provider, p).Topic(context.Background(), "none")
	require.ErrorIs(t, err, neli.ErrUnknownTopic)
}

func pollEarly(t *testing.T, w bench) {
	w.create(t, "c", 1)
	p := newProducer(t, w.provider, nil)
	r := newReader(t, w.provider)
	require.NoError(t, r.Assign("c", []int64{0}))
	begin := time.Now()
	time.AfterFunc(time.Second, func() { _ = p.Append("c", 0, nil, func(error) {}) })
	read(t, r, 1)
	require.Less(t, time.Since(begin), 2*time.Second)
}

func pollTimeout(t *testing.T, w bench) {
	w.create(t, "c", 1)
	r := newReader(t, w.provider)
	g := newMember(t, w.provider)
	for _, d := range []time.Duration{0, -1, 100 * time.Millisecond} {
		begin := time.Now()
		_, ok, err := r.Poll(d)
		require.NoError(t, err)
		require.False(t, ok)
		ev, err := g.Poll(d)
		require.NoError(t, err)
		require.Equal(t, neli.GroupIdle, ev.Kind)
		require.InDelta(t, 2*max(d, 0), time.Since(begin), float64(50*time.Millisecond))
	}
}

func reportsElsewhere(t *testing.T, w bench) {
	w.create(t, "c", 1)
	p := newProducer(t, w.provider, nil)
	var mu sync.Mutex // held during Append: a report from within would deadlock
	reported := make([]int, 20)
	for i := range reported {
		mu.Lock()
		require.NoError(t, p.Append("c", 0, nil, func(err error) {
			mu.Lock()
			defer mu.Unlock()
			reported[i]++
		}))
		mu.Unlock()
	}
	appendAll(t, p, "c", 0, "last")
	require.NoError(t, p.Close())
	for i := range reported {
		require.Equal(t, 1, reported[i])
	}
}

func closeReports(t *testing.T, w bench) {
	p := newProducer(t, w.provider, nil)
	reports := 0
	for range 10 {
		require.NoError(t, p.Append("none", 0, nil, func(err error) {
			require.Error(t, err)
			time.Sleep(time.Millisecond)
			reports++
		}))
	}
	require.NoError(t, p.Close())
	require.Equal(t, 10, reports) // without a lock: none is under way
	require.NoError(t, p.Close())
}

func purgeReports(t *testing.T, w bench) {
	w.create(t, "c", 1)
	p := newProducer(t, w.provider, nil)
	reports := make(chan error, 10)
	for i := range 10 {
		topic := []string{"c", "none"}[i%2]
		require.NoError(t, p.Append(topic, 0, nil, func(err error) { reports <- err }))
	}
	p.Purge()
	for range 10 {
		require.Error(t, <-reports)
	}
	appendAll(t, p, "c", 0, "goes on")
}

func closedRefuse(t *testing.T, w bench) {
	p := newProducer(t, w.provider, nil)
	r := newReader(t, w.provider)
	g := newMember(t, w.provider)
	a := newAdmin(t, w.provider, p)
	a.Close()
	require.NoError(t, errors.Join(p.Close(), r.Close(), g.Close()))
	require.Error(t, p.Append("c", 0, nil, func(error) { t.Error("reported") }))
	_, _, err := r.Poll(time.Minute)
	require.Error(t, err)
	_, err = g.Poll(time.Minute)
	require.Error(t, err)
	_, err = a.Brokers(context.Background())
	require.Error(t, err)
	require.Error(t, r.Assign("c", nil))
	require.Error(t, g.Join("c", false))
}

func topicsDescribed(t *testing.T, w bench) {
	p := newProducer(t, w.provider, nil)
	a := newAdmin(t, w.provider, p)
	ctx := context.Background()
	n, err := a.Brokers(ctx)
	require.NoError(t, err)
	require.NoError(t, a.CreateTopic(ctx, neli.TopicSpec{
		Name: "c", Partitions: 4, Replicas: n, Settings: map[string]string{"min.insync.replicas": "2"},
	}))
	require.ErrorIs(t, a.CreateTopic(ctx, neli.TopicSpec{Name: "c", Partitions: 1}), neli.ErrTopicExists)
	info, err := a.Topic(ctx, "c")
	require.NoError(t, err)
	require.Equal(t, 4, info.Partitions)
	require.Equal(t, n, info.Replicas)
	require.NotEmpty(t, info.ID)
	s, err := a.Settings(ctx, "c")
	require.NoError(t, err)
	require.Equal(t, "2", s["min.insync.replicas"])
	require.Equal(t, "delete", s["cleanup.policy"])
	ranges, err := a.Offsets(ctx, "c", 4)
	require.NoError(t, err)
	require.Equal(t, make([]neli.OffsetRange, 4), ranges)
	_, err = a.Offsets(ctx, "c", 5)
	require.Error(t, err)
}

func adminContext(t *testing.T, w bench) {
	a := newAdmin(t, w.provider, newProducer(t, w.provider, nil))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := a.Brokers(ctx)
	require.ErrorIs(t, err, context.Canceled)
}
