//go:build unix

// Package nursery starts processes that do not outlive this one, however it ends.
package nursery

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// A Nursery starts processes, and makes sure that none of them outlives this process, not even if it panics or is
// killed by SIGKILL. Two independent mechanisms ensure this:
//
//   - The kernel kills a child when the thread that started it ends (Linux only). So one goroutine, bound to its
//     thread until Close, starts all children.
//   - A watchdog, a shell in a session of its own, reads the pids of the living children from a pipe. The kernel
//     closes this process's end of the pipe when this process ends, in whatever way. The watchdog then kills
//     the children.
//
// Its methods are safe for concurrent use.
type Nursery struct {
	jobs     chan func() // run on the thread that starts children
	ended    chan struct{}
	deathsig bool

	watchdog *exec.Cmd
	feed     *os.File // one line of pids for each change; the last one counts

	mu     sync.Mutex
	alive  []*Process
	closed bool
}

// $1, if not empty, is a directory to remove. The shell ignores the signals that it can, since it must outlive
// this process. SIGKILL also ends suspended processes.
const watchdogScript = `trap '' HUP INT TERM
while read -r line; do pids=$line; done
for pid in $pids; do kill -9 "$pid"; done
[ -z "$1" ] || rm -rf "$1"`

// New returns an empty Nursery. Its watchdog removes the directory scratch, unless that is "", after Close, or when
// this process ends without Close.
func New(scratch string) (*Nursery, error) {
	if scratch != "" {
		var err error
		if scratch, err = filepath.Abs(scratch); err != nil { // the watchdog has another working directory
			return nil, err
		}
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	n := &Nursery{
		jobs:     make(chan func()),
		ended:    make(chan struct{}),
		deathsig: true,
		watchdog: exec.Command("/bin/sh", "-c", watchdogScript, "nursery-watchdog", scratch),
		feed:     w,
	}
	n.watchdog.Stdin = r
	n.watchdog.Dir = "/"
	n.watchdog.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := n.watchdog.Start(); err != nil {
		_ = w.Close()
		return nil, fmt.Errorf("starting the watchdog: %w", err)
	}
	go func() {
		defer close(n.ended)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for job := range n.jobs {
			job()
		}
	}()
	return n, nil
}

// A Process is a child. The Nursery waits for it.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{}
}

// ErrClosed: the Nursery is closed, and starts no more processes.
var ErrClosed = errors.New("all processes were ended for good")

// Start starts cmd. The caller must not wait for cmd. The process has a session of its own: it does not get a
// terminal's Ctrl-C, and Linux's autogroup scheduling gives each session its own share of the CPU.
func (n *Nursery) Start(cmd *exec.Cmd) (*Process, error) { return n.StartBy(cmd, (*exec.Cmd).Start) }

// StartBy is Start with another function in place of cmd.Start, for example one that starts the process on another
// host.
func (n *Nursery) StartBy(cmd *exec.Cmd, start func(*exec.Cmd) error) (*Process, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setsid = true
	if n.deathsig {
		dieWithParent(cmd.SysProcAttr)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, ErrClosed
	}
	started := make(chan error)
	n.jobs <- func() { started <- start(cmd) }
	if err := <-started; err != nil {
		return nil, err
	}
	p := &Process{cmd: cmd, done: make(chan struct{})}
	n.alive = append(n.alive, p)
	err := n.tell()
	go func() {
		_ = cmd.Wait() // the ProcessState has the result
		close(p.done)
		n.mu.Lock()
		defer n.mu.Unlock()
		n.alive = slices.DeleteFunc(n.alive, func(other *Process) bool { return other == p })
		_ = n.tell()
	}()
	if err != nil {
		p.Kill()
		return nil, fmt.Errorf("the watchdog is gone: %w", err)
	}
	return p, nil
}

// Closed reports whether Close was called.
func (n *Nursery) Closed() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.closed
}

// tell passes the list of living processes to the watchdog.
func (n *Nursery) tell() error {
	pids := make([]string, len(n.alive))
	for i, p := range n.alive {
		pids[i] = strconv.Itoa(p.cmd.Process.Pid)
	}
	_, err := n.feed.WriteString(strings.Join(pids, " ") + "\n")
	return err
}

// Close kills every process, even suspended ones, waits for their ends, and ends the watchdog and the thread.
// Further calls only wait for the processes.
func (n *Nursery) Close() {
	n.mu.Lock()
	alive, closed := slices.Clone(n.alive), n.closed
	n.closed = true
	n.mu.Unlock()
	for _, p := range alive {
		_ = p.Signal(syscall.SIGKILL)
	}
	for _, p := range alive {
		<-p.done
	}
	if closed {
		return
	}
	_ = n.feed.Close()
	_ = n.watchdog.Wait()
	close(n.jobs)
	<-n.ended
}

// Pid returns its process id, which is valid until Done.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Signal sends a signal.
func (p *Process) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// Suspend sends SIGSTOP, and returns when the process has stopped. Until then its threads may go on: on a busy machine
// for milliseconds after the signal was sent.
func (p *Process) Suspend() error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	return awaitStop(p.Pid())
}

// Done returns a channel that is closed when the process has ended and was reaped.
func (p *Process) Done() <-chan struct{} { return p.done }

// Running reports whether it has not ended yet.
func (p *Process) Running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// State returns how it ended, or "running".
func (p *Process) State() string {
	if p.Running() {
		return "running"
	}
	return p.cmd.ProcessState.String()
}

// Kill sends SIGKILL and waits for the end.
func (p *Process) Kill() {
	_ = p.Signal(syscall.SIGKILL)
	<-p.done
}

// Alive reports whether there is a process with that id. Zombies do not count: in many containers init never reaps
// them.
func Alive(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || !strings.Contains(string(stat), ") Z ")
}
