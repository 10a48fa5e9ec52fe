// Package fenced tests that the fences refuse a former leader's writes, on real servers: PostgreSQL, MariaDB, and Apache
// Kafka with both clients.
package fenced

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/goneli/neli/fence"
	"github.com/goneli/neli/lab/dbtest"
)

// variant is a way to use the fence, right or wrong: what the former term does, and what the later term does.
type variant struct {
	name          string
	former, later []txn
	// broken lists the isolation levels at which some order of statements breaks the variant; it is
	// empty if the variant is right.
	broken []sql.IsolationLevel
}

func steps(all ...step) txn {
	all[0] = first(all[0])
	return txn{steps: append(all, commit)}
}

// claims makes a transaction the term's claim.
func claims(t txn) txn {
	t.claim = true
	return t
}

var (
	claimAlone = claims(steps(claim))
	claimFirst = steps(claim, read, write)
	holdFirst  = steps(hold, read, write)
	unguarded  = steps(read, write)
)

// right is the same for both databases.
var right = []variant{
	{name: "claim first in each", former: []txn{claimFirst}, later: []txn{claimAlone, claimFirst}},
	{name: "claim first, none of its own", former: []txn{claimFirst}, later: []txn{claims(claimFirst)}},
	{name: "claim once, then hold first in each", former: []txn{claimAlone, holdFirst}, later: []txn{claimAlone, holdFirst}},
}

var wrongPostgres = []variant{
	{name: "FOR KEY SHARE", former: []txn{claimAlone, steps(asked("key share", "SELECT token FROM neli_fence WHERE [key] = $1 FOR KEY SHARE"), read, write)},
		later: []txn{claimAlone, claimFirst}, broken: standard},
	{name: "claim in a transaction of its own only", former: []txn{claimAlone, unguarded}, later: []txn{claimAlone, unguarded}, broken: standard},
	{name: "rows not counted", former: []txn{steps(uncounted, read, write)}, later: []txn{claimAlone, claimFirst}, broken: standard},
	{name: "token read without a lock", former: []txn{steps(asked("unlocked", "SELECT token FROM neli_fence WHERE [key] = $1"), read, write)},
		later: []txn{claimAlone, claimFirst}, broken: standard},
	{name: "token in the write", former: []txn{steps(read, inWrite)}, later: []txn{claimAlone, claimFirst}, broken: standard},
	{name: "claim after the read", former: []txn{steps(read, claim, write)}, later: []txn{claims(steps(read, claim, write))}, broken: standard[:1]},
	{name: "claim last", former: []txn{steps(read, write, claim)}, later: []txn{claims(steps(read, write, claim))}, broken: standard[:1]},
}

var wrongMariaDB = []variant{
	{name: "token read without a lock", former: []txn{steps(asked("unlocked", "SELECT token FROM neli_fence WHERE [key] = $1"), read, write)},
		later: []txn{claimAlone, claimFirst}, broken: standard[:2]},
	{name: "claim after the read", former: []txn{steps(read, claim, write)}, later: []txn{claims(steps(read, claim, write))}, broken: standard[:2]},
	{name: "claim in a transaction of its own only", former: []txn{claimAlone, unguarded}, later: []txn{claimAlone, unguarded}, broken: standard},
	{name: "WITH CONSISTENT SNAPSHOT", former: []txn{{steps: []step{snapshot, claim, read, write, commit}}},
		later: []txn{{claim: true, steps: []step{snapshot, claim, read, write, commit}}}, broken: standard[1:2]},
}

func open(t *testing.T, d *dialect, dsn string) *sql.DB {
	db, err := sql.Open(d.driver, dsn)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	db.SetMaxOpenConns(8)
	return db
}

// TestPostgreSQL runs two terms' statements in every order that the server's locks allow, at each isolation level, with
// and without an existing row of the key.
func TestPostgreSQL(t *testing.T) {
	t.Parallel()
	db := open(t, &postgres, dbtest.PostgreSQL(t))
	postgres.prepare(t, db)
	testRight(t, &postgres, db, postgres.levels)
	testWrong(t, &postgres, db, wrongPostgres)
	testBadInput(t, &postgres, db, "ALTER TABLE neli_fence ALTER COLUMN key TYPE varchar(4)")
}

