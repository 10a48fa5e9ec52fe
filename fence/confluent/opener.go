//go:build cgo && !neli_nolibrdkafka

package confluent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"github.com/goneli/neli/fence"
	"github.com/goneli/neli/internal/absent"
)

// Producer is what work writes with.
type Producer = fence.Producer[*kafka.Message]

// Opener makes the transactional producers of one cluster. It is safe for concurrent use, and holds no connection.
type Opener struct {
	config kafka.ConfigMap
	absent absent.Topics
}

// New asks the brokers of a cluster whether they verify transactions. If one does not, the error is fence.ErrUnverified
// and names the version that does. Call it once, when the program starts.
//
// The question needs DESCRIBE_CONFIGS on the cluster. Without that right, or if a broker has no such request, New
// learns nothing about the brokers, and returns an Opener all the same. Brokers that are down at that moment are not
// asked. While none answers, New repeats the question until ctx ends: give ctx a timeout. A refused login is an error
// at once, unless another broker answers. So is a property that the client refuses, even if it refuses it only for
// transactions.
//
// config has librdkafka's properties. One Commit may have as many records as fit into queue.buffering.max.messages
// (100,000) and queue.buffering.max.kbytes (1 GiB). transaction.timeout.ms is 15,000 unless config says otherwise: it
// must be longer than the longest transaction, and a suspended leader's open transaction blocks readers for as long.
// allow.auto.create.topics is false unless config says otherwise. Open sets transactional.id. The client's log is
// dropped, since it calls each fenced producer fatal; with config["go.logs.channel"] it goes there instead.
func New(ctx context.Context, config kafka.ConfigMap) (*Opener, error) {
	o := &Opener{config: kafka.ConfigMap{}} // a copy, also if config is nil
	maps.Copy(o.config, config)
	if _, chosen := o.config["transaction.timeout.ms"]; !chosen {
		o.config["transaction.timeout.ms"] = 15_000
	}
	if err := o.ask(ctx, verified); err != nil {
		return nil, err
	}
	return o, nil
}

// verified is verify, repeated while no broker answers.
func verified(ctx context.Context, admin *kafka.AdminClient, w *watcher) error {
	return persist(ctx, w, func(wait time.Duration) error { return verify(ctx, admin, wait) })
}

// reached asks only for the list of brokers.
func reached(ctx context.Context, admin *kafka.AdminClient, w *watcher) error {
	return persist(ctx, w, func(wait time.Duration) error {
		_, err := brokers(ctx, admin, wait)
		return err
	})
}

// persist repeats a question until the brokers have answered, a login was refused, or ctx has
// ended. wait is how long ask may wait for the list of brokers.
func persist(ctx context.Context, w *watcher, ask func(wait time.Duration) error) error {
	for wait := slice; ; wait = min(2*wait, longestWait) {
		err := ask(wait)
		if !is(err, kafka.ErrTimedOut, kafka.ErrTransport, kafka.ErrAllBrokersDown) {
			return err
		}
		if w.refused() {
			return w.explain(err)
		}
		select {
		case <-time.After(slice):
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
}

// verify asks each broker whether it verifies transactions. wait is how long it may wait for the list of brokers.
func verify(ctx context.Context, admin *kafka.AdminClient, wait time.Duration) error {
	brokers, err := brokers(ctx, admin, wait)
	if err != nil {
		return err
	}
	for _, id := range brokers {
		settings, err := settingsOf(ctx, admin, kafka.ResourceBroker, strconv.Itoa(int(id)))
		switch {
		case is(err, kafka.ErrClusterAuthorizationFailed, kafka.ErrUnsupportedFeature):
			return nil
		case err != nil:
			return fmt.Errorf("fence: asking broker %d for its settings: %w", id, err)
		case settings["transaction.partition.verification.enable"] != "true":
			return fmt.Errorf("%w: broker %d", fence.ErrUnverified, id)
		}
	}
	return nil
}

// Open returns the function with which fence.Transactions opens a new producer, for one role's fence.TransactionalID.
func (o *Opener) Open(transactionalID string) func() (fence.Client[*kafka.Message], error) {
	return func() (fence.Client[*kafka.Message], error) { return newClient(o.config, transactionalID, &o.absent) }
}

// AppendOnly returns fence.ErrCompacted if one of the topics is compacted, since fence.Filter is
// not enough there. It needs DESCRIBE_CONFIGS on the topics; if the right is missing, the error
// says so. While no broker answers, it asks until ctx ends. A refused login is an error at once, as
// in New.
func (o *Opener) AppendOnly(ctx context.Context, topics ...string) error {
	return o.ask(ctx, func(ctx context.Context, admin *kafka.AdminClient, w *watcher) error {
		if err := reached(ctx, admin, w); err != nil { // the question about settings would not show a refused login
			return err
		}
		for _, topic := range topics {
			settings, err := settingsOf(ctx, admin, kafka.ResourceTopic, topic)
			switch {
			case is(err, kafka.ErrTopicAuthorizationFailed):
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

// ask calls f with an admin client and a watcher of its connections.
func (o *Opener) ask(ctx context.Context, f func(context.Context, *kafka.AdminClient, *watcher) error) error {
	config := maps.Clone(o.config)
	config["transactional.id"] = "neli" // no broker sees it: with it the client refuses what it would refuse in Open
	config["go.events.channel.size"] = 1
	p, w, err := newProducer(config)
	if err != nil {
		return err
	}
	defer p.Close()
	admin, err := kafka.NewAdminClientFromProducer(p)
	if err != nil {
		return err
	}
	defer admin.Close()
	if err = f(ctx, admin, w); err != nil && ctx.Err() != nil {
		return w.explain(err)
	}
	return err
}

// longestWait is the longest time that New and AppendOnly wait for the list of brokers. A distant
// broker takes about a second.
const longestWait = 2 * time.Second

// brokers returns the ids of the brokers that are up. GetMetadata takes a timeout and no context, so it
// does not notice that ctx was cancelled. So the first timeouts are short.
func brokers(ctx context.Context, admin *kafka.AdminClient, wait time.Duration) ([]int32, error) {
	if deadline, ok := ctx.Deadline(); ok {
		wait = min(wait, max(time.Until(deadline), time.Millisecond))
	}
	answer, err := admin.GetMetadata(nil, false, int(wait.Milliseconds()))
	if err != nil {
		return nil, fmt.Errorf("fence: asking for the brokers: %w", err)
	}
	var ids []int32
	for _, b := range answer.Brokers {
		ids = append(ids, b.ID)
	}
	return ids, nil
}

// settingsOf describes a broker or a topic.
func settingsOf(ctx context.Context, admin *kafka.AdminClient, kind kafka.ResourceType, name string) (map[string]string, error) {
	results, err := admin.DescribeConfigs(ctx, []kafka.ConfigResource{{Type: kind, Name: name}})
	if err != nil {
		return nil, err
	}
	settings := map[string]string{}
	for _, r := range results {
		if r.Error.Code() != kafka.ErrNoError {
			return nil, r.Error
		}
		for _, entry := range r.Config {
			settings[entry.Name] = entry.Value
		}
	}
	return settings, nil
}

// is reports whether an error has one of these codes.
func is(err error, codes ...kafka.ErrorCode) bool {
	var of kafka.Error
	return errors.As(err, &of) && slices.Contains(codes, of.Code())
}
