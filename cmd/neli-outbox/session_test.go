//go:build unix

package main

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/lab/dbtest"
)

// A pooler that keeps a session for each client is used like the database. One that shares sessions is refused, by name, before
// anything is set in a session that another client gets.
func TestPoolerThatSharesSessionsIsRefused(t *testing.T) {
	t.Parallel()
	p := dbtest.StartPostgres(t)
	openStore(t, p.DSN, 3)
	for name, c := range map[string]struct {
		settings []string
		dsn      string
		want     string
	}{
		"a session for each client": {[]string{"pool_mode=session"}, " statement_timeout=7s", ""},
		"for each transaction":      {[]string{"pool_mode=transaction"}, "", "connect to the database itself, or to a pool with pool_mode=session"},
		"in turn":                   {[]string{"pool_mode=transaction", "server_round_robin=1", "min_pool_size=3"}, "", "PgBouncer"},
		"and ignores parameters":    {[]string{"pool_mode=transaction", "ignore_startup_parameters=statement_timeout,options"}, "", "PgBouncer"},
		"for each statement":        {[]string{"pool_mode=statement"}, "", "PgBouncer"},
		"parameters that it refuses": {[]string{"pool_mode=session"}, " options='-c work_mem=8MB'",
			"give settings in --database as name=value, and not in options, which a pooler refuses"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, err := (&config{database: p.PgBouncer(t, c.settings...) + c.dsn}).pool()
			require.NoError(t, err)
			for range 3 { // also when the pooler still has sessions of earlier clients
				err = sharesSessions(t.Context(), &cfg.ConnConfig.Config)
				if c.want != "" {
					require.ErrorContains(t, err, c.want)
					require.False(t, passing(err), "it would be tried for ever")
					continue
				}
				require.NoError(t, err)
			}
			if c.want == "" {
				conn, err := pgx.ConnectConfig(t.Context(), cfg.ConnConfig)
				require.NoError(t, err)
				defer conn.Close(t.Context())
				for name, want := range map[string]string{"statement_timeout": "7s", "enable_sort": "off", "default_transaction_isolation": "read committed"} {
					got, err := ask(t.Context(), conn.PgConn(), "SHOW "+name)
					require.NoError(t, err)
					require.Equal(t, []string{want}, got)
				}
			}
		})
	}
}

// A pool whose mode was changed while the relay runs is noticed when the next session is given its settings.
func TestPoolerWhoseModeChangesIsRefused(t *testing.T) {
	t.Parallel()
	p := dbtest.StartPostgres(t)
	pooled, err := pgconn.ParseConfig(p.PgBouncer(t, "pool_mode=transaction", "server_round_robin=1", "min_pool_size=2"))
	require.NoError(t, err)
	var holders []*pgconn.PgConn // so that the pool has several sessions
	for range 3 {
		conn, err := pgconn.ConnectConfig(t.Context(), pooled)
		require.NoError(t, err)
		defer conn.Close(t.Context())
		_, err = ask(t.Context(), conn, "BEGIN")
		require.NoError(t, err)
		holders = append(holders, conn)
	}
	for _, conn := range holders {
		_, err = ask(t.Context(), conn, "COMMIT")
		require.NoError(t, err)
	}
	require.ErrorIs(t, prepareSession(t.Context(), holders[0], settings), errPooler)
	require.NoError(t, prepareSession(t.Context(), direct(t, p.DSN), settings))
}

func direct(t *testing.T, dsn string) *pgconn.PgConn {
	conn, err := pgconn.Connect(t.Context(), dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	return conn
}
