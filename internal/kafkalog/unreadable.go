package kafkalog

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/goneli/neli/kafka"
)

// unreadable finds where reading of partitions goes on after records that the client cannot read. Such
// a record may be a Claim, so going on counts as a jump: the state is void.
type unreadable struct {
	parts map[int]*unreadablePart
	told  Limiter
}

type unreadablePart struct {
	step int64 // how many offsets after the position the latest attempt began
	from int64 // nothing before this offset is read again
}

// after returns where p is read next. position is the first offset that was not read, e the error about
// it, end the end of the log. Clients read whole batches, and may not know how large one is, so the steps
// double until a record is read.
func (u *unreadable) after(p int, position int64, e *kafka.UnreadableError, end int64) int64 {
	if u.parts == nil {
		u.parts = map[int]*unreadablePart{}
	}
	part := u.parts[p]
	if part == nil {
		part = &unreadablePart{}
		u.parts[p] = part
	}
	part.step = max(1, 2*part.step)
	part.from = max(position, min(max(position+part.step, e.Next), end))
	return part.from
}

// read notes that a record of p was read.
func (u *unreadable) read(p int) {
	if part := u.parts[p]; part != nil {
		part.step = 0
	}
}

// from returns the offset before which nothing of p is read again.
func (u *unreadable) from(p int) int64 {
	if part := u.parts[p]; part != nil {
		return part.from
	}
	return 0
}

func (u *unreadable) say(log *slog.Logger, topic string, p int, next int64, err error) {
	if u.told.Due() {
		log.Warn("skipping what cannot be read in the leader topic", "topic", topic, "partition", p, "next", next, "error", err)
	}
}

// skip goes on after a record that the client cannot read.
func (k *kafkaLog) skip(ctx context.Context, err *kafka.UnreadableError) error {
	ends, failed := k.ends(ctx, len(k.position))
	if failed != nil {
		return k.unlessDone(ctx, failed)
	}
	for _, p := range k.stuck(err, ends) {
		next := k.unreadable.after(p, k.position[p], err, ends[p].End)
		k.unreadable.say(k.log, k.topic.name, p, next, err)
		k.jump(p, ends[p])
	}
	if !pause(ctx, 10*time.Millisecond) {
		return nil
	}
	return k.unlessDone(ctx, k.assign(ctx))
}

// stuck returns the partitions that an error may be about. If the client names none, these are the
// partitions that were read up to the record, or else all that have more to read: a jump costs terms,
// but is always safe.
func (k *kafkaLog) stuck(err *kafka.UnreadableError, ends []kafka.OffsetRange) (at []int) {
	if err.Partition >= 0 {
		if err.Partition < len(ends) {
			at = append(at, err.Partition)
		}
		return at
	}
	var any []int
	for p, e := range ends {
		if k.position[p] < e.End {
			any = append(any, p)
			if k.position[p] == err.Next-1 {
				at = append(at, p)
			}
		}
	}
	if at == nil {
		return any
	}
	return at
}

// barrenAfter is how long a producer may get no acknowledgement before it counts as barren. The
// restart of a broker takes less.
const barrenAfter = 10 * time.Second

// errBarren is the reason to replace a producer that has not failed permanently.
var errBarren = errors.New("nothing was acknowledged or answered for some time")

// barren decides when a client no longer gets anything acknowledged, or any question answered.
// Brokers that are down cause that, and so does a client that has forgotten all brokers. librdkafka
// does so when a broker that shuts down lists none. A new client is harmless in the first case and
// the only remedy in the second. All times are passed in. The methods may be called concurrently.
type barren struct {
	mu       sync.Mutex
	since    time.Time // the first failure after the last success; zero: none
	patience time.Duration
}

// acknowledged notes that a record was acknowledged or a question answered.
func (b *barren) acknowledged() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.since, b.patience = time.Time{}, barrenAfter
}

// restart begins again with a new producer.
func (b *barren) restart() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.since = time.Time{}
}

// failed notes that a record failed or a question got no answer, and returns true if the producer
// should be replaced. After a replacement that did not help the next one takes twice as long, up
// to stillMost. An error that a broker reports is not silence.
func (b *barren) failed(err error, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, said := range []error{kafka.ErrAuthorization, kafka.ErrAuthentication, kafka.ErrUnknownTopic, kafka.ErrTimestamp, kafka.ErrClientFatal,
		kafka.ErrTopicExists, kafka.ErrSettings} {
		if errors.Is(err, said) {
			b.since = time.Time{}
			return false
		}
	}
	if b.since.IsZero() {
		b.since = now
		return false
	}
	if now.Sub(b.since) < b.patience {
		return false
	}
	b.since, b.patience = time.Time{}, min(2*b.patience, stillMost)
	return true
}
