package guard

import (
	"bytes"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// The latest deadline counts, not the one that was sent last.
func TestLatestDeadlineCounts(t *testing.T) {
	command, _ := family(t)
	e := guarded(t, command...)
	e.lease(time.Minute)
	group := e.started()
	older := Now() + 10*time.Millisecond
	_, err := e.orders.Write(Until(older))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return Now() > older && unread(t, e.orders) == 0 }, soon, time.Millisecond, "the guard has read it")
	require.Never(t, func() bool { return !alive(group) }, 2*time.Second, 5*time.Millisecond, "an older deadline does not shorten the lease")
}

// The command lives while the lease is renewed, and is killed when it is not.
func TestRenewedDeadline(t *testing.T) {
	command, _ := family(t)
	e := guarded(t, command...)
	const lease = 6 * time.Second // a busy machine must renew it in time
	e.lease(lease)
	group := e.started()
	began := Now()
	for range 10 {
		_, err := e.orders.Write(Until(Now() + lease)) // fails if the guard has ended
		require.NoError(t, err, "it is renewed")
		require.Never(t, func() bool { return !alive(group) }, lease/8, 10*time.Millisecond, "it is renewed")
	}
	r := e.last()
	require.True(t, r.Late, "killed for its lease was over")
	require.Equal(t, 137, r.Code)
	require.False(t, alive(group), "the command is dead")
	require.GreaterOrEqual(t, Now()-began, 2*lease, "it is renewed") // even if the guard got no processor at the first deadline
}

// If the elector is gone, the command is killed.
func TestCommandDiesWithoutItsElector(t *testing.T) {
	command, grandchild := family(t)
	for name, end := range map[string]func(e *elector) error{
		"closed":  func(e *elector) error { return e.orders.Close() },
		"rubbish": func(e *elector) error { _, err := e.orders.Write([]byte("0123456789")); return err },
	} {
		t.Run(name, func(t *testing.T) {
			e := guarded(t, command...)
			e.lease(time.Hour)
			group, other := e.started(), grandchild()
			require.NoError(t, end(e))
			r := e.last()
			require.True(t, r.Late)
			require.False(t, alive(group), "the command is dead")
			require.False(t, alive(other), "the grandchild is dead")
		})
	}
}

// A guard goes on guarding even if it cannot report trouble.
func TestGuardGoesOnIfTroubleCannotBeReported(t *testing.T) {
	broken := func() *os.File {
		in, out, err := os.Pipe()
		require.NoError(t, err)
		require.NoError(t, in.Close())
		t.Cleanup(func() { _ = out.Close() })
		return out
	}
	path := filepath.Join(t.TempDir(), strings.ReplaceAll(cgroupNames, "*", "1"))
	require.NoError(t, os.Mkdir(path, 0o700))
	noCgroup, err := os.Open(path) // the trouble: it is no cgroup
	require.NoError(t, err)
	t.Cleanup(func() { _ = noCgroup.Close() })
	command, grandchild := family(t)
	e := guardedBy(t, func(guard *exec.Cmd) {
		guard.Stderr = broken()
		guard.ExtraFiles = []*os.File{guard.ExtraFiles[0], broken(), noCgroup}
	}, command...)
	e.lease(time.Hour)
	other := grandchild()
	require.NoError(t, e.orders.Close())
	require.Eventually(t, func() bool { return !alive(other) }, soon, time.Millisecond, "the grandchild is dead")
}

// Nothing is started after the lease is over.
func TestNothingStartsAfterTheLeaseIsOver(t *testing.T) {
	for name, first := range map[string]func(e *elector){
		"none":   func(e *elector) { require.NoError(t, e.orders.Close()) },
		"passed": func(e *elector) { e.lease(-time.Nanosecond) },
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "file")
			e := guarded(t, "touch", file)
			first(e)
			r, ok := e.report()
			require.True(t, ok && r.Ended && r.Group == 0, "nothing was started")
			require.True(t, r.Late, "nobody has killed the guard")
			require.NoFileExists(t, file)
		})
	}
}

// nohup starts a program that ignores HUP. The commands that the program starts must ignore it, too.
func TestCommandIgnoresSignalsThatTheGuardIgnores(t *testing.T) {
	e := guardedBy(t, func(guard *exec.Cmd) {
		guard.Args = append([]string{"sh", "-c", `trap "" HUP; exec "$0" "$@"`, guard.Path}, guard.Args[1:]...)
		guard.Path = "/bin/sh"
	}, "sh", "-c", "kill -HUP $$; exit 5")
	e.lease(time.Minute)
	e.started()
	require.Equal(t, 5, e.last().Code)
}

