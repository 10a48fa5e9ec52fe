package franz

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/goneli/neli/kafka"
)

// batch is how many records to take from franz-go at a time.
const batch = 500

// reader reads by assignment. Each assignment has a franz-go client of its own, so that what an
// earlier one has fetched or waits for cannot reach the present one.
type reader struct {
	*client
	kafka  *link // nil before the first Assign
	former sync.WaitGroup

	topic   string
	next    []int64       // by partition: the offset after the last record taken
	records []*kgo.Record // for Poll to return
	errs    []error       // for Poll to return, before records
	stopped error         // set once records were lost: Poll returns it until the next Assign
	unknown since
	known   bool // some record of a topic with this name was read
	closed  bool
}

func following(*settings) []kgo.Opt {
	return []kgo.Opt{
		// By default, franz-go moves the position silently.
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.FetchIsolationLevel(kgo.ReadUncommitted()),
		kgo.KeepRetryableFetchErrors(), // an unknown topic is such an error
	}
}

func (p provider) LogReader(props map[string]string, log *slog.Logger) (kafka.LogReader, error) {
	c, err := p.newClient(forReader, props, log, following)
	if err != nil {
		return nil, err
	}
	return &reader{client: c}, nil
}

func (r *reader) Assign(topic string, offsets []int64) error {
	if r.closed {
		return errClosed
	}
	parts := make(map[int32]kgo.Offset, len(offsets))
	for i, o := range offsets {
		if o == kafka.NotRead {
			continue
		}
		if o < 0 {
			return fmt.Errorf("assign %s[%d]: offset %d is not a position", topic, i, o)
		}
		parts[int32(i)] = kgo.NewOffset().At(o)
	}
	next, err := r.dial(append(following(r.settings), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: parts}))...)
	if err != nil {
		return classify("assign "+topic, err)
	}
	if former := r.kafka; former != nil {
		r.former.Go(func() { former.shut(readerGrace) })
	}
	r.known = r.known && r.topic == topic
	r.kafka, r.topic, r.next = next, topic, slices.Clone(offsets)
	r.records, r.errs, r.stopped, r.unknown = nil, nil, nil, since{}
	return nil
}

func (r *reader) Poll(timeout time.Duration) (kafka.Record, bool, error) {
	if r.closed {
		return kafka.Record{}, false, errClosed
	}
	for deadline := time.Now().Add(timeout); ; {
		switch {
		case r.stopped != nil:
			return kafka.Record{}, false, r.stopped
		case len(r.errs) > 0:
			err := r.errs[0]
			r.errs = r.errs[1:]
			return kafka.Record{}, false, err
		case len(r.records) > 0:
			record := r.records[0]
			r.records = r.records[1:]
			return asRecord(record), true, nil
		}
		left := time.Until(deadline)
		if r.kafka == nil {
			time.Sleep(max(left, 0))
			return kafka.Record{}, false, nil
		}
		fetched := r.poll(left)
		if !fetched && time.Until(deadline) <= 0 {
			return kafka.Record{}, false, r.trouble("read")
		}
	}
}

// poll takes what has arrived. If there is time left, it waits for something to arrive.
func (r *reader) poll(left time.Duration) (fetched bool) {
	var ctx context.Context // nil: do not wait
	if left > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.Background(), left)
		defer cancel()
	}
	fetches := r.kafka.PollRecords(ctx, batch)
	fetches.EachPartition(func(p kgo.FetchTopicPartition) {
		if p.Err != nil && (ctx == nil || !errors.Is(p.Err, ctx.Err())) {
			r.failed(p.FetchPartition)
		}
	})
	fetches.EachPartition(r.take)
	return len(r.records) > 0 || len(r.errs) > 0 || r.stopped != nil
}

