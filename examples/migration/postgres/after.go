package postgres

import (
	"context"
	"database/sql"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/fence"
)

func after(ctx context.Context, n *neli.Neli, db *sql.DB, invoice string) error {
	return n.Lead(ctx, func(ctx context.Context, l neli.Leadership) error {
		for l.Valid() {
			err := fenced(ctx, db, l.Token, invoice)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err != nil {
				return err // ErrStale, too: tokens went back, or two roles share a key
			}
			_ = wait(ctx, time.Second)
		}
		return context.Cause(ctx)
	})
}

// fenced writes over any connection: PostgreSQL refuses late writes of a former leader. The table of
// tokens was created from fence.Schema.
func fenced(ctx context.Context, db *sql.DB, token int64, invoice string) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // has no effect after Commit
	if err := fence.Postgres(ctx, tx, "billing-invoicing-0", token); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO sent VALUES ($1)", invoice); err != nil {
		return err
	}
	return tx.Commit()
}
