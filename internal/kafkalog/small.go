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

// smallTopic is Config.Logs: a topic whose partitions are small logs, each with one replica on a
// broker of its own. It is a LogSet, so the same rules apply to it as to logs without Kafka
// (package internal/quorum). This file and small_log.go only make a partition behave as such a
// log.
//
// The incarnation of a log is one leader epoch of its partition. The epoch grows whenever the
// broker was away, and stays the same while the broker serves. Records that a broker loses while
// it is down, or with its disk, therefore belong to an earlier incarnation. Kafka ensures that no
// two incarnations of one partition are served at the same time, as long as nobody reassigns the
// partition or creates the topic again.
//
// Offsets of an incarnation increase by one, as in every small log: a gap counts as a loss, and
// reading begins again. Kafka also has gaps without loss, after a transaction and in a compacted
// partition, which a client cannot distinguish from a loss. This topic has neither by itself,
// because the library writes no transactions and creates it with cleanup.policy=delete. So the
// safe interpretation is used.
type smallTopic struct {
	topic   *Topic
	logs    []*smallPartition
	entries chan kafka.LogEntry
	fatal   chan error
	looked  chan struct{} // closed when the topic was found, or the search has failed
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

// start begins to look for the topic and to read.
func (v *smallTopic) start() {
	var ctx context.Context
	ctx, v.cancel = context.WithCancel(context.Background())
	v.work.Go(func() {
		err := v.checkEpochs(ctx)
		if err == nil {
			err = v.topic.Open(ctx)
		}
		close(v.looked)
		if err == nil {
			err = v.serve(ctx)
		}
		if err != nil && ctx.Err() == nil {
			v.end(err)
		}
	})
}

// checkEpochs returns ErrEpochsNotKept unless the brokers are known to keep leader epochs. With
// ZooKeeper a single broker that was away, and three brokers that were killed together, came back with
// the epoch that they had before. Such a log would keep its id although it may have lost records.
func (v *smallTopic) checkEpochs(ctx context.Context) error {
	return v.topic.retry(ctx, "ask whether brokers keep leader epochs", func(ctx context.Context) error {
		keeper, can := v.topic.Admin.(kafka.EpochKeeper)
		if !can {
			return fmt.Errorf("%w: the Provider does not say so (kafka.EpochKeeper)", ErrEpochsNotKept)
		}
		keeps, err := keeper.KeepsEpochs(ctx)
		switch {
		case errors.Is(err, kafka.ErrAuthorization):
			return fmt.Errorf("%w: this client needs the right DESCRIBE_CONFIGS on the cluster to know: %w", ErrEpochsNotKept, err)
		case err == nil && !keeps:
			return fmt.Errorf("%w: the cluster keeps its metadata in ZooKeeper, or the Provider does not say where; Config.Logs needs KRaft", ErrEpochsNotKept)
		}
		return err
	})
}

// serve reads all logs, independently of each other, until ctx is done or a final error.
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

// end ends writing and then makes Next return a final error. Writing ends first, because producers
// address a topic by name, so their queues would go into a new topic of the same name.
func (v *smallTopic) end(err error) {
	for _, l := range v.logs {
		l.seal()
	}
	select {
	case v.fatal <- err:
	default: // there is a final error already
	}
}

// Identity implements Identified: it returns the topic's id once it was found, and "" if the search failed.
func (v *smallTopic) Identity(ctx context.Context) string {
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

// Append implements LogSet. It ignores the ballot: no partition reports its highest one.
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
