package postgres

import (
	"context"
	"database/sql"
	"sync"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/fence"
	"github.com/goneli/neli/lab/dbtest"
	"github.com/goneli/neli/nelitest"
)

func database(t *testing.T) *sql.DB {
	db, err := sql.Open("pgx", dbtest.PostgreSQL(t))
	require.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	for _, schema := range []string{fence.Schema, "CREATE TABLE sent (invoice text)"} {
		_, err := db.ExecContext(t.Context(), schema)
		require.NoError(t, err)
	}
	return db
}

// another waits until one more invoice is sent by name, or by any process if name is "", and returns who sent it.
func another(t *testing.T, db *sql.DB, name string) string {
	t.Helper()
	_, err := db.ExecContext(t.Context(), "DELETE FROM sent")
	require.NoError(t, err)
	var who string
	require.Eventually(t, func() bool {
		return db.QueryRowContext(t.Context(), "SELECT invoice FROM sent WHERE $1 IN ('', invoice) LIMIT 1", name).Scan(&who) == nil
	}, time.Minute, 10*time.Millisecond)
	return who
}

func TestBefore(t *testing.T) {
	db := database(t)
	ctx, stop := context.WithCancel(t.Context())
	var members sync.WaitGroup
	defer members.Wait()
	defer stop()
	for _, name := range []string{"anna", "boris"} {
		members.Go(func() { _ = before(ctx, db, name) })
	}
	first := another(t, db, "")
	_, err := db.ExecContext(ctx, "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted")
	require.NoError(t, err)
	another(t, db, map[string]string{"anna": "boris", "boris": "anna"}[first])
}

func TestAfter(t *testing.T) {
	db := database(t)
	broker := nelitest.NewBroker(nelitest.Options{})
	defer broker.Close()
	var members sync.WaitGroup
	defer members.Wait()
	start := func(name string) context.CancelFunc {
		ctx, stop := context.WithCancel(t.Context())
		n, err := neli.New(neli.Config{LeaderGroupID: "billing-invoicing", Name: name, Provider: broker.Provider(name)})
		require.NoError(t, err)
		members.Go(func() {
			if err := after(ctx, n, db, name); err != nil {
				t.Error(name, err)
			}
			if err := n.Close(); err != nil {
				t.Error(name, err)
			}
		})
		return stop
	}
	defer start("anna")()
	another(t, db, "anna")
	stopBoris := start("boris")
	defer stopBoris()
	var token int64
	require.NoError(t, db.QueryRowContext(t.Context(), "SELECT token FROM neli_fence").Scan(&token))

	broker.Freeze("anna")
	another(t, db, "boris")
	require.ErrorIs(t, fenced(t.Context(), db, token, "late"), fence.ErrStale)
	require.Equal(t, "boris", another(t, db, ""), "anna has lost her lease")
	broker.Resume("anna")
	stopBoris()
	another(t, db, "anna")
}