// TestMariaDB is TestPostgreSQL for MariaDB, also with MariaDB's own snapshot isolation.
func TestMariaDB(t *testing.T) {
	t.Parallel()
	dsn := dbtest.MariaDB(t) + "?clientFoundRows=true" // for the tests' own updates; the fence counts none
	db := open(t, &mariadb, dsn)
	mariadb.prepare(t, db)
	testRight(t, &mariadb, db, mariadb.levels)
	testWrong(t, &mariadb, db, wrongMariaDB)
	t.Run("snapshot isolation", func(t *testing.T) {
		strict := open(t, &mariadb, dsn+"&innodb_snapshot_isolation=1")
		testRight(t, &mariadb, strict, mariadb.levels)
	})
	testBadInput(t, &mariadb, db, "ALTER TABLE neli_fence MODIFY `key` varbinary(4)")
	t.Run("a server that cuts keys", func(t *testing.T) {
		lax := open(t, &mariadb, dsn+"&sql_mode=%27%27")
		mariadb.narrow(t, lax, "ALTER TABLE neli_fence MODIFY `key` varbinary(4)")
		err := inTx(t, lax, mariadb.claim, 7)
		require.ErrorContains(t, err, "is the column 255 bytes long?")
		require.NotErrorIs(t, err, fence.ErrStale)
	})
}

func testRight(t *testing.T, d *dialect, db *sql.DB, levels []sql.IsolationLevel) {
	total := 0
	for _, v := range right {
		for _, level := range levels {
			for _, row := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/row there %t", v.name, level, row), func(t *testing.T) {
					n, stale, again, waited := 0, 0, 0, 0
					for choices := []int{}; choices != nil; n++ {
						s := v.try(t, d, db, level, row, choices)
						require.Empty(t, s.faults, "%s", s)
						stale, again, waited = stale+s.stale, again+s.again, waited+s.waited
						choices = s.next()
					}
					t.Logf("%d orders, %d stale, %d run again, %d waits", n, stale, again, waited)
					require.Positive(t, stale, "no former term was refused")
					require.Positive(t, waited, "nobody waited for a lock")
					total += n
				})
			}
		}
	}
	t.Logf("%s: %d orders of statements, nothing wrong", d.name, total)
}

// testWrong requires that each wrong variant breaks at its levels, in some order.
func testWrong(t *testing.T, d *dialect, db *sql.DB, variants []variant) {
	for _, v := range variants {
		for _, level := range v.broken {
			t.Run(fmt.Sprintf("wrong/%s/%s", v.name, level), func(t *testing.T) {
				n := 0
				for choices := []int{}; choices != nil; n++ {
					s := v.try(t, d, db, level, true, choices)
					if len(s.faults) > 0 {
						t.Logf("after %d orders: %s", n+1, strings.Join(s.faults, "; "))
						return
					}
					choices = s.next()
				}
				t.Errorf("%d orders of statements, and nothing is wrong", n)
			})
		}
	}
}

func inTx(t *testing.T, db *sql.DB, f guard, token int64) error {
	tx, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	err = f(t.Context(), tx, sqlKey, token)
	if err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// narrow makes the key's column too short.
func (d *dialect) narrow(t *testing.T, db *sql.DB, alter string) {
	for _, q := range []string{"DROP TABLE IF EXISTS neli_fence", d.schema, alter} {
		_, err := db.Exec(q)
		require.NoError(t, err)
	}
}

func testBadInput(t *testing.T, d *dialect, db *sql.DB, alter string) {
	t.Run("a lower token", func(t *testing.T) {
		d.narrow(t, db, "DELETE FROM neli_fence")
		require.NoError(t, inTx(t, db, d.claim, 7))
		for _, f := range []guard{d.claim, d.hold} {
			for _, token := range []int64{0, 6} {
				err := inTx(t, db, f, token)
				require.ErrorIs(t, err, fence.ErrStale)
				require.ErrorContains(t, err, fmt.Sprintf("its token is 7, this one's is %d", token))
			}
		}
		err := inTx(t, db, d.hold, 8)
		require.ErrorContains(t, err, "has not claimed")
		require.NotErrorIs(t, err, fence.ErrStale)
	})
	t.Run("a column that is too short", func(t *testing.T) {
		d.narrow(t, db, alter)
		err := inTx(t, db, d.claim, 7)
		require.ErrorContains(t, err, fmt.Sprintf("claim of key %q (%d bytes)", sqlKey, len(sqlKey)))
		require.NotErrorIs(t, err, fence.ErrStale)
	})
	t.Run("no table", func(t *testing.T) {
		_, err := db.Exec("DROP TABLE neli_fence")
		require.NoError(t, err)
		name := "fence.Schema:"
		if d == &mariadb {
			name = "fence.MySQLSchema:"
		}
		for _, f := range []guard{d.claim, d.hold} {
			require.ErrorContains(t, inTx(t, db, f, 7), name)
		}
	})
}
