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

func TestTheNewestVersionIsFound(t *testing.T) {
	require.Equal(t, 15, version("/usr/lib/postgresql/15/bin/initdb"))
	require.Zero(t, version("/usr/sbin/mariadbd"))
}
