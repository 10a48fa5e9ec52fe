package fenced

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/goneli/neli/fence"
	"github.com/goneli/neli/fence/confluent"
	"github.com/goneli/neli/franz/franzfence"
)

// account is a client's login, and the address that accepts it.
type account struct {
	bootstrap, user, password, ca string
}

// writer hides the clients' types of records. The tests only write texts to partition 0 of a topic.
type writer struct {
	name string
	// check is New, and then AppendOnly for topics.
	check func(ctx context.Context, who account, topics ...string) error
	// lead is Transactions with this client. For each client it opens, wrap makes the pause before that client's calls.
	lead func(ctx context.Context, who account, id, topic string, term fence.Term, wrap func() pause, work func(context.Context, commitText) error) error
}

// commitText is Commit for one text.
type commitText func(ctx context.Context, text string) error

// pause is called before each call of a client.
type pause func(what string)

// opener has the methods of both adapters.
type opener[R any] interface {
	Open(transactionalID string) func() (fence.Client[R], error)
	AppendOnly(ctx context.Context, topics ...string) error
}

var writers = []writer{
	adapt("confluent", func(ctx context.Context, who account) (opener[*kafka.Message], error) {
		config := kafka.ConfigMap{"bootstrap.servers": who.bootstrap, "linger.ms": 0}
		if who.user != "" {
			for name, value := range map[string]string{
				"security.protocol": "SASL_SSL", "ssl.ca.pem": who.ca, "sasl.mechanism": "SCRAM-SHA-512",
				"sasl.username": who.user, "sasl.password": who.password,
			} {
				config[name] = value
			}
		}
		o, err := confluent.New(ctx, config)
		return o, err
	}, func(topic, text string) *kafka.Message {
		return &kafka.Message{TopicPartition: kafka.TopicPartition{Topic: &topic, Partition: 0}, Value: []byte(text)}
	}),
	adapt("franz", func(ctx context.Context, who account) (opener[*kgo.Record], error) {
		opts := []kgo.Opt{kgo.SeedBrokers(strings.Split(who.bootstrap, ",")...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0)}
		if who.user != "" {
			pool := x509.NewCertPool()
			pool.AppendCertsFromPEM([]byte(who.ca))
			opts = append(opts, kgo.DialTLSConfig(&tls.Config{RootCAs: pool}),
				kgo.SASL(scram.Auth{User: who.user, Pass: who.password}.AsSha512Mechanism()))
		}
		o, err := franzfence.New(ctx, opts...)
		return o, err
	}, func(topic, text string) *kgo.Record { return &kgo.Record{Topic: topic, Value: []byte(text)} }),
}

func adapt[R any](name string, ask func(context.Context, account) (opener[R], error), record func(topic, text string) R) writer {
	var openers sync.Map // by account: a program asks for the brokers' settings when it starts, not in each term
	open := func(ctx context.Context, who account) (opener[R], error) {
		if o, asked := openers.Load(who); asked {
			return o.(opener[R]), nil
		}
		o, err := ask(ctx, who)
		if err == nil {
			openers.Store(who, o)
		}
		return o, err
	}
	return writer{
		name: name,
		check: func(ctx context.Context, who account, topics ...string) error {
			o, err := open(ctx, who)
			if err != nil || len(topics) == 0 {
				return err
			}
			return o.AppendOnly(ctx, topics...)
		},
		lead: func(ctx context.Context, who account, id, topic string, term fence.Term, wrap func() pause, work func(context.Context, commitText) error) error {
			o, err := open(ctx, who)
			if err != nil {
				return err
			}
			opened := o.Open(id)
			return fence.Transactions(ctx, term, func() (fence.Client[R], error) {
				pause := wrap()
				pause("open")
				c, err := opened()
				return paused[R]{c, pause}, err
			}, func(ctx context.Context, p *fence.Producer[R]) error {
				return work(ctx, func(ctx context.Context, text string) error { return p.Commit(ctx, record(topic, text)) })
			})
		},
	}
}

