package store

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goneli/neli/fence"
	"github.com/goneli/neli/lab/chaos/wire"
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

func lead(t *testing.T, s Store, role int, token int64, member string) (w Writer, err error) {
	t.Helper()
	term := Term{Term: lasting{}, Role: role, Token: token, Member: member, Claiming: func() {}, Claimed: func(bool) {}}
	err = s.Lead(t.Context(), term, func(_ context.Context, got Writer) error {
		w = got
		return nil
	})
	return w, err
}

type lasting struct{}

func (lasting) Valid() bool { return true }

// The guarded register rejects a stale write, and the unguarded one accepts it.
func TestRegister(t *testing.T) {
	s, from := newServer(t)
	db, err := openSQL(s.DSN, from)
	require.NoError(t, err)
	r := &register{db}
	defer r.Close()

	write := func(role int, token, value int64, member string) bool {
		w, err := lead(t, r, role, token, member)
		require.NoError(t, err)
		ok, err := w.Write(t.Context(), value)
		require.NoError(t, err)
		return ok
	}
	assert.True(t, write(0, 5, 1, "a"))
	assert.True(t, write(0, 5, 2, "a"), "the same term goes on")
	assert.True(t, write(0, 9, 3, "b"))
	assert.False(t, write(0, 5, 4, "a"), "a former leader that does not know it yet")
	assert.True(t, write(1, 0, 5, "a"), "another role has tokens of its own")
	token, value, err := r.Read(t.Context(), 0)
	require.NoError(t, err)
	assert.Equal(t, [2]int64{9, 3}, [2]int64{token, value})

	var bare int64
	require.NoError(t, db.QueryRow(`SELECT value FROM unguarded WHERE role = 0`).Scan(&bare))
	assert.EqualValues(t, 4, bare, "without the guard the stale write stands")

	log, err := s.Log(t.Context(), from)
	require.NoError(t, err)
	require.Len(t, log, 5)
	assert.Equal(t, Entry{Serial: 4, Role: 0, Token: 5, Value: 4, Member: "a", Accepted: false, Stale: true}, log[3])
	assert.Equal(t, Entry{Serial: 5, Role: 1, Token: 0, Value: 5, Member: "a", Accepted: true, Stale: false}, log[4])
}

// After a claim the former term's holds fail, even before the new term has written. Without holds
// the former term's write is accepted, and the log shows it.
func TestHold(t *testing.T) {
	s, from := newServer(t)
	db, err := openSQL(s.DSN, from)
	require.NoError(t, err)
	defer db.Close()
	for _, unfenced := range []bool{false, true} {
		h := &hold{register{db}, unfenced}
		old, err := lead(t, h, 0, 5, "a")
		if unfenced {
			require.ErrorIs(t, err, fence.ErrStale, "a claim is refused, too")
			old = holdWriter{h, Term{Role: 0, Token: 5, Member: "a"}}
		} else {
			require.NoError(t, err)
			ok, err := old.Write(t.Context(), 1)
			require.NoError(t, err)
			assert.True(t, ok)
		}
		young, err := lead(t, h, 0, 9, "b")
		require.NoError(t, err)
		if unfenced {
			_, err := young.Write(t.Context(), 2)
			require.NoError(t, err)
		}
		ok, err := old.Write(t.Context(), 3)
		require.NoError(t, err)
		assert.Equal(t, unfenced, ok)
	}
	log, err := s.Log(t.Context(), from)
	require.NoError(t, err)
	require.Len(t, log, 3)
	assert.Equal(t, Entry{Serial: 3, Role: 0, Token: 5, Value: 3, Member: "a", Accepted: true, Stale: true}, log[2])
}

func TestUnreachableStoreReportsNotSent(t *testing.T) {
	const nowhere = "postgres://chaos@127.0.0.1:1/postgres?sslmode=disable"
	db, err := openSQL(nowhere, nil)
	require.NoError(t, err)
	defer db.Close()
	for _, w := range []Writer{registerWriter{&register{db}, Term{}}, holdWriter{&hold{register{db}, false}, Term{}}} {
		_, err := w.Write(t.Context(), 1)
		assert.ErrorIs(t, err, ErrNotSent)
	}
}
