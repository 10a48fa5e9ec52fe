//go:build unix

package main

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/fence"
	"github.com/goneli/neli/lab/dbtest"
)

// plenty are limits that no row of the tests reaches.
var plenty = limits{rows: 10_000, bytes: 1 << 30}

// server is a PostgreSQL server that tests share, by its data source name.
type server string

var databases atomic.Int32

// store creates the table with that many slots, in a database of the test's own. omit are parts of the schema to leave out.
func (s server) store(t *testing.T, slots int, omit ...string) *store {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), string(s))
	require.NoError(t, err)
	defer conn.Close(t.Context())
	name := fmt.Sprintf("d%d", databases.Add(1))
	_, err = conn.Exec(t.Context(), "CREATE DATABASE "+name)
	require.NoError(t, err)
	return openStore(t, strings.Replace(string(s), "dbname=postgres", "dbname="+name, 1), slots, omit...)
}

func TestStore(t *testing.T) {
	t.Parallel()
	s := server(dbtest.PostgreSQL(t))
	for name, test := range map[string]func(*testing.T){
		"rows of a key are in the order of their commits":     s.testRowsOfAKeyAreInTheOrderOfTheirCommits,
		"the order of commits needs the lock":                 s.testTheOrderOfCommitsNeedsTheLock,
		"sessions side by side keep the order":                s.testSessionsSideBySideKeepTheOrder,
		"side by side the order needs the lock":               s.testSideBySideTheOrderNeedsTheLock,
		"slots are those of neli":                             s.testSlotsAreThoseOfNeli,
		"a batch reads no more of a long table":               s.testABatchReadsNoMoreOfALongTable,
		"a batch is bounded":                                  s.testABatchIsBounded,
		"headers count for the size of a batch":               s.testHeadersCountForTheSizeOfABatch,
		"published rows are deleted":                          s.testPublishedRowsAreDeleted,
		"a failed deletion sets no row aside":                 s.testAFailedDeletionSetsNoRowAside,
		"rows under way are not read":                         s.testRowsUnderWayAreNotRead,
		"a suspended relay keeps no locks":                    s.testASuspendedRelayKeepsNoLocks,
		"a key waits for its row that was set aside":          s.testAKeyWaitsForItsRowThatWasSetAside,
		"a long key may be set aside":                         s.testALongKeyMayBeSetAside,
		"odd rows are set aside, and others go on":            s.testOddRowsAreSetAsideAndOthersGoOn,
		"ids that went back hold the slot":                    s.testIDsThatWentBackHoldTheSlot,
		"a table of an earlier version is upgraded":           s.testATableOfAnEarlierVersionIsUpgraded,
		"deleted rows are not passed again":                   s.testDeletedRowsAreNotPassedAgain,
		"rows below the floor are found":                      s.testRowsBelowTheFloorAreFound,
		"a former leader deletes nothing":                     s.testAFormerLeaderDeletesNothing,
		"a former leader sets nothing aside":                  s.testAFormerLeaderSetsNothingAside,
		"many keys in one transaction fill no table of locks": s.testManyKeysInOneTransactionFillNoTableOfLocks,
		"a schema that is not whole is named":                 s.testASchemaThatIsNotWholeIsNamed,
		"rows that nobody could publish are not inserted":     s.testRowsThatNobodyCouldPublishAreNotInserted,
		"a row without a finite time is read":                 s.testARowWithoutAFiniteTimeIsRead,
		"the table may be in any schema":                      s.testTheTableMayBeInAnySchema,
		"an application needs few rights":                     s.testAnApplicationNeedsFewRights,
	} {
		t.Run(name, test)
	}
}

func openStore(t testing.TB, dsn string, slots int, omit ...string) *store {
	t.Helper()
	cfg, err := (&config{database: dsn + " pool_max_conns=12"}).pool()
	require.NoError(t, err)
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	_, err = pool.Exec(t.Context(), without(t, schema(slots), omit...))
	require.NoError(t, err)
	return &store{pool: pool}
}

