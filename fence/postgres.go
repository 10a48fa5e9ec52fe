package fence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// These are the statements for PostgreSQL, for users who do not use database/sql. Their parameters
// are the key and the token.
const (
	// Schema makes the table of tokens.
	Schema = `CREATE TABLE IF NOT EXISTS neli_fence (
	key varchar(255) PRIMARY KEY,
	token bigint NOT NULL)`

	// Claim is what Postgres executes. If a later term has claimed, it changes no row: check the
	// number of changed rows.
	Claim = `INSERT INTO neli_fence (key, token) VALUES ($1, $2)
ON CONFLICT (key) DO UPDATE SET token = EXCLUDED.token
WHERE neli_fence.token <= EXCLUDED.token`

	// Hold is what PostgresHold queries. It returns no row unless the newest claim is this
	// term's. It is FOR SHARE: a weaker lock, or none, does not hold a claim back.
	Hold = `SELECT token FROM neli_fence WHERE key = $1 AND token = $2 FOR SHARE`
)

const postgresStored = `SELECT token FROM neli_fence WHERE key = $1`

// Postgres claims a key for a term. It refuses a term whose token is lower than that of a term that
// has claimed. It must be the first statement of the transaction. Each transaction that writes for
// the role begins with it, or with PostgresHold.
//
// If it returns nil, no transaction of an earlier term that begins with a claim or a hold can commit
// until this one has ended, nor afterwards if this one commits. Writes outside such transactions
// are not covered. A new term commits a claim before it reads any state; a claim that was rolled
// back fences nobody.
//
// ErrStale means that a later term has claimed: roll back, and stop for good. The error has this
// term's token and, if it could be read, the one in the table. An error with SQLSTATE 40001 or 40P01
// that is not ErrStale, from here or from any other statement, means: run the whole transaction again.
//
// It works at READ COMMITTED, REPEATABLE READ and SERIALIZABLE. The transactions of one key run one
// after the other; use PostgresHold for transactions that run side by side. The table must exist
// (Schema). key has 1 to 255 bytes, and each role has its own, such as TransactionalID returns.
func Postgres(ctx context.Context, tx *sql.Tx, key string, token int64) error {
	if err := checkArguments(key, token); err != nil {
		return err
	}
	result, err := tx.ExecContext(ctx, Claim, key, token)
	if err != nil {
		return failed("claim", key, "Schema", Schema, err)
	}
	rows, err := result.RowsAffected()
	switch {
	case err != nil:
		return failed("claim", key, "Schema", Schema, err)
	case rows == 0:
		return staleIn(ctx, tx, "claim", key, token)
	}
	return nil
}

// PostgresHold is Postgres for transactions that run side by side, in a term that has committed a
// claim. It must be the first statement of the transaction.
//
// If it returns nil, a later term's claim cannot commit until this transaction has ended. Writes
// outside such transactions are not covered. Such transactions delay a successor's claim: eight
// overlapping streams of them held one back for 5.7 s. So ask Leadership.Valid before each
// transaction, and begin none if it is false.
//
// Errors are as with Postgres. If neither this term nor a later one has claimed, the error is not
// ErrStale.
func PostgresHold(ctx context.Context, tx *sql.Tx, key string, token int64) error {
	if err := checkArguments(key, token); err != nil {
		return err
	}
	var stored int64
	err := tx.QueryRowContext(ctx, Hold, key, token).Scan(&stored)
	if errors.Is(err, sql.ErrNoRows) {
		return staleIn(ctx, tx, "hold", key, token)
	}
	if err != nil {
		return failed("hold", key, "Schema", Schema, err)
	}
	return nil
}

// staleIn returns why a claim or a hold was refused. A hold may also find no row because its own
// term has not claimed yet.
func staleIn(ctx context.Context, tx *sql.Tx, doing, key string, token int64) error {
	var stored int64
	switch err := tx.QueryRowContext(ctx, postgresStored, key).Scan(&stored); {
	case errors.Is(err, sql.ErrNoRows):
		return unclaimed(key, token)
	case err != nil && doing == "hold":
		return failed(doing, key, "Schema", Schema, err)
	case err != nil:
		return fmt.Errorf("%w: key %q, token %d; the stored token could not be read: %w", ErrStale, key, token, err)
	}
	return compare(key, token, stored)
}