func TestSignalsAndExitCodes(t *testing.T) {
	ready := filepath.Join(t.TempDir(), "ready")
	e := guarded(t, "sh", "-c", `trap 'exit 9' USR1; touch `+ready+`; while :; do sleep 0.01; done`)
	e.lease(time.Minute)
	e.started()
	require.Eventually(t, func() bool { _, err := os.Stat(ready); return err == nil }, soon, time.Millisecond)
	_, err := e.orders.Write(Deliver(syscall.SIGUSR1))
	require.NoError(t, err)
	require.Equal(t, 9, e.last().Code)

	for want, command := range map[int][]string{0: {"true"}, 1: {"false"}, 139: {"sh", "-c", "kill -SEGV $$"}, 127: {"/no/such/command"}, 126: {"/"}} {
		e := guarded(t, command...)
		e.lease(time.Minute)
		e.started()
		r := e.last()
		require.Equal(t, want, r.Code, command)
		require.Equal(t, max(0, want-128), int(r.Signal), command)
		require.False(t, r.Late)
	}
}

// When the guard reports the end, all processes that the command left in its group are dead.
func TestCommandsGroupIsDeadWhenTheEndIsReported(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	e := guarded(t, "sh", "-c", `sleep 1000 & echo $! >`+file)
	e.lease(time.Minute)
	e.started()
	require.Zero(t, e.last().Code)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	require.False(t, alive(pid), "the grandchild is dead")
}

// The kernel kills the command when the guard dies.
func TestCommandDiesWithItsGuard(t *testing.T) {
	command, _ := family(t)
	e := guarded(t, command...)
	e.lease(time.Hour)
	group := e.started()
	for _, s := range []syscall.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT} {
		require.NoError(t, e.guard.Process.Signal(s))
	}
	require.Eventually(t, func() bool { return !pending(t, e.guard.Process.Pid) }, soon, time.Millisecond, "the guard has got them")
	require.Never(t, func() bool { return !alive(group) }, 2*time.Second, 10*time.Millisecond, "what a supervisor sends to all is not for the guard")
	require.NoError(t, e.guard.Process.Kill())
	require.Eventually(t, func() bool { return !alive(group) }, soon, time.Millisecond, "the command is dead")
}

// The kernel drops the request to kill a process with its parent if another thread than the main one
// executes the command. The scheduler chooses the thread, so this happens to any command now and then.
func TestCommandDiesWithItsGuardWhicheverThreadExecutedIt(t *testing.T) {
	ready := filepath.Join(t.TempDir(), "ready")
	e := guardedBy(t, func(guard *exec.Cmd) {
		guard.Env = append(os.Environ(), becoming+"="+elsewhere)
	}, "sh", "-c", `touch `+ready+`; sleep 1000`)
	e.lease(time.Hour)
	group := e.started()
	require.Eventually(t, func() bool { _, err := os.Stat(ready); return err == nil }, soon, time.Millisecond, "the command runs")
	require.NoError(t, e.guard.Process.Kill())
	require.Eventually(t, func() bool { return !alive(group) }, soon, time.Millisecond, "the command is dead")
}

// A process that has been released must not become the command after the guard was killed.
func TestGuardKilledBeforeTheCommandRuns(t *testing.T) {
	e := guardedBy(t, func(guard *exec.Cmd) {
		guard.Env = append(os.Environ(), becoming+"="+never)
	}, "true")
	e.lease(time.Hour)
	group := e.started()
	require.NoError(t, e.guard.Process.Kill())
	require.Eventually(t, func() bool { return !alive(group) }, soon, time.Millisecond, "what would become the command is dead")
}

// pending reports whether a process has signals that none of its threads has got yet.
func pending(t *testing.T, pid int) bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		return false // it has ended
	}
	_, rest, ok := strings.Cut(string(text), "\nShdPnd:\t")
	require.True(t, ok, "the kernel says which signals are pending")
	mask, _, _ := strings.Cut(rest, "\n")
	return strings.Trim(mask, "0") != ""
}

// A guard that is killed before it has reported the group has started nothing.
func TestGuardReportsTheGroupBeforeItStartsTheCommand(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	wait, released, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, released.Close())
	cmd := exec.Command(os.Args[0], verbExec, "--", "touch", file)
	cmd.ExtraFiles = []*os.File{wait}
	err = cmd.Run()
	require.NoFileExists(t, file, "nothing was started")
	require.Error(t, err)
}

// A guard that cannot report, since the pipe is full, does not release the command.
func TestCommandWaitsForTheReport(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	full, out, size := fullPipe(t)
	e := guardedBy(t, func(cmd *exec.Cmd) { cmd.ExtraFiles[1] = out }, "touch", file)
	require.NoError(t, out.Close())
	e.lease(time.Minute)
	started := func() bool {
		_, err := os.Stat(file)
		return err == nil
	}
	// On a busy machine it may take seconds until there is a process that could become the command.
	require.Eventually(t, func() bool { return hasChild(e.guard.Process.Pid) }, soon, time.Millisecond, "the guard has started a process")
	require.Never(t, started, 2*time.Second, 10*time.Millisecond, "the command runs before its group was told of")
	_, err := full.Read(make([]byte, size))
	require.NoError(t, err)
	require.Eventually(t, started, soon, time.Millisecond, "the command runs")
}

