package fence_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/fence"
)

type guard = func(ctx context.Context, tx *sql.Tx, key string, token int64) error

// dialects are the two databases.
var dialects = []struct {
	name, schema string
	claim, hold  guard
	noTable      error
}{
	{"PostgreSQL", "fence.Schema", fence.Postgres, fence.PostgresHold, sqlState{"42P01"}},
	{"MySQL", "fence.MySQLSchema", fence.MySQL, fence.MySQLHold, errors.New("Error 1146 (42S02): Table 'a.neli_fence' doesn't exist")},
}

// sqlState is an error as drivers for PostgreSQL return it.
type sqlState struct{ code string }

func (s sqlState) Error() string    { return "relation \"neli_fence\" does not exist" }
func (s sqlState) SQLState() string { return s.code }

func within(t *testing.T, db *sql.DB, f guard, key string, token int64) error {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	defer tx.Rollback()
	return f(t.Context(), tx, key, token)
}

func TestSQL(t *testing.T) {
	for _, d := range dialects {
		t.Run(d.name, func(t *testing.T) {
			f := &fakeDB{tokens: map[string]int64{}}
			db := f.open()
			defer db.Close()

			require.ErrorContains(t, within(t, db, d.hold, "k", 5), "has not claimed")
			require.NoError(t, within(t, db, d.claim, "k", 5))
			require.NoError(t, within(t, db, d.claim, "k", 5), "a term may claim again")
			require.NoError(t, within(t, db, d.hold, "k", 5))
			require.NoError(t, within(t, db, d.claim, "k", 7))
			require.NoError(t, within(t, db, d.claim, "other", 1), "keys have nothing to do with each other")
			for _, late := range []guard{d.claim, d.hold} {
				for _, token := range []int64{0, 5} {
					err := within(t, db, late, "k", token)
					require.ErrorIs(t, err, fence.ErrStale)
					require.ErrorContains(t, err, "its token is 7, this one's is ")
				}
			}
			err := within(t, db, d.hold, "k", 9)
			require.ErrorContains(t, err, "has not claimed: its token is 9, the newest claim's is 7")
			require.NotErrorIs(t, err, fence.ErrStale)
			require.NoError(t, within(t, db, d.claim, "zero", 0), "the first record of a topic has offset 0")

			for _, any := range []guard{d.claim, d.hold} {
				require.ErrorContains(t, within(t, db, any, "", 1), "key has 0 bytes, must have 1 to 255")
				require.ErrorContains(t, within(t, db, any, strings.Repeat("k", 256), 1), "key has 256 bytes")
				require.ErrorContains(t, within(t, db, any, "k", -1), "non-exclusive mode")
				f.fails = d.noTable
				err := within(t, db, any, "k", 9)
				require.ErrorIs(t, err, d.noTable)
				require.ErrorContains(t, err, "make the table by "+d.schema+":\nCREATE TABLE")
				f.fails = sqlState{"40001"}
				err = within(t, db, any, "k", 9)
				require.ErrorIs(t, err, f.fails, "which says that all is to be run again")
				require.NotErrorIs(t, err, fence.ErrStale)
				require.NotContains(t, err.Error(), "CREATE TABLE")
				f.fails = nil
			}
		})
	}
}

// A server that cuts keys to the length of a column would make two roles share a row, so that is an error.
func TestCutKeyIsAnError(t *testing.T) {
	f := &fakeDB{tokens: map[string]int64{}, column: 4}
	db := f.open()
	defer db.Close()
	require.ErrorContains(t, within(t, db, fence.MySQL, "neli/invoicing/0", 5), "not in the table although it was written")
}

// A hold that finds no row of its term, and then cannot read the token, does not know whether the
// term is stale or has not claimed. The error must not be ErrStale.
func TestHoldThatCannotReadTheTokenIsNotStale(t *testing.T) {
	f := &fakeDB{tokens: map[string]int64{"k": 7}, unread: sqlState{"40001"}}
	db := f.open()
	defer db.Close()
	err := within(t, db, fence.PostgresHold, "k", 9)
	require.ErrorIs(t, err, f.unread)
	require.NotErrorIs(t, err, fence.ErrStale)
	err = within(t, db, fence.Postgres, "k", 5)
	require.ErrorIs(t, err, f.unread)
	require.ErrorIs(t, err, fence.ErrStale, "a claim that changes no row does know")
}

// The first claim of a term may commit between the two queries of its own hold. The row is then the
// term's own, so the error is not ErrStale.
func TestHoldBeforeItsOwnClaimIsNotStale(t *testing.T) {
	f := &fakeDB{tokens: map[string]int64{"k": 3}, later: 5}
	db := f.open()
	defer db.Close()
	err := within(t, db, fence.PostgresHold, "k", 5)
	require.ErrorContains(t, err, "this term had not claimed yet")
	require.NotErrorIs(t, err, fence.ErrStale)
	require.NoError(t, within(t, db, fence.PostgresHold, "k", 5))
}