// without returns a text without some parts.
func without(t testing.TB, text string, parts ...string) string {
	t.Helper()
	for _, part := range parts {
		require.Contains(t, text, part)
		text = strings.Replace(text, part, "", 1)
	}
	return text
}

const insertRow = "INSERT INTO outbox (topic, key, payload) VALUES ($1, $2, $3)"

// reads returns the next rows of slot 0, after deleting the published ones.
func (s *store) reads(t *testing.T, published, underway []ref, most limits) []row {
	t.Helper()
	seen, err := s.next(t.Context(), 0, published, underway, most, &floor{})
	require.NoError(t, err)
	return seen.rows
}

func keysOf(rows []row) (out []string) {
	for _, r := range rows {
		out = append(out, r.key+" "+string(r.payload))
	}
	return out
}

// lateCommit lets two transactions insert the same key; the one that inserts first tries to commit last. It returns the
// payloads in the order of their commits, and in the store's order.
func lateCommit(t *testing.T, s *store, level pgx.TxIsoLevel) (committed, read []string) {
	ctx := t.Context()
	begin := func() pgx.Tx {
		conn, err := s.pool.Acquire(ctx)
		require.NoError(t, err)
		t.Cleanup(conn.Release)
		tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: level})
		require.NoError(t, err)
		_, err = tx.Exec(ctx, "SELECT pg_current_xact_id()")
		require.NoError(t, err)
		return tx
	}
	first, second := begin(), begin()
	_, err := first.Exec(ctx, insertRow, "t", "k", "first")
	require.NoError(t, err)
	var mu sync.Mutex
	commit := func(tx pgx.Tx, name string) {
		mu.Lock()
		defer mu.Unlock()
		require.NoError(t, tx.Commit(ctx))
		committed = append(committed, "k "+name)
	}
	done := make(chan error, 1)
	go func() {
		_, err := second.Exec(ctx, insertRow, "t", "k", "second")
		if err == nil {
			commit(second, "second")
		}
		done <- err
	}()
	// Wait until the second transaction waits for a lock, or has committed.
	require.Eventually(t, func() bool {
		var waits bool
		require.NoError(t, s.pool.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)").Scan(&waits))
		return waits || len(done) > 0
	}, time.Minute, time.Millisecond)
	commit(first, "first")
	require.NoError(t, <-done)
	rows := s.reads(t, nil, nil, plenty)
	return committed, keysOf(rows)
}

const keyLock = "\tPERFORM pg_advisory_xact_lock(1852140649, (low & 4095)::int);\n"

func (s server) testRowsOfAKeyAreInTheOrderOfTheirCommits(t *testing.T) {
	for _, level := range []pgx.TxIsoLevel{pgx.ReadCommitted, pgx.RepeatableRead, pgx.Serializable} {
		t.Run(string(level), func(t *testing.T) {
			committed, read := lateCommit(t, s.store(t, 1), level)
			require.Equal(t, committed, read)
		})
	}
}

func (s server) testTheOrderOfCommitsNeedsTheLock(t *testing.T) {
	committed, read := lateCommit(t, s.store(t, 1, keyLock), pgx.ReadCommitted)
	require.Equal(t, []string{"k second", "k first"}, committed)
	require.Equal(t, []string{"k first", "k second"}, read, "the order of ids would do without the lock")
}

