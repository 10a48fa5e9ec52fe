//go:build unix

// Package nursery starts processes of which none outlives this one, however that ends.
package nursery

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// A Nursery starts processes and sees to it that none of them outlives this process,
// not even when it panics or is killed by SIGKILL. There are two nets, which know
// nothing of each other:
//
//   - the kernel kills the child when the thread that started it ends (Linux
//     only). So one goroutine, bound to its thread until Close, starts them all;
//   - a watchdog, a shell in a session of its own, reads the pids of the living
//     from a pipe. The kernel closes our end of it when we end, in whatever way.
//
// Its methods may be called by several goroutines at once.
type Nursery struct {
	jobs     chan func() // run on the thread that children belong to
	ended    chan struct{}
	deathsig bool

	watchdog *exec.Cmd
	feed     *os.File // one line of pids for each change; the last one counts

	mu     sync.Mutex
	alive  []*Process
	closed bool
}

// $1, if not empty, is a directory to remove. The shell ignores polite signals: it must
// outlive us. SIGKILL takes a suspended process too.
const watchdogScript = `trap '' HUP INT TERM
while read -r line; do pids=$line; done
for pid in $pids; do kill -9 "$pid"; done
[ -z "$1" ] || rm -rf "$1"`

// New returns an empty one. Its watchdog removes the directory scratch, if not "", once
// all is over: by Close, or when this process ends without it.
func New(scratch string) (*Nursery, error) {
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

// A Process is a child that is waited for.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{}
}

// ErrClosed: all is over, nothing is started any more.
var ErrClosed = errors.New("all processes were ended for good")

// Start starts cmd, for which nobody else may wait. It has a session of its own: a
// terminal's Ctrl-C is not for it, and under Linux's autogroup scheduling the
// processes of one session share their part of the CPU.
func (n *Nursery) Start(cmd *exec.Cmd) (*Process, error) { return n.StartBy(cmd, (*exec.Cmd).Start) }

// StartBy is Start by means of another function than cmd's: on a host of its own,
// perhaps.
func (n *Nursery) StartBy(cmd *exec.Cmd, start func(*exec.Cmd) error) (*Process, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
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
		_ = cmd.Wait() // the ProcessState tells as much
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

// Close kills every process, the suspended ones too, waits for their ends, and ends the
// watchdog and the thread. Further calls wait for the processes and do nothing else.
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

// Pid is its process id, of use until Done.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Signal sends a signal.
func (p *Process) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// Done is closed when the process has ended and was reaped.
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

// State tells how it ended; after Done.
func (p *Process) State() string { return p.cmd.ProcessState.String() }

// Kill sends SIGKILL and waits for the end.
func (p *Process) Kill() {
	_ = p.Signal(syscall.SIGKILL)
	<-p.done
}

// Alive reports whether there is a process with that id. One that has ended and waits
// for an init that never reaps it, as in many containers, does not count.
func Alive(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || !strings.Contains(string(stat), ") Z ")
}
