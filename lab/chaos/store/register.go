package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// A Dialer makes connections from a host; nil means this process's own network.
type Dialer interface {
	Dial(ctx context.Context, network, addr string) (net.Conn, error)
}

func configOf(dsn string, from Dialer) (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig(dsn)
	if err == nil && from != nil {
		config.DialFunc = from.Dial
	}
	return config, err
}

func connect(ctx context.Context, dsn string, from Dialer) (*pgx.Conn, error) {
	config, err := configOf(dsn, from)
	if err != nil {
		return nil, err
	}
	return pgx.ConnectConfig(ctx, config)
}

// openSQL returns a database whose connections are made when they are needed.
func openSQL(dsn string, from Dialer) (*sql.DB, error) {
	config, err := configOf(dsn, from)
	if err != nil {
		return nil, err
	}
	db := stdlib.OpenDB(*config)
	db.SetMaxIdleConns(8)
	return db, nil
}

// register has a guarded row for each role, which accepts a write only if its token is not lower
// than that of the last accepted write, and an unguarded row, which accepts all.
type register struct{ db *sql.DB }

func (r *register) Lead(ctx context.Context, t Term, work func(context.Context, Writer) error) error {
	return work(ctx, registerWriter{r, t})
}

func (r *register) Concurrent() bool { return true }

func (r *register) Close() { _ = r.db.Close() }

func (r *register) Read(ctx context.Context, role int) (token, value int64, err error) {
	conn, err := r.conn(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer conn.Close()
	err = conn.QueryRowContext(ctx, `SELECT token, value FROM guarded WHERE role = $1`, role).Scan(&token, &value)
	return token, value, failed(err)
}

func (r *register) conn(ctx context.Context) (*sql.Conn, error) {
	conn, err := r.db.Conn(ctx)
	if err != nil {
		return nil, notSent(err)
	}
	return conn, nil
}

type registerWriter struct {
	*register
	term Term
}

// Write writes a value to both rows of the role, and returns whether the guarded one accepted it.
func (w registerWriter) Write(ctx context.Context, value int64) (accepted bool, err error) {
	conn, err := w.conn(ctx)
	if err != nil {
		return false, err
	}
	defer conn.Close()
	err = conn.QueryRowContext(ctx, `SELECT write_role($1, $2, $3, $4)`, w.term.Role, w.term.Token, value, w.term.Member).Scan(&accepted)
	return accepted, failed(err)
}

// failed marks errors of requests that were certainly not sent. The driver returns ErrBadConn only for such requests.
func failed(err error) error {
	if err != nil && (pgconn.SafeToRetry(err) || errors.Is(err, driver.ErrBadConn)) {
		return notSent(err)
	}
	return err
}

func notSent(err error) error { return fmt.Errorf("%w: %w", ErrNotSent, err) }

// Log reads all writes that ever reached the database.
func (s *Server) Log(ctx context.Context, admin Dialer) ([]Entry, error) {
	conn, err := connect(ctx, s.DSN, admin)
	if err != nil {
		return nil, fmt.Errorf("store: reading the log: %w", err)
	}
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, `SELECT serial, role, token, value, member, accepted, stale FROM log ORDER BY serial`)
	if err != nil {
		return nil, fmt.Errorf("store: reading the log: %w", err)
	}
	entries, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Entry])
	if err != nil {
		return nil, fmt.Errorf("store: reading the log: %w", err)
	}
	return entries, nil
}
