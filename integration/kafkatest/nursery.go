package kafkatest

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

// A nursery starts the processes of one cluster and sees to it that none of them
// outlives this process, not even when it panics or is killed by SIGKILL. There
// are two nets, which know nothing of each other:
//
//   - the kernel kills the child when the thread that started it ends (Linux
//     only). So one goroutine, bound to its thread until close, starts them all;
//   - a watchdog, a shell in a session of its own, reads the pids of the living
//     from a pipe. The kernel closes our end of it when we end, in whatever way.
type nursery struct {
	jobs     chan func() // run on the thread that children belong to
	ended    chan struct{}
	deathsig bool

	watchdog *exec.Cmd
	feed     *os.File // one line of pids for each change; the last one counts

	mu     sync.Mutex
	alive  []*process
	closed bool
}

// $1, if not empty, is a directory to remove. The shell ignores polite signals: it must
// outlive us. SIGKILL takes a suspended process too.
const watchdogScript = `trap '' HUP INT TERM
while read -r line; do pids=$line; done
for pid in $pids; do kill -9 "$pid"; done
[ -z "$1" ] || rm -rf "$1"`

// newNursery's watchdog removes the directory scratch, if not "", once all is
// over: by close, or when this process ends without it.
func newNursery(scratch string) (*nursery, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	n := &nursery{
		jobs:     make(chan func()),
		ended:    make(chan struct{}),
		deathsig: true,
		watchdog: exec.Command("/bin/sh", "-c", watchdogScript, "kafkatest-watchdog", scratch),
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

// A process is a child that is waited for.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended and was reaped
}

var errStopped = errors.New("the cluster was stopped")

// start starts cmd in a session of its own: by means of on, on a host of its own,
// unless on is nil.
func (n *nursery) start(cmd *exec.Cmd, on func(*exec.Cmd) error) (*process, error) {
	if on == nil {
		on = (*exec.Cmd).Start
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if n.deathsig {
		dieWithParent(cmd.SysProcAttr)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, errStopped
	}
	started := make(chan error)
	n.jobs <- func() { started <- on(cmd) }
	if err := <-started; err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	n.alive = append(n.alive, p)
	err := n.tell()
	go func() {
		_ = cmd.Wait() // the ProcessState tells as much
		close(p.done)
		n.mu.Lock()
		defer n.mu.Unlock()
		n.alive = slices.DeleteFunc(n.alive, func(other *process) bool { return other == p })
		_ = n.tell()
	}()
	if err != nil {
		p.kill()
		return nil, fmt.Errorf("the watchdog is gone: %w", err)
	}
	return p, nil
}

func (n *nursery) isClosed() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.closed
}

// tell passes the list of living processes to the watchdog.
func (n *nursery) tell() error {
	pids := make([]string, len(n.alive))
	for i, p := range n.alive {
		pids[i] = strconv.Itoa(p.cmd.Process.Pid)
	}
	_, err := n.feed.WriteString(strings.Join(pids, " ") + "\n")
	return err
}

// close kills every process, waits for their ends, and ends the watchdog and the
// thread. Nothing can be started afterwards. It is called once.
func (n *nursery) close() {
	n.mu.Lock()
	n.closed = true
	alive := slices.Clone(n.alive)
	n.mu.Unlock()
	for _, p := range alive {
		_ = p.signal(syscall.SIGKILL)
	}
	for _, p := range alive {
		<-p.done
	}
	_ = n.feed.Close()
	_ = n.watchdog.Wait()
	close(n.jobs)
	<-n.ended
}

func (p *process) signal(sig syscall.Signal) error { return p.cmd.Process.Signal(sig) }

func (p *process) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// kill sends SIGKILL and waits for the end.
func (p *process) kill() {
	_ = p.signal(syscall.SIGKILL)
	<-p.done
}
