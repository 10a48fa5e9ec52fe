//go:build cgo && !neli_nolibrdkafka

package confluent

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"github.com/goneli/neli/fence"
	"github.com/goneli/neli/internal/absent"
	library "github.com/goneli/neli/internal/confluent"
)

// client is one transactional producer. Its init goes on in the background after its deadline,
// until Close. It repeats a request every half second while the coordinator is busy, so it sends no
// more than a dozen within Transactions' longest wait.
type client struct {
	id    string
	kafka transactional
	*watcher
	absent *absent.Topics
	limit  time.Duration   // for a commit: transaction.timeout.ms
	commit <-chan struct{} // closed when the client's call to commit has returned; nil: commit was not called
}

// transactional is what a client needs of a *kafka.Producer.
type transactional interface {
	InitTransactions(context.Context) error
	BeginTransaction() error
	Produce(*kafka.Message, chan kafka.Event) error
	CommitTransaction(context.Context) error
	Purge(flags int) error
	Close()
}

func newClient(config kafka.ConfigMap, id string, topics *absent.Topics) (*client, error) {
	config = maps.Clone(config)
	config["transactional.id"] = id
	config["go.events.channel.size"] = 64 // the default takes 16 MB
	p, w, err := newProducer(config)
	if err != nil {
		return nil, err
	}
	return &client{id: id, kafka: p, watcher: w, absent: topics, limit: commitLimit(config)}, nil
}

// commitLimit is transaction.timeout.ms, after which the coordinator aborts a transaction that
// nothing has ended. librdkafka has accepted the value.
func commitLimit(config kafka.ConfigMap) time.Duration {
	ms, err := strconv.Atoi(fmt.Sprint(config["transaction.timeout.ms"]))
	if err != nil || ms <= 0 {
		ms = 60_000 // librdkafka's default
	}
	return time.Duration(ms) * time.Millisecond
}

// autoCreate is a property that is true by default for producers.
const autoCreate = "allow.auto.create.topics"

// newProducer makes a client with a watcher. The client prints a fatal error when its producer is
// fenced, which is the purpose of a fence. So its log is dropped unless config has a channel for it:
// the errors returned here have everything that matters.
func newProducer(config kafka.ConfigMap) (*kafka.Producer, *watcher, error) {
	config["go.produce.channel.size"] = 0 // not used, and large by default
	if _, chosen := config[autoCreate]; !chosen {
		config[autoCreate] = false // a deleted topic must not come back with the brokers' defaults, perhaps compacted
	}
	_, chosen := config["go.logs.channel"]
	config["go.logs.channel.enable"] = true
	p, err := kafka.NewProducer(&config)
	if err != nil {
		return nil, nil, fmt.Errorf("fence: the client refuses its properties: %w", err)
	}
	if !chosen {
		logs := p.Logs() // Close closes it
		go func() {
			for range logs {
				continue
			}
		}()
	}
	return p, watch(p), nil
}

func (c *client) Init(ctx context.Context) error {
	err := resume(ctx, c.kafka.InitTransactions)
	if err != nil {
		err = c.explain(err)
	}
	return c.classify(err)
}

func (c *client) Begin() error { return c.classify(c.kafka.BeginTransaction()) }

