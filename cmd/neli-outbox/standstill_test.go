//go:build unix

package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/goneli/neli/lab/pause"
)

// standstills watches the slots of a table. A slot stands still while its first row stays the same.
type standstills struct {
	since   map[int]first // by slot
	longest time.Duration
	slot    int // the one that stood still for longest
}

type first struct {
	id int64
	at time.Time
}

// see notes the first rows at a time, by slot. A slot without rows does not stand still.
func (s *standstills) see(ids map[int]int64, now time.Time) {
	for slot, f := range s.since {
		if ids[slot] != f.id {
			delete(s.since, slot)
		}
	}
	for slot, id := range ids {
		f, seen := s.since[slot]
		if !seen {
			f = first{id, now}
			s.since[slot] = f
		}
		if d := now.Sub(f.at); d > s.longest {
			s.longest, s.slot = d, slot
		}
	}
}

func (s *standstills) String() string {
	return fmt.Sprintf("no slot stood still for longer than %v (slot %d)", s.longest.Round(100*time.Millisecond), s.slot)
}

// watch watches until the function that it returns is called.
func (w *world) watch() (stop func() *standstills) {
	s := &standstills{since: map[int]first{}}
	pool := w.pooled(1)
	slots, err := w.store.slots(w.t.Context())
	require.NoError(w.t, err)
	ctx, cancel := context.WithCancel(w.t.Context())
	var watching sync.WaitGroup
	watching.Go(func() {
		for pause.For(ctx, 500*time.Millisecond) == nil {
			if ids, err := firstRows(ctx, pool, slots); err == nil { // the database may be down
				s.see(ids, time.Now())
			}
		}
	})
	return func() *standstills { cancel(); watching.Wait(); return s }
}

func firstRows(ctx context.Context, pool *pgxpool.Pool, slots int) (map[int]int64, error) {
	found, _ := pool.Query(ctx, `SELECT s, o.id FROM generate_series(0, $1 - 1) s
		CROSS JOIN LATERAL (SELECT id FROM outbox WHERE slot = s AND failed IS NULL ORDER BY id LIMIT 1) o`, slots)
	ids := map[int]int64{}
	var slot int
	var id int64
	_, err := pgx.ForEachRow(found, []any{&slot, &id}, func() error { ids[slot] = id; return nil })
	return ids, err
}

func TestStandstills(t *testing.T) {
	s := &standstills{since: map[int]first{}}
	start := time.Now()
	at := func(d int) time.Time { return start.Add(time.Duration(d) * time.Second) }
	s.see(map[int]int64{0: 1, 1: 2}, at(0))
	s.see(map[int]int64{0: 3, 1: 2}, at(2))
	require.Equal(t, 2*time.Second, s.longest)
	require.Equal(t, 1, s.slot)
	s.see(map[int]int64{0: 3}, at(3)) // slot 1 is empty
	s.see(map[int]int64{0: 4, 1: 5}, at(4))
	s.see(map[int]int64{0: 5, 1: 5}, at(5))
	require.Equal(t, 2*time.Second, s.longest)
	s.see(map[int]int64{0: 5, 1: 6}, at(8))
	require.Equal(t, 3*time.Second, s.longest)
	require.Equal(t, 0, s.slot)
}

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

// serveSilently ends when the client logs out. It ends at once if the connection only cancels a statement.
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
