package guard

import (
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// cleared is a sentinel's end of a guard's connection.
type cleared struct {
	t *testing.T
	c net.Conn
}

// watchedGuard starts a guard that reports to a sentinel. cgroup is a directory; empty: there is none.
func watchedGuard(t *testing.T, cgroup string, command ...string) (*elector, cleared) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	own, told := os.NewFile(uintptr(fds[0]), "sentinel"), os.NewFile(uintptr(fds[1]), "guard")
	c, err := net.FileConn(own)
	require.NoError(t, err)
	require.NoError(t, own.Close())
	t.Cleanup(func() { _ = c.Close() })
	var dir *os.File
	if cgroup != "" {
		dir, err = os.Open(cgroup)
		require.NoError(t, err)
		defer dir.Close()
	}
	// The guard is given a socket, and over that the connection to a sentinel.
	line, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	its := os.NewFile(uintptr(line[1]), "line")
	t.Cleanup(func() { _ = unix.Close(line[0]) })
	e := guardedBy(t, func(cmd *exec.Cmd) { cmd.ExtraFiles = append(cmd.ExtraFiles, dir, its) }, command...)
	require.NoError(t, its.Close())
	require.NoError(t, unix.Sendmsg(line[0], []byte{0}, unix.UnixRights(int(told.Fd())), nil, 0))
	require.NoError(t, told.Close())
	return e, cleared{t, c}
}

// says returns what the guard says within a time, empty if it says nothing. ended reports that the guard has ended.
func (c cleared) says(within time.Duration) (text string, ended bool) {
	c.t.Helper()
	require.NoError(c.t, c.c.SetReadDeadline(time.Now().Add(within)))
	b := make([]byte, 100)
	n, err := c.c.Read(b)
	if errors.Is(err, io.EOF) {
		return "", true
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return "", false
	}
	require.NoError(c.t, err)
	return string(b[:n]), n == 0
}

const clearWord = `{"clear":true}`

// While any process of the command runs, the sentinel must not release its elector's roles.
func TestGuardReportsToTheSentinelWhenNothingIsLeft(t *testing.T) {
	command, grandchild := family(t)
	e, s := watchedGuard(t, "", command...)
	e.lease(time.Hour)
	group, other := e.started(), grandchild()
	text, _ := s.says(300 * time.Millisecond)
	require.Empty(t, text, "the command runs yet")
	require.NoError(t, e.orders.Close()) // the elector has died
	text, _ = s.says(soon)
	require.Equal(t, clearWord, text)
	require.False(t, alive(group) || alive(other), "the command runs yet")
}

// A guard whose command was never started reports at once.
func TestGuardThatStartsNothingReportsToTheSentinel(t *testing.T) {
	e, s := watchedGuard(t, "", "true")
	require.NoError(t, e.orders.Close())
	text, _ := s.says(soon)
	require.Equal(t, clearWord, text, "nothing was started")
}

// If the command's cgroup cannot be emptied, processes may be left. Then the guard does not report,
// and the lease must run out.
func TestGuardReportsNothingWhileProcessesMayBeLeft(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.ReplaceAll(cgroupNames, "*", "1"))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "cgroup.kill"), 0o700)) // a directory cannot be written to
	require.NoError(t, os.WriteFile(filepath.Join(dir, "cgroup.procs"), nil, 0o600))
	e, s := watchedGuard(t, dir, "true")
	e.lease(time.Minute)
	e.started()
	text, ended := s.says(soon)
	require.Empty(t, text, "something may be left in the cgroup")
	require.True(t, ended)
}