func (c *client) Produce(ctx context.Context, records []*kafka.Message) error {
	began := time.Now()
	reports := make(chan kafka.Event, len(records)) // so that late reports find room, too
	for i, r := range records {
		if r == nil {
			return fmt.Errorf("%w: record %d of %d is nil", fence.ErrPermanent, i+1, len(records))
		}
		record := *r
		err := c.kafka.Produce(&record, reports)
		if is(err, kafka.ErrQueueFull) {
			return c.classify(fmt.Errorf("a Commit of %d records is too large: the client has room for %d of them (queue.buffering.max.messages, queue.buffering.max.kbytes): %w",
				len(records), i, err))
		}
		if err != nil {
			return c.refused(record.TopicPartition, err, began)
		}
	}
	for range records {
		select {
		case report := <-reports:
			if m, ok := report.(*kafka.Message); ok && m.TopicPartition.Error != nil {
				return c.refused(m.TopicPartition, m.TopicPartition.Error, began)
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	c.absent.Known(func(yield func(string) bool) {
		for _, r := range records {
			if !yield(*r.TopicPartition.Topic) {
				return
			}
		}
	})
	return nil
}

// refused returns the error of a record. The client itself waits for a topic that it has never
// known (topic.metadata.propagation.max.ms), but not for one that a broker has forgotten.
func (c *client) refused(at kafka.TopicPartition, err error, began time.Time) error {
	if is(err, unknown...) && at.Topic != nil && c.absent.Missing(*at.Topic, began, time.Now()) {
		err = fmt.Errorf("%w: %w", fence.ErrPermanent, err)
	}
	return c.classify(fmt.Errorf("%s: %w", at, err))
}

var unknown = []kafka.ErrorCode{kafka.ErrUnknownTopic, kafka.ErrUnknownTopicOrPart, kafka.ErrUnknownPartition}

// Commit calls the client once. librdkafka 2.15.1 aborts the process if a resumed call to commit
// times out before librdkafka's main thread has looked at it, and the coordinator then answers
// (docs/clients.md); it is enough that the process is suspended at that moment. So when ctx ends,
// the call goes on in the background, but no longer than limit: by then the coordinator has aborted
// the transaction, unless it has committed it.
func (c *client) Commit(ctx context.Context) error {
	done, returned := make(chan error, 1), make(chan struct{})
	c.commit = returned
	go func() {
		defer close(returned)
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.limit)
		defer cancel()
		done <- c.kafka.CommitTransaction(limited)
	}()
	select {
	case err := <-done:
		return c.classify(err)
	case <-ctx.Done():
		return fmt.Errorf("no answer yet: %w", context.Cause(ctx))
	}
}

// Close drops records that are not written yet, since their transaction will not be committed. A
// client that is still committing must not be closed: it is closed in the background when it has
// finished.
func (c *client) Close() {
	_ = c.kafka.Purge(kafka.PurgeQueue | kafka.PurgeInFlight | kafka.PurgeNonBlocking)
	if c.commit == nil {
		c.kafka.Close()
		return
	}
	select {
	case <-c.commit:
		c.kafka.Close()
	default:
		go func() {
			<-c.commit
			c.kafka.Close()
		}()
	}
}

// slice is the longest time that a call into the client goes on after its context was cancelled.
const slice = 50 * time.Millisecond

// resume calls a method with a short deadline, and again whenever it times out: the client notices
// a context's deadline, but not its cancellation. Calling again resumes the operation. Do not use it
// for a commit: see Commit.
func resume(ctx context.Context, call func(context.Context) error) error {
	for {
		part, cancel := context.WithTimeout(ctx, slice)
		err := call(part)
		cancel()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case !is(err, kafka.ErrTimedOut):
			return err
		}
	}
}

// classify marks an error that another producer would get, too, and names a missing right.
func (c *client) classify(err error) error {
	switch {
	case err == nil:
		return nil
	case is(err, kafka.ErrTransactionalIDAuthorizationFailed):
		return fmt.Errorf("%w: the principal needs WRITE on TransactionalId %s, or on the prefix of its group: %w", fence.ErrPermanent, c.id, err)
	case is(err, kafka.ErrTopicAuthorizationFailed):
		return fmt.Errorf("%w: the principal needs WRITE on the topic: %w", fence.ErrPermanent, err)
	case is(err, permanent...):
		return fmt.Errorf("%w: %w", fence.ErrPermanent, err)
	}
	return err
}

// permanent are the errors that another producer would get, too. An unknown topic becomes one after
// a while: see refused.
var permanent = []kafka.ErrorCode{
	kafka.ErrClusterAuthorizationFailed, kafka.ErrSaslAuthenticationFailed, kafka.ErrAuthentication,
	kafka.ErrMsgSizeTooLarge, kafka.ErrInvalidMsgSize, kafka.ErrRecordListTooLarge, kafka.ErrInvalidMsg, kafka.ErrInvalidRecord, kafka.ErrInvalidTimestamp,
	kafka.ErrTopicException, kafka.ErrPolicyViolation,
	kafka.ErrInvalidTransactionTimeout, kafka.ErrUnsupportedFeature, kafka.ErrInvalidArg, kafka.ErrQueueFull,
}

// watcher collects what a client reports about its connections.
type watcher struct {
	login atomic.Pointer[kafka.Error] // the error of the last login that failed
}

// watch reads the events of a client until it is closed.
func watch(p *kafka.Producer) *watcher {
	w := &watcher{}
	go func() {
		for event := range p.Events() {
			if e, ok := event.(kafka.Error); ok && is(e, kafka.ErrAuthentication, kafka.ErrSaslAuthenticationFailed, kafka.ErrSsl) {
				w.login.Store(&e)
			}
		}
	}()
	return w
}

// refused reports whether a broker has refused the login.
func (w *watcher) refused() bool {
	why := w.login.Load()
	return why != nil && library.Refused(*why)
}

// explain adds to an error why the client could not log in: everything that waits for a broker times out then. It wraps
// the login's error only if that is a refusal. A broker that disappears during a login, or a token service that does
// not answer, may be there next time.
func (w *watcher) explain(err error) error {
	switch why := w.login.Load(); {
	case why == nil:
		return err
	case library.Refused(*why):
		return fmt.Errorf("%w: %w", *why, err)
	default:
		return fmt.Errorf("%v: %w", *why, err)
	}
}
