package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// ticking is a command that shows that it still runs in the term in which it started. Standard error is closed, since
// its shell would end or hang when it reports a killed child.
const ticking = `exec 2>/dev/null; trap 'exit 3' TERM; while :; do echo tick $NELI_TOKEN; sleep 0.2; done`

// badLogs gives a command a standard error that accepts no lines, in several ways.
func badLogs(t *testing.T) map[string]func(*exec.Cmd) {
	t.Helper()
	to := func(f *os.File) func(*exec.Cmd) {
		t.Cleanup(func() { _ = f.Close() })
		return func(c *exec.Cmd) { c.Stderr = f }
	}
	reader, unread, err := os.Pipe()
	require.NoError(t, err)
	gone, orphan, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, gone.Close())
	t.Cleanup(func() { _ = reader.Close() })
	size, err := unix.FcntlInt(unread.Fd(), unix.F_SETPIPE_SZ, 4096)
	require.NoError(t, err)
	_, err = unread.Write(make([]byte, size))
	require.NoError(t, err)
	disk, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	require.NoError(t, err)
	short, err := os.Create(filepath.Join(t.TempDir(), "log"))
	require.NoError(t, err)
	return map[string]func(*exec.Cmd){
		"the reader has gone":   to(orphan),
		"nobody reads the pipe": to(unread),
		"the disk is full":      to(disk),
		"the file may not grow": func(c *exec.Cmd) { to(short)(c); within(c, "ulimit -f 0") },
		"it is closed":          func(c *exec.Cmd) { within(c, "exec 2>&-") },
	}
}

// within makes a shell prepare what the command inherits.
func within(c *exec.Cmd, prepare string) {
	c.Args = append([]string{"sh", "-c", prepare + `; exec "$0" "$@"`, c.Path}, c.Args[1:]...)
	c.Path = "/bin/sh"
}

// The lease outlasts the log, and the command runs on in the same term. Debug lines are written all the time.
func TestLosingTheLogDoesNotLoseTheLease(t *testing.T) {
	c := broker(t)
	n := 0
	for name, log := range badLogs(t) {
		n++
		group := fmt.Sprint("jobs", n)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := neliBy(t, log, environment(c), "run", "--group", group, "--timeout", medium.String(), "--log-level", "debug", "--", "sh", "-c", ticking)
			token := p.says("tick", 1)
			require.Equal(t, 1, neli(t, c, "step-down", "--group", group).code(), "a request that is refused, which is logged")
			require.Equal(t, token, p.says("tick", 40), "no other term within 1.6 T")
			p.signal(unix.SIGTERM)
			require.Equal(t, 3, p.code())
		})
	}
}

// If a command cannot be executed, the exit code says so even if the message cannot be written.
func TestExitCodeOutlastsTheLog(t *testing.T) {
	c := broker(t)
	file := filepath.Join(t.TempDir(), "no-program")
	require.NoError(t, os.WriteFile(file, []byte{0}, 0o700)) // its format is refused by execve, after the election
	n := 0
	for name, log := range badLogs(t) {
		n++
		group := fmt.Sprint("jobs", n)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, 126, neliBy(t, log, environment(c), "run", "--group", group, "--", file).code())
		})
	}
}

// A sentinel that cannot log goes on, and exits with code 0 upon a signal.
func TestSentinelOutlivesItsLog(t *testing.T) {
	c := broker(t)
	for name, log := range badLogs(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			socket := filepath.Join(t.TempDir(), "own", "s")
			p := neliBy(t, log, environment(c), "sentinel", "--log-level", "debug", "--socket", socket)
			require.Eventually(t, func() bool { _, err := os.Stat(socket); return err == nil }, soon, tick)
			member := neli(t, c, "run", "--group", "watched", "--sentinel", socket, "--", "sh", "-c", family)
			member.pid("child", 1)
			p.signal(unix.SIGTERM)
			require.Equal(t, 0, p.code())
		})
	}
}
