package store

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/confluentinc/confluent-kafka-go/v2/kafka"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/goneli/neli/fence"
	"github.com/goneli/neli/fence/confluent"
	"github.com/goneli/neli/franz/franzfence"
)

// Topic has the records written by transactions, in a partition for each role.
const Topic = "chaos-writes"

// transactions is a topic to which leaders write by fence.Transactions.
type transactions struct {
	lead     leading
	unfenced bool
	terms    atomic.Int64
	reader   *Reader
}

// leading is fence.Transactions on a client.
type leading func(ctx context.Context, t fence.Term, id string, work func(context.Context, commit) error) error

// commit is Producer.Commit of one record, whatever the client's type for it.
type commit func(ctx context.Context, role int, value []byte) error

func newTransactions(c Config) (*transactions, error) {
	reader, err := NewReader(c.Bootstrap, nil)
	if err != nil {
		return nil, err
	}
	s := &transactions{unfenced: c.Unfenced, reader: reader, lead: onConfluent(c.Bootstrap)}
	if c.Franz {
		s.lead = onFranz(c.Bootstrap)
	}
	return s, nil
}

func onConfluent(bootstrap string) leading {
	return leadOn(func(ctx context.Context) (opener[*kafka.Message], error) {
		return confluent.New(ctx, kafka.ConfigMap{"bootstrap.servers": bootstrap, "linger.ms": 0})
	}, func(role int, value []byte) *kafka.Message {
		topic := Topic
		return &kafka.Message{TopicPartition: kafka.TopicPartition{Topic: &topic, Partition: int32(role)}, Value: value}
	})
}

func onFranz(bootstrap string) leading {
	return leadOn(func(ctx context.Context) (opener[*kgo.Record], error) {
		return franzfence.New(ctx, kgo.SeedBrokers(seeds(bootstrap)...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0))
	}, func(role int, value []byte) *kgo.Record {
		return &kgo.Record{Topic: Topic, Partition: int32(role), Value: value}
	})
}

// opener is the method that both adapters have.
type opener[R any] interface {
	Open(transactionalID string) func() (fence.Client[R], error)
}

// asking bounds one check whether the brokers are suitable. After that the check is repeated, since one of them may be disturbed.
const asking = 3 * time.Second

func leadOn[R any](open func(context.Context) (opener[R], error), record func(role int, value []byte) R) leading {
	return func(ctx context.Context, t fence.Term, id string, work func(context.Context, commit) error) error {
		o, err := backoff.Retry(ctx, func() (opener[R], error) {
			limited, cancel := context.WithTimeout(ctx, asking)
			defer cancel()
			return open(limited)
		}, backoff.WithMaxElapsedTime(0))
		if err != nil {
			return err
		}
		return fence.Transactions(ctx, t, o.Open(id), func(ctx context.Context, p *fence.Producer[R]) error {
			return work(ctx, func(ctx context.Context, role int, value []byte) error { return p.Commit(ctx, record(role, value)) })
		})
	}
}

func (s *transactions) Lead(ctx context.Context, t Term, work func(context.Context, Writer) error) error {
	id := fence.TransactionalID(group, t.Role)
	if s.unfenced { // an id that no other term uses does not fence other terms
		id = fmt.Sprintf("%s/%d/%s/%d", id, t.Token, t.Member, s.terms.Add(1))
	}
	t.Claiming()
	return s.lead(ctx, t, id, func(ctx context.Context, c commit) error {
		t.Claimed(true)
		err := work(ctx, transactionWriter{c, t})
		if err != nil {
			t.Claiming() // another client follows as long as the term lasts
		}
		return err
	})
}

func (s *transactions) Read(ctx context.Context, role int) (token, value int64, err error) {
	return s.reader.Read(ctx, role)
}

func (s *transactions) Concurrent() bool { return false }

func (s *transactions) Close() { s.reader.Close() }

type transactionWriter struct {
	commit commit
	term   Term
}

// record is the JSON value of a record in Topic.
type record struct {
	Token, Value int64
	Member       string
}

// Write never reports a refusal: after an error the outcome is unknown.
func (w transactionWriter) Write(ctx context.Context, value int64) (accepted bool, err error) {
	b, err := json.Marshal(record{w.term.Token, value, w.term.Member})
	if err != nil {
		return false, err
	}
	err = w.commit(ctx, w.term.Role, b)
	return err == nil, err
}
