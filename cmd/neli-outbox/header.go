package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/goneli/neli/fence"
	unknown "github.com/goneli/neli/internal/absent"
)

// headers publishes rows with the leader's token in a header, by which readers recognise a former leader's late
// records. A row may be published more than once.
//
// A leader claims its slot in the database before it reads there, and deletes only while no later leader has claimed
// it. So rows that a former leader has published but could not delete are published again. The records of the rows that
// it did delete are before all of its successor's. A leader that keeps its state in the topic would also need a barrier
// there. Here none is needed, since the successor also publishes the row of a late record, to the same partition.
type headers struct {
	store    *store
	opts     []kgo.Opt
	progress *progress
	group    string
	log      *slog.Logger
	topics   topicLimits
}

func newHeaders(s *store, group string, slots int, opts []kgo.Opt, log *slog.Logger) *headers {
	p := &progress{opts: opts, topic: progressTopic(group), slots: slots}
	return &headers{store: s, progress: p, group: group, log: log, opts: slices.Concat(opts, []kgo.Opt{
		kgo.RecordPartitioner(byKey{except: p.topic}), kgo.ProducerLinger(0), kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.RecordDeliveryTimeout(0), // a timeout would count from a record's timestamp, and rows may be old
		// Otherwise the end of a term would wait for as long as the client does not know whether
		// the brokers have a record.
		kgo.AllowIdempotentProduceCancellation(),
	})}
}

func (h *headers) term(ctx context.Context, now term, work func(context.Context, writer, note) error) error {
	key := fence.TransactionalID(h.group, now.slot)
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		limited, cancel := context.WithTimeout(ctx, storeTimeout)
		defer cancel()
		err := h.store.claim(limited, key, now.token)
		return struct{}{}, again(err, err != nil && passing(err))
	}, patiently(backoff.WithNotify(func(err error, after time.Duration) {
		h.log.Warn("cannot claim the slot in the database, retrying", "slot", now.slot, "token", now.token, "error", err, "after", after)
	}))...)
	if err != nil {
		return err
	}
	log := h.log.With("slot", now.slot, "token", now.token)
	_, err = backoff.Retry(ctx, func() (struct{}, error) {
		last, err := h.progress.begin(ctx, now.slot, log)
		if err != nil {
			return struct{}{}, again(err, errors.Is(err, fence.ErrRefused))
		}
		client, err := kgo.NewClient(h.opts...)
		if err != nil {
			return struct{}{}, backoff.Permanent(err)
		}
		defer client.Close()
		stamp := kgo.RecordHeader{Key: fence.Header, Value: fence.Stamp(now.token, now.slot, h.group)}
		err = work(ctx, &stamped{h, client, key, now, stamp, newFloor()}, note{position: last.position})
		return struct{}{}, again(err, errors.Is(err, fence.ErrRefused))
	}, patiently()...)
	return err
}

func (h *headers) setAside(ctx context.Context, now term, bad ref, why string) error {
	return h.store.setAsideClaimed(ctx, fence.TransactionalID(h.group, now.slot), now.token, now.slot, bad, why)
}

// stamped is the writer of one client.
type stamped struct {
	*headers
	client *kgo.Client
	key    string
	now    term
	stamp  kgo.RecordHeader
	floor  *floor
}

func (s *stamped) next(ctx context.Context, published, underway []ref, most limits) (look, error) {
	if len(published) > 0 {
		if err := s.store.deleteClaimed(ctx, s.key, s.now.token, s.now.slot, published); err != nil {
			return look{}, err
		}
		s.floor.deleted += len(published)
	}
	return s.store.next(ctx, s.now.slot, nil, underway, most, s.floor)
}

func (s *stamped) first(ctx context.Context, _, underway []ref) (ref, error) {
	return s.store.first(ctx, s.now.slot, nil, underway)
}

