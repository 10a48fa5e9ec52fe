package neli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// history is how many records before the end a process reads at boot: enough to
// learn who holds what, and what the holder last said.
const history = 32

// kafkaLog is the ordered log in a Kafka topic: an assigned consumer that follows
// all partitions, a producer, and the topic's identity.
type kafkaLog struct {
	topic     *topic
	producer  Producer
	newReader func() (LogReader, error)
	log       *slog.Logger

	reader    LogReader
	position  []int64    // offset to be read next, by partition
	jumps     []logEntry // to be handed out before anything is read
	reading   accessGuard
	writing   accessGuard
	fatal     chan error // refused writes, for watch
	unread    limiter
	unwritten limiter
	sealed    atomic.Bool // nothing is appended any more
}

func newKafkaLog(t *topic, p Producer, newReader func() (LogReader, error), log *slog.Logger) *kafkaLog {
	return &kafkaLog{topic: t, producer: p, newReader: newReader, log: log, fatal: make(chan error, 1)}
}

func (k *kafkaLog) open(ctx context.Context) (int, error) {
	m, err := k.topic.open(ctx)
	if err != nil {
		return 0, err
	}
	ends, err := k.ends(ctx, m)
	if err != nil {
		return 0, err
	}
	k.position = make([]int64, m)
	for p, e := range ends {
		k.jump(p, e)
	}
	return m, k.assign(ctx)
}

// ends asks for the extents of all logs until every one has answered.
func (k *kafkaLog) ends(ctx context.Context, m int) ([]OffsetRange, error) {
	var ends []OffsetRange
	err := k.topic.retry(ctx, "read the ends of the leader topic", func(ctx context.Context) (err error) {
		ends, err = k.topic.admin.Offsets(ctx, k.topic.name, m)
		return err
	})
	if err == nil {
		err = ctx.Err()
	}
	return ends, err
}

// jump makes reading of p begin a little before its end.
func (k *kafkaLog) jump(p int, e OffsetRange) {
	k.position[p] = max(e.Start, e.End-history)
	k.jumps = append(k.jumps, logEntry{partition: p, offset: k.position[p], jump: true, end: e.End})
}

// assign makes the reader read on at position, with a new client if it must.
func (k *kafkaLog) assign(ctx context.Context) error {
	return k.topic.retry(ctx, "read the leader topic", func(context.Context) error {
		if k.reader == nil {
			r, err := k.newReader()
			if err != nil {
				return err
			}
			k.reader = r
		}
		return k.reader.Assign(k.topic.name, k.position)
	})
}

func (k *kafkaLog) next(ctx context.Context, timeout time.Duration) (logEntry, bool, error) {
	if len(k.jumps) > 0 {
		e := k.jumps[0]
		if k.jumps = k.jumps[1:]; len(k.jumps) == 0 {
			k.jumps = nil
		}
		return e, true, nil
	}
	r, ok, err := k.reader.Poll(timeout)
	switch {
	case err != nil:
		if err = k.recover(ctx, err); err != nil {
			k.seal()
		}
		return logEntry{}, false, err
	case !ok || r.Partition < 0 || r.Partition >= len(k.position):
		return logEntry{}, false, nil
	}
	k.reading.ok()
	k.position[r.Partition] = r.Offset + 1
	return logEntry{partition: r.Partition, offset: r.Offset, value: r.Value}, true, nil
}

// recover deals with a read error. The error it returns is final.
func (k *kafkaLog) recover(ctx context.Context, err error) error {
	if fatal := k.reading.check("READ topic "+k.topic.name, err); fatal != nil {
		return fatal
	}
	if k.unread.due() {
		k.log.Warn("cannot read the leader topic, retrying", "topic", k.topic.name, "error", err)
	}
	switch {
	case errors.Is(err, ErrClientFatal):
		_ = k.reader.Close()
		k.reader = nil
		return k.reposition(ctx, true)
	case errors.Is(err, ErrOutOfRange):
		return k.reposition(ctx, false)
	case errors.Is(err, ErrUnknownTopic):
		k.topic.doubt()
	case errors.Is(err, ErrAuthorization):
		// The client says so once. Asked again, it says whether that lasts.
		if !pause(ctx, time.Second) {
			return nil
		}
		return k.unlessDone(ctx, k.assign(ctx))
	}
	if !pause(ctx, 10*time.Millisecond) {
		return nil
	}
	return nil
}

