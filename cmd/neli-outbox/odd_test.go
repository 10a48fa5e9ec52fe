//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/goneli/neli/fence"
	"github.com/goneli/neli/lab/dbtest"
)

func (s *store) exec(t *testing.T, statement string, args ...any) {
	t.Helper()
	_, err := s.pool.Exec(t.Context(), statement, args...)
	require.NoError(t, err)
}

// reader is a term's writer and its publisher, but cannot publish.
type reader struct {
	publisher
	writer
	*store
}

func (r reader) next(ctx context.Context, published, underway []ref, most limits) (look, error) {
	return r.store.next(ctx, 0, published, underway, most, &floor{})
}

func (r reader) first(ctx context.Context, published, underway []ref) (ref, error) {
	return r.store.first(ctx, 0, published, underway)
}

func (r reader) setAside(ctx context.Context, _ term, bad ref, why string) error {
	return r.store.setAside(ctx, 0, bad, why)
}

// turn returns a term of slot 0 that reads this table.
func (s *store) turn(log *slog.Logger) (*turn, reader) {
	r := reader{store: s}
	of := &relay{publisher: r, group: "g", wake: newWakeups(), most: limits{100, 1 << 20}, memory: newMemory(limits{100, 1 << 20}, 0), poll: time.Second, log: log, metrics: newMeters(prometheus.NewRegistry())}
	return &turn{relay: of, now: term{always{}, 0, 1}, log: log, rows: of.most.rows}, r
}

// A key is longer than an entry of an index may be, and cannot be compressed.
func (s server) testALongKeyMayBeSetAside(t *testing.T) {
	table := s.store(t, 1)
	table.exec(t, "INSERT INTO outbox (topic, key) SELECT 't', string_agg(md5(i::text), '') FROM generate_series(1, 10000) i")
	table.exec(t, "INSERT INTO outbox (topic, key) SELECT 't', key FROM outbox")
	table.exec(t, insertRow, "t", "other", "v")
	require.NoError(t, table.setAside(t.Context(), 0, table.reads(t, nil, nil, plenty)[0].ref, "x"))
	require.Equal(t, []string{"other v"}, keysOf(table.reads(t, nil, nil, plenty)))
}

func TestTooLargeRowIsNotRead(t *testing.T) {
	t.Parallel()
	table := server(dbtest.PostgreSQL(t)).store(t, 1)
	table.record = 1000
	table.exec(t, `INSERT INTO outbox (topic, key, payload, headers) VALUES ('t', 'a', convert_to(repeat('p', 1000), 'UTF8'), NULL),
		('t', repeat('k', 1000), '', NULL), ('t', 'a', '', jsonb_build_object('h', repeat('v', 1000))), (repeat('t', 1000), 'a', '', NULL), ('t', 'a', convert_to(repeat('p', 998), 'UTF8'), NULL)`)
	rows := table.reads(t, nil, nil, plenty)
	require.Len(t, rows, 5)
	for _, r := range rows[:4] {
		require.ErrorIs(t, r.fault, kerr.MessageTooLarge)
		require.Empty(t, r.key)
		require.Empty(t, r.payload)
		require.Empty(t, r.headers)
		require.LessOrEqual(t, len(r.topic), 300)
	}
	require.NoError(t, rows[4].fault)
	require.Len(t, rows[4].payload, 998)
}

