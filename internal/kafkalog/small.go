package kafkalog

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/goneli/neli/kafka"
	"golang.org/x/sync/errgroup"
)

// smallTopic is Config.Logs: a topic whose partitions are small logs, each with one
// replica, on a broker of its own. It is a LogSet like those that do without Kafka, so the
// same rules elect on it (package internal/quorum); this file and small_log.go only
// say what a partition does as such a log does it.
//
// An incarnation of a log is what one leader epoch of its partition has. The epoch grows
// whenever the broker was away, and stays the same while it serves: so what a broker forgot
// while it was down, or with its disk, was of another incarnation. That no two of one
// partition serve at the same time is Kafka's own promise, as long as nobody reassigns the
// partition or creates the topic anew.
//
// Offsets of an incarnation go up by one, as in every small log: a gap is taken for a loss,
// and the log is begun anew. In Kafka there are gaps in which nothing was lost, behind a
// transaction and in a compacted partition. This topic has neither by itself, since the
// library writes no transactions and creates it with cleanup.policy=delete. A client cannot
// tell such a gap from a loss, so the safe meaning is taken.
type smallTopic struct {
	topic   *Topic
	logs    []*smallPartition
	entries chan kafka.LogEntry
	fatal   chan error
	looked  chan struct{} // closed when the topic was found, or looking for it has failed
	cancel  context.CancelFunc
	work    sync.WaitGroup
	close   func() error
}

// maxSmallEntries is how many entries may wait for Next.
const maxSmallEntries = 256

func newSmallTopic(t *Topic, logs []*smallPartition) *smallTopic {
	v := &smallTopic{topic: t, logs: logs, entries: make(chan kafka.LogEntry, maxSmallEntries), fatal: make(chan error, 1), looked: make(chan struct{})}
	v.close = sync.OnceValue(v.shut)
	for _, l := range logs {
		l.emit, l.refused = v.emit, v.end
	}
	return v
}

// start begins to look for the topic, and to read.
func (v *smallTopic) start() {
	var ctx context.Context
	ctx, v.cancel = context.WithCancel(context.Background())
	v.work.Go(func() {
		err := v.topic.Open(ctx)
		close(v.looked)
		if err == nil {
			err = v.serve(ctx)
		}
		if err != nil && ctx.Err() == nil {
			v.end(err)
		}
	})
}

// serve reads all logs, none of which waits for another, until ctx is done or something
// ends it for good.
func (v *smallTopic) serve(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return v.topic.Watch(ctx) })
	for _, l := range v.logs {
		group.Go(func() error { return l.follow(ctx) })
		group.Go(func() error { l.ask(ctx); return nil })
	}
	return group.Wait()
}

func (v *smallTopic) emit(ctx context.Context, e kafka.LogEntry) {
	select {
	case v.entries <- e:
	case <-ctx.Done():
	}
}

// end makes Next return an error that is final, and ends writing before that: the
// producers write by name, so what is queued would go into a new topic of that name.
func (v *smallTopic) end(err error) {
	for _, l := range v.logs {
		l.seal()
	}
	select {
	case v.fatal <- err:
	default: // one is there already
	}
}

// identity is the topic's id, once it was found; empty if it was not, or ctx is done.
func (v *smallTopic) identity(ctx context.Context) string {
	select {
	case <-v.looked:
		return v.topic.id
	case <-ctx.Done():
		return ""
	}
}

// Logs implements LogSet.
func (v *smallTopic) Logs() int { return len(v.logs) }

// Next implements LogSet.
func (v *smallTopic) Next(ctx context.Context, timeout time.Duration) (kafka.LogEntry, bool, error) {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case e := <-v.entries:
		return e, true, nil
	case err := <-v.fatal:
		return kafka.LogEntry{}, false, err
	case <-timer.C:
	case <-ctx.Done():
	}
	return kafka.LogEntry{}, false, nil
}

// Append implements LogSet. Ballots are not remembered: no partition tells its top.
func (v *smallTopic) Append(log int, id string, value []byte, _ int64, report func(error)) error {
	if log < 0 || log >= len(v.logs) {
		return fmt.Errorf("log %d of %d", log, len(v.logs))
	}
	return v.logs[log].append(id, value, report)
}

// Close implements LogSet.
func (v *smallTopic) Close() error { return v.close() }

func (v *smallTopic) shut() error {
	v.cancel()
	v.work.Wait()
	errs := make([]error, len(v.logs))
	var closing sync.WaitGroup
	for i, l := range v.logs { // each may wait for a broker that does not answer
		closing.Go(func() { errs[i] = l.close() })
	}
	closing.Wait()
	return errors.Join(errs...)
}