// reposition is for a position that is said to lie outside its log, of which
// partition is not known: every position is compared with both ends of its log.
// With anew, reading begins again where it was, by a new client.
func (k *kafkaLog) reposition(ctx context.Context, anew bool) error {
	if err := k.topic.verify(ctx); err != nil {
		return err
	}
	ends, err := k.ends(ctx, len(k.position))
	if err != nil {
		return k.unlessDone(ctx, err)
	}
	if k.behind(ends) >= 0 {
		// A new leader of a partition may not know yet how much of it is committed.
		if !pause(ctx, time.Second) {
			return nil
		}
		if ends, err = k.ends(ctx, len(k.position)); err != nil {
			return k.unlessDone(ctx, err)
		}
		if p := k.behind(ends); p >= 0 {
			return fmt.Errorf("%w: partition %d of topic %s was read up to offset %d and now ends at %d",
				ErrTopicReplaced, p, k.topic.name, k.position[p]-1, ends[p].End)
		}
	}
	moved := anew
	for p, e := range ends {
		switch {
		case anew:
			// Reading has stopped for a while: what was under way is forgotten.
			k.jumps = append(k.jumps, logEntry{partition: p, offset: max(k.position[p], e.Start), jump: true, end: e.End})
			k.position[p] = max(k.position[p], e.Start)
		case k.position[p] < e.Start:
			moved = true
			k.log.Warn("the head of the log was deleted before it was read", "topic", k.topic.name, "partition", p,
				"position", k.position[p], "start", e.Start)
			k.jump(p, e)
		}
	}
	if !moved && !pause(ctx, 100*time.Millisecond) {
		return nil // nothing was wrong with the positions; ask less often
	}
	return k.unlessDone(ctx, k.assign(ctx))
}

// behind returns a partition whose log ends before what was read of it, or −1.
func (k *kafkaLog) behind(ends []OffsetRange) int {
	for p, e := range ends {
		if e.End < k.position[p] {
			return p
		}
	}
	return -1
}

func (k *kafkaLog) unlessDone(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (k *kafkaLog) append(p int, value []byte, report func(error)) error {
	if k.sealed.Load() {
		return errSealed
	}
	defer func() {
		if k.sealed.Load() {
			k.producer.Purge() // sealed meanwhile
		}
	}()
	return k.producer.Append(k.topic.name, p, value, func(err error) {
		if err == nil {
			k.writing.ok()
		} else {
			k.lost(err)
		}
		report(err)
	})
}

// lost deals with a record that was not confirmed.
func (k *kafkaLog) lost(err error) {
	if fatal := k.writing.check("WRITE topic "+k.topic.name, err); fatal != nil {
		select {
		case k.fatal <- fatal:
		default:
		}
	}
	if !k.sealed.Load() && k.unwritten.due() {
		k.log.Warn("cannot write to the leader topic, retrying", "topic", k.topic.name, "error", err)
	}
}

func (k *kafkaLog) watch(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return k.topic.watch(ctx) })
	group.Go(func() error {
		select {
		case <-ctx.Done():
			return nil
		case err := <-k.fatal:
			return err
		}
	})
	err := group.Wait()
	if err != nil {
		k.seal()
	}
	return err
}

var errSealed = errors.New("the log is closed for writing")

// seal ends writing, before anything else is done: the producer writes by name,
// so what is queued would go into a new log of the same name.
func (k *kafkaLog) seal() {
	k.sealed.Store(true)
	k.producer.Purge()
}

func (k *kafkaLog) doubt() { k.topic.doubt() }

func (k *kafkaLog) close() {
	k.seal()
	if k.reader != nil {
		_ = k.reader.Close()
	}
	k.topic.admin.Close()
	_ = k.producer.Close()
}