// paused is a client whose process may be suspended before each call, and after it.
type paused[R any] struct {
	fence.Client[R]
	pause pause
}

func (p paused[R]) Init(ctx context.Context) error {
	p.pause("init")
	err := p.Client.Init(ctx)
	p.pause("initialised")
	return err
}

func (p paused[R]) Begin() error {
	p.pause("begin")
	return p.Client.Begin()
}

func (p paused[R]) Produce(ctx context.Context, records []R) error {
	p.pause("produce")
	return p.Client.Produce(ctx, records)
}

func (p paused[R]) Commit(ctx context.Context) error {
	p.pause("commit")
	return p.Client.Commit(ctx)
}

func awake() pause { return func(string) {} }

// always is a term that does not end.
type always struct{}

func (always) Valid() bool { return true }

// admin sends requests to a broker.
type admin struct {
	*testing.T
	client *kgo.Client
}

func newAdmin(t *testing.T, bootstrap string) admin {
	client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(bootstrap, ",")...))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return admin{t, client}
}

func (a admin) create(topic string, settings map[string]string) {
	a.Helper()
	req := kmsg.NewPtrCreateTopicsRequest()
	of := kmsg.NewCreateTopicsRequestTopic()
	of.Topic, of.NumPartitions, of.ReplicationFactor = topic, 1, 1
	for name, value := range settings {
		c := kmsg.NewCreateTopicsRequestTopicConfig()
		c.Name, c.Value = name, &value
		of.Configs = append(of.Configs, c)
	}
	req.Topics = append(req.Topics, of)
	resp, err := req.RequestWith(a.Context(), a.client)
	require.NoError(a, err)
	require.NoError(a, kerr.ErrorForCode(resp.Topics[0].ErrorCode))
	require.Eventually(a, func() bool { _, err := a.end(topic, 0); return err == nil }, time.Minute, 20*time.Millisecond)
}

// end returns the offset after the last record of partition 0: with isolation level 0 of all records, with 1 of those
// before an open transaction.
func (a admin) end(topic string, isolation int8) (int64, error) {
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID, req.IsolationLevel = -1, isolation
	of := kmsg.NewListOffsetsRequestTopic()
	p := kmsg.NewListOffsetsRequestTopicPartition()
	of.Topic, p.Timestamp = topic, -1
	of.Partitions = append(of.Partitions, p)
	req.Topics = append(req.Topics, of)
	resp, err := req.RequestWith(context.Background(), a.client)
	if err != nil {
		return 0, err
	}
	return resp.Topics[0].Partitions[0].Offset, kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode)
}

// forgotten reports whether the coordinator no longer knows an id.
func (a admin) forgotten(id string) bool {
	req := kmsg.NewPtrDescribeTransactionsRequest()
	req.TransactionalIDs = []string{id}
	resp, err := req.RequestWith(context.Background(), a.client)
	return err == nil && resp.TransactionStates[0].ErrorCode == kerr.TransactionalIDNotFound.Code
}

// read calls each with the committed records of partition 0, from an offset up to the present end. Like a real
// application that reads its state, it waits for open transactions.
func (a admin) read(ctx context.Context, topic string, from int64, each func(text string)) error {
	end, err := a.end(topic, 0)
	if err != nil || end <= from {
		return err
	}
	client, err := kgo.NewClient(append(a.client.Opts(), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
		kgo.FetchMaxWait(50*time.Millisecond), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().At(from)}}))...)
	if err != nil {
		return err
	}
	defer client.Close()
	for position := from; position < end; {
		settled, err := a.end(topic, 1) // asked before the poll: what is settled is there to be read
		if err != nil {
			return err
		}
		part, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
		fetches := client.PollFetches(part)
		cancel()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if position = r.Offset + 1; r.Offset < end && !r.Attrs.IsControl() {
				each(string(r.Value))
			}
		})
		if fetches.NumRecords() == 0 && settled >= end {
			return nil // the last ones were aborted, and are not shown
		}
	}
	return nil
}

var names atomic.Int64

func fresh(what string) string { return fmt.Sprintf("%s-%d", what, names.Add(1)) }
