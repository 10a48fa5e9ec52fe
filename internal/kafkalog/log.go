package kafkalog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/goneli/neli/internal/elector"
	"github.com/goneli/neli/kafka"
)

// kafkaLog reads and appends to all partitions of a Kafka topic. It has a consumer, a producer and
// the topic's identity.
type kafkaLog struct {
	topic     *Topic
	producer  kafka.Producer
	newReader func() (kafka.LogReader, error)
	log       *slog.Logger

	reader     kafka.LogReader
	readers    spaced
	position   []int64         // the next offset to read, by partition
	ready      []elector.Entry // to be returned before the next read
	untouched  untouched
	origins    origins
	back       lookBack
	unreadable unreadable
	reading    AccessGuard
	writing    AccessGuard
	fatal      chan error // refused writes, for Watch
	unread     Trouble
	unwritten  Trouble
	sealed     atomic.Bool // nothing is appended any more

	T        time.Duration  // HeartbeatTimeout
	still    *stillness     // nil before Open
	idle     time.Duration  // how long Poll has waited since the last look
	replaced *atomic.Uint64 // counts replaced readers; nil: not counted
	closing  sync.WaitGroup // replaced readers
}

func newKafkaLog(t *Topic, p kafka.Producer, newReader func() (kafka.LogReader, error), log *slog.Logger) *kafkaLog {
	return &kafkaLog{topic: t, producer: p, newReader: newReader, log: log, fatal: make(chan error, 1),
		reading: AccessGuard{SignedIn: &t.Access}, writing: AccessGuard{SignedIn: &t.Access}}
}

func (k *kafkaLog) Open(ctx context.Context) (int, string, error) {
	if err := k.topic.Open(ctx); err != nil {
		return 0, "", err
	}
	m := k.topic.Size
	ends, err := k.ends(ctx, m)
	if err != nil {
		return 0, "", err
	}
	k.position = make([]int64, m)
	k.untouched, k.origins = newUntouched(ends), newOrigins(ends)
	if slices.ContainsFunc(ends, func(e kafka.OffsetRange) bool { return e.Start == 0 && e.End <= reaches[0] }) {
		k.askEpochs(ctx)
	}
	k.still = newStillness(m, k.T)
	for p, e := range ends {
		k.jump(p, e)
	}
	return m, k.topic.id, k.assign(ctx)
}

// ends asks for the extents of all logs, and retries until all are known.
func (k *kafkaLog) ends(ctx context.Context, m int) ([]kafka.OffsetRange, error) {
	var ends []kafka.OffsetRange
	err := k.topic.retry(ctx, "read the ends of the leader topic", func(ctx context.Context) (err error) {
		ends, err = k.topic.Admin.Offsets(ctx, k.topic.name, m)
		return err
	})
	if err == nil {
		err = ctx.Err()
	}
	return ends, err
}

// jump begins to read p a little before its end, behind what is unreadable.
func (k *kafkaLog) jump(p int, e kafka.OffsetRange) {
	from := k.unreadable.from(p)
	offset := max(e.Start, e.End-reaches[0], min(from, e.End))
	k.back.begin(p, offset, kafka.OffsetRange{Start: max(e.Start, from), End: e.End})
	k.begin(p, offset, e)
}

// begin continues to read p at offset, after a Reset (delayed if p is untouched).
func (k *kafkaLog) begin(p int, offset int64, e kafka.OffsetRange) {
	k.position[p] = offset
	k.origins.begin(p, offset, e.Start)
	k.still.begin(p, offset, time.Now())
	if e.End == 0 && k.untouched.holds(p) {
		return
	}
	k.untouched.release(p)
	k.ready = append(k.ready, elector.Entry{Partition: p, Offset: offset, Reset: true, End: e.End, Whole: offset == 0 && e.Start == 0,
		Origin: k.origins.why[p] == "", Why: k.origins.why[p]})
}

// assign makes the reader continue at position, with a new client if there is none.
func (k *kafkaLog) assign(ctx context.Context) error {
	return k.topic.retry(ctx, "read the leader topic", func(context.Context) error {
		if k.reader == nil {
			if err := k.readers.wait(ctx); err != nil {
				return err
			}
			r, err := k.newReader()
			if err != nil {
				return err
			}
			k.reader = r
		}
		err := k.reader.Assign(k.topic.name, k.position)
		if errors.Is(err, kafka.ErrClientFatal) {
			_ = k.reader.Close()
			k.reader = nil
		}
		return err
	})
}

