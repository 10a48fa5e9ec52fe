package job

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
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
	work    sync.WaitGroup

	mu     sync.Mutex    // of writes to orders
	ended  chan struct{} // closed when nothing is left of it
	report guard.Report  // the last one; of those who have seen ended closed
}

// errGuardLost: the guard ended without a word, so that it was killed.
var errGuardLost = errors.New("the guard process was killed")

// startChild starts a guard, which starts the command once it has been told of a deadline.
func startChild(command, env []string, told *os.File, k *kin, log *slog.Logger) (*child, error) {
	second, err := startSecond(k, log)
	if err != nil {
		log.Info("the command has no cgroup of its own: what leaves its group, or changes its user, may outlive the lease", "reason", err)
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

// startGuard starts the first guard. told is where it tells a sentinel that nothing is left; nil: there is none.
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
		reports: reports, ended: make(chan struct{})}
	c.guard.Args[0] = "neli"
	c.guard.Env = env
	c.guard.Stdin, c.guard.Stdout, c.guard.Stderr = os.Stdin, os.Stdout, os.Stderr
	c.guard.ExtraFiles = []*os.File{ordersIn, reportsOut}
	var cgroup *os.File // nil is a file that the guard does not have
	if second != nil {
		cgroup = second.cgroup.Dir
	}
	c.guard.ExtraFiles = append(c.guard.ExtraFiles, cgroup, told)
	c.guard.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a terminal's signals are not for it
	err = k.start(c.guard)
	_ = errors.Join(ordersIn.Close(), reportsOut.Close())
	if err != nil {
		_, _ = orders.Close(), reports.Close()
		return nil, fmt.Errorf("cannot start the guard process: %w", err)
	}
	return c, nil
}

// goOn has a guard that was stopped go on: with the elector killed, too, nobody would end the
// command. It returns when the guard has ended.
func (c *child) goOn() {
	for {
		err := unix.Waitid(unix.P_PID, c.guard.Process.Pid, nil, unix.WSTOPPED, nil)
		switch {
		case err == nil:
			_ = c.guard.Process.Signal(syscall.SIGCONT) // one that has ended needs none
		case !errors.Is(err, unix.EINTR):
			return // ECHILD
		}
	}
}

// follow takes the guard's reports until it has ended.
func (c *child) follow() {
	defer close(c.ended)
	group, last := 0, guard.Report{}
	for lines := bufio.NewScanner(c.reports); lines.Scan(); {
		var r guard.Report
		if json.Unmarshal(lines.Bytes(), &r) != nil {
			break // no guard of ours: it is killed below
		}
		if last = r; r.Ended {
			break
		}
		if r.Trouble != "" {
			c.log.Error(r.Trouble, "group", r.Group)
		}
		group = r.Group
		c.kin.add(group) // ours to wait for, should the guard be killed
	}
	if !last.Ended { // killed; the kernel has killed the command, and the rest of the group is ours now
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
		c.log.Error("cannot end what the command has left behind", "error", err)
	}
	c.kin.remove(c.guard.Process.Pid, group)
	c.report = last
}

// clean kills what is left of a group whose guard has died, and waits for its end.
func (c *child) clean(group int) {
	if group == 0 {
		return
	}
	c.second.kill()
	_ = unix.Kill(-group, unix.SIGKILL)
	stuck := guard.Stuck(group, func(trouble string) { c.log.Error(trouble, "group", group) })
	defer stuck.Stop()
	for {
		if _, err := unix.Wait4(-group, nil, 0, nil); err != nil && !errors.Is(err, unix.EINTR) {
			return // ECHILD
		}
	}
}

// until tells the guard of a deadline, by the clock of guard.Now.
func (c *child) until(deadline time.Duration) { c.order(guard.Until(deadline)) }

// signal sends the group a signal.
func (c *child) signal(s syscall.Signal) { c.order(guard.Deliver(s)) }

// order writes to a pipe that a guard that is stopped does not empty: what does not fit is
// left out, and kill is for what must get through.
func (c *child) order(o []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	tell(c.orders, o)
	if c.second != nil {
		tell(c.second.orders, o)
	}
}

func tell(orders *os.File, o []byte) {
	_ = orders.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
	_, _ = orders.Write(o)
}

// kill ends the group, whatever has become of the guard, and returns when nothing is left
// of it.
func (c *child) kill() {
	_ = c.orders.Close() // upon which the guard kills
	c.second.kill()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-c.ended:
	case <-timer.C:
		_ = c.guard.Process.Kill() // stopped, it seems: follow does the rest
		<-c.ended
	}
}
