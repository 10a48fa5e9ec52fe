package main

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/goneli/neli/chaos/wire"
)

// restartAfter is how long a supervisor waits before it restarts a process that has ended.
const restartAfter = 2 * time.Second

// endedLine is what it logs when the process has ended.
const endedLine = "neli has ended"

// beMachine is the first process of a machine: it keeps a command running, as an init system does,
// and reaps all other processes that end there.
func beMachine(command []string) int {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	files := []*os.File{os.Stdin, os.Stdout, os.Stderr} // standard input is empty
	for {
		p, err := os.StartProcess(command[0], command, &os.ProcAttr{Env: os.Environ(), Files: files})
		if err != nil {
			log.Error("cannot start neli", "error", err)
			return 1
		}
		log.Info(endedLine, "code", reap(p.Pid))
		time.Sleep(restartAfter)
	}
}

// reap waits for one child, reaps all others meanwhile, and returns the child's exit code as a
// shell would.
func reap(child int) int {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case err == unix.EINTR || err == nil && pid != child:
		case err != nil:
			return -1
		case status.Signaled():
			return 128 + int(status.Signal())
		default:
			return status.ExitStatus()
		}
	}
}

// station is a machine, as the demonstration sees it.
type station struct {
	name    string
	host    *wire.Host
	logFile string
	command []string // of its supervisor

	cmd  *exec.Cmd
	done chan struct{} // closed when everything on it has ended
}

// boot starts the machine.
func (m *station) boot() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	log, err := os.OpenFile(m.logFile, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close() // the processes have descriptors of their own
	m.cmd = exec.Command(self, append([]string{roleMachine}, m.command...)...)
	m.cmd.Stdout, m.cmd.Stderr = log, log
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	if err := m.host.Start(m.cmd); err != nil {
		return fmt.Errorf("booting %s: %w", m.name, err)
	}
	cmd, done := m.cmd, make(chan struct{})
	m.done = done
	go func() {
		defer close(done)
		_ = cmd.Wait() // powerOff kills it
	}()
	return nil
}

// powerOff kills all processes on the machine at once.
func (m *station) powerOff() {
	if m.cmd == nil || m.cmd.Process == nil {
		return
	}
	_ = m.cmd.Process.Kill() // it may have ended
	<-m.done
}

// Depths below the supervisor.
const (
	electorDepth = 1
	jobDepth     = 3 // the guard is between
)

// process returns the id of the process that is depth levels below the supervisor; 0 if there is
// none.
func (m *station) process(depth int) int {
	pid := m.cmd.Process.Pid
	for range depth {
		if pid = child(pid); pid == 0 {
			return 0
		}
	}
	return pid
}

// kill sends SIGKILL to the process at a depth.
func (m *station) kill(depth int) error {
	pid := m.process(depth)
	if pid == 0 {
		return fmt.Errorf("machine %s: there is no process %d below the supervisor", m.name, depth)
	}
	return unix.Kill(pid, unix.SIGKILL)
}

// child returns the id of the newest living child of a process; 0 if there is none.
func child(parent int) (newest int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range stats {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has just ended
		}
		pid, rest, ok := strings.Cut(string(text), " (")
		_, rest, named := cutLast(rest, ") ")
		fields := strings.Fields(rest)
		if !ok || !named || len(fields) < 2 || fields[0] == "Z" || fields[1] != strconv.Itoa(parent) {
			continue
		}
		if n, err := strconv.Atoi(pid); err == nil {
			newest = max(newest, n)
		}
	}
	return newest
}

// cutLast cuts a text at the last occurrence of a separator, since a process's name may contain it.
func cutLast(text, separator string) (before, after string, found bool) {
	i := strings.LastIndex(text, separator)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(separator):], true
}