func (k *kafkaLog) Next(ctx context.Context, timeout time.Duration) (elector.Entry, bool, error) {
	if k.untouched.due(k.topic) {
		k.ready = append(k.ready, k.untouched.releaseAll()...)
	}
	if k.goBack(ctx) {
		return elector.Entry{}, false, k.unlessDone(ctx, k.assign(ctx))
	}
	if len(k.ready) > 0 {
		e := k.ready[0]
		if k.ready = k.ready[1:]; len(k.ready) == 0 {
			k.ready = nil
		}
		return e, true, nil
	}
	if waited := k.idle; waited >= pollSlice {
		k.idle = 0
		if err := k.look(ctx, waited); err != nil {
			k.seal()
			return elector.Entry{}, false, err
		}
		if k.reader == nil || len(k.ready) > 0 { // no reader: ctx is done
			return elector.Entry{}, false, nil
		}
	}
	began := time.Now()
	r, ok, err := k.reader.Poll(timeout)
	if err == nil { // while Poll waited, the client had no record of any partition
		k.idle += min(timeout, time.Since(began))
	}
	switch {
	case err != nil:
		if saysWhy(err) {
			k.still.restart(time.Now(), nil)
		}
		if err = k.recover(ctx, err); err != nil {
			k.seal()
		}
		return elector.Entry{}, false, err
	case !ok:
		return elector.Entry{}, false, nil
	case r.Partition < 0 || r.Partition >= len(k.position):
		return elector.Entry{}, false, nil
	}
	k.reading.OK()
	k.unread.Over(k.log, "reading the leader topic again", "topic", k.topic.name)
	k.still.got(r.Partition, r.Offset, time.Now())
	k.origins.read(r, k.position[r.Partition])
	k.position[r.Partition] = r.Offset + 1
	k.unreadable.read(r.Partition)
	if err := k.verifyOrigin(ctx, r.Partition); err != nil {
		k.seal()
		return elector.Entry{}, false, err
	}
	why := k.origins.why[r.Partition]
	e := elector.Entry{Partition: r.Partition, Offset: r.Offset, Value: r.Value, Origin: why == "", Why: why}
	if jump, ok := k.untouched.release(r.Partition); ok {
		k.ready = append(k.ready, e)
		return jump, true, nil
	}
	return e, true, nil
}