// disorder lets eight sessions insert rows of three keys. Each notes the times before and after its commits. A row must
// come first if its commit returned before the commit of another row of the same key was requested. It returns the rows
// that violate this.
func disorder(t *testing.T, s *store, each int, read func(done <-chan struct{}) []row) []string {
	ctx := t.Context()
	asked, returned := map[string]time.Time{}, map[string]time.Time{}
	var mu sync.Mutex
	var sessions sync.WaitGroup
	for session := range 8 {
		sessions.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(session)))
			for i := range each {
				name := fmt.Sprintf("%d/%d", session, i)
				var before time.Time
				err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
					_, err := tx.Exec(ctx, insertRow, "t", fmt.Sprint(random.IntN(3)), name)
					if err == nil && random.IntN(2) == 0 {
						_, err = tx.Exec(ctx, "SELECT pg_sleep($1)", []float64{0.002, 0.2}[i%20/19]) // some last for several looks of a relay
					}
					before = time.Now()
					return err
				})
				after := time.Now()
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				asked[name], returned[name] = before, after
				mu.Unlock()
			}
		})
	}
	done := make(chan struct{})
	go func() { sessions.Wait(); close(done) }()
	rows := read(done)
	<-done
	require.Len(t, rows, 8*each)
	return inversions(rows, asked, returned)
}

// atLast reads all rows when the sessions are done.
func (s *store) atLast(t *testing.T) func(<-chan struct{}) []row {
	return func(done <-chan struct{}) []row {
		<-done
		return s.reads(t, nil, nil, plenty)
	}
}

// inversions returns the rows that come after a row of the same key whose commit was requested only
// after theirs had returned.
func inversions(rows []row, asked, returned map[string]time.Time) (out []string) {
	latest := map[string]string{} // by key: the row so far whose commit was requested last
	for _, r := range rows {
		name := string(r.payload)
		if last, some := latest[r.key]; some && returned[name].Before(asked[last]) {
			out = append(out, name+" after "+last)
		}
		if last, some := latest[r.key]; !some || asked[name].After(asked[last]) {
			latest[r.key] = name
		}
	}
	return out
}

func (s server) testSessionsSideBySideKeepTheOrder(t *testing.T) {
	table := s.store(t, 1)
	require.Empty(t, disorder(t, table, 100, table.atLast(t)))
}

func (s server) testSideBySideTheOrderNeedsTheLock(t *testing.T) {
	table := s.store(t, 1, keyLock)
	require.NotEmpty(t, disorder(t, table, 100, table.atLast(t)))
}

func (s server) testSlotsAreThoseOfNeli(t *testing.T) {
	table := s.store(t, 7)
	slots, err := table.slots(t.Context())
	require.NoError(t, err)
	require.Equal(t, 7, slots)
	want := make([][]string, 7)
	for i := range 200 {
		key := fmt.Sprintf("order %d – ä", i)
		want[neli.Slot(key, 7)] = append(want[neli.Slot(key, 7)], key+" v")
		_, err := table.pool.Exec(t.Context(), insertRow, "t", key, "v")
		require.NoError(t, err)
	}
	for slot := range 7 {
		seen, err := table.next(t.Context(), slot, nil, nil, plenty, &floor{})
		require.NoError(t, err)
		require.Equal(t, want[slot], keysOf(seen.rows))
	}
}

func (s server) testABatchIsBounded(t *testing.T) {
	table := s.store(t, 1)
	for _, payload := range []string{"0123456789", "01234567890123456789", "0", "1", "2"} {
		_, err := table.pool.Exec(t.Context(), insertRow, "t", "k", payload)
		require.NoError(t, err)
	}
	for most, want := range map[limits]int{{5, 1000}: 5, {2, 1000}: 2, {5, 1}: 1, {5, 12}: 1, {5, 13}: 2, {5, 35}: 3} {
		rows := table.reads(t, nil, nil, most)
		require.Len(t, rows, want, "%+v", most)
	}
}

func (s server) testHeadersCountForTheSizeOfABatch(t *testing.T) {
	table := s.store(t, 1)
	_, err := table.pool.Exec(t.Context(), `INSERT INTO outbox (topic, key, headers) SELECT 't', 'k', '{"a":"12345678"}' FROM generate_series(1, 5)`)
	require.NoError(t, err)
	most := limits{5, 30}
	rows := table.reads(t, nil, nil, most)
	require.Len(t, rows, 2)
	full := &turn{relay: &relay{most: most}, rows: most.rows}
	require.True(t, full.full(rows), "the next batch is not read ahead")
	require.False(t, full.full(rows[:1]))
}

