package main

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/goneli/neli/fence"
	"github.com/goneli/neli/franz/franzfence"
)

// transactions publishes each batch in a Kafka transaction, along with a note of the published rows that may still be in the
// table: its own, and those of the batch before it. Once a term's work begins, no transaction of an earlier term can commit.
// The term then reads the last committed note, and does not publish the note's rows again.
type transactions struct {
	store    *store
	kafkas   *franzfence.Opener
	progress *progress
	group    string
	log      *slog.Logger
}

func newTransactions(ctx context.Context, s *store, group string, slots int, opts []kgo.Opt, log *slog.Logger) (*transactions, error) {
	p := &progress{opts: opts, topic: progressTopic(group), slots: slots, transactions: true}
	kafkas, err := franzfence.New(ctx, slices.Concat(opts, []kgo.Opt{kgo.ProducerLinger(0), kgo.RecordPartitioner(byKey{except: p.topic})})...)
	if err != nil {
		return nil, err
	}
	if err := p.create(ctx, log); err != nil {
		return nil, err
	}
	return &transactions{s, kafkas, p, group, log}, nil
}

func (t *transactions) term(ctx context.Context, now term, work func(context.Context, writer, note) error) error {
	log := t.log.With("slot", now.slot, "token", now.token)
	open := telling(t.kafkas.Open(fence.TransactionalID(t.group, now.slot)), log)
	return fence.Transactions(ctx, now, open, func(ctx context.Context, p *franzfence.Producer) error {
		last, err := t.progress.begin(ctx, now.slot, log)
		if err != nil {
			return err
		}
		return work(ctx, &transactional{t, p, now.slot, newFloor()}, last)
	})
}

// setAside has no fence: a relay that was suspended may mark a row after the end of its term. Then the key waits for a
// person who looks at the row again, and nothing is lost.
func (t *transactions) setAside(ctx context.Context, now term, bad ref, why string) error {
	return t.store.setAside(ctx, now.slot, bad, why)
}

// usualAttempts is how often a producer may fail to initialise before this is logged. The coordinator first ends the
// former leader's transaction, and the first attempts follow each other quickly.
const usualAttempts = 5

// telling logs why producers cannot initialise, since fence.Transactions only tries again.
func telling(open func() (fence.Client[*kgo.Record], error), log *slog.Logger) func() (fence.Client[*kgo.Record], error) {
	failed := 0
	return func() (fence.Client[*kgo.Record], error) {
		client, err := open()
		return told{client, log, &failed}, err
	}
}

// told counts the attempts that have failed since the last success, over all producers of a term.
type told struct {
	fence.Client[*kgo.Record]
	log    *slog.Logger
	failed *int
}

func (c told) Init(ctx context.Context) error {
	err := c.Client.Init(ctx)
	if err == nil {
		*c.failed = 0
		return nil
	}
	if *c.failed++; *c.failed > usualAttempts {
		c.log.Warn("cannot initialise a producer, retrying", "attempts", *c.failed, "error", err)
	}
	return err
}

// transactional is the writer of one producer.
type transactional struct {
	*transactions
	producer *franzfence.Producer
	slot     int
	floor    *floor
}

// next needs no fence: it deletes only rows that are published. So a former leader may delete them as well.
func (t *transactional) next(ctx context.Context, published, underway []ref, most limits) (look, error) {
	return t.store.next(ctx, t.slot, published, underway, most, t.floor)
}

func (t *transactional) first(ctx context.Context, published, underway []ref) (ref, error) {
	return t.store.first(ctx, t.slot, published, underway)
}

func (t *transactional) publish(ctx context.Context, rows []row, published []ref, at position) error {
	records := make([]*kgo.Record, 0, len(rows)+1)
	for _, r := range rows {
		records = append(records, recordOf(r))
	}
	last := t.progress.record(int32(t.slot), note{slices.Concat(published, refsOf(rows)), at})
	last.Timestamp = timeOf(rows, at)
	err := t.producer.Commit(ctx, append(records, last)...)
	ofNote := errors.Is(err, kerr.TopicAuthorizationFailed) && strings.Contains(err.Error(), " "+t.progress.topic+"[") // no row's fault
	if isUnfit(err) && errors.Is(err, fence.ErrPermanent) && !ofNote {                                                 // a topic may be unknown for a moment
		return &refusal{rows, len(published) > 0, err}
	}
	return err
}
