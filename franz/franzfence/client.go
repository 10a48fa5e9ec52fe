package franzfence

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/goneli/neli/fence"
	"github.com/goneli/neli/internal/absent"
)

// client is one transactional producer.
type client struct {
	id     string
	kafka  *kgo.Client
	inits  *initCounter
	absent *absent.Topics
}

func newClient(opts []kgo.Opt, id string, topics *absent.Topics) (*client, error) {
	c := &client{id: id, inits: &initCounter{}, absent: topics}
	var err error
	if c.kafka, err = kgo.NewClient(append(transactional(opts, id), kgo.WithHooks(c.inits))...); err != nil {
		return nil, refusedOptions(err)
	}
	return c, nil
}

// transactional returns the options of a producer.
func transactional(opts []kgo.Opt, id string) []kgo.Opt {
	return slices.Concat([]kgo.Opt{kgo.TransactionTimeout(timeout)}, opts, []kgo.Opt{kgo.TransactionalID(id)})
}

func refusedOptions(err error) error {
	return fmt.Errorf("fence: the client refuses its options: %w", err)
}

func (c *client) Init(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c.inits.enough = func() { cancel(errBusy) }
	_, _, err := c.kafka.ProducerID(ctx)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	return c.classify(err)
}

func (c *client) Begin() error { return c.classify(c.kafka.BeginTransaction()) }

// errParted says that the client has renewed its producer id during a transaction. That aborts the
// records written before; the client has written the other records to another transaction. It
// renews its id if a broker refuses a batch for its epoch, and retention has removed what the client
// wrote before.
var errParted = errors.New("the client has begun another transaction with a part of the records")

// Produce returns when its context ends. The client itself would wait longer if it cannot know whether the brokers have
// a record. Produce works on copies, since the client may go on with them until Close.
func (c *client) Produce(ctx context.Context, records []*kgo.Record) error {
	began := time.Now()
	copies, results := make([]kgo.Record, len(records)), make(chan kgo.ProduceResult, len(records))
	for i, r := range records {
		if r == nil {
			return fmt.Errorf("%w: record %d of %d is nil", fence.ErrPermanent, i+1, len(records))
		}
		copies[i] = *r
		c.kafka.Produce(ctx, &copies[i], func(r *kgo.Record, err error) { results <- kgo.ProduceResult{Record: r, Err: err} })
	}
	for range records {
		select {
		case result := <-results:
			if result.Err != nil {
				return c.refused(result.Record, result.Err, began)
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	for i := range copies {
		if *records[i] = copies[i]; copies[i].ProducerID != copies[0].ProducerID || copies[i].ProducerEpoch != copies[0].ProducerEpoch {
			return errParted
		}
	}
	c.absent.Known(func(yield func(string) bool) {
		for _, r := range records {
			if !yield(r.Topic) {
				return
			}
		}
	})
	return nil
}

// refused returns the error of a record. The client gives a topic up within about a second (kgo.UnknownTopicRetries).
// It refuses a record without a topic itself, with an error that it does not export; a record that gets the default
// topic (kgo.DefaultProduceTopic) has it by now.
func (c *client) refused(r *kgo.Record, err error, began time.Time) error {
	if r.Topic == "" {
		return c.classify(fmt.Errorf("%w: %w", kerr.InvalidTopicException, err))
	}
	if (errors.Is(err, kerr.UnknownTopicOrPartition) || noPartition(err)) && c.absent.Missing(r.Topic, began, time.Now()) {
		err = fmt.Errorf("%w: %w", fence.ErrPermanent, err)
	}
	return c.classify(fmt.Errorf("%s[%d]: %w", r.Topic, r.Partition, err))
}

// noPartition reports whether the client has refused a record because its topic has fewer partitions than the partitioner assumes.
// It does not export that error.
func noPartition(err error) bool {
	return strings.HasPrefix(err.Error(), "invalid record partitioning choice")
}

func (c *client) Commit(ctx context.Context) error {
	return c.classify(c.kafka.EndTransaction(ctx, kgo.TryCommit))
}

func (c *client) Close() { c.kafka.Close() }

// classify marks errors that another producer would get, too, and names a missing right.
func (c *client) classify(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, kerr.TransactionalIDAuthorizationFailed):
		return fmt.Errorf("%w: the principal needs WRITE on TransactionalId %s, or on the prefix of its group: %w", fence.ErrPermanent, c.id, err)
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		return fmt.Errorf("%w: the principal needs WRITE on the topic: %w", fence.ErrPermanent, err)
	case slices.ContainsFunc(permanent, func(kind error) bool { return errors.Is(err, kind) }):
		return fmt.Errorf("%w: %w", fence.ErrPermanent, err)
	}
	return err
}

// permanent are the errors that another producer would get, too. An unknown topic becomes one after
// a while: see refused.
var permanent = []error{
	kerr.ClusterAuthorizationFailed, kerr.SaslAuthenticationFailed, kerr.UnsupportedSaslMechanism,
	kerr.MessageTooLarge, kerr.RecordListTooLarge, kerr.InvalidRecord, kerr.InvalidTimestamp,
	kerr.InvalidTopicException, kerr.PolicyViolation,
	kerr.InvalidTransactionTimeout, kerr.UnsupportedVersion,
}

// mostInits is how many requests one Init may send. By itself, franz-go repeats the request every
// 20 ms as long as the coordinator is busy.
const mostInits = 15

var errBusy = errors.New("the coordinator was busy with another transaction each time")

// initCounter counts the answers to an Init.
type initCounter struct {
	read   atomic.Int32
	enough func() // ends the Init; set before its first request
}

var _ kgo.HookBrokerRead = (*initCounter)(nil)

// OnBrokerRead is called by the client after each answer, before it may repeat the request. It ends the Init itself,
// because another goroutine might run too late to do so.
func (c *initCounter) OnBrokerRead(_ kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, err error) {
	if key == int16(kmsg.InitProducerID) && err == nil && c.read.Add(1) == mostInits {
		c.enough()
	}
}