// failed handles an error that franz-go returns with records, or instead of them.
func (r *reader) failed(p kgo.FetchPartition) {
	partition, err := p.Partition, p.Err
	out := classify("read", err)
	switch {
	case errors.Is(out, kafka.ErrTruncated):
		// franz-go has moved the position, so records returned with this error may come from there.
		r.stopped, r.records = out, nil
	case errors.Is(out, kafka.ErrOutOfRange), errors.Is(out, kafka.ErrAuthorization) && partition >= 0:
		// If franz-go went on, the broker would repeat its answer, as fast as franz-go can ask.
		r.pause(partition, out)
	case errors.Is(out, kafka.ErrUnknownTopic):
		// It takes a while until all brokers know a new topic. A topic that was read is gone.
		if r.known || r.unknown.lasts(r.settings.propagation) {
			r.errs = append(r.errs, out)
		}
	case unreadable(p):
		at := &kafka.UnreadableError{Partition: int(partition), Err: out}
		if large, ok := errors.AsType[*kgo.ErrDecompressTooLarge](err); ok {
			at.Next = large.NextOffset
		}
		r.pause(partition, at) // franz-go would ask for the same batch again
	case kerr.IsRetriable(err):
		r.log.Debug("reading is retried", "error", out)
	default:
		r.errs = append(r.errs, out)
	}
}

// unreadable reports whether an error is about a batch of a partition. franz-go exports hardly any such
// error. A broker's answer has the partition's end; without an answer the error is about something else,
// such as the connection on which franz-go asked for the end of an epoch.
func unreadable(p kgo.FetchPartition) bool {
	_, brokers := errors.AsType[*kerr.Error](p.Err)
	return p.Partition >= 0 && (errors.Is(p.Err, kerr.CorruptMessage) ||
		p.HighWatermark > 0 && !brokers && kindOf(p.Err) == nil && !ended(p.Err))
}

// pause stops reading a partition until the next Assign, and lets Poll return err once.
func (r *reader) pause(partition int32, err error) {
	if !slices.Contains(r.kafka.PauseFetchPartitions(nil)[r.topic], partition) {
		r.kafka.PauseFetchPartitions(map[string][]int32{r.topic: {partition}})
		r.errs = append(r.errs, err)
	}
}

// take takes records, unless franz-go has moved the position: if its first metadata after an
// assignment lack the topic, it silently moves a position outside the log to the nearest end.
func (r *reader) take(p kgo.FetchTopicPartition) {
	if p.Topic != r.topic || int(p.Partition) >= len(r.next) {
		return
	}
	for _, record := range p.Records {
		want := r.next[p.Partition]
		switch {
		case r.stopped != nil:
			return
		case record.Offset < want:
			r.stopped, r.records = &clientError{"read", fmt.Errorf("partition %d goes on at offset %d, not at %d", p.Partition, record.Offset, want), kafka.ErrTruncated}, nil
			return
		case record.Offset > want && p.LogStartOffset > want:
			r.pause(p.Partition, &clientError{"read", fmt.Errorf("partition %d begins at offset %d, behind %d", p.Partition, p.LogStartOffset, want), kafka.ErrOutOfRange})
			return
		}
		r.records, r.next[p.Partition], r.known = append(r.records, record), record.Offset+1, true
	}
}

func asRecord(r *kgo.Record) kafka.Record {
	return kafka.Record{Partition: int(r.Partition), Offset: r.Offset, Value: slices.Clip(r.Value), Epoch: int(r.LeaderEpoch), Time: r.Timestamp}
}

func (r *reader) Close() error {
	if !r.closed {
		r.closed = true
		if r.kafka != nil {
			r.kafka.shut(readerGrace)
		}
		r.former.Wait()
		r.endTokens()
	}
	return nil
}

// since measures how long a state has lasted that is reported again and again.
type since struct{ first, last time.Time }

// lasts notes a report, and returns whether the state has lasted for d.
func (s *since) lasts(d time.Duration) bool {
	now := time.Now()
	if s.last.IsZero() || now.Sub(s.last) > max(d, time.Second) {
		s.first = now // the last report is too old to be about the same state
	}
	s.last = now
	return now.Sub(s.first) >= d
}
