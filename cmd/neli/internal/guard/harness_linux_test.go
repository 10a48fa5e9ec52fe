package guard

import (
	"bufio"
	"bytes"
	"encoding/json"
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

// TestMain is also the main function of the guard's process.
func TestMain(m *testing.M) {
	if code, ok := helper(); ok {
		os.Exit(code)
	}
	if code, ok := Main(os.Args[1:]); ok {
		os.Exit(code)
	}
	// This process becomes the parent of what a guard leaves behind.
	adoptOrphans()
	os.Exit(m.Run())
}

// soon is the longest that any step may take on a busy machine.
const soon = 40 * time.Second

// elector is the other end of a guard's pipes.
type elector struct {
	t       *testing.T
	guard   *exec.Cmd
	orders  *os.File
	reports *bufio.Scanner
	group   int // the command's process group, once the command was started
}

// guarded starts a guard of a command.
func guarded(t *testing.T, command ...string) *elector {
	t.Helper()
	return guardedBy(t, func(*exec.Cmd) {}, command...)
}

// guardedBy starts a guard once change has adapted it.
func guardedBy(t *testing.T, change func(guard *exec.Cmd), command ...string) *elector {
	t.Helper()
	in, orders, err := os.Pipe()
	require.NoError(t, err)
	reports, out, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, reports.SetReadDeadline(time.Now().Add(soon)))
	e := &elector{t: t, orders: orders, reports: bufio.NewScanner(reports), guard: exec.Command(os.Args[0], append([]string{Verb, "--"}, command...)...)}
	e.guard.ExtraFiles = []*os.File{in, out}
	e.guard.Stderr = os.Stderr
	change(e.guard)
	require.NoError(t, e.guard.Start())
	require.NoError(t, in.Close())
	require.NoError(t, out.Close())
	t.Cleanup(func() {
		if e.group > 1 {
			_ = unix.Kill(-e.group, unix.SIGKILL)
		}
		_ = e.guard.Process.Kill()
		_ = e.guard.Wait()
		_ = orders.Close()
		_ = reports.Close()
	})
	return e
}

func (e *elector) lease(d time.Duration) {
	e.t.Helper()
	_, err := e.orders.Write(Until(Now() + d))
	require.NoError(e.t, err)
}

// report returns the guard's next report. ok is false if the guard has ended.
func (e *elector) report() (r Report, ok bool) {
	e.t.Helper()
	if !e.reports.Scan() {
		return r, false
	}
	require.NoError(e.t, json.Unmarshal(e.reports.Bytes(), &r))
	return r, true
}

// started waits for the command's start and returns its group.
func (e *elector) started() int {
	e.t.Helper()
	r, ok := e.report()
	require.True(e.t, ok && !r.Ended && r.Group > 1, "the command is started")
	e.group = r.Group
	return r.Group
}

// last waits for the report of the end, and returns it.
func (e *elector) last() Report {
	e.t.Helper()
	r, ok := e.report()
	require.True(e.t, ok && r.Ended, "the guard tells how it ended")
	return r
}

// alive reports whether a process exists and is not a zombie. A process whose main thread is not the one
// that calls execve looks like a zombie for a moment, but has several threads then.
func alive(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	switch {
	case err != nil:
		return false
	case fields[0] == "X":
		return alive(pid) // the process is being removed, or is just calling execve
	}
	return fields[0] != "Z" || fields[17] != "1"
}

// family is a script whose shell and grandchild last until they are killed. The grandchild's process
// id can be read back.
func family(t *testing.T) (command []string, grandchild func() int) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "pid")
	return []string{"sh", "-c", `sleep 1000 & echo $! >` + file + `.new; mv ` + file + `.new ` + file + `; wait`}, func() int {
		return pidIn(t, file)
	}
}

// pidIn waits for a file with a process id, and returns it.
func pidIn(t *testing.T, file string) (pid int) {
	t.Helper()
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(file)
		if err == nil {
			pid, err = strconv.Atoi(strings.TrimSpace(string(text)))
		}
		return err == nil
	}, soon, time.Millisecond)
	return pid
}

// fullPipe returns a pipe that accepts nothing until size bytes are read.
func fullPipe(t *testing.T) (in, out *os.File, size int) {
	t.Helper()
	in, out, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { _ = in.Close() })
	size, err = unix.FcntlInt(out.Fd(), unix.F_SETPIPE_SZ, 4096)
	require.NoError(t, err)
	_, err = out.Write(bytes.Repeat([]byte{'\n'}, size))
	require.NoError(t, err)
	return in, out, size
}
