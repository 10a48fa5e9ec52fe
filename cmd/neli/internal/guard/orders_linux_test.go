package guard

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// short is a lease that ends during the test. Even a busy machine must have stopped all guards by then.
const short = 5 * time.Second

// A guard that was stopped past a deadline finds its alarm and newer orders at the same time. The
// orders count, and the lease goes on. The test has many guards, since it depends on which of their
// threads runs first.
func TestAStoppedGuardHeedsNewerOrdersFirst(t *testing.T) {
	const many = 20
	electors := make([]*elector, many)
	for i := range electors {
		electors[i] = guarded(t, "sleep", "1000")
		electors[i].lease(short)
	}
	for _, e := range electors {
		e.started()
	}
	for _, e := range electors {
		stopped(t, e.guard)
		e.lease(time.Minute)
	}
	over := Now() + short
	require.Eventually(t, func() bool { return Now() > over }, soon, 10*time.Millisecond)
	for _, e := range electors {
		require.NoError(t, e.guard.Process.Signal(unix.SIGCONT))
	}
	require.Never(t, func() bool {
		for _, e := range electors {
			if !alive(e.group) {
				return true
			}
		}
		return false
	}, 500*time.Millisecond, 10*time.Millisecond, "the lease was renewed")
}

// The same holds for a second guard.
func TestAStoppedSecondGuardHeedsNewerOrdersFirst(t *testing.T) {
	const many = 20
	var commands []int
	var guards []*exec.Cmd
	over := Now() + short
	for range many {
		c := newCgroup(t)
		commands = append(commands, sleeper(t, c))
		orders, guard := startSecond(t, c)
		_, err := orders.Write(Until(over))
		require.NoError(t, err)
		require.Eventually(t, func() bool { return unread(t, orders) == 0 }, soon, time.Millisecond, "it has read its first orders")
		stopped(t, guard)
		_, err = orders.Write(Until(over + time.Minute))
		require.NoError(t, err)
		guards = append(guards, guard)
	}
	require.Less(t, Now(), over, "they are stopped in time")
	require.Eventually(t, func() bool { return Now() > over }, soon, 10*time.Millisecond)
	for _, g := range guards {
		require.NoError(t, g.Process.Signal(unix.SIGCONT))
	}
	require.Never(t, func() bool {
		for _, pid := range commands {
			if !alive(pid) {
				return true
			}
		}
		return false
	}, 500*time.Millisecond, 10*time.Millisecond, "the lease was renewed")
}

// unread returns the number of bytes in a pipe.
func unread(t *testing.T, pipe *os.File) int {
	t.Helper()
	n, err := unix.IoctlGetInt(int(pipe.Fd()), unix.TIOCINQ)
	require.NoError(t, err)
	return n
}

// stopped stops a process, and returns when it has stopped.
func stopped(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	require.NoError(t, cmd.Process.Signal(unix.SIGSTOP))
	require.Eventually(t, func() bool {
		text, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(cmd.Process.Pid), "stat"))
		_, rest, _ := strings.Cut(string(text), ") ")
		return strings.HasPrefix(rest, "T")
	}, soon, time.Millisecond)
}
