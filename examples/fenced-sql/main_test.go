package main

import (
	"database/sql"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/lab/dbtest"
)

// All processes may start for the first time at once.
func TestProcessesCreateTheTablesAtOnce(t *testing.T) {
	db, err := sql.Open("pgx", dbtest.PostgreSQL(t))
	require.NoError(t, err)
	defer db.Close()
	const processes = 8
	errs := make(chan error, processes)
	for range processes {
		go func() { errs <- createTables(t.Context(), db) }()
	}
	for range processes {
		require.NoError(t, <-errs)
	}
}
