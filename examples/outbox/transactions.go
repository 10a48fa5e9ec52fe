package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/goneli/neli/fence"
	"github.com/goneli/neli/franz/franzfence"
)

// transactions publishes each batch in a Kafka transaction, along with a note of the published rows that may still be in the
// table: its own, and those of the batch before it. Once a term's work begins, no transaction of an earlier term can commit.
// The term then reads the note of the last one that did, and does not publish its rows again.
type transactions struct {
	store    *store
	kafkas   *franzfence.Opener
	progress *progress
	group    string
	log      *slog.Logger
}

func newTransactions(ctx context.Context, s *store, group string, slots int, opts []kgo.Opt, log *slog.Logger) (*transactions, error) {
	p := &progress{opts: opts, topic: progressTopic(group)}
	kafkas, err := franzfence.New(ctx, slices.Concat(opts, []kgo.Opt{kgo.ProducerLinger(0), kgo.RecordPartitioner(byKey{except: p.topic})})...)
	if err != nil {
		return nil, err
	}
	if err := p.create(ctx, slots); err != nil {
		return nil, err
	}
	return &transactions{s, kafkas, p, group, log}, nil
}

func (t *transactions) term(ctx context.Context, now term, work func(context.Context, writer, []int64) error) error {
	open := t.kafkas.Open(fence.TransactionalID(t.group, now.slot))
	return fence.Transactions(ctx, now, open, func(ctx context.Context, p *franzfence.Producer) error {
		published, err := t.progress.last(ctx, int32(now.slot))
		if err != nil {
			return t.unread(err)
		}
		return work(ctx, &transactional{t, p, now.slot}, published)
	})
}

// unread is why a term cannot begin yet, or not at all.
func (t *transactions) unread(err error) error {
	if errors.Is(err, kerr.TopicAuthorizationFailed) {
		return fmt.Errorf("%w; the principal needs DESCRIBE and READ on the topic", err)
	}
	t.log.Warn("cannot read what was published last, retrying", "error", err)
	return fmt.Errorf("%w: %w", fence.ErrRefused, err)
}

// transactional is the writer of one producer.
type transactional struct {
	*transactions
	producer *franzfence.Producer
	slot     int
}

// next needs no fence: rows that a former leader has published are published, whoever deletes them.
func (t *transactional) next(ctx context.Context, published, underway []int64, most limits) ([]row, error) {
	return t.store.next(ctx, t.slot, published, underway, most)
}

func (t *transactional) publish(ctx context.Context, rows []row, published []int64) error {
	records := make([]*kgo.Record, 0, len(rows)+1)
	for _, r := range rows {
		records = append(records, recordOf(r))
	}
	err := t.producer.Commit(ctx, append(records, t.progress.note(int32(t.slot), slices.Concat(published, idsOf(rows))))...)
	if isUnfit(err) && errors.Is(err, fence.ErrPermanent) { // a topic may be unknown for a moment
		return &refusal{rows, len(published) > 0, err}
	}
	return err
}
