// Package franzfence is fence.Transactions on franz-go.
//
//	kafkas, err := franzfence.New(ctx, kgo.SeedBrokers("localhost:9092"))
//	…
//	err = n.Lead(ctx, func(ctx context.Context, l neli.Leadership) error {
//		open := kafkas.Open(fence.TransactionalID("invoicing", l.Role))
//		return fence.Transactions(ctx, l, open, func(ctx context.Context, p *franzfence.Producer) error {
//			// read the state, then for as long as ctx.Err() is nil:
//			return p.Commit(ctx, &kgo.Record{…})
//		})
//	})
package franzfence

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/goneli/neli/fence"
	"github.com/goneli/neli/internal/absent"
)

// Producer is the producer that the work writes with.
type Producer = fence.Producer[*kgo.Record]

// Opener makes the transactional producers of one cluster. It is safe for concurrent use, and holds no connection.
type Opener struct {
	opts   []kgo.Opt
	absent absent.Topics
}

// New asks the brokers of a cluster whether they verify transactions. If one does not, the error is
// fence.ErrUnverified and names the version that does. Call it once, when the program starts.
//
// The question needs DESCRIBE_CONFIGS on the cluster. Brokers do not answer a principal without
// that right. New then learns nothing about the brokers, and returns an Opener all the same.
// Brokers that are down at that moment are not asked. While none answers, New repeats the question
// after pauses of up to a second, until ctx ends: give ctx a time-out. A name that does not exist, a
// refused login and the like are errors at once. So is an option that the client refuses, even if it
// refuses it only for transactions.
//
// The time-out of transactions is 15 s unless an option sets another one
// (kgo.TransactionTimeout). It must be longer than the longest transaction. A suspended leader's
// open transaction blocks readers for that long. Open sets kgo.TransactionalID.
func New(ctx context.Context, opts ...kgo.Opt) (*Opener, error) {
	o := &Opener{opts: slices.Clone(opts)}
	if err := kgo.ValidateOpts(transactional(o.opts, "neli")...); err != nil { // no broker gets that id
		return nil, refusedOptions(err)
	}
	if err := o.ask(func(kafka *kgo.Client) error { return verified(ctx, kafka) }); err != nil {
		return nil, err
	}
	return o, nil
}

// verified repeats verify while it gets no answer, until ctx ends.
func verified(ctx context.Context, kafka *kgo.Client) error {
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := verify(ctx, kafka)
		if !unanswered(err) {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
}

// unanswered reports whether no broker was reached, or one did not answer in time.
func unanswered(err error) bool {
	if name, ok := errors.AsType[*net.DNSError](err); ok {
		return name.IsTemporary || name.IsTimeout
	}
	op, ok := errors.AsType[*net.OpError](err)
	return ok && (op.Op == "dial" || op.Timeout())
}

// verify asks each broker whether it verifies transactions.
func verify(ctx context.Context, kafka *kgo.Client) error {
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{} // no topics; nil would ask for all
	metadata, err := req.RequestWith(ctx, kafka)
	if err != nil {
		return fmt.Errorf("fence: asking for the brokers: %w", err)
	}
	for _, b := range metadata.Brokers {
		settings, err := settingsOf(ctx, kafka, kmsg.ConfigResourceTypeBroker, strconv.Itoa(int(b.NodeID)))
		switch {
		case errors.Is(err, kerr.ClusterAuthorizationFailed):
			return nil
		case err != nil:
			return fmt.Errorf("fence: asking broker %d for its settings: %w", b.NodeID, err)
		case settings["transaction.partition.verification.enable"] != "true":
			return fmt.Errorf("%w: broker %d", fence.ErrUnverified, b.NodeID)
		}
	}
	return nil
}

// Open returns the function with which fence.Transactions opens a new producer, for one role's fence.TransactionalID.
func (o *Opener) Open(transactionalID string) func() (fence.Client[*kgo.Record], error) {
	return func() (fence.Client[*kgo.Record], error) { return newClient(o.opts, transactionalID, &o.absent) }
}

// AppendOnly returns fence.ErrCompacted if one of the topics is compacted, since fence.Filter is
// not enough there. It needs DESCRIBE_CONFIGS on the topics; if the right is missing, the error
// says so.
func (o *Opener) AppendOnly(ctx context.Context, topics ...string) error {
	return o.ask(func(kafka *kgo.Client) error {
		for _, topic := range topics {
			settings, err := settingsOf(ctx, kafka, kmsg.ConfigResourceTypeTopic, topic)
			switch {
			case errors.Is(err, kerr.TopicAuthorizationFailed):
				return fmt.Errorf("topic %s: the principal needs DESCRIBE_CONFIGS on it: %w", topic, err)
			case err != nil:
				return fmt.Errorf("topic %s: %w", topic, err)
			case strings.Contains(settings["cleanup.policy"], "compact"):
				return fmt.Errorf("%w: %s has cleanup.policy=%s", fence.ErrCompacted, topic, settings["cleanup.policy"])
			}
		}
		return nil
	})
}

// ask calls f with a client that is not transactional.
func (o *Opener) ask(f func(*kgo.Client) error) error {
	kafka, err := kgo.NewClient(o.opts...)
	if err != nil {
		return refusedOptions(err)
	}
	defer kafka.Close()
	return f(kafka)
}

// settingsOf returns the settings of a broker or a topic.
func settingsOf(ctx context.Context, kafka *kgo.Client, kind kmsg.ConfigResourceType, name string) (map[string]string, error) {
	req := kmsg.NewPtrDescribeConfigsRequest()
	r := kmsg.NewDescribeConfigsRequestResource()
	r.ResourceType, r.ResourceName = kind, name
	req.Resources = append(req.Resources, r)
	resp, err := req.RequestWith(ctx, kafka)
	if err != nil {
		return nil, err
	}
	settings := map[string]string{}
	for _, r := range resp.Resources {
		if err := kerr.ErrorForCode(r.ErrorCode); err != nil {
			return nil, err
		}
		for _, c := range r.Configs {
			if c.Value != nil {
				settings[c.Name] = *c.Value
			}
		}
	}
	return settings, nil
}

// timeout is the time-out of a transaction unless an option sets another one.
const timeout = 15 * time.Second
