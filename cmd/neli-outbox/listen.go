package main

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/jackc/pgx/v5"
)

// wakeups notifies the leaders of slots of new rows.
type wakeups struct {
	mu     sync.Mutex
	closed map[int]chan struct{}
}

func newWakeups() *wakeups { return &wakeups{closed: map[int]chan struct{}{}} }

// next returns a channel that is closed when the next rows of a slot have come.
func (w *wakeups) next(slot int) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed[slot] == nil {
		w.closed[slot] = make(chan struct{})
	}
	return w.closed[slot]
}

func (w *wakeups) wake(slot int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if woken := w.closed[slot]; woken != nil {
		close(woken)
		delete(w.closed, slot)
	}
}

// listen wakes leaders when the database reports new rows, until ctx ends. It has a connection of its own. While that is
// lost, leaders poll.
func (w *wakeups) listen(ctx context.Context, cfg *pgx.ConnConfig, log *slog.Logger) {
	_, _ = backoff.Retry(ctx, func() (struct{}, error) {
		return struct{}{}, w.session(ctx, cfg)
	}, patiently(backoff.WithNotify(func(err error, after time.Duration) {
		if ctx.Err() == nil {
			log.Warn("is not told of new rows, polls", "error", err, "after", after)
		}
	}))...)
}

// session listens on one connection. It always returns an error.
func (w *wakeups) session(ctx context.Context, cfg *pgx.ConnConfig) error {
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, "LISTEN outbox"); err != nil {
		return err
	}
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		if slot, err := strconv.Atoi(n.Payload); err == nil {
			w.wake(slot)
		}
	}
}
