package job

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/goneli/neli/cmd/neli/internal/guard"
)

// child is a command under its guards.
type child struct {
	kin     *kin
	log     *slog.Logger
	guard   *exec.Cmd
	orders  *os.File
	reports *os.File
	second  *second // nil: without a cgroup
	stop    *stop
	work    sync.WaitGroup

	mu     sync.Mutex    // guards writes to orders
	ended  chan struct{} // closed when nothing is left of the command
	report guard.Report  // the last one; read it only after ended is closed
}

// errGuardLost: the guard ended without a report, so it was killed.
var errGuardLost = errors.New("the guard process was killed")

// startChild starts a guard, which starts the command when it has got a deadline.
func startChild(command, env []string, told *os.File, k *kin, log *slog.Logger) (*child, error) {
	second, err := startSecond(k, log)
	if err != nil {
		log.Info("the command has no cgroup of its own: processes that leave its process group or change their user may outlive the lease", "reason", err)
	}
	c, err := startGuard(command, env, told, second, k, log)
	if err != nil {
		_ = second.end()
		return nil, err
	}
	c.work.Go(c.follow)
	c.work.Go(c.goOn)
	return c, nil
}

// startGuard starts the first guard. told is the guard's connection to a sentinel; nil: there is none.
func startGuard(command, env []string, told *os.File, second *second, k *kin, log *slog.Logger) (*child, error) {
	ordersIn, orders, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	reports, reportsOut, err := os.Pipe()
	if err != nil {
		_, _ = ordersIn.Close(), orders.Close()
		return nil, err
	}
	c := &child{kin: k, log: log, second: second, guard: exec.Command(guard.Self, append([]string{guard.Verb, "--"}, command...)...), orders: orders,
		reports: reports, ended: make(chan struct{}), stop: &stop{log: log}}
	c.guard.Args[0] = "neli"
	c.guard.Env = env
	c.guard.Stdin, c.guard.Stdout, c.guard.Stderr = input(), os.Stdout, os.Stderr
	c.guard.ExtraFiles = []*os.File{ordersIn, reportsOut}
	var cgroup *os.File // nil: the guard gets no such file
	if second != nil {
		cgroup = second.cgroup.Dir
	}
	c.guard.ExtraFiles = append(c.guard.ExtraFiles, cgroup, told)
	// A session of its own has no terminal. So no terminal signals the guard, and none stops the command:
	// stopped, it would keep the lease and do nothing.
	c.guard.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = k.start(c.guard)
	_ = errors.Join(ordersIn.Close(), reportsOut.Close())
	if err != nil {
		_, _ = orders.Close(), reports.Close()
		return nil, fmt.Errorf("cannot start the guard process: %w", err)
	}
	return c, nil
}

// input returns the command's standard input: this process's own. In place of a terminal it is /dev/null, since
// the command and the shell must not both read from a terminal.
func input() io.Reader {
	if _, err := unix.IoctlGetTermios(int(os.Stdin.Fd()), unix.TCGETS); err == nil {
		return nil
	}
	return os.Stdin
}

// goOn resumes the guard whenever it is stopped: a stopped guard cannot end the command if the elector
// is killed. It returns when the guard has ended.
func (c *child) goOn() {
	for {
		err := unix.Waitid(unix.P_PID, c.guard.Process.Pid, nil, unix.WSTOPPED, nil)
		switch {
		case err == nil:
			_ = c.guard.Process.Signal(syscall.SIGCONT) // fails if it has ended
		case !errors.Is(err, unix.EINTR):
			return // ECHILD
		}
	}
}

// follow reads the guard's reports until the guard has ended.
func (c *child) follow() {
	defer close(c.ended)
	group, last := 0, guard.Report{}
	for lines := bufio.NewScanner(c.reports); lines.Scan(); {
		var r guard.Report
		if json.Unmarshal(lines.Bytes(), &r) != nil {
			break // not a guard's report: the guard is killed below
		}
		if r.Stopped != 0 || r.Continued {
			c.stop.heard(r)
			continue
		}
		if last = r; r.Ended {
			break
		}
		if r.Trouble != "" {
			c.log.Error(r.Trouble, "process_group", r.Group)
		}
		group = r.Group
		c.kin.add(group) // this process waits for the group if the guard is killed
	}
	c.stop.over()
	if !last.Ended { // the guard was killed; the kernel has killed the command, and this process adopted the rest of the group
		_ = c.guard.Process.Kill()
	}
	_ = c.orders.Close()
	_ = c.reports.Close()
	_ = c.guard.Wait()
	if !last.Ended {
		last = guard.Report{Group: group, Ended: true, Error: errGuardLost.Error(), Code: codeKilled}
		c.clean(group)
	}
	if err := c.second.end(); err != nil {
		c.log.Error("cannot kill the command's remaining processes", "error", err)
	}
	c.kin.remove(c.guard.Process.Pid, group)
	c.report = last
}

// clean kills what is left of a group whose guard died, and waits for its end.
func (c *child) clean(group int) {
	if group == 0 {
		return
	}
	c.second.kill()
	_ = unix.Kill(-group, unix.SIGKILL)
	stuck := guard.Stuck(group, func(trouble string) { c.log.Error(trouble, "process_group", group) })
	defer stuck.Stop()
	for {
		if _, err := unix.Wait4(-group, nil, 0, nil); err != nil && !errors.Is(err, unix.EINTR) {
			return // ECHILD
		}
	}
}

// until sends the guard a deadline, by the clock of guard.Now.
func (c *child) until(deadline time.Duration) { c.order(guard.Until(deadline)) }

// signal sends the group a signal.
func (c *child) signal(s syscall.Signal) {
	c.stop.sent(s)
	c.order(guard.Deliver(s))
}

// finish sends the group a signal to end, and then SIGCONT: a stopped group does not notice the signal
// before it continues.
func (c *child) finish(s syscall.Signal) {
	c.signal(s)
	c.signal(unix.SIGCONT)
}

// order sends the guards an order. A stopped guard does not empty its pipe, so an order that does not
// fit is dropped. Use kill for what must get through.
func (c *child) order(o []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	tell(c.orders, o)
	if c.second != nil {
		tell(c.second.orders, o)
	}
}

// tell writes an order if it fits into the pipe. It sets no write deadline: if this process got no
// processor until the deadline, an order that fits would be dropped, and a signal with it.
func tell(orders *os.File, o []byte) {
	pipe, err := orders.SyscallConn()
	if err != nil {
		return
	}
	_ = pipe.Write(func(fd uintptr) (done bool) {
		_, _ = unix.Write(int(fd), o) // whole or not at all
		return true
	})
}

// kill kills the group, whatever state the guard is in, and returns when nothing is left of it.
func (c *child) kill() {
	_ = c.orders.Close() // the guard then kills the group
	c.second.kill()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-c.ended:
	case <-timer.C:
		_ = c.guard.Process.Kill() // it seems to be stopped; follow does the rest
		<-c.ended
	}
}
