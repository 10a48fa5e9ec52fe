package guard

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// short is a lease that ends during the test. Even a busy machine must have started and stopped its guard by then.
const short = 10 * time.Second

// A guard that was stopped past a deadline finds its alarm and newer orders at the same time. The
// orders count, and the lease goes on. The test has many guards, since it depends on which of their
// threads runs first.
func TestAStoppedGuardHeedsNewerOrdersFirst(t *testing.T) {
	const many = 20
	electors := make([]*elector, many)
	for i := range electors {
		e := guarded(t, "sleep", "1000")
		e.lease(short)
		e.started()
		stopped(t, e.guard)
		e.lease(time.Minute)
		electors[i] = e
	}
	over := Now() + short
	require.Eventually(t, func() bool { return Now() > over }, soon, 10*time.Millisecond)
	var groups []int
	for _, e := range electors {
		require.NoError(t, e.guard.Process.Signal(unix.SIGCONT))
		groups = append(groups, e.group)
	}
	for _, e := range electors {
		heeded(t, e.orders, e.group)
	}
	goOn(t, groups)
}

// heeded waits until a guard that was resumed has read its orders, or has killed its command without them.
func heeded(t *testing.T, orders *os.File, command int) {
	t.Helper()
	require.Eventually(t, func() bool { return unread(t, orders) == 0 || !alive(command) }, soon, time.Millisecond, "the guard goes on")
}

// goOn requires that commands are not killed.
func goOn(t *testing.T, commands []int) {
	t.Helper()
	require.Never(t, func() bool {
		return slices.ContainsFunc(commands, func(pid int) bool { return !alive(pid) })
	}, 500*time.Millisecond, 10*time.Millisecond, "the lease was renewed")
}

// A second guard that was stopped past a deadline heeds newer orders first, too.
func TestAStoppedSecondGuardHeedsNewerOrdersFirst(t *testing.T) {
	const many = 20
	var commands []int
	var guards []*exec.Cmd
	var pipes []*os.File
	var over time.Duration
	for range many {
		c := newCgroup(t)
		commands = append(commands, sleeper(t, c))
		orders, guard := startSecond(t, c)
		over = Now() + short
		_, err := orders.Write(Until(over))
		require.NoError(t, err)
		require.Eventually(t, func() bool { return unread(t, orders) == 0 }, soon, time.Millisecond, "it has read its first orders")
		stopped(t, guard)
		require.Less(t, Now(), over, "it is stopped in time")
		_, err = orders.Write(Until(over + time.Minute))
		require.NoError(t, err)
		guards, pipes = append(guards, guard), append(pipes, orders)
	}
	require.Eventually(t, func() bool { return Now() > over }, soon, 10*time.Millisecond)
	for _, g := range guards {
		require.NoError(t, g.Process.Signal(unix.SIGCONT))
	}
	for i, pipe := range pipes {
		heeded(t, pipe, commands[i])
	}
	goOn(t, commands)
}

// A signal may come before the first deadline: an elector sends no deadline while its lease is not certain.
func TestASignalBeforeTheFirstDeadlineIsKept(t *testing.T) {
	in, out, err := os.Pipe()
	require.NoError(t, err)
	defer in.Close()
	defer out.Close()
	g := &guard{orders: newOrders(in)}
	var first told
	done := make(chan struct{})
	go func() {
		defer close(done)
		first, _ = g.first()
	}()
	news := func(order []byte) {
		_, err := out.Write(order)
		require.NoError(t, err)
		for range 3 { // the third one fits only after the first one was handled
			g.orders.news <- struct{}{}
		}
	}
	news(Deliver(unix.SIGTERM))
	news(Deliver(unix.SIGUSR1))
	_, err = out.Write(Until(Now() + time.Minute))
	require.NoError(t, err)
	close(g.orders.news)
	<-done
	require.Equal(t, []syscall.Signal{unix.SIGTERM, unix.SIGUSR1}, first.signals)
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
