package kafkalog

import (
	"context"
	"log/slog"
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
	step int64 // how far behind the position the next attempt begins
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

// stuck returns the partitions that an error may be about. If the client names none, it is the partition
// that was read up to the record, or else any that has more to read: a jump costs terms, but is always
// safe.
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
