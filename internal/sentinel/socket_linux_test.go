package sentinel

import (
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A sentinel never removes the socket of another program, which may be of another kind.
func TestAnotherProgramsSocketIsLeftAlone(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "other.sock")
	l, err := net.Listen("unix", socket)
	require.NoError(t, err)
	defer l.Close()
	_, err = Listen(socket, &Hub{}, slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "is in use")
	c, err := net.Dial("unix", socket)
	require.NoError(t, err)
	require.NoError(t, c.Close())
}

// A killed sentinel has left its socket. Of those that start in its place at the same time, one listens.
func TestOneOfSeveralStartingSentinelsListens(t *testing.T) {
	for range 100 {
		socket := socketIn(t.TempDir())
		l, err := net.ListenUnix(network, &net.UnixAddr{Name: socket, Net: network})
		require.NoError(t, err)
		l.SetUnlinkOnClose(false)
		require.NoError(t, l.Close())
		var work sync.WaitGroup
		files := make([]*socketFile, 3)
		for i := range files {
			work.Go(func() { files[i], _ = listenAlone(socket) })
		}
		work.Wait()
		files = slices.DeleteFunc(files, func(f *socketFile) bool { return f == nil })
		require.Len(t, files, 1, "one listens")
		_, err = listenAlone(socket)
		require.ErrorIs(t, err, errListens)
		info, err := os.Stat(socket + ".lock")
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), "nobody else may open it, and lock it")
		files[0].remove()
		require.NoError(t, files[0].listener.Close())
		require.NoFileExists(t, socket)
		next, err := listenAlone(socket)
		require.NoError(t, err)
		next.remove()
		require.NoError(t, next.listener.Close())
	}
}

// A sentinel that starts locks the path before it looks whether the socket there is abandoned. Any lock on it counts.
func TestALockedPathIsRefused(t *testing.T) {
	socket := socketIn(t.TempDir())
	other, err := os.OpenFile(socket+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	require.NoError(t, err)
	require.NoError(t, unix.Flock(int(other.Fd()), unix.LOCK_SH|unix.LOCK_NB))
	_, err = listenAlone(socket)
	require.ErrorIs(t, err, errListens, "another one starts there")
	require.NoError(t, other.Close())
	f, err := listenAlone(socket)
	require.NoError(t, err)
	f.remove()
	require.NoError(t, f.listener.Close())
}

// Somebody has removed a sentinel's files, and another sentinel listens in its place.
func TestASentinelThatEndsRemovesNoOtherSocket(t *testing.T) {
	socket := socketIn(t.TempDir())
	first, err := listenAlone(socket)
	require.NoError(t, err)
	require.NoError(t, os.Remove(socket))
	require.NoError(t, os.Remove(socket+".lock"))
	second, err := listenAlone(socket)
	require.NoError(t, err)
	first.remove()
	require.NoError(t, first.listener.Close())
	require.FileExists(t, socket)
	second.remove()
	require.NoError(t, second.listener.Close())
}

func TestConnectionsOfOneProcessAreLimited(t *testing.T) {
	p := startPost(t, socketIn(directory(t)), nil)
	for range maxOfProcess { // none of them says anything
		dialRaw(t, p)
	}
	c := dialRaw(t, p)
	require.NoError(t, c.SetReadDeadline(time.Now().Add(greetWithin/2)))
	_, err := hear(c)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the connection of one too many is ended at once")
}
