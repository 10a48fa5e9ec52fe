//go:build unix

package main

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
)

// A database that accepts connections and does not answer, as behind a link that was cut, must not hold a leader up for
// ever. The relay logs that, and tries again.
func TestSilentDatabaseIsAskedAgain(t *testing.T) {
	var said strings.Builder
	log := slog.New(slog.NewTextHandler(&said, nil))
	for name, c := range map[string]struct {
		ask  func(context.Context, *store) error
		says string
	}{
		"to claim a slot": {func(ctx context.Context, s *store) error {
			return newHeaders(s, "g", 1, nil, log).term(ctx, term{always{}, 0, 1}, nil)
		}, "cannot claim the slot in the database, retrying"},
		"to set a row aside": {func(ctx context.Context, s *store) error {
			r := &relay{publisher: newHeaders(s, "g", 1, nil, log), log: log, metrics: newMeters(prometheus.NewRegistry())}
			return (&turn{relay: r, log: log, rows: 1}).refused(ctx, &refusal{rows: []row{{ref: ref{id: 1}}}, why: kerr.MessageTooLarge})
		}, "cannot set a row aside, retrying"},
	} {
		t.Run(name, func(t *testing.T) {
			said.Reset()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 2*storeTimeout)
				defer cancel()
				require.ErrorIs(t, c.ask(ctx, silentStore(t)), context.DeadlineExceeded)
			})
			require.Contains(t, said.String(), c.says)
		})
	}
}

// silentStore is a store whose server lets clients log in and out, and answers nothing else.
func silentStore(t *testing.T) *store {
	cfg, err := (&config{database: "host=silent user=u sslmode=disable"}).pool()
	require.NoError(t, err)
	cfg.ConnConfig.LookupFunc = func(context.Context, string) ([]string, error) { return []string{"silent"}, nil }
	cfg.ConnConfig.DialFunc = func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go serveSilently(server)
		return client, nil
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return &store{pool: pool}
}

// serveSilently ends when the client logs out. It ends at once if the connection only cancels a
// statement.
func serveSilently(conn net.Conn) {
	defer conn.Close()
	server := pgproto3.NewBackend(conn, conn)
	first, err := server.ReceiveStartupMessage()
	if _, login := first.(*pgproto3.StartupMessage); !login || err != nil {
		return
	}
	server.Send(&pgproto3.AuthenticationOk{})
	server.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	for err = server.Flush(); err == nil; {
		var message pgproto3.FrontendMessage
		if message, err = server.Receive(); err == nil {
			if _, logout := message.(*pgproto3.Terminate); logout {
				return
			}
		}
	}
}