// Whatever is in a row, its key waits, and other keys continue. Some of these rows can only come from a table with
// other constraints than the schema's.
func (s server) testOddRowsAreSetAsideAndOthersGoOn(t *testing.T) {
	table := s.store(t, 1, " CHECK (topic <> '')", " CHECK (jsonb_typeof(headers) = 'object')")
	table.record = 30_000
	table.exec(t, "ALTER TABLE outbox ALTER COLUMN topic DROP NOT NULL")
	for name, c := range map[string]struct{ columns, values, why string }{
		"a payload above the limit":        {"topic, payload", "'t', convert_to(repeat('x', 3000000), 'UTF8')", "--max-record-bytes is 30000"},
		"headers above the limit":          {"topic, headers", "'t', jsonb_build_object('a', repeat('x', 3000000))", "--max-record-bytes is 30000"},
		"a topic above the limit":          {"topic", "repeat('t', 3000000)", "--max-record-bytes is 30000"},
		"a topic with a space":             {"topic", "'no topic'", "INVALID_TOPIC"},
		"a topic of 250 letters":           {"topic", "repeat('t', 250)", "INVALID_TOPIC"},
		"a topic of two dots":              {"topic", "'..'", "INVALID_TOPIC"},
		"an empty topic":                   {"topic", "''", "INVALID_TOPIC"},
		"no topic":                         {"topic", "NULL", "INVALID_TOPIC"},
		"the topic of notes":               {"topic", "'g.outbox'", "a topic of the relays themselves"},
		"the topic of the election":        {"topic", "'g.neli'", "a topic of the relays themselves"},
		"headers in an array":              {"topic, headers", "'t', '[1]'", "its headers"},
		"headers too deep to read":         {"topic, headers", "'t', ('{\"a\":' || repeat('[', 10100) || repeat(']', 10100) || '}')::jsonb", "exceeded max depth"},
		"a time before Kafka's first":      {"topic, created", "'t', '4713-01-01 BC'", ""},
		"a time far in the future":         {"topic, created", "'t', '294000-01-01'", ""},
		"a payload of any bytes":           {"topic, payload", "'t', '\\xfffe00'", ""},
		"no payload, and headers of nulls": {"topic, headers", "'t', '{\"a\":null,\"\":[]}'", ""},
	} {
		t.Run(name, func(t *testing.T) {
			table.exec(t, "TRUNCATE outbox")
			table.exec(t, insertRow, "t", "before", "1")
			table.exec(t, "INSERT INTO outbox (key, "+c.columns+") VALUES ('odd', "+c.values+")")
			table.exec(t, insertRow, "t", "odd", "2")
			table.exec(t, insertRow, "t", "after", "3")
			turn, w := table.turn(slog.New(slog.DiscardHandler))
			var rows, published []row
			for {
				var err error
				rows, err = turn.next(t.Context(), w, refsOf(rows), nil)
				require.NoError(t, err)
				if len(rows) == 0 {
					break
				}
				published = append(published, rows...)
			}
			if c.why == "" {
				require.Len(t, published, 4)
				return
			}
			require.Equal(t, []string{"before 1", "after 3"}, keysOf(published))
			var failed string
			require.NoError(t, table.pool.QueryRow(t.Context(), "SELECT failed FROM outbox WHERE failed IS NOT NULL").Scan(&failed))
			require.Contains(t, failed, c.why)
			require.Less(t, len(failed), 2*mostReason)
		})
	}
}

// The database cannot convert what is in a row, such as headers whose text has more than 1 GB. The
// relay finds the row, and sets it aside.
func TestUnreadableRowIsFoundAndSetAside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &unreadable{bad: 37, rows: 60}
		of := &relay{publisher: r, most: limits{50, 1 << 20}, memory: newMemory(limits{50, 1 << 20}, 0), log: slog.New(slog.DiscardHandler), metrics: newMeters(prometheus.NewRegistry())}
		turn := &turn{relay: of, log: of.log, rows: of.most.rows}
		var read []int64
		for len(read) < 59 {
			rows, err := turn.next(t.Context(), r, nil, nil)
			require.NoError(t, err)
			for _, row := range rows {
				read = append(read, row.id)
				r.read = row.id
			}
		}
		require.NotContains(t, read, int64(37))
		require.Equal(t, []string{"37 it cannot be read: : string buffer exceeds 1GB (SQLSTATE 54000)"}, r.aside)
	})
}

// unreadable is a table of rows 1, 2, … with one row that makes each statement fail that reads its columns.
type unreadable struct {
	publisher
	writer
	bad, rows, read int64
	aside           []string
}

func (u *unreadable) next(_ context.Context, _, _ []ref, most limits) (seen look, err error) {
	for id := u.read + 1; id <= u.rows && len(seen.rows) < most.rows; id++ {
		if id == u.bad && len(u.aside) == 0 {
			return look{}, readError{&pgconn.PgError{Code: "54000", Message: "string buffer exceeds 1GB"}}
		}
		if id != u.bad {
			seen.rows = append(seen.rows, row{ref: ref{id: id}, topic: "t"})
		}
	}
	seen.last = u.rows
	return seen, nil
}

func (u *unreadable) first(context.Context, []ref, []ref) (ref, error) {
	return ref{id: u.read + 1}, nil
}

