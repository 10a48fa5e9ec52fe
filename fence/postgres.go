package fence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// The statements for PostgreSQL, for those who do not use database/sql. Parameters are the
// key and the token.
const (
	// Schema makes the table of tokens.
	Schema = `CREATE TABLE IF NOT EXISTS neli_fence (
	key varchar(255) PRIMARY KEY,
	token bigint NOT NULL)`

	// Claim is what Postgres executes. It changes no row if a later term has claimed: count
	// them.
	Claim = `INSERT INTO neli_fence (key, token) VALUES ($1, $2)
ON CONFLICT (key) DO UPDATE SET token = EXCLUDED.token
WHERE neli_fence.token <= EXCLUDED.token`

	// Hold is what PostgresHold queries. It returns no row if the newest claim is another
	// term's. It is FOR SHARE: a weaker lock, or none, does not hold a claim back.
	Hold = `SELECT token FROM neli_fence WHERE key = $1 AND token = $2 FOR SHARE`
)

const postgresStored = `SELECT token FROM neli_fence WHERE key = $1`

// Postgres claims a key for a term, and refuses a term with a lower token than one that has
// claimed. It must be the first statement of the transaction, and each transaction that
// writes for the role begins with it, or with PostgresHold.
//
// On nil, no transaction of an earlier term that claims or holds first commits until this
// one has ended, nor afterwards if it commits. Nothing is promised for writes outside such
// transactions. A new term commits a claim before it reads any state; a claim that was
// rolled back keeps nobody out.
//
// ErrStale means that a later term has claimed: roll back, and stop for good. It has the
// token and the one in the table. An error with SQLSTATE 40001 or 40P01, from here or from
// any other statement, says nothing of that kind: run the whole transaction again.
//
// It holds at READ COMMITTED, REPEATABLE READ and SERIALIZABLE. The transactions of one key
// run one after the other; PostgresHold is for those that are to run side by side. The
// table must exist (Schema). key has 1 to 255 bytes, one for each role, such as
// TransactionalID returns.
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

// PostgresHold is Postgres for transactions that run side by side, in a term that has
// committed a claim. It must be the first statement of the transaction.
//
// On nil, no later term's claim commits until this transaction has ended. Nothing is
// promised for writes outside such transactions. It delays a successor's claim: eight
// overlapping streams of such transactions held one back for 5.7 s. So ask
// Leadership.Valid before each transaction, and begin none if it is false.
//
// Errors are as with Postgres. If this term has not claimed, the error is none of ErrStale.
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

// staleIn tells why a term was not let through. If only a hold found no row, perhaps the term has not claimed.
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
