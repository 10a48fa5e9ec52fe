package store

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/chaos/wire"
)

func newServer(t *testing.T) (*Server, *wire.Host) {
	t.Helper()
	n, err := wire.New(1, "store", "client")
	require.NoError(t, err, "these tests need root and /dev/net/tun")
	t.Cleanup(n.Close)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	host, client := n.Host("store"), n.Host("client")
	dir, err := os.MkdirTemp("", "neli-store-") // t.TempDir is closed to the server's user
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755))
	s, err := Start(ctx, host, host.IP, client, dir, 2)
	require.NoError(t, err)
	t.Cleanup(s.Stop)
	return s, client
}

// The guard bites, and where there is none a stale write passes.
func TestGuard(t *testing.T) {
	s, from := newServer(t)
	conn, err := connect(t.Context(), s.DSN, from)
	require.NoError(t, err)
	c := &Client{DSN: s.DSN, conn: conn}
	defer c.Close(context.Background())

	write := func(role int, token, value int64, member string) bool {
		ok, err := c.Write(t.Context(), role, token, value, member)
		require.NoError(t, err)
		return ok
	}
	assert.True(t, write(0, 5, 1, "a"))
	assert.True(t, write(0, 5, 2, "a"), "the same term goes on")
	assert.True(t, write(0, 9, 3, "b"))
	assert.False(t, write(0, 5, 4, "a"), "a leader that was and does not know it")
	assert.True(t, write(1, 0, 5, "a"), "another role has tokens of its own")
	token, value, err := c.Read(t.Context(), 0)
	require.NoError(t, err)
	assert.Equal(t, [2]int64{9, 3}, [2]int64{token, value})

	var bare int64
	require.NoError(t, conn.QueryRow(t.Context(), `SELECT value FROM unguarded WHERE role = 0`).Scan(&bare))
	assert.EqualValues(t, 4, bare, "without the guard the stale write stands")

	log, err := s.Log(t.Context(), from)
	require.NoError(t, err)
	require.Len(t, log, 5)
	assert.Equal(t, Entry{Serial: 4, Role: 0, Token: 5, Value: 4, Member: "a", Accepted: false, Stale: true}, log[3])
	assert.Equal(t, Entry{Serial: 5, Role: 1, Token: 0, Value: 5, Member: "a", Accepted: true, Stale: false}, log[4])
}

func TestWriteThatIsNotSentHasNoEffect(t *testing.T) {
	c := &Client{DSN: "postgres://chaos@127.0.0.1:1/postgres?sslmode=disable"}
	_, err := c.Write(t.Context(), 0, 1, 1, "a")
	assert.ErrorIs(t, err, ErrNotSent)
}
