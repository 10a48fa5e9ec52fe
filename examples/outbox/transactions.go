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
	slots    int
	log      *slog.Logger
}

func newTransactions(ctx context.Context, s *store, group string, slots int, opts []kgo.Opt, log *slog.Logger) (*transactions, error) {
	p := &progress{opts: opts, topic: progressTopic(group)}
	kafkas, err := franzfence.New(ctx, slices.Concat(opts, []kgo.Opt{kgo.ProducerLinger(0), kgo.RecordPartitioner(byKey{except: p.topic})})...)
	if err != nil {
		return nil, err
	}
	if err := p.create(ctx, slots, log); err != nil {
		return nil, err
	}
	return &transactions{s, kafkas, p, group, slots, log}, nil
}

func (t *transactions) term(ctx context.Context, now term, work func(context.Context, writer, []int64) error) error {
	log := t.log.With("slot", now.slot, "token", now.token)
	open := telling(t.kafkas.Open(fence.TransactionalID(t.group, now.slot)), log)
	return fence.Transactions(ctx, now, open, func(ctx context.Context, p *franzfence.Producer) error {
		published, err := t.progress.last(ctx, int32(now.slot))
		if errors.Is(err, kerr.UnknownTopicOrPartition) {
			t.createAgain(ctx, log)
		}
		if err != nil {
			return unread(err, log)
		}
		return work(ctx, &transactional{t, p, now.slot}, published)
	})
}

// createAgain creates the topic of notes, which somebody has deleted. If only a broker does not know it yet, nothing happens. An
// error here ends no relay, because the topic may be there, and this principal may have no right to create it.
func (t *transactions) createAgain(ctx context.Context, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	if err := t.progress.create(ctx, t.slots, log); err != nil {
		log.Warn("cannot create the topic of notes again", "error", err)
	}
}

// setAside has no fence: the relay may be suspended before it, and mark a row late. Then the key waits for a person who looks at
// the row again, and nothing is lost.
func (t *transactions) setAside(ctx context.Context, now term, id int64, why string) error {
	return t.store.setAside(ctx, now.slot, id, why)
}

// usualAttempts is how often a producer may fail to initialise before that is worth a line: the coordinator ends the former
// leader's transaction first, and the first attempts are short.
const usualAttempts = 5

// telling logs why producers cannot initialise; fence.Transactions only tries again.
func telling(open func() (fence.Client[*kgo.Record], error), log *slog.Logger) func() (fence.Client[*kgo.Record], error) {
	failed := 0
	return func() (fence.Client[*kgo.Record], error) {
		client, err := open()
		return told{client, log, &failed}, err
	}
}

// told counts, over all producers of a term, the attempts that have failed since one succeeded.
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

// unread is why a term cannot begin yet, or not at all.
func unread(err error, log *slog.Logger) error {
	if errors.Is(err, kerr.TopicAuthorizationFailed) {
		return fmt.Errorf("%w; the principal needs DESCRIBE and READ on the topic", err)
	}
	log.Warn("cannot read what was published last, retrying", "error", err)
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
	if err := misdirected(rows, t.group); err != nil {
		return err
	}
	records := make([]*kgo.Record, 0, len(rows)+1)
	for _, r := range rows {
		records = append(records, recordOf(r))
	}
	note := t.progress.note(int32(t.slot), slices.Concat(published, idsOf(rows)))
	// If the client stamped the note, and this process's clock were wrong, brokers could refuse the note, and rows would be set aside.
	note.Timestamp = rows[len(rows)-1].created
	err := t.producer.Commit(ctx, append(records, note)...)
	if isUnfit(err) && errors.Is(err, fence.ErrPermanent) { // a topic may be unknown for a moment
		return &refusal{rows, len(published) > 0, err}
	}
	return err
}
