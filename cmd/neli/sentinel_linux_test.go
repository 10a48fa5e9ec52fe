package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"golang.org/x/sys/unix"

	"github.com/goneli/neli/cmd/neli/internal/needs"
)

// long is T in tests that require something to happen long before T is over.
const long = 12 * time.Second

// startSentinel starts a sentinel, and returns its socket.
func startSentinel(t *testing.T, c *kfake.Cluster, args ...string) (*process, string) {
	t.Helper()
	return startSentinelBy(t, c, func(*exec.Cmd) {}, args...)
}

// startSentinelBy starts a sentinel, after change has changed its command.
func startSentinelBy(t *testing.T, c *kfake.Cluster, change func(*exec.Cmd), args ...string) (*process, string) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o750))
	socket := filepath.Join(dir, "sentinel.sock")
	return startSentinelAt(t, c, socket, change, args...), socket
}

func startSentinelAt(t *testing.T, c *kfake.Cluster, socket string, change func(*exec.Cmd), args ...string) *process {
	t.Helper()
	p := neliBy(t, change, environment(c), append([]string{"sentinel", "--socket", socket}, args...)...)
	p.logs("the sentinel listens")
	return p
}

// If an elector is killed beside a sentinel, its successor leads once the guard has killed the command,
// and does not wait for T. The same holds if the sentinel was killed and restarted while the command ran.
func TestKilledElectorIsSucceededLongBeforeT(t *testing.T) {
	t.Parallel()
	for name, restarts := range map[string]int{"a sentinel": 0, "a sentinel that was restarted": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			killedElector(t, restarts)
		})
	}
}

func killedElector(t *testing.T, restarts int) {
	t.Helper()
	c := broker(t)
	sentinel, socket := startSentinel(t, c)
	args := []string{"run", "--timeout", long.String(), "--sentinel", socket, "--", "sh", "-c", family}
	a := neli(t, c, args...)
	grandchild, child := a.pid("grandchild", 1), a.pid("child", 1)
	a.logs("a sentinel watches this process")
	b := neli(t, c, args...)
	b.logs("a sentinel watches this process")
	for range restarts {
		sentinel.signal(unix.SIGKILL)
		sentinel.code()
		sentinel = startSentinelAt(t, c, socket, func(*exec.Cmd) {})
		require.Eventually(t, func() bool { return watches(t, c, socket) }, soon, 5*time.Millisecond)
	}
	s := neli(t, c, "status", "--timeout", long.String(), "--sentinel", socket)
	require.Equal(t, 0, s.code())
	require.Contains(t, strings.Join(s.output(), "\n"), "watches 2 of the 2 members")
	// The sentinel releases no term that is younger than T.
	timer := time.NewTimer(long)
	<-timer.C

	began := time.Now()
	a.signal(unix.SIGKILL)
	b.pid("child", 1)
	require.Less(t, time.Since(began), long/2)
	require.False(t, alive(child) || alive(grandchild), "nothing of the former command is left when the next one starts")
}

// children returns the children of a process.
func children(t *testing.T, pid int) (all []int) {
	t.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	require.NoError(t, err)
	for _, task := range tasks {
		text, err := os.ReadFile(task)
		require.NoError(t, err)
		for _, field := range strings.Fields(string(text)) {
			child, err := strconv.Atoi(field)
			require.NoError(t, err)
			all = append(all, child)
		}
	}
	return all
}

// watches reports whether a sentinel says that it watches two members.
func watches(t *testing.T, c *kfake.Cluster, socket string) bool {
	t.Helper()
	s := neli(t, c, "status", "--timeout", long.String(), "--sentinel", socket)
	require.Equal(t, 0, s.code())
	return strings.Contains(strings.Join(s.output(), "\n"), "watches 2 of the 2 members")
}

// A sentinel is suspended while an elector registers, and resumes after the elector was killed. The command still runs,
// because its guards are frozen. The registration that the elector had sent must not be taken for the present state.
func TestSuspendedSentinelReleasesNothingWhileACommandRuns(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		needs.Missing(t, "root")
	}
	c := broker(t)
	sentinel, socket := startSentinel(t, c)
	sentinel.signal(unix.SIGSTOP)
	args := []string{"run", "--timeout", long.String(), "--sentinel", socket, "--", "sh", "-c", family}
	a := neli(t, c, args...)
	child := a.pid("child", 1)
	a.logs("no sentinel watches this process")
	b := neli(t, c, args...)
	timer := time.NewTimer(long) // no term is released before it is T old
	<-timer.C

	// The guards are frozen: if a signal had stopped them, the kernel would resume them at their elector's death.
	for _, f := range freezers(t) {
		for _, pid := range children(t, a.cmd.Process.Pid) {
			f.freeze(pid)
		}
		require.Eventually(t, f.frozen, soon, time.Millisecond)
		defer f.thaw()
		break
	}
	a.signal(unix.SIGKILL)
	sentinel.signal(unix.SIGCONT)
	require.Never(t, func() bool { return strings.Contains(strings.Join(b.output(), "\n"), "child") }, long/2, 10*time.Millisecond, "the command runs yet")
	require.True(t, alive(child), "the test's own")
	b.logs("a sentinel watches this process")
}

func TestSentinelThatCannotWorkSaysWhy(t *testing.T) {
	c := broker(t)
	p := neli(t, c, "sentinel")
	require.Equal(t, 125, p.code())
	p.logs("--socket")
	p = neli(t, c, "sentinel", "--socket", filepath.Join(t.TempDir(), "s"), "--allow", "[")
	require.Equal(t, 125, p.code())
	p.logs("--allow")
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o777)) //nolint:gosec // that is what is refused
	p = neli(t, c, "sentinel", "--socket", filepath.Join(dir, "s"))
	require.Equal(t, 125, p.code())
	p.logs("others may write")
}

func TestASentinelEndsWithASignalAndLeavesNoSocket(t *testing.T) {
	p, socket := startSentinel(t, broker(t))
	_, err := net.Dial("unixpacket", socket)
	require.NoError(t, err)
	p.signal(syscall.SIGTERM)
	require.Equal(t, 0, p.code())
	require.NoFileExists(t, socket)
}

// If the sentinel is missing, the command runs all the same.
func TestRunNeedsNoSentinel(t *testing.T) {
	p, end := untilTold(t, broker(t), "run", "--sentinel", "/nowhere/sentinel.sock")
	p.logs("no sentinel watches this process")
	end()
	require.Equal(t, 4, p.code())
}

func TestASentinelRefusesTopicsThatItMayNotWatch(t *testing.T) {
	c := broker(t)
	s, socket := startSentinel(t, c, "--allow", "orders.*")
	p, end := untilTold(t, c, "run", "--sentinel", socket)
	p.logs("--allow")
	end()
	require.Equal(t, 4, p.code())
	s.logs("a registration was refused")
}

// untilTold starts a neli whose command runs until end is called, and then exits with 4. The sentinel may take
// longer than the election.
func untilTold(t *testing.T, c *kfake.Cluster, args ...string) (p *process, end func()) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "end")
	p = neli(t, c, append(args, "--", "sh", "-c", "while [ ! -e "+file+" ]; do sleep 0.01; done; exit 4")...)
	return p, func() { require.NoError(t, os.WriteFile(file, nil, 0o600)) }
}
