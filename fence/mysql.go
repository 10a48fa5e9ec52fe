package fence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// MySQLSchema makes the table of tokens in MariaDB or MySQL. The key is binary: with other
// types the server takes "A" for "a", or "a " for "a", and two roles would share a row.
const MySQLSchema = "CREATE TABLE IF NOT EXISTS neli_fence (\n" +
	"\t`key` varbinary(255) PRIMARY KEY,\n" +
	"\ttoken bigint NOT NULL) ENGINE=InnoDB"

const (
	mysqlClaim = "INSERT INTO neli_fence (`key`, token) VALUES (?, ?) ON DUPLICATE KEY UPDATE token = GREATEST(token, ?)"
	// The number of rows that the statement above changed is of no use: it is 0, 1 or 2, depending on the driver.
	mysqlLocked = "SELECT token FROM neli_fence WHERE `key` = ? FOR UPDATE"
	mysqlHold   = "SELECT token FROM neli_fence WHERE `key` = ? LOCK IN SHARE MODE"
)

// MySQL does for MariaDB and MySQL what Postgres does for PostgreSQL, in two statements that must
// be the first of the transaction.
//
// If it returns nil, no transaction of an earlier term that begins with a claim or a hold can commit
// until this one has ended, nor afterwards if this one commits. Writes outside such transactions
// are not covered. A new term commits a claim before it reads any state.
//
// The transaction must not begin WITH CONSISTENT SNAPSHOT, since it would read a state from before
// its claim. ErrStale is as with Postgres. Errors 1213 and 1205, and MariaDB's 1020, do not mean that
// the term is over: roll back, and run the whole transaction again.
//
// It was tested with MariaDB 10.11 at all four isolation levels, but not with MySQL. The table must
// exist (MySQLSchema).
func MySQL(ctx context.Context, tx *sql.Tx, key string, token int64) error {
	if err := checkArguments(key, token); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, mysqlClaim, key, token, token); err != nil {
		return failed("claim", key, "MySQLSchema", MySQLSchema, err)
	}
	return mysqlCompare(ctx, tx, "claim", mysqlLocked, key, token)
}

// MySQLHold does for MariaDB and MySQL what PostgresHold does for PostgreSQL.
//
// If it returns nil, a later term's claim cannot commit until this transaction has ended. Writes
// outside such transactions are not covered. A stream of overlapping transactions delays a
// successor's claim, so ask Leadership.Valid before each, and begin none if it is false.
//
// Errors are as with MySQL. If neither this term nor a later one has claimed, the error is not
// ErrStale.
func MySQLHold(ctx context.Context, tx *sql.Tx, key string, token int64) error {
	if err := checkArguments(key, token); err != nil {
		return err
	}
	return mysqlCompare(ctx, tx, "hold", mysqlHold, key, token)
}

func mysqlCompare(ctx context.Context, tx *sql.Tx, doing, query, key string, token int64) error {
	var stored int64
	err := tx.QueryRowContext(ctx, query, key).Scan(&stored)
	switch {
	case errors.Is(err, sql.ErrNoRows) && doing == "claim":
		// Without strict mode the server cuts a value to the length of its column.
		return fmt.Errorf("fence: claim of key %q: it is not in the table although it was written: is the column %d bytes long?", key, maxKey)
	case errors.Is(err, sql.ErrNoRows):
		return unclaimed(key, token)
	case err != nil:
		return failed(doing, key, "MySQLSchema", MySQLSchema, err)
	case stored == token:
		return nil
	}
	return compare(key, token, stored)
}
