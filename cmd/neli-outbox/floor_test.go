//go:build unix

package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/lab/dbtest"
)

// eager is a floor that rises at each look.
func eager() *floor { return &floor{full: time.Now()} }

// publishAll reads all rows of slot 0 as a relay does, and deletes them.
func (s *store) publishAll(t *testing.T, ctx context.Context, above *floor) (rows []row) {
	t.Helper()
	for last := []row(nil); ; {
		seen, err := s.next(ctx, 0, refsOf(last), nil, limits{7, 1 << 20}, above)
		require.NoError(t, err)
		if last = seen.rows; len(last) == 0 {
			return rows
		}
		rows = append(rows, last...)
	}
}

// Deleted rows are not passed again, even if a transaction elsewhere keeps them in the table.
func (s server) testDeletedRowsAreNotPassedAgain(t *testing.T) {
	table := s.store(t, 1)
	elsewhere, err := table.pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	require.NoError(t, err)
	defer func() { _ = elsewhere.Rollback(t.Context()) }()
	_, err = elsewhere.Exec(t.Context(), "CREATE TABLE elsewhere (); SELECT FROM outbox")
	require.NoError(t, err)
	table.exec(t, "INSERT INTO outbox (topic, key) SELECT 't', i::text FROM generate_series(1, 10000) i")
	above := newFloor()
	above.full, above.pause = time.Now(), 0
	seen, err := table.next(t.Context(), 0, nil, nil, plenty, above)
	require.NoError(t, err)
	_, err = table.next(t.Context(), 0, refsOf(seen.rows), nil, plenty, above)
	require.NoError(t, err)
	require.Zero(t, above.id)
	for range 3 {
		_, err = table.next(t.Context(), 0, nil, nil, plenty, above)
		require.NoError(t, err)
	}
	require.EqualValues(t, 10_000, above.id)
	plan := func(from int64) string {
		rows, err := table.pool.Query(t.Context(), "EXPLAIN (ANALYZE, BUFFERS, COSTS off, TIMING off, SUMMARY off) "+nextRows, 0, []int64{}, []int64{}, from, 100, 1<<20, 1<<20)
		require.NoError(t, err)
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		return strings.Join(lines, "\n")
	}
	pages := func(plan string) (n int) {
		_, after, _ := strings.Cut(plan, "shared hit=")
		_, _ = fmt.Sscan(after, &n)
		return n
	}
	require.Greater(t, pages(plan(0)), 100, "%s: the test sees nothing", plan(0))
	require.Less(t, pages(plan(above.id)), 10, plan(above.id))
}

// A row that gets its id early and becomes visible late is above the floor, in whatever way its transaction was begun.
func TestLateRowIsAboveTheFloor(t *testing.T) {
	t.Parallel()
	p := dbtest.StartPostgres(t, "max_prepared_transactions=2")
	s := server(p.DSN)
	for name, begin := range map[string]string{"a transaction": "BEGIN", "a subtransaction": "BEGIN; SAVEPOINT s", "a prepared transaction": "", "a prepared transaction, and a crash": ""} {
		t.Run(name, func(t *testing.T) {
			table := s.store(t, 1)
			above := eager()
			conn, err := table.pool.Acquire(t.Context())
			require.NoError(t, err)
			defer func() { conn.Release() }()
			insert := "INSERT INTO outbox (topic, key) VALUES ('t', 'late')"
			commit := "COMMIT"
			if begin == "" {
				table.exec(t, "DROP TRIGGER outbox_notify ON outbox") // which cannot be prepared
				begin, insert, commit = "BEGIN", insert+"; PREPARE TRANSACTION '"+table.pool.Config().ConnConfig.Database+"'", "COMMIT PREPARED '"+table.pool.Config().ConnConfig.Database+"'"
			}
			for _, statement := range []string{begin, insert} {
				_, err = conn.Exec(t.Context(), statement)
				require.NoError(t, err)
			}
			for i := range 5 {
				if i == 1 && strings.HasSuffix(name, "crash") {
					p.Kill()
					p.Start()
					table.pool.Reset()
					conn.Release()
					conn, err = table.pool.Acquire(t.Context())
					require.NoError(t, err)
				}
				table.exec(t, insertRow, "t", "early", "v")
				require.Len(t, table.publishAll(t, t.Context(), above), 1)
			}
			require.Less(t, above.id, int64(1))
			_, err = conn.Exec(t.Context(), commit)
			require.NoError(t, err)
			require.Len(t, table.publishAll(t, t.Context(), above), 1)
			table.publishAll(t, t.Context(), above)
			require.GreaterOrEqual(t, above.id, int64(6))
		})
	}
}