func (s server) testPublishedRowsAreDeleted(t *testing.T) {
	table := s.store(t, 1)
	_, err := table.pool.Exec(t.Context(), `INSERT INTO outbox (topic, key, payload, headers)
		SELECT 't', 'k', convert_to(i::text, 'UTF8'), '{"type":"paid","n":1,"a":"\u00e4"}' FROM generate_series(1, 5) i`)
	require.NoError(t, err)
	rows := table.reads(t, nil, nil, limits{rows: 3, bytes: 1000})
	require.Equal(t, []header{{"a", "ä"}, {"n", "1"}, {"type", "paid"}}, rows[0].headers)
	require.Equal(t, len("k1aän1typepaid"), rows[0].size())
	rows = table.reads(t, refsOf(rows[:2]), nil, plenty)
	require.Equal(t, []string{"k 3", "k 4", "k 5"}, keysOf(rows))
}

// A row that became visible late comes next, although its id is lower than those under way.
func (s server) testRowsUnderWayAreNotRead(t *testing.T) {
	table := s.store(t, 1)
	late, err := table.pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = late.Exec(t.Context(), insertRow, "t", "late", "1")
	require.NoError(t, err)
	for i := range 4 {
		_, err = table.pool.Exec(t.Context(), insertRow, "t", "k", fmt.Sprint(i))
		require.NoError(t, err)
	}
	first := table.reads(t, nil, nil, limits{rows: 2, bytes: 1000})
	require.Equal(t, []string{"k 0", "k 1"}, keysOf(first))
	require.NoError(t, late.Commit(t.Context()))
	second := table.reads(t, nil, refsOf(first), limits{rows: 2, bytes: 1000})
	require.Equal(t, []string{"late 1", "k 2"}, keysOf(second))
	third := table.reads(t, refsOf(first), refsOf(second), plenty)
	require.Equal(t, []string{"k 3"}, keysOf(third))
}

// The server has no statistics of the table.
func (s server) testABatchReadsNoMoreOfALongTable(t *testing.T) {
	table := s.store(t, 2)
	_, err := table.pool.Exec(t.Context(), "INSERT INTO outbox (topic, key) SELECT 't', i::text FROM generate_series(1, 20000) i")
	require.NoError(t, err)
	for range 7 { // the server begins to reuse plans after five executions
		rows, err := table.pool.Query(t.Context(), "EXPLAIN (ANALYZE, COSTS off, TIMING off) "+nextRows, 1, []int64{1, 2, 3}, []int64{1, 2, 3}, 3, 100, 1<<20, 1<<20)
		require.NoError(t, err)
		plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		all := strings.Join(plan, "\n")
		require.Contains(t, all, "Index Scan using outbox_pkey on outbox o (actual rows=100 loops=1)")
		require.Contains(t, all, "using outbox_aside on outbox f")
		require.NotContains(t, all, "Sort")
	}
}

func (s server) testAKeyWaitsForItsRowThatWasSetAside(t *testing.T) {
	table := s.store(t, 1)
	for _, key := range []string{"a", "b", "a", "b", "a", "b"} {
		_, err := table.pool.Exec(t.Context(), insertRow, "t", key, "v")
		require.NoError(t, err)
	}
	rows := table.reads(t, nil, nil, plenty)
	require.NoError(t, table.setAside(t.Context(), 0, rows[2].ref, "too large"))
	rows = table.reads(t, nil, nil, plenty)
	require.Equal(t, []string{"a v", "b v", "b v", "b v"}, keysOf(rows), "the second one of a waits, and what comes after it")
	_, err := table.pool.Exec(t.Context(), "UPDATE outbox SET failed = NULL WHERE failed = 'too large'")
	require.NoError(t, err)
	rows = table.reads(t, nil, nil, plenty)
	require.Equal(t, []string{"a v", "b v", "a v", "b v", "a v", "b v"}, keysOf(rows))
}

