package fenced

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/fence"
)

const sqlKey = "neli/invoicing/0"

// dialect has the differences between the databases.
type dialect struct {
	name     string
	driver   string
	schema   string
	levels   []sql.IsolationLevel
	claim    guard
	hold     guard
	id       string // of a connection
	quote    string // around the column key
	question bool   // parameters are ?, not $1
	again    func(error) bool
	// waits says whether a statement that has not answered yet waits for a lock.
	waits func(t *testing.T, db *sql.DB, id int64) bool
}

type guard func(ctx context.Context, tx *sql.Tx, key string, token int64) error

var standard = []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable}

var postgres = dialect{
	name: "PostgreSQL", driver: "pgx", schema: fence.Schema, levels: standard,
	claim: fence.Postgres, hold: fence.PostgresHold, id: "SELECT pg_backend_pid()",
	again: func(err error) bool {
		var pg *pgconn.PgError
		return errors.As(err, &pg) && (pg.Code == "40001" || pg.Code == "40P01")
	},
	waits: func(t *testing.T, db *sql.DB, id int64) (waits bool) {
		require.NoError(t, db.QueryRow("SELECT count(*) > 0 FROM pg_locks WHERE pid = $1 AND NOT granted", id).Scan(&waits))
		return waits
	},
}

var mariadb = dialect{
	name: "MariaDB", driver: "mysql", schema: fence.MySQLSchema, levels: append([]sql.IsolationLevel{sql.LevelReadUncommitted}, standard...),
	claim: fence.MySQL, hold: fence.MySQLHold, id: "SELECT CONNECTION_ID()", quote: "`", question: true,
	again: func(err error) bool {
		var my *mysql.MySQLError
		return errors.As(err, &my) && (my.Number == 1213 || my.Number == 1205 || my.Number == 1020)
	},
	// InnoDB's tables of locks are cached for 100 ms. A session that has not answered by now most likely waits for a
	// lock. If it does not, one more order of statements is tested.
	waits: func(*testing.T, *sql.DB, int64) bool {
		timer := time.NewTimer(25 * time.Millisecond)
		defer timer.Stop()
		<-timer.C
		return true
	},
}

// text returns a statement in the dialect.
func (d *dialect) text(query string) string {
	query = strings.ReplaceAll(query, "[key]", d.quote+"key"+d.quote)
	if d.question {
		query = strings.NewReplacer("$1", "?", "$2", "?").Replace(query)
	}
	return query
}

// prepare creates the tables.
func (d *dialect) prepare(t *testing.T, db *sql.DB) {
	for _, q := range []string{d.schema, "CREATE TABLE work (term bigint)", "CREATE TABLE counter (id int PRIMARY KEY, v bigint)", "INSERT INTO counter VALUES (1, 0)"} {
		_, err := db.Exec(q)
		require.NoError(t, err)
	}
}

// step is a statement, or a few that belong together.
type step struct {
	name string
	do   func(ctx context.Context, s *session) error
}

// txn is a transaction of a term. claim: once it has committed, nothing of a former term may commit.
type txn struct {
	claim bool
	steps []step
}

var errStops = errors.New("the fence has refused")

// session is one of two terms, on a connection of its own.
type session struct {
	d       *dialect
	level   sql.IsolationLevel
	conn    *sql.Conn
	id      int64
	term    int64
	program []txn
	tx      *sql.Tx
	at, in  int // transaction, and step in it
	tries   int
	counter int64 // as it was read
	former  int64 // rows of the former term that were seen
	commits int
	done    bool
	busy    bool
	answer  chan error
}

func (s *session) begin(ctx context.Context) error {
	tx, err := s.conn.BeginTx(ctx, &sql.TxOptions{Isolation: s.level})
	s.tx = tx
	return err
}

// first joins BEGIN and the first statement, since the position of BEGIN alone makes no difference.
func first(of step) step {
	return step{"begin, " + of.name, func(ctx context.Context, s *session) error {
		if err := s.begin(ctx); err != nil {
			return err
		}
		return of.do(ctx, s)
	}}
}

// guarded is a step with the fence that ships.
func guarded(name string, f func(d *dialect) guard) step {
	return step{name, func(ctx context.Context, s *session) error {
		err := f(s.d)(ctx, s.tx, sqlKey, s.term)
		if errors.Is(err, fence.ErrStale) {
			return errStops
		}
		return err
	}}
}

var (
	claim = guarded("claim", func(d *dialect) guard { return d.claim })
	hold  = guarded("hold", func(d *dialect) guard { return d.hold })
	read  = step{"read", func(ctx context.Context, s *session) error {
		if err := s.tx.QueryRowContext(ctx, "SELECT v FROM counter WHERE id = 1").Scan(&s.counter); err != nil {
			return err
		}
		return s.tx.QueryRowContext(ctx, "SELECT count(*) FROM work WHERE term = 1").Scan(&s.former)
	}}
	write = step{"write", func(ctx context.Context, s *session) error {
		return s.write(ctx, "UPDATE counter SET v = $1 WHERE id = 1", s.counter+1)
	}}
	commit = step{"commit", func(_ context.Context, s *session) error { return s.tx.Commit() }}
)

func (s *session) write(ctx context.Context, update string, args ...any) error {
	result, err := s.tx.ExecContext(ctx, s.d.text(update), args...)
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return errors.Join(errStops, err)
	}
	_, err = s.tx.ExecContext(ctx, s.d.text("INSERT INTO work VALUES ($1)"), s.term)
	return err
}

// asked is a step that finds the token by a query that does not ship.
func asked(name, query string) step {
	return step{name, func(ctx context.Context, s *session) error {
		var token int64
		err := s.tx.QueryRowContext(ctx, s.d.text(query), sqlKey).Scan(&token)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err == nil && token > s.term {
			return errStops
		}
		return err
	}}
}

// uncounted is a claim for PostgreSQL that does not check the number of rows.
var uncounted = step{"claim, rows not counted", func(ctx context.Context, s *session) error {
	_, err := s.tx.ExecContext(ctx, fence.Claim, sqlKey, s.term)
	return err
}}

// inWrite has the token as a predicate of the write.
var inWrite = step{"write if the token", func(ctx context.Context, s *session) error {
	return s.write(ctx, "UPDATE counter SET v = $1 WHERE id = 1 AND COALESCE((SELECT token FROM neli_fence WHERE [key] = '"+sqlKey+"'), 0) <= $2", s.counter+1, s.term)
}}

// snapshot begins a transaction with a snapshot that is older than the claim, at the server's default level, REPEATABLE
// READ.
var snapshot = step{"begin with consistent snapshot", func(ctx context.Context, s *session) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	_, err := s.tx.ExecContext(ctx, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
	return err
}}

func (s *session) String() string { return fmt.Sprintf("term %d", s.term) }