func (u *unreadable) setAside(_ context.Context, _ term, bad ref, why string) error {
	u.aside = append(u.aside, fmt.Sprint(bad.id, " ", why))
	return nil
}

// A trigger of the users' own fails when published rows are deleted. That is no fault of the rows that are read next.
func (s server) testAFailedDeletionSetsNoRowAside(t *testing.T) {
	table := s.store(t, 1)
	table.exec(t, "INSERT INTO outbox (topic, key) SELECT 't', 'k' FROM generate_series(1, 2)")
	table.exec(t, `CREATE FUNCTION archive() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM 1 / 0; RETURN OLD; END $$;
		CREATE TRIGGER archive BEFORE DELETE ON outbox FOR EACH ROW EXECUTE FUNCTION archive()`)
	turn, w := table.turn(slog.New(slog.DiscardHandler))
	turn.publisher = &broken{until: time.Now().Add(time.Hour), why: fence.ErrStale} // sets nothing aside
	_, err := turn.next(t.Context(), w, refsOf(table.reads(t, nil, nil, limits{1, 1 << 20})), nil)
	require.ErrorContains(t, err, "division by zero")
}

// The ids of rows that a relay has published belong to other rows now. The other rows must be
// neither deleted nor left out.
func TestRowsWithReusedIDsAreNotDeleted(t *testing.T) {
	t.Parallel()
	table := server(dbtest.PostgreSQL(t)).store(t, 1)
	table.exec(t, insertRow, "t", "k", "published")
	former := refsOf(table.reads(t, nil, nil, plenty))
	table.exec(t, "TRUNCATE outbox")
	table.exec(t, "ALTER SEQUENCE outbox_id RESTART")
	table.exec(t, insertRow, "t", "k", "not published")
	require.Equal(t, []string{"k not published"}, keysOf(table.reads(t, former, nil, plenty)))
	require.Equal(t, []string{"k not published"}, keysOf(table.reads(t, nil, former, plenty)))
	require.NoError(t, table.setAside(t.Context(), 0, former[0], "late"))
	require.NoError(t, table.deleteClaimed(t.Context(), "g/0", 5, 0, former))
	require.NoError(t, newHeaders(table, "g", 1, nil, nil).setAside(t.Context(), term{token: 5}, former[0], "late"))
	require.Equal(t, []string{"k not published"}, keysOf(table.reads(t, nil, nil, plenty)))
}

func (s server) testIDsThatWentBackHoldTheSlot(t *testing.T) {
	for name, change := range map[string][]string{
		"the sequence is set back":                 {"SELECT setval('outbox_id', 5)"},
		"and has passed the highest id again":      {"SELECT setval('outbox_id', 1)", "INSERT INTO outbox (topic, key) SELECT 't', 'k' FROM generate_series(1, 30)"},
		"and is at the highest id again":           {"SELECT setval('outbox_id', 10)", "INSERT INTO outbox (topic, key) SELECT 't', 'k' FROM generate_series(1, 10)"},
		"the sequence is new":                      {"DROP SEQUENCE outbox_id", "CREATE SEQUENCE outbox_id"},
		"the table is new":                         {"DROP TABLE outbox", "DROP SEQUENCE outbox_id", schema(1), "INSERT INTO outbox (topic, key) VALUES ('t', 'k')"},
		"the table is truncated, with its ids":     {"TRUNCATE outbox", "ALTER SEQUENCE outbox_id RESTART", "INSERT INTO outbox (topic, key) VALUES ('t', 'k')"},
		"the sequence is behind rows not yet read": {"INSERT INTO outbox (topic, key) SELECT 't', 'k' FROM generate_series(1, 3)", "SELECT setval('outbox_id', 21)"},
	} {
		t.Run(name, func(t *testing.T) {
			table := s.store(t, 1)
			table.exec(t, "INSERT INTO outbox (topic, key) SELECT 't', 'k' FROM generate_series(1, 20)")
			before, err := table.next(t.Context(), 0, nil, nil, plenty, &floor{})
			require.NoError(t, err)
			at, err := position{}.after(before)
			require.NoError(t, err)
			seen, err := table.next(t.Context(), 0, refsOf(before.rows), nil, plenty, &floor{})
			require.NoError(t, err)
			_, err = at.after(seen)
			require.NoError(t, err)
			for _, statement := range change {
				table.exec(t, statement)
			}
			seen, err = table.next(t.Context(), 0, nil, nil, plenty, &floor{})
			require.NoError(t, err)
			_, err = at.after(seen)
			require.ErrorIs(t, err, errWentBack)
			require.ErrorContains(t, err, "type SELECT outbox_renumber(2")

			var above, renumbered int
			_, text, _ := strings.Cut(err.Error(), "outbox_renumber(")
			_, err = fmt.Sscanf(text, "%d", &above)
			require.NoError(t, err)
			require.NoError(t, table.pool.QueryRow(t.Context(), "SELECT outbox_renumber($1)", above).Scan(&renumbered))
			require.Equal(t, len(seen.rows), renumbered)
			table.exec(t, insertRow, "t", "k", "new")
			repaired, err := table.next(t.Context(), 0, nil, nil, plenty, &floor{})
			require.NoError(t, err)
			_, err = at.after(repaired)
			require.NoError(t, err)
			require.Len(t, repaired.rows, renumbered+1)
			require.Equal(t, "new", string(repaired.rows[renumbered].payload), "rows keep their order")
		})
	}
}

