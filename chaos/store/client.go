package store

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// A Dialer makes connections from some host; nil is this process's own network.
type Dialer interface {
	Dial(ctx context.Context, network, addr string) (net.Conn, error)
}

// A Client is one connection at a time, made when it is needed. It is for one
// goroutine.
type Client struct {
	DSN string

	conn *pgx.Conn
}

func connect(ctx context.Context, dsn string, from Dialer) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	if from != nil {
		config.DialFunc = from.Dial
	}
	return pgx.ConnectConfig(ctx, config)
}

// ErrNotSent wraps what kept an operation from reaching the store: it has had no
// effect and will have none.
var ErrNotSent = errors.New("store: not sent")

// Write hands a value to both registers of a role and returns whether the guarded
// one took it. After an error other than ErrNotSent that is unknown, for ever.
func (c *Client) Write(ctx context.Context, role int, token, value int64, member string) (accepted bool, err error) {
	if err := c.ready(ctx); err != nil {
		return false, err
	}
	err = c.conn.QueryRow(ctx, `SELECT write_role($1, $2, $3, $4)`, role, token, value, member).Scan(&accepted)
	return accepted, c.failed(err)
}

// Read returns what the guarded register of a role holds.
func (c *Client) Read(ctx context.Context, role int) (token, value int64, err error) {
	if err := c.ready(ctx); err != nil {
		return 0, 0, err
	}
	err = c.conn.QueryRow(ctx, `SELECT token, value FROM guarded WHERE role = $1`, role).Scan(&token, &value)
	return token, value, c.failed(err)
}

func (c *Client) ready(ctx context.Context) (err error) {
	if c.conn != nil && !c.conn.IsClosed() {
		return nil
	}
	if c.conn, err = connect(ctx, c.DSN, nil); err != nil {
		return fmt.Errorf("%w: %w", ErrNotSent, err)
	}
	return nil
}

func (c *Client) failed(err error) error {
	if err != nil && pgconn.SafeToRetry(err) {
		return fmt.Errorf("%w: %w", ErrNotSent, err)
	}
	return err
}

// Close closes the connection, if there is one.
func (c *Client) Close(ctx context.Context) {
	if c.conn != nil {
		_ = c.conn.Close(ctx)
	}
}

// An Entry is one write in the store's own order.
type Entry struct {
	Serial   int64
	Role     int
	Token    int64
	Value    int64
	Member   string
	Accepted bool
	Stale    bool // a higher token had written before, without a guard it would have been overwritten
}

// Log reads all writes that ever reached the store.
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
