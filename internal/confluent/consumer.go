//go:build cgo && !neli_nolibrdkafka

package confluent

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"
	"github.com/goneli/neli/kafka"
)

// confluentConsumer is what both consumers have in common.
type confluentConsumer struct {
	client *ck.Consumer
	logs   *confluentLogs
	*confluentStats
	closed   bool
	closeErr error
}

func (c confluent) consumer(props map[string]string, log *slog.Logger) (confluentConsumer, error) {
	logs := c.logs(log, props)
	config := confluentConfig(props, logs)
	client, err := ck.NewConsumer(&config)
	if err != nil {
		return confluentConsumer{}, logs.refused(confluentFaults(err, config, func(config *ck.ConfigMap) error {
			client, err := ck.NewConsumer(config)
			if err == nil {
				_ = client.Close()
			}
			return err
		}))
	}
	logs.login.keep(client)
	return confluentConsumer{client: client, logs: logs, confluentStats: &confluentStats{}}, nil
}

// next returns the next event, or nil if there was none before the deadline. It may return nil
// early: the client does so after a rebalance, and next itself when it gets statistics.
func (c *confluentConsumer) next(deadline time.Time) ck.Event {
	ev := c.client.Poll(int(max(0, time.Until(deadline).Milliseconds())))
	switch ev := ev.(type) {
	case *ck.Stats:
		c.count(ev.String())
		return nil
	case ck.Error:
		c.logs.login.told(ev)
	}
	return ev
}

// confluentOver reports whether too little time is left for another call of next.
func confluentOver(deadline time.Time) bool { return time.Until(deadline) < time.Millisecond }

// classify is asConfluentError. When all brokers are down, it adds which ones and why, which the
// client's error does not say.
func (c *confluentConsumer) classify(doing string, err error) error {
	out := asConfluentError(doing, err)
	if ke, ok := err.(ck.Error); ok && ke.Code() == ck.ErrAllBrokersDown {
		return c.logs.explain(out)
	}
	return out
}

// forget drops the events from before the client was asked for anything, such as connections that
// were lost perhaps hours ago. It returns a missing permission, since the client reports that
// only once.
func (c *confluentConsumer) forget(doing string) (refused error) {
	for {
		ev := c.client.Poll(0)
		if stats, ok := ev.(*ck.Stats); ok {
			c.count(stats.String())
			continue
		}
		switch ev := ev.(type) {
		case nil, *ck.Message: // the client itself drops records of an earlier assignment
			return refused
		case ck.Error:
			c.logs.login.told(ev)
			if err := asConfluentError(doing, ev); errors.Is(err, kafka.ErrAuthorization) {
				refused = err
			}
		}
	}
}

func (c *confluentConsumer) close(what string) error {
	if !c.closed {
		c.closed = true
		c.logs.login.stop()
		c.closeErr = confluentClose(what, func() {
			// An error says that a client with a fatal error could not say goodbye. It is closed all the same.
			_ = c.client.Close()
			c.logs.close()
		})
	}
	return c.closeErr
}

// confluentReader reads by assignment. librdkafka requires a group.id, but the reader joins no group.
type confluentReader struct {
	confluentConsumer
	topic   string
	from    []int64        // the assigned positions
	looking sync.WaitGroup // waits for look
	leaving atomic.Bool
}

func (p confluent) LogReader(props map[string]string, log *slog.Logger) (kafka.LogReader, error) {
	c, err := p.consumer(props, log)
	if err != nil {
		return nil, err
	}
	return &confluentReader{confluentConsumer: c}, nil
}

func (r *confluentReader) Assign(topic string, offsets []int64) error {
	if r.closed {
		return errClientClosed
	}
	var parts []ck.TopicPartition
	for i, o := range offsets {
		if o == kafka.NotRead {
			continue
		}
		if o < 0 {
			return fmt.Errorf("assign %s[%d]: offset %d is not a position", topic, i, o)
		}
		parts = append(parts, ck.TopicPartition{Topic: &topic, Partition: int32(i), Offset: ck.Offset(o)})
	}
	_ = r.forget("read") // an assignment makes the client report it again
	if err := r.client.Assign(parts); err != nil {
		return asConfluentError("assign "+topic, err)
	}
	if r.topic != topic {
		r.looking.Go(func() { r.look(topic) })
	}
	r.topic, r.from = topic, append([]int64(nil), offsets...)
	return nil
}

// look asks for the leaders of a topic. By itself, the client looks only once a second for the
// leaders of a topic that is new to it. A request is lost if its connection is about to be
// replaced. If no broker answers for long, the client goes on by itself.
func (r *confluentReader) look(topic string) {
	for range 5 {
		if _, err := r.client.GetMetadata(&topic, false, 200); err == nil || r.leaving.Load() {
			return
		}
	}
}

func (r *confluentReader) Poll(timeout time.Duration) (kafka.Record, bool, error) {
	if r.closed {
		return kafka.Record{}, false, errClientClosed
	}
	for deadline := time.Now().Add(timeout); ; {
		switch ev := r.next(deadline).(type) {
		case *ck.Message:
			if err := ev.TopicPartition.Error; err != nil {
				return kafka.Record{}, false, asConfluentError("read", err)
			}
			if r.asked(ev.TopicPartition) {
				return confluentRecord(ev), true, nil
			}
		case ck.Error:
			// The client looks for the coordinator of its group, although it does not join. A user
			// without access to the group may read nevertheless.
			if ev.Code() != ck.ErrGroupAuthorizationFailed {
				err := r.classify("read", ev)
				return kafka.Record{}, false, cmp.Or(confluentUnreadable(ev, err), err)
			}
		}
		if confluentOver(deadline) {
			return kafka.Record{}, false, nil
		}
	}
}

var confluentAt = regexp.MustCompile(`message at (\d+) of`)

// confluentUnreadable finds the error of a record that the client cannot read, or returns nil. The client
// repeats its request after that, with the same result. Only the text says where the record's batch
// begins, and nothing says in which partition.
func confluentUnreadable(e ck.Error, err error) error {
	at := confluentAt.FindStringSubmatch(e.String())
	if at == nil && e.Code() != ck.ErrBadCompression {
		return nil
	}
	out := &kafka.UnreadableError{Partition: -1, Err: err}
	if at != nil {
		if first, err := strconv.ParseInt(at[1], 10, 64); err == nil {
			out.Next = first + 1
		}
	}
	return out
}

// asked reports whether a record belongs to the present assignment. The client itself drops what
// it fetched for an earlier one; this check makes the promise of Assign independent of that. A
// record at or after the assigned position passes even if its offset is below that of an earlier
// record, since the log may have gone back.
func (r *confluentReader) asked(tp ck.TopicPartition) bool {
	return *tp.Topic == r.topic && int(tp.Partition) < len(r.from) && int64(tp.Offset) >= r.from[tp.Partition]
}

func confluentRecord(m *ck.Message) kafka.Record {
	return kafka.Record{Partition: int(m.TopicPartition.Partition), Offset: int64(m.TopicPartition.Offset), Value: m.Value,
		Epoch: confluentEpoch(m.TopicPartition.LeaderEpoch), Time: m.Timestamp}
}

// confluentEpoch returns a leader epoch, −1 if there is none.
func confluentEpoch(epoch *int32) int {
	if epoch == nil {
		return -1
	}
	return int(*epoch)
}

func (r *confluentReader) Close() error {
	r.leaving.Store(true)
	r.looking.Wait()
	return r.close("log reader")
}