// A row becomes visible after a later one of another key was read. That is no sign that ids went back.
func TestLateRowDoesNotStopItsSlot(t *testing.T) {
	at, err := position{}.after(look{rows: []row{{ref: ref{5, 100}}}, last: 7, clock: 120})
	require.NoError(t, err)
	require.Equal(t, position{5, 120}, at)
	again, err := at.after(look{rows: []row{{ref: ref{4, 99}}, {ref: ref{3, 119}}}, last: 7, clock: 300})
	require.NoError(t, err)
	require.Equal(t, at, again)
	_, err = at.after(look{rows: []row{{ref: ref{4, 121}}}, last: 7, clock: 300})
	require.ErrorIs(t, err, errWentBack)
	_, err = at.after(look{last: 4})
	require.ErrorIs(t, err, errWentBack)
}

// The slot stands still until the table is repaired. Then it continues by itself. The error is
// logged, but not at each look.
func TestSlotContinuesOnceItsTableIsRepaired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said strings.Builder
		of, _ := (&store{}).turn(slog.New(slog.NewTextHandler(&said, nil)))
		of.at = position{10, 1000}
		w := &broken{until: time.Now().Add(150 * time.Second)}
		rows, err := of.next(t.Context(), w, nil, nil)
		require.NoError(t, err)
		require.Len(t, rows, 1)
		require.Equal(t, 3, strings.Count(said.String(), "level=ERROR"), said.String())
		require.Contains(t, said.String(), "SELECT outbox_renumber(10)")

		w = &broken{until: time.Now().Add(time.Hour), why: &pgconn.PgError{Code: "42P01", Message: "it is being restored"}}
		rows, err = of.next(t.Context(), w, nil, nil)
		require.NoError(t, err)
		require.Len(t, rows, 1)
		require.Contains(t, said.String(), "it is being restored")
	})
}

// A row cannot be set aside at the moment, whatever the reason. That must not end the relay, since
// it would end each relay that tries.
func TestSettingARowAsideIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of, _ := (&store{}).turn(slog.New(slog.DiscardHandler))
		w := &broken{until: time.Now().Add(time.Hour), why: &pgconn.PgError{Code: "54000", Message: "index row size exceeds maximum"}}
		of.publisher = w
		require.NoError(t, of.setAside(t.Context(), row{}, errFake))
		w.until, w.why = time.Now().Add(time.Hour), fence.ErrStale
		require.ErrorIs(t, of.setAside(t.Context(), row{}, errFake), fence.ErrStale)
	})
}

// The relay itself refuses a name that no topic can have. Kafka's requests have no room for a long one.
func TestTopicNameIsChecked(t *testing.T) {
	for topic, good := range map[string]bool{"t": true, "A-z_0.9": true, strings.Repeat("t", 249): true, "g.out": true, strings.Repeat("t", 250): false,
		"": false, ".": false, "..": false, "...": true, "a b": false, "ä": false, "t\n": false, "g.outbox": false, "g.neli": false} {
		require.Equal(t, good, faultOf(row{topic: topic}, "g") == nil, topic)
	}
	require.ErrorIs(t, faultOf(row{topic: "t", fault: errFake}, "g"), errFake)
	require.Less(t, len(brief(faultOf(row{topic: strings.Repeat("\xff", 1<<20)}, "g"))), 2*mostReason)
	require.Equal(t, "a?b", brief(errors.New("a\x00\xffb")))
}