func (s server) testAFormerLeaderDeletesNothing(t *testing.T) {
	table := s.store(t, 1)
	_, err := table.pool.Exec(t.Context(), insertRow, "t", "k", "v")
	require.NoError(t, err)
	rows := table.reads(t, nil, nil, plenty)
	ids := refsOf(rows)
	require.NoError(t, table.claim(t.Context(), "g/0", 5))
	require.ErrorIs(t, table.deleteClaimed(t.Context(), "g/0", 4, 0, ids), fence.ErrStale)
	require.ErrorIs(t, table.claim(t.Context(), "g/0", 4), fence.ErrStale)
	rows = table.reads(t, nil, nil, plenty)
	require.Len(t, rows, 1)
	require.NoError(t, table.deleteClaimed(t.Context(), "g/0", 5, 0, ids))
	rows = table.reads(t, nil, nil, plenty)
	require.Empty(t, rows)
}

// A relay was suspended before it set a row aside. Meanwhile somebody may have corrected the row.
func (s server) testAFormerLeaderSetsNothingAside(t *testing.T) {
	table := s.store(t, 1)
	_, err := table.pool.Exec(t.Context(), insertRow, "t", "k", "v")
	require.NoError(t, err)
	p := newHeaders(table, "g", 1, nil, slog.New(slog.DiscardHandler))
	ids := func() []int64 { return idsOf(refsOf(table.reads(t, nil, nil, plenty))) }
	bad := table.reads(t, nil, nil, plenty)[0].ref
	require.NoError(t, table.claim(t.Context(), fence.TransactionalID("g", 0), 9))
	require.ErrorIs(t, p.setAside(t.Context(), term{slot: 0, token: 5}, bad, "too large"), fence.ErrStale)
	require.Equal(t, []int64{1}, ids())
	require.NoError(t, p.setAside(t.Context(), term{slot: 0, token: 9}, bad, "too large"))
	require.Empty(t, ids())
}

func (s server) testManyKeysInOneTransactionFillNoTableOfLocks(t *testing.T) {
	table := s.store(t, 1)
	_, err := table.pool.Exec(t.Context(), "INSERT INTO outbox (topic, key) SELECT 't', i::text FROM generate_series(1, 30000) i")
	require.NoError(t, err)
}

func (s server) testASchemaThatIsNotWholeIsNamed(t *testing.T) {
	table := s.store(t, 1)
	for _, c := range []struct{ change, want string }{
		{"ALTER TABLE outbox DISABLE TRIGGER outbox_order", "is disabled"},
		{"ALTER TABLE outbox ENABLE TRIGGER outbox_order", ""},
		{"ALTER SEQUENCE outbox_id CACHE 50", "must have CACHE 1"},
		{"ALTER SEQUENCE outbox_id CACHE 1 CYCLE", "must have CACHE 1"},
		{"ALTER SEQUENCE outbox_id NO CYCLE", ""},
		{"ALTER SEQUENCE outbox_id RENAME TO ids", "the sequence outbox_id is not in the schema"},
		{"ALTER SEQUENCE ids RENAME TO outbox_id", ""},
		{"ALTER TABLE outbox DROP COLUMN mark", "of an earlier version"},
		{"ALTER TABLE outbox ADD COLUMN mark bigint", ""},
		{strings.Replace(schema(1), "outbox_order('1')", "outbox_order('none')", 1), `"none\x00", must be the number of slots`},
		{"DROP TRIGGER outbox_order ON outbox", "trigger outbox_order is missing"},
		{"DROP TABLE outbox", "there is no table outbox"},
	} {
		_, err := table.pool.Exec(t.Context(), c.change)
		require.NoError(t, err)
		_, err = table.slots(t.Context())
		if c.want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, errSchema)
		require.ErrorContains(t, err, c.want)
		require.False(t, passing(err))
	}
}