// While sessions insert, a relay with a floor that rises at each look misses no row, and reads those of a key in order.
func TestRowsOfConcurrentSessionsAreAboveTheFloor(t *testing.T) {
	t.Parallel()
	table := server(dbtest.PostgreSQL(t)).store(t, 1)
	above, rises := eager(), 0
	require.Empty(t, disorder(t, table, 100, func(done <-chan struct{}) (rows []row) {
		var last []row
		for over := false; !over || len(last) > 0; {
			select {
			case <-done:
				over = true
			default:
			}
			before := above.id
			seen, err := table.next(t.Context(), 0, refsOf(last), nil, plenty, above)
			if !assert.NoError(t, err) {
				return nil
			}
			if last, rows = seen.rows, append(rows, seen.rows...); above.id > before {
				rises++
			}
		}
		return rows
	}))
	require.Greater(t, rises, 10, "the test sees nothing")
}

// A row that was set aside comes again when somebody corrects it, before later rows of its key.
func TestFloorIsBelowRowsThatWereSetAside(t *testing.T) {
	t.Parallel()
	table := server(dbtest.PostgreSQL(t)).store(t, 1)
	above := eager()
	table.exec(t, insertRow, "t", "a", "bad")
	require.NoError(t, table.setAside(t.Context(), 0, table.reads(t, nil, nil, plenty)[0].ref, "bad"))
	for range 4 {
		table.exec(t, insertRow, "t", "a", "waits")
		table.exec(t, insertRow, "t", "b", "v")
		require.Len(t, table.publishAll(t, t.Context(), above), 1)
	}
	table.exec(t, "UPDATE outbox SET failed = NULL")
	require.Equal(t, []string{"a bad", "a waits", "a waits", "a waits", "a waits"}, keysOf(table.publishAll(t, t.Context(), above)))
	table.publishAll(t, t.Context(), above)
	require.EqualValues(t, 9, above.id)
}

// Rows below the floor show that ids went back. If the sequence is behind the floor, the next look finds
// these rows. Otherwise a look within fullAfter finds them.
func (s server) testRowsBelowTheFloorAreFound(t *testing.T) {
	table := s.store(t, 1)
	above := eager()
	table.exec(t, "INSERT INTO outbox (topic, key) SELECT 't', i::text FROM generate_series(1, 20) i")
	for range 3 {
		table.publishAll(t, t.Context(), above)
	}
	require.EqualValues(t, 20, above.id)
	table.exec(t, "SELECT setval('outbox_id', 4)")
	table.exec(t, insertRow, "t", "k", "v")
	seen, err := table.next(t.Context(), 0, nil, nil, plenty, above)
	require.NoError(t, err)
	require.EqualValues(t, 5, seen.last)
	require.Len(t, table.publishAll(t, t.Context(), above), 1)

	above.id = 100
	table.exec(t, insertRow, "t", "k", "v")
	table.exec(t, "SELECT setval('outbox_id', 200)")
	require.Empty(t, table.publishAll(t, t.Context(), above))
	above.full = time.Now().Add(-fullAfter)
	require.Len(t, table.publishAll(t, t.Context(), above), 1)
}