// saysWhy reports whether an error explains why nothing is read: then the client does not count as standing still.
func saysWhy(err error) bool {
	for _, kind := range []error{kafka.ErrClientFatal, kafka.ErrTruncated, kafka.ErrOutOfRange, kafka.ErrUnreadable, kafka.ErrUnknownTopic, kafka.ErrAuthorization, kafka.ErrAuthentication} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// look handles partitions that stand still, after the reader had nothing to return for waited. If
// other partitions are read, look first assigns those that stand still to the same client again, which
// does not disturb the others. If that does not help, or none is read, look replaces the client, and all
// partitions begin again: a new client does not know the epoch of the records read before, so it could
// not detect lost records. Reading begins before the end: an observer writes no
// Hello, so no member would write a Snapshot for it.
func (k *kafkaLog) look(ctx context.Context, waited time.Duration) error {
	still := k.still.waited(waited)
	if len(still) == 0 {
		return nil
	}
	if k.still.assignAnew(still, time.Now()) {
		k.log.Warn("reading of some partitions stands still while others are read: reading them anew",
			"topic", k.topic.name, "partitions", still)
		return k.reposition(ctx, readAgain, still)
	}
	k.log.Warn("the log reader stands still: the log has records that it does not return; replacing its client",
		"topic", k.topic.name, "partitions", still)
	if k.replaced != nil {
		k.replaced.Add(1)
	}
	k.closing.Wait() // for the reader replaced before
	old := k.reader
	k.reader = nil
	k.closing.Go(func() { _ = old.Close() }) // Close may wait for a broker
	k.still.restart(time.Now(), still)
	err := k.reposition(ctx, readAgain, nil)
	k.still.restart(time.Now(), nil)
	return err
}

// recover handles a read error. An error that it returns is final.
func (k *kafkaLog) recover(ctx context.Context, err error) error {
	var at *kafka.UnreadableError
	if errors.As(err, &at) {
		return k.skip(ctx, at)
	}
	right := "READ topic " + k.topic.name
	if fatal := k.reading.Check(right, err); fatal != nil {
		return fatal
	}
	if !k.topic.spreads(err) && k.unread.Due() {
		k.log.Warn("cannot read the leader topic, retrying", "topic", k.topic.name, "error", Naming(right, err))
	}
	switch {
	case errors.Is(err, kafka.ErrClientFatal):
		_ = k.reader.Close()
		k.reader = nil
		return k.reposition(ctx, readAgain, nil)
	case errors.Is(err, kafka.ErrTruncated):
		return k.reposition(ctx, readAgain, nil)
	case errors.Is(err, kafka.ErrOutOfRange):
		return k.reposition(ctx, readOn, nil)
	case errors.Is(err, kafka.ErrUnknownTopic):
		k.topic.Doubt()
	case errors.Is(err, kafka.ErrAuthorization):
		// The client reports this once. A second request shows whether it lasts.
		if !pause(ctx, time.Second) {
			return nil
		}
		return k.unlessDone(ctx, k.assign(ctx))
	}
	pause(ctx, 10*time.Millisecond)
	return nil
}

// resumption says where reading continues after it has stopped.
type resumption int

const (
	readOn    resumption = iota // where it was; before the end if the log now begins after that
	readAgain                   // before the end, as after a start; the state is void
)

// reposition compares every position with both ends of its log, because an out-of-range error does
// not name its partition. how applies to the partitions in some, or to all if some is nil;
// readOn applies to the others.
func (k *kafkaLog) reposition(ctx context.Context, how resumption, some []int) error {
	if err := k.topic.verify(ctx); err != nil {
		return err
	}
	ends, err := k.ends(ctx, len(k.position))
	if err != nil {
		return k.unlessDone(ctx, err)
	}
	if k.behind(ends) >= 0 {
		// A new leader of a partition may not know yet which records are committed.
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
	moved := how != readOn
	for p, e := range ends {
		meant := some == nil || slices.Contains(some, p)
		switch {
		case meant && how == readAgain:
			k.jump(p, e)
		case k.position[p] < e.Start:
			moved = true
			k.log.Warn("the head of the log was deleted before it was read", "topic", k.topic.name, "partition", p,
				"position", k.position[p], "start", e.Start)
			k.jump(p, e)
		}
	}
	if !moved && !pause(ctx, 100*time.Millisecond) {
		return nil // all positions were right: ask less often
	}
	return k.unlessDone(ctx, k.assign(ctx))
}

// behind returns a partition whose log ends before its position, or −1.
func (k *kafkaLog) behind(ends []kafka.OffsetRange) int {
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

// topicLog is a kafkaLog as the elector expects it: its partitions have no incarnations.
type topicLog struct{ *kafkaLog }

func (t topicLog) Append(to elector.Address, value []byte, report func(error)) error {
	return t.kafkaLog.Append(to.Partition, value, report)
}

func (k *kafkaLog) Append(p int, value []byte, report func(error)) error {
	if k.sealed.Load() {
		return errSealed
	}
	defer func() {
		if k.sealed.Load() {
			k.producer.Purge() // sealed meanwhile
		}
	}()
	handed := time.Now()
	err := k.producer.Append(k.topic.name, p, value, func(err error) {
		if err == nil {
			k.writing.OK()
			k.unwritten.Over(k.log, "writing to the leader topic again", "topic", k.topic.name)
			k.still.acknowledged(p, handed)
		} else {
			err = k.lost(err)
		}
		report(err)
	})
	if err != nil {
		err = k.lost(err)
	}
	return err
}

// lost handles a record that was not acknowledged, and returns the error for the elector.
func (k *kafkaLog) lost(err error) error {
	right := "WRITE topic " + k.topic.name
	if fatal := k.writing.Check(right, err); fatal != nil {
		select {
		case k.fatal <- fatal:
		default:
		}
	}
	if !k.sealed.Load() && k.unwritten.Due() {
		k.log.Warn("cannot write to the leader topic, retrying", "topic", k.topic.name, "error", Naming(right, err))
	}
	return denied(right, err)
}

func (k *kafkaLog) Watch(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return k.topic.Watch(ctx) })
	group.Go(func() error { k.compareEnds(ctx); return nil })
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

// seal ends writing, before anything else happens: the producer addresses a topic by name, so its
// queue would go into a new topic of the same name.
func (k *kafkaLog) seal() {
	k.sealed.Store(true)
	k.producer.Purge()
}

func (k *kafkaLog) Verify() { k.topic.Doubt() }

func (k *kafkaLog) Close() {
	k.seal()
	if k.reader != nil {
		_ = k.reader.Close()
	}
	k.closing.Wait()
	k.topic.Admin.Close()
	_ = k.producer.Close()
}
