//go:build unix

package dbtest

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestServersAnswer(t *testing.T) {
	for name, start := range map[string]func(testing.TB) string{
		"PostgreSQL": PostgreSQL,
		"MariaDB":    func(t testing.TB) string { return MariaDB(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := start(t) // waits until it answers
			require.Contains(t, dsn, os.TempDir())
		})
	}
}

func TestAKilledServerStartsAgain(t *testing.T) {
	p := StartPostgres(t, "max_connections=7")
	p.Kill()
	require.False(t, p.process.Running())
	p.Start()
	require.True(t, p.process.Running())
}

func TestVersionComesFromThePath(t *testing.T) {
	require.Equal(t, 15, version("/usr/lib/postgresql/15/bin/initdb"))
	require.Zero(t, version("/usr/sbin/mariadbd"))
}
