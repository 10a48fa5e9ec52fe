// Package postgres moves from an advisory lock of PostgreSQL.
package postgres

import (
	"context"
	"database/sql"
	"time"
)

func before(ctx context.Context, db *sql.DB, invoice string) error {
	conn, err := db.Conn(ctx) // the lock belongs to this connection
	if err != nil {
		return err
	}
	defer conn.Close()
	for locked := false; ; {
		if err := conn.QueryRowContext(ctx, "SELECT pg_try_advisory_lock(4711)").Scan(&locked); err != nil {
			return err
		}
		if locked {
			break
		}
		if err := wait(ctx, time.Second); err != nil {
			return err
		}
	}
	defer conn.ExecContext(context.WithoutCancel(ctx), "SELECT pg_advisory_unlock(4711)")
	for {
		// Another connection of db could still write after the lock is lost.
		if _, err := conn.ExecContext(ctx, "INSERT INTO sent VALUES ($1)", invoice); err != nil {
			return err
		}
		if err := wait(ctx, time.Second); err != nil {
			return err
		}
	}
}