func (s server) testRowsThatNobodyCouldPublishAreNotInserted(t *testing.T) {
	table := s.store(t, 1)
	for constraint, insert := range map[string]string{
		"outbox_topic_check":   "INSERT INTO outbox (topic, key) VALUES ('', 'k')",
		"outbox_created_check": "INSERT INTO outbox (topic, key, created) VALUES ('t', 'k', 'infinity')",
	} {
		_, err := table.pool.Exec(t.Context(), insert)
		require.ErrorContains(t, err, constraint)
	}
}

// Tables of earlier versions have no constraint against such times.
func (s server) testARowWithoutAFiniteTimeIsRead(t *testing.T) {
	table := s.store(t, 1, " CHECK (isfinite(created))")
	_, err := table.pool.Exec(t.Context(), "INSERT INTO outbox (topic, key, created) VALUES ('t', 'a', 'infinity'), ('t', 'b', '-infinity'), ('t', 'c', '2026-01-02Z')")
	require.NoError(t, err)
	rows := table.reads(t, nil, nil, plenty)
	require.Len(t, rows, 3)
	require.WithinDuration(t, time.Now(), rows[0].created, time.Hour)
	require.WithinDuration(t, time.Now(), rows[1].created, time.Hour)
	require.Equal(t, time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC), rows[2].created.UTC())
}

// An application that names the table with its schema may not have that schema in its search path.
func (s server) testTheTableMayBeInAnySchema(t *testing.T) {
	table := s.store(t, 1)
	_, err := table.pool.Exec(t.Context(), `CREATE SCHEMA "the shop"; SET search_path = "the shop"; `+schema(1)+`; RESET search_path;
		DROP SEQUENCE public.outbox_id`)
	require.NoError(t, err)
	_, err = table.pool.Exec(t.Context(), `INSERT INTO "the shop".outbox (topic, key) VALUES ('t', 'k')`)
	require.NoError(t, err)
	var last int
	require.NoError(t, table.pool.QueryRow(t.Context(), `SELECT last_value FROM "the shop".outbox_id`).Scan(&last))
	require.Equal(t, 1, last)
}

// docs/outbox.md lists these rights.
func (s server) testAnApplicationNeedsFewRights(t *testing.T) {
	table := s.store(t, 1)
	conn, err := table.pool.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	_, err = conn.Exec(t.Context(), "CREATE ROLE shopkeeper; GRANT INSERT ON outbox TO shopkeeper; SET ROLE shopkeeper")
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), insertRow, "t", "k", "v")
	require.ErrorContains(t, err, "permission denied for sequence outbox_id")
	_, err = conn.Exec(t.Context(), "RESET ROLE; GRANT USAGE ON SEQUENCE outbox_id TO shopkeeper; SET ROLE shopkeeper")
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), insertRow, "t", "k", "v")
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), "RESET ROLE")
	require.NoError(t, err)
}

func TestTemporaryDatabaseErrors(t *testing.T) {
	t.Parallel()
	p := dbtest.StartPostgres(t)
	s := openStore(t, p.DSN, 1)
	ask := func(query string) error {
		_, err := s.pool.Exec(t.Context(), query)
		return err
	}
	require.False(t, passing(ask("SELECT FROM nothing")))
	var at time.Time
	err := s.pool.QueryRow(t.Context(), "SELECT timestamptz 'infinity'").Scan(&at)
	require.ErrorContains(t, err, "cannot scan Infinity")
	require.False(t, passing(err), "the same value comes again")
	require.True(t, passing(ask("SELECT pg_terminate_backend(pg_backend_pid())")))
	require.True(t, passing(ask("BEGIN READ ONLY; CREATE TABLE x ()")))
	p.Kill()
	require.True(t, passing(ask("SELECT")))
	p.Start()
	require.Eventually(t, func() bool { return ask("SELECT") == nil }, time.Minute, time.Millisecond)
	_, err = pgxpool.New(context.Background(), "postgres://u:secret@h:port/x")
	require.Error(t, err)
	require.NotContains(t, err.Error(), "secret")
}