// All slots of a process have room for six batches together. A slot that waits holds none of it.
func TestMemoryOfAllSlotsIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(limits{10, 1000}, 24)
		for range batches {
			require.NoError(t, m.await(t.Context()))
		}
		limited, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.Error(t, m.await(limited))
		large := []row{{payload: make([]byte, 400)}, {payload: make([]byte, 424)}}
		m.keep(large)
		require.False(t, m.free.TryAcquire(201))
		require.True(t, m.free.TryAcquire(200))
		m.forget(large)
		require.True(t, m.free.TryAcquire(824))
	})
}

// A link may be too slow for a whole batch. Then the relay reads and publishes smaller batches.
func TestSlowLinkGetsSmallerBatches(t *testing.T) {
	for name, why := range map[string]error{"the relay's time": context.DeadlineExceeded, "the database's time": &pgconn.PgError{Code: "57014"}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				of, _ := (&store{}).turn(slog.New(slog.DiscardHandler))
				s := &slow{why: why, most: 10}
				rows, err := of.next(t.Context(), s, nil, nil)
				require.NoError(t, err)
				require.Len(t, rows, 6, "100, 50, 25, 12, 6")
				s.most = 0
				_, _, err = of.publishAndRead(t.Context(), s, rows, nil)
				require.ErrorIs(t, err, why)
				require.Equal(t, 3, of.rows)
			})
		})
	}
}

// slow is a writer that takes only most rows in time. If most is 0, next lasts until publish has failed.
type slow struct {
	writer
	why  error
	most int
}

func (s *slow) next(ctx context.Context, _, _ []ref, most limits) (look, error) {
	if s.most == 0 {
		<-ctx.Done()
		return look{}, ctx.Err()
	}
	if most.rows > s.most {
		return look{}, s.why
	}
	return look{rows: slices.Repeat([]row{{topic: "t"}}, most.rows)}, nil
}

func (s *slow) publish(context.Context, []row, []ref, position) error { return s.why }

// broken is a table that fails for a while: with why, or, if why is nil, with ids that went back.
type broken struct {
	publisher
	writer
	until time.Time
	why   error
}

func (b *broken) setAside(context.Context, term, ref, string) error {
	if time.Now().Before(b.until) {
		return b.why
	}
	return nil
}

func (b *broken) next(context.Context, []ref, []ref, limits) (look, error) {
	if time.Now().Before(b.until) {
		if b.why != nil {
			return look{}, b.why
		}
		return look{rows: []row{{ref: ref{3, 2000}, topic: "t"}}, last: 3, clock: 2001}, nil
	}
	return look{rows: []row{{ref: ref{11, 2000}, topic: "t"}}, last: 11, clock: 2001}, nil
}

func (s server) testATableOfAnEarlierVersionIsUpgraded(t *testing.T) {
	table := s.store(t, 1)
	table.exec(t, insertRow, "t", "before", "v")
	var digest int64
	require.NoError(t, table.pool.QueryRow(t.Context(), "SELECT digest FROM outbox").Scan(&digest))
	table.exec(t, "DROP INDEX outbox_aside; ALTER TABLE outbox DROP COLUMN mark, DROP COLUMN digest; CREATE INDEX outbox_failed ON outbox (slot, key) WHERE failed IS NOT NULL")
	_, err := table.slots(t.Context())
	require.ErrorContains(t, err, "run `neli-outbox schema` with the same --slots again")
	table.exec(t, schema(1))
	_, err = table.slots(t.Context())
	require.NoError(t, err)
	var upgraded int64
	require.NoError(t, table.pool.QueryRow(t.Context(), "SELECT digest FROM outbox").Scan(&upgraded))
	require.Equal(t, digest, upgraded)
	table.exec(t, insertRow, "t", "after", "v")
	require.Equal(t, []string{"before v", "after v"}, keysOf(table.reads(t, nil, nil, plenty)))
	_, err = table.pool.Exec(t.Context(), "SELECT 'outbox_failed'::regclass")
	require.ErrorContains(t, err, "does not exist")
}
