package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/goneli/neli"
	"github.com/goneli/neli/fence"
)

// relay publishes the rows of the slots that this process leads.
type relay struct {
	publisher publisher
	group     string
	wake      *wakeups
	most      limits // of a batch
	memory    *memory
	poll      time.Duration // how long to wait for a notification of new rows before reading the table
	log       *slog.Logger
	metrics   *meters
	short     shortTerms
}

// How long the database and Kafka may take for a batch. A term that must be given up waits for the batch that Kafka is
// taking, so it may last publishTimeout longer.
const (
	storeTimeout   = 30 * time.Second
	publishTimeout = 10 * time.Second
)

// lead publishes the rows of a slot during one term.
func (r *relay) lead(ctx context.Context, l neli.Leadership) error {
	t := &turn{relay: r, now: term{l, l.Role, l.Token}, log: r.log.With("slot", l.Role, "token", l.Token), rows: r.most.rows}
	t.log.Info("publishes")
	for {
		err := r.publisher.term(ctx, t.now, t.work)
		if refused, ok := errors.AsType[*refusal](err); ok && ctx.Err() == nil {
			if err = t.refused(ctx, refused); err == nil {
				continue
			}
		}
		if ctx.Err() != nil {
			t.log.Info("publishes no more", "because", context.Cause(ctx))
			t.ended(errors.Is(context.Cause(ctx), neli.ErrFenced))
			return context.Cause(ctx)
		}
		return err
	}
}

// turn is a leader's state in its term.
type turn struct {
	*relay
	now  term
	log  *slog.Logger
	used bool // the term has published a batch, or has found no rows
	rows int  // the size of the next batch, at most; smaller after some errors
	at   position
	told time.Time // when it was last logged that the slot stands still
}

// ended notes the end of the term. lost says that the lease has lapsed.
func (t *turn) ended(lost bool) {
	n := t.short.ended(t.now.slot, t.used, lost)
	if t.used || !lost {
		return
	}
	t.metrics.uselessTerms.Inc()
	if n >= manyShort {
		t.log.Warn("terms are lost before anything is published: --timeout is too short for this machine, Kafka or the database", "terms in a row", n)
	}
}

// work publishes batch after batch with one writer. It reads the next batch while Kafka takes the present one, but begins to
// publish it only when that one is published, and after asking whether the term lasts.
func (t *turn) work(ctx context.Context, w writer, last note) error {
	var rows []row // to publish next
	published := last.rows
	t.at = t.at.later(last.position)
	for t.now.Valid() && ctx.Err() == nil {
		var err error
		if len(rows) > 0 {
			rows, published, err = t.publishAndRead(ctx, w, rows, published)
		} else {
			woken := t.wake.next(t.now.slot) // before reading the table, so that no notification is missed
			if rows, err = t.next(ctx, w, published, nil); err == nil {
				published = nil
			}
			if err == nil && len(rows) == 0 {
				t.used = true
				t.wait(ctx, woken)
			}
		}
		if err != nil {
			return err
		}
	}
	t.memory.forget(rows)
	t.leave(ctx, w, published)
	return context.Cause(ctx)
}

// publishAndRead publishes rows. If they are a full batch, it meanwhile deletes the rows published before and reads the
// next ones. It returns the next rows, and the rows that are published and may still be in the table: one batch or two.
func (t *turn) publishAndRead(ctx context.Context, w writer, rows []row, published []ref) (ahead []row, left []ref, err error) {
	present, full, at := refsOf(rows), t.full(rows), t.at
	reading, stop := context.WithCancel(ctx)
	defer stop()
	read := make(chan error, 1)
	go func() {
		var err error
		if full {
			ahead, err = t.next(reading, w, published, present)
		}
		read <- err
	}()
	err = t.publish(ctx, w, rows, published, at)
	t.memory.forget(rows)
	if err != nil {
		stop() // the rows being read are of no use: they follow rows that may not be published
		<-read
		t.memory.forget(ahead)
		if tooSlow(err) {
			t.rows = max(1, t.rows/2)
		}
		return nil, nil, err
	}
	err = <-read
	t.rows = min(2*t.rows, t.most.rows)
	switch {
	case err != nil && ctx.Err() != nil: // the term ends; work leaves
		return nil, slices.Concat(published, present), nil
	case err != nil:
		return nil, nil, err
	case !full:
		return nil, slices.Concat(published, present), nil
	}
	return ahead, present, nil
}

// tooSlow reports whether a batch was not read, or not published, within its time. Then a smaller
// batch may succeed, as on a slow link.
func tooSlow(err error) bool {
	refusal, answered := errors.AsType[*pgconn.PgError](err)
	return errors.Is(err, context.DeadlineExceeded) || answered && refusal.Code == "57014" // statement_timeout
}

// full reports whether a batch is as large as it may be. Then the table probably has more rows. Otherwise it pays to
// read later, when there are more rows for the next batch.
func (t *turn) full(rows []row) bool {
	bytes := 0
	for _, r := range rows {
		bytes += r.bytes
	}
	return len(rows) >= t.rows || bytes >= t.most.bytes
}