// hasChild reports whether a process has a child, which may be a zombie.
func hasChild(pid int) bool {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, stat := range stats {
		text, _ := os.ReadFile(stat) // fails if the process has ended meanwhile
		_, rest, _ := strings.Cut(string(text), ") ")
		if f := strings.Fields(rest); len(f) > 1 && f[1] == strconv.Itoa(pid) {
			return true
		}
	}
	return false
}

// filesOf is a command that fails if it has files besides the standard ones.
var filesOf = []string{"sh", "-c", `for f in /proc/$$/fd/*; do case $f in */0|*/1|*/2|*/10) ;; *) [ -e $f ] && exit 3;; esac; done; exit 0`}

// The command gets no files but the standard ones.
func TestCommandGetsOnlyStandardFiles(t *testing.T) {
	extra, err := os.Open("/dev/null")
	require.NoError(t, err)
	_, err = unix.FcntlInt(extra.Fd(), unix.F_SETFD, 0) // not close-on-exec, as a C library may leave it
	require.NoError(t, err)
	defer extra.Close()
	e := guarded(t, filesOf...)
	e.lease(time.Minute)
	e.started()
	require.Zero(t, e.last().Code)
}

// refused starts a guard whose system calls a filter refuses.
func refused(t *testing.T, calls string, command ...string) *elector {
	t.Helper()
	return guardedBy(t, func(cmd *exec.Cmd) {
		cmd.Args = append([]string{cmd.Args[0], "__refuse", calls}, cmd.Args[1:]...)
	}, command...)
}

// Before Linux 5.11, or where a filter refuses close_range, the files are marked one by one.
func TestFilesAreMarkedOneByOneWithoutCloseRange(t *testing.T) {
	e := refused(t, refuseCloseRange, filesOf...)
	e.lease(time.Minute)
	e.started()
	require.Zero(t, e.last().Code)
}

// If the files cannot be marked, the guard starts nothing and says why.
func TestNothingStartsIfFilesCannotBeMarked(t *testing.T) {
	e := refused(t, refuseBoth, "true")
	_, _ = e.orders.Write(Until(Now() + time.Minute)) // the guard may have ended
	r, ok := e.report()
	require.True(t, ok && r.Ended && r.Group == 0, "nothing was started")
	require.Contains(t, r.Error, "cannot keep this process's files from the command: close_range: ", "it says why nothing was started")
	require.Equal(t, codeOwn, r.Code)
}

func TestEachFileIsClosedOnExec(t *testing.T) {
	in, out, err := os.Pipe()
	require.NoError(t, err)
	defer in.Close()
	defer out.Close()
	low, high := min(int(in.Fd()), int(out.Fd())), max(int(in.Fd()), int(out.Fd()))
	flags := func(fd int) int {
		got, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		require.NoError(t, err)
		return got
	}
	dir := t.TempDir() // lists the two files only, and one that is closed
	for _, fd := range []int{low, high, math.MaxInt32} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, strconv.Itoa(fd)), nil, 0o600))
		_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0)
	}
	require.NoError(t, closeEachOnExec(dir, high))
	require.Equal(t, []int{0, unix.FD_CLOEXEC}, []int{flags(low), flags(high)}, "from the given number on")
	require.NoError(t, closeEachOnExec(dir, low))
	require.Equal(t, unix.FD_CLOEXEC, flags(low))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "x"), nil, 0o600))
	require.Error(t, closeEachOnExec(dir, low), "not a list of files")
	require.ErrorIs(t, closeEachOnExec(filepath.Join(dir, "none"), low), os.ErrNotExist)
}

func TestOrdersSurviveEncoding(t *testing.T) {
	var b bytes.Buffer
	b.Write(Until(123456789 * time.Nanosecond))
	b.Write(Deliver(syscall.SIGTERM))
	for _, want := range []order{{until, 123456789}, {deliver, 15}} {
		got, err := readOrder(&b)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, bad := range []string{"", "u1234567", "x12345678\n", "u12345678x"} {
		_, err := readOrder(strings.NewReader(bad))
		require.Error(t, err, bad)
	}
}

// The reason why a command cannot be started names no system call.
func TestStartErrorNamesNoSystemCall(t *testing.T) {
	for command, why := range map[string]string{
		"/nonexistent": "no such file or directory", "nosuchcommand": "executable file not found in $PATH", "/tmp": "is a directory", "/etc/passwd": "permission denied",
	} {
		_, err := exec.LookPath(command)
		require.EqualError(t, Unstarted(command, err), command+": "+why)
	}
}
