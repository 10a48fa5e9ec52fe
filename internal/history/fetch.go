package history

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/goneli/neli/kafka"
)

// quiet is how long no record of a partition that is not whole yet may come before what is left of the logs counts as
// gaps, which compaction and transactions leave.
const quiet = 5 * time.Second

// Fetch reads a topic from its beginning up to the end that it has now. It calls begin once, then add for
// every record, whatever group it is of. If none comes for five seconds, it returns nil without the rest, which Result
// names as unproven. It returns the first error of a broker that will not pass, of
// begin or of add.
func Fetch(ctx context.Context, admin kafka.Admin, reader kafka.LogReader, topic, group string, begin func(Log) error, add func(Entry) error) error {
	info, err := admin.Topic(ctx, topic)
	if err != nil {
		return err
	}
	ends, err := admin.Offsets(ctx, topic, info.Partitions)
	if err != nil {
		return err
	}
	log := Log{Group: group, Topic: topic, TopicID: info.ID}
	left := 0
	for _, e := range ends {
		log.Starts, log.Ends = append(log.Starts, e.Start), append(log.Ends, e.End)
		if e.End > e.Start {
			left++
		}
	}
	if err := begin(log); err != nil {
		return err
	}
	if err := reader.Assign(topic, log.Starts); err != nil {
		return err
	}
	whole := make([]bool, len(ends))
	var trouble error
	for last := time.Now(); left > 0; {
		r, ok, err := reader.Poll(100 * time.Millisecond)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case final(err):
			return fmt.Errorf("read topic %s: %w", topic, err)
		case err != nil:
			trouble = err
		case ok && r.Partition >= 0 && r.Partition < len(ends):
			if whole[r.Partition] {
				break // others go on writing
			}
			last, trouble = time.Now(), nil
			if r.Offset < ends[r.Partition].End {
				if err := add(Entry{r.Partition, r.Offset, r.Time, r.Value}); err != nil {
					return err
				}
			}
			if r.Offset >= ends[r.Partition].End-1 {
				whole[r.Partition] = true
				left--
			}
		}
		if time.Since(last) > quiet {
			return trouble
		}
	}
	return nil
}

// final reports whether a reader's error lasts.
func final(err error) bool {
	for _, kind := range []error{kafka.ErrOutOfRange, kafka.ErrTruncated, kafka.ErrUnreadable, kafka.ErrUnknownTopic, kafka.ErrAuthorization, kafka.ErrAuthentication, kafka.ErrClientFatal} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}