// next asks the database for rows until it answers or the term is over. It sets aside the rows of which no record can be made,
// and then asks again: later rows of their keys must wait.
func (t *turn) next(ctx context.Context, w writer, published, underway []ref) ([]row, error) {
	return backoff.Retry(ctx, func() ([]row, error) {
		for {
			seen, err := t.look(ctx, w, published, underway)
			if ofARow(err) {
				if err = t.unreadable(ctx, w, published, underway, err); err == nil {
					continue
				}
			}
			if tooSlow(err) {
				t.rows = max(1, t.rows/2)
			}
			if err != nil {
				return nil, again(err, passing(err) || noTable(err))
			}
			if !slices.ContainsFunc(seen.rows, func(r row) bool { return faultOf(r, t.group) != nil }) {
				return seen.rows, nil
			}
			t.memory.forget(seen.rows)
			if err := t.setFaultsAside(ctx, seen.rows); err != nil {
				return nil, backoff.Permanent(err)
			}
		}
	}, patiently(backoff.WithNotify(t.unreachable))...)
}

// look asks once. The rows keep their memory until the caller calls memory.forget.
func (t *turn) look(ctx context.Context, w writer, published, underway []ref) (look, error) {
	if err := t.memory.await(ctx); err != nil {
		return look{}, err
	}
	limited, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	began := time.Now()
	seen, err := w.next(limited, published, underway, limits{t.rows, t.most.bytes})
	t.metrics.looks.Observe(time.Since(began).Seconds())
	if err == nil {
		t.at, err = t.at.after(seen)
	}
	if err != nil {
		seen = look{}
	}
	t.memory.keep(seen.rows)
	return seen, err
}

func (t *turn) setFaultsAside(ctx context.Context, rows []row) error {
	for _, r := range rows {
		if fault := faultOf(r, t.group); fault != nil {
			if err := t.setAside(ctx, r, fault); err != nil {
				return err
			}
		}
	}
	return nil
}

// unreadable handles the error of a row that the database or this program cannot read. It halves the next batch, until
// a batch has only that row, and then sets the row aside.
func (t *turn) unreadable(ctx context.Context, w writer, published, underway []ref, why error) error {
	if t.rows > 1 {
		t.rows /= 2
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	bad, err := w.first(limited, published, underway)
	if err != nil {
		return err
	}
	return t.setAside(ctx, row{ref: bad}, fmt.Errorf("it cannot be read: %w", why))
}

// unreachable logs why the table has to be read again.
func (t *turn) unreachable(err error, after time.Duration) {
	t.metrics.databaseFailures.Inc()
	if errors.Is(err, errWentBack) || noTable(err) {
		if time.Since(t.told) < time.Minute {
			return
		}
		t.told = time.Now()
		t.log.Error("the slot stands still until somebody repairs the table", "error", brief(err), "after", after)
		return
	}
	t.log.Warn("cannot read the table, retrying", "error", brief(err), "after", after)
}

// wait waits for new rows.
func (t *turn) wait(ctx context.Context, woken <-chan struct{}) {
	timer := time.NewTimer(t.poll)
	defer timer.Stop()
	select {
	case <-woken:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// publish continues when the term must be given up, and the end of the term waits for it. So the outcome is known, and
// the successor does not have to find it out.
func (t *turn) publish(ctx context.Context, w writer, rows []row, published []ref, at position) error {
	long, cancel := context.WithTimeout(context.WithoutCancel(ctx), publishTimeout)
	defer cancel()
	began := time.Now()
	if err := w.publish(long, rows, published, at); err != nil {
		t.metrics.batchFailures.Inc()
		t.log.Warn("a batch is not published, as far as is known", "rows", len(rows), "first", rows[0].id, "error", brief(err))
		return err
	}
	t.used = true
	t.metrics.published(rows, began)
	return nil
}

// leave deletes the rows that were published last. If that fails, the successor deletes them.
func (t *turn) leave(ctx context.Context, w writer, published []ref) {
	if len(published) == 0 {
		return
	}
	long, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if _, err := w.next(long, published, nil, limits{1, 1}); err != nil {
		t.log.Info("leaves published rows to the next leader", "rows", len(published), "error", err)
	}
}

// refused retries with half as many rows until it knows which row is refused, and sets that row aside. A writer's first
// look deletes what was published, so that its first note names no earlier rows.
func (t *turn) refused(ctx context.Context, r *refusal) error {
	if n := len(r.rows); n > 1 || r.more {
		t.rows = max(1, n/2)
		return nil
	}
	return t.setAside(ctx, r.rows[0], r.why)
}

// setAside sets a row aside. If that fails, the slot waits. No error ends the relay, because the
// row would fail at every relay.
func (t *turn) setAside(ctx context.Context, bad row, why error) error {
	t.metrics.setAside.Inc()
	t.log.Error("a row cannot be published and is set aside; its key waits", "id", bad.id, "topic", fmt.Sprintf("%.100s", bad.topic), "error", brief(why))
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		limited, cancel := context.WithTimeout(ctx, storeTimeout)
		defer cancel()
		err := t.publisher.setAside(limited, t.now, bad.ref, brief(why))
		return struct{}{}, again(err, err != nil && !errors.Is(err, fence.ErrStale))
	}, patiently(backoff.WithNotify(func(err error, after time.Duration) {
		t.metrics.databaseFailures.Inc()
		t.log.Warn("cannot set a row aside, retrying", "id", bad.id, "error", brief(err), "after", after)
	}))...)
	return err
}
