// Package proc starts the processes of a measurement and sees to it that none
// outlives the program, however that ends.
package proc

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"syscall"
)

// A Nursery starts processes. Each has a session of its own, as under Linux's
// autogroup scheduling the processes of one session share their part of the CPU,
// and a terminal's Ctrl-C is not for them. The kernel kills them when the thread
// that started them ends, which is kept until Close for that reason.
type Nursery struct {
	jobs  chan func()
	ended chan struct{}

	mu     sync.Mutex
	alive  []*Process
	closed bool
}

// A Process is a child that is waited for.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{}
}

// NewNursery returns an empty one.
func NewNursery() *Nursery {
	n := &Nursery{jobs: make(chan func()), ended: make(chan struct{})}
	go func() {
		defer close(n.ended)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for job := range n.jobs {
			job()
		}
	}()
	return n
}

// Start starts cmd. Nobody else waits for it.
func (n *Nursery) Start(cmd *exec.Cmd) (*Process, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, fmt.Errorf("starting %s: all is over", cmd.Path)
	}
	started := make(chan error)
	n.jobs <- func() { started <- cmd.Start() }
	if err := <-started; err != nil {
		return nil, err
	}
	p := &Process{cmd: cmd, done: make(chan struct{})}
	n.alive = append(n.alive, p)
	go func() {
		_ = cmd.Wait() // the ProcessState tells as much
		close(p.done)
		n.mu.Lock()
		defer n.mu.Unlock()
		n.alive = slices.DeleteFunc(n.alive, func(other *Process) bool { return other == p })
	}()
	return p, nil
}

// Close kills all processes, the suspended ones too, and waits for their ends.
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
	if !closed {
		close(n.jobs)
		<-n.ended
	}
}

// Pid is its process id, of use until Done.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Signal sends a signal.
func (p *Process) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// State tells how it ended; after Done.
func (p *Process) State() string { return p.cmd.ProcessState.String() }

// Kill sends SIGKILL and waits for the end.
func (p *Process) Kill() {
	_ = p.Signal(syscall.SIGKILL)
	<-p.done
}

// Self returns a command that executes this program again.
func Self(args ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return exec.Command(self, args...), nil
}
