package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/goneli/neli/fence"
)

// group is the group in the fences' keys and transactional ids.
const group = "chaos"

// hold is the database behind package fence: a term claims once, and each of its transactions,
// which run concurrently, begins with a hold. The write itself does not look at tokens.
type hold struct {
	register
	unfenced bool
}

// claiming bounds one attempt to claim. A suspended leader's hold blocks it until the server ends the idle transaction.
const claiming = 5 * time.Second

func (h *hold) Lead(ctx context.Context, t Term, work func(context.Context, Writer) error) error {
	t.Claiming()
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		err := h.claim(ctx, t)
		if errors.Is(err, fence.ErrStale) || err != nil && !t.Valid() {
			err = backoff.Permanent(err)
		}
		return struct{}{}, err
	}, backoff.WithBackOff(backoff.NewConstantBackOff(50*time.Millisecond)), backoff.WithMaxElapsedTime(0))
	switch {
	case errors.Is(err, fence.ErrStale):
		t.Claimed(false)
		return err
	case err != nil:
		return err // it is unknown whether the claim succeeded
	}
	t.Claimed(true)
	return work(ctx, holdWriter{h, t})
}

func (h *hold) claim(ctx context.Context, t Term) error {
	limited, cancel := context.WithTimeout(ctx, claiming)
	defer cancel()
	return h.transact(limited, func(tx *sql.Tx) error {
		return fence.Postgres(limited, tx, fence.TransactionalID(group, t.Role), t.Token)
	})
}

// transact calls do in a transaction. If anything fails before the commit, nothing has changed.
func (h *hold) transact(ctx context.Context, do func(*sql.Tx) error) error {
	tx, err := h.db.BeginTx(ctx, nil)
	if err != nil {
		return notSent(err)
	}
	defer tx.Rollback()
	if err := do(tx); err != nil {
		return notSent(err)
	}
	return tx.Commit()
}

type holdWriter struct {
	*hold
	term Term
}

func (w holdWriter) Write(ctx context.Context, value int64) (accepted bool, err error) {
	t := w.term
	err = w.transact(ctx, func(tx *sql.Tx) error {
		if !w.unfenced {
			if err := fence.PostgresHold(ctx, tx, fence.TransactionalID(group, t.Role), t.Token); err != nil {
				return err
			}
		}
		_, err := tx.ExecContext(ctx, `SELECT write_held($1, $2, $3, $4)`, t.Role, t.Token, value, t.Member)
		return err
	})
	if errors.Is(err, fence.ErrStale) {
		return false, nil
	}
	return err == nil, err
}
