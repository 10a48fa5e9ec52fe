//go:build unix

package main

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
)

// testASuspendedRelayKeepsNoLocks suspends a relay while the database sends it rows, which are more than sockets
// buffer. The server cannot end that statement, since it notices its own time-out only when it has sent the rows. So it
// must not hold the locks of deleted rows meanwhile. Otherwise the next leader would wait for them as long as the relay
// is suspended.
func (s server) testASuspendedRelayKeepsNoLocks(t *testing.T) {
	next := s.store(t, 1)
	ctx, cancel := context.WithTimeout(t.Context(), stepLimit)
	defer cancel()
	_, err := next.pool.Exec(ctx, `INSERT INTO outbox (topic, key, payload) SELECT 't', i::text, convert_to(repeat('x', 1000000), 'UTF8') FROM generate_series(1, 30) i`)
	require.NoError(t, err)
	gone := refsOf(next.reads(t, nil, nil, limits{2, 1 << 30}))
	cfg := next.pool.Config()
	cfg.MaxConns = 1
	var suspended atomic.Bool
	resumed := make(chan struct{})
	dial := cfg.ConnConfig.DialFunc
	cfg.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		return suspendable{conn, &suspended, resumed}, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	require.NoError(t, err)
	former := &store{pool: pool}
	_, err = former.next(ctx, 0, []ref{{0, 0}}, nil, limits{1, 1}, &floor{}) // prepares both statements
	require.NoError(t, err)

	suspended.Store(true)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = former.next(ctx, 0, gone, nil, plenty, &floor{})
	}()
	defer func() { close(resumed); <-ended; pool.Close() }()
	require.Eventually(t, func() bool {
		var blocked bool
		err := next.pool.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'ClientWrite')").Scan(&blocked)
		return err == nil && blocked
	}, stepLimit/2, 10*time.Millisecond, "the server never waits for the client: the test sees nothing")

	limited, stop := context.WithTimeout(ctx, 10*time.Second)
	defer stop()
	seen, err := next.next(limited, 0, gone, nil, limits{1, 1}, &floor{})
	require.NoError(t, err, "the next leader waits for a suspended one")
	require.EqualValues(t, 3, seen.rows[0].id)
	var left int
	require.NoError(t, next.pool.QueryRow(ctx, "SELECT count(*) FROM outbox WHERE id < 3").Scan(&left))
	require.Zero(t, left)
}

// suspendable is a connection whose process reads nothing while it is suspended.
type suspendable struct {
	net.Conn
	suspended *atomic.Bool
	resumed   <-chan struct{}
}

func (s suspendable) Read(b []byte) (int, error) {
	if s.suspended.Load() {
		<-s.resumed
	}
	return s.Conn.Read(b)
}