// publish first checks whether the topics accept the rows. When Kafka refuses a row, later rows may already have been
// written. The note is sent along with the records. If it is lost, the successor knows an earlier position.
func (s *stamped) publish(ctx context.Context, rows []row, _ []ref, at position) error {
	records := make([]*kgo.Record, len(rows), len(rows)+1)
	for i, r := range rows {
		records[i] = recordOf(r, s.stamp)
		if err := s.topics.check(ctx, s.client, r); isUnfit(err) || errors.Is(err, fence.ErrCompacted) {
			return &refusal{rows: rows[i : i+1], why: err}
		} else if err != nil {
			return err
		}
	}
	last := s.progress.record(int32(s.now.slot), note{position: at})
	last.Timestamp = timeOf(rows, at)
	records = append(records, last)
	for _, result := range s.client.ProduceSync(ctx, records...) {
		if result.Err == nil {
			continue
		}
		if errors.Is(result.Err, kerr.UnknownTopicOrPartition) { // check decides whether the row is to blame
			s.topics.forget(rows)
			return fmt.Errorf("%w: %w", fence.ErrRefused, result.Err)
		}
		return s.refused(result.Err, result.Record.Topic, rows)
	}
	return nil
}

// refused returns what the error of a record means for the rows. topic is the record's.
func (s *stamped) refused(err error, topic string, rows []row) error {
	denied := errors.Is(err, kerr.TopicAuthorizationFailed)
	if denied {
		err = fmt.Errorf("the principal needs WRITE on the topic: %s: %w", topic, err)
	}
	switch at := slices.IndexFunc(rows, func(r row) bool { return r.topic == topic }); {
	case denied && at < 0:
		return fmt.Errorf("%w: %w", fence.ErrPermanent, err)
	case denied:
		return &refusal{rows: rows[at : at+1], why: err}
	case at >= 0 && isUnfit(err):
		return &refusal{rows: rows, why: err}
	}
	return fmt.Errorf("%w: %w", fence.ErrRefused, err)
}

// topicLimits has the limits of topics, which it reads when a topic is first used, and the topics
// that brokers did not know.
type topicLimits struct {
	mu      sync.Mutex
	most    map[string]int
	unknown unknown.Topics
}

// overhead is an upper bound of the bytes that a record and its batch add to a row.
const overhead = 512

// check returns why a row's topic does not accept it, or fence.ErrRefused if that is not known.
func (t *topicLimits) check(ctx context.Context, client *kgo.Client, r row) error {
	t.mu.Lock()
	most, known := t.most[r.topic]
	t.mu.Unlock()
	size := r.size() + overhead
	if !known || size > most { // somebody may have raised the limit since it was read
		var err error
		if most, err = mostBytes(ctx, client, r.topic); errors.Is(err, kerr.UnknownTopicOrPartition) && !t.unknown.Missing(r.topic, time.Now(), time.Now()) {
			return fmt.Errorf("%w: topic %s is not known, or not yet", fence.ErrRefused, r.topic)
		}
		if err != nil {
			return err
		}
		t.learn(r.topic, most)
	}
	if size > most {
		return fmt.Errorf("%w: some %d bytes, topic %s takes %d", kerr.MessageTooLarge, size, r.topic, most)
	}
	return nil
}

func (t *topicLimits) learn(topic string, most int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.most == nil {
		t.most = map[string]int{}
	}
	t.most[topic] = most
	t.unknown.Known(slices.Values([]string{topic}))
}

// forget drops the limits of the rows' topics, so that check asks for them again.
func (t *topicLimits) forget(rows []row) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range rows {
		delete(t.most, r.topic)
	}
}

// mostBytes asks Kafka how large a record may be. It refuses a compacted topic.
func mostBytes(ctx context.Context, client *kgo.Client, topic string) (int, error) {
	all, err := kadm.NewClient(client).DescribeTopicConfigs(ctx, topic)
	var settings kadm.ResourceConfig
	if err == nil {
		settings, err = all.On(topic, nil)
	}
	if err == nil {
		err = settings.Err
	}
	switch {
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		return 0, fmt.Errorf("the principal needs DESCRIBE_CONFIGS on topic %s: %w", topic, err)
	case isUnfit(err):
		return 0, fmt.Errorf("topic %s: %w", topic, err)
	case err != nil: // for example a broker that is starting: ask again
		return 0, fmt.Errorf("%w: asking for the settings of topic %s: %w", fence.ErrRefused, topic, err)
	}
	most := client.OptValue(kgo.ProducerBatchMaxBytes).(int32)
	for _, c := range settings.Configs {
		switch value := c.MaybeValue(); {
		case c.Key == "cleanup.policy" && strings.Contains(value, "compact"):
			return 0, fmt.Errorf("%w: %s has cleanup.policy=%s", fence.ErrCompacted, topic, value)
		case c.Key == "max.message.bytes":
			if n, err := strconv.ParseInt(value, 10, 32); err == nil {
				most = min(most, int32(n))
			}
		}
	}
	return int(most), nil
}
