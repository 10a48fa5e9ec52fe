package guard

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/goneli/neli/internal/sentinel"
)

const (
	// CodeUnexecutable and CodeMissing are exit codes as of timeout(1) and shells.
	CodeUnexecutable = 126
	CodeMissing      = 127
	// codeSignal is added to the number of a signal.
	codeSignal = 128
	// codeOwn: the guard itself has failed.
	codeOwn = 125

	// firstFile is the first that is neither of the standard ones.
	firstFile = 3
)

// Self is this program, whatever has become of its file meanwhile.
const Self = "/proc/self/exe"

// verbExec is the argument by which a program is told to become a command.
const verbExec = "__exec"

// Main is what a process does, and its exit code, whose arguments say that it is a guard
// or is to become a command: ok is false if they say nothing of the kind.
func Main(args []string) (code int, ok bool) {
	if len(args) < 3 || args[1] != "--" {
		return 0, false
	}
	switch args[0] {
	case SecondVerb:
		return second(os.NewFile(firstFile, "orders"), inherited(firstFile+1)), true
	case Verb:
		return keep(os.NewFile(firstFile, "orders"), os.NewFile(firstFile+1, "reports"), args[2:]), true
	case verbExec:
		return become(args[2:]), true
	}
	return 0, false
}

// keep runs a command until it ends or must not run any more. The elector's orders come by a
// pipe, and reports is one to it.
func keep(pipe, reports *os.File, command []string) int {
	outliveSignals()
	// The elector's own files are not the command's: libraries do not mark all of theirs.
	_ = unix.CloseRange(firstFile, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) // Linux has it since 5.11
	adoptOrphans()
	told := socket(firstFile + 3)

	g := &guard{orders: newOrders(pipe), reports: reports, cgroup: inherited(firstFile + 2)}
	go g.orders.listen()
	first, ok := g.first()
	if !ok {
		_ = sentinel.SayClear(told) // nothing was started
		return codeOwn
	}
	alarm, err := newAlarm()
	if err != nil {
		_ = Report{Error: err.Error(), Code: codeOwn, Ended: true}.write(reports) // an elector that has gone need not know
		return codeOwn
	}
	g.alarm = alarm
	// The kernel watches the thread that starts the command: it must last.
	runtime.LockOSThread()
	group, release, err := start(command)
	if err != nil {
		_ = Report{Error: err.Error(), Code: codeOwn, Ended: true}.write(reports)
		return codeOwn
	}
	g.group = group
	defer Reap(func(pid int) bool { return pid == group })()
	g.enclose()
	_ = Report{Group: g.group}.write(reports)
	release()
	code := g.watch(first)
	g.clear(told)
	return code
}

// clear tells a sentinel that nothing is left of the command: then it may release what the elector
// held, if that is dead. Where something may be left it says nothing.
func (g *guard) clear(told *os.File) {
	if told == nil || g.cgroup.Empty() != nil {
		return
	}
	_ = sentinel.SayClear(told) // without it leadership lasts until its lease is over
}

// socket is a connection that a process was given as an open file; nil: it was given none.
func socket(fd int) *os.File {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return nil
	}
	return os.NewFile(uintptr(fd), "sentinel")
}

// outliveSignals is for signals to everybody (a supervisor's stop of all processes of a
// service), which must not end the guard before the command. Ignored they would be the command's to
// ignore, too.
func outliveSignals() {
	signal.Notify(make(chan os.Signal, 1), unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT)
}

// guard is the state of a guard that has started its command. It belongs to one goroutine.
type guard struct {
	orders  *orders
	reports io.Writer
	alarm   *alarm
	group   int
	cgroup  *Cgroup     // of the command; nil: it has none of its own
	stuck   *time.Timer // runs since the command was killed
}

// enclose puts the process that is to become the command into its cgroup.
func (g *guard) enclose() {
	if g.cgroup == nil {
		return
	}
	if err := g.cgroup.add(g.group); err != nil {
		g.cgroup = nil
		g.tell("the command runs without a cgroup of its own: " + err.Error())
	}
}

// tell reports what went wrong to the elector; without one, to people.
func (g *guard) tell(trouble string) {
	if (Report{Group: g.group, Trouble: trouble}).write(g.reports) != nil {
		fmt.Fprintln(os.Stderr, "neli:", trouble)
	}
}

// first waits for the first deadline: without one nothing may be started.
func (g *guard) first() (t told, ok bool) {
	for range g.orders.news {
		if t = g.orders.now(); t.deadline > 0 {
			return t, t.deadline > Now() && !t.gone
		}
	}
	return t, false
}

// watch lets the command run until it ends or its time is over.
func (g *guard) watch(first told) int {
	ended := make(chan struct{})
	go func() {
		g.leader()
		close(ended)
	}()
	deadline := first.deadline
	g.alarm.set(deadline)
	for _, s := range first.signals {
		g.deliver(s)
	}
	late := false
	news := g.orders.news
	for {
		select {
		case <-news:
		case <-g.alarm.fired:
		case <-ended:
			g.kill()
			code, signal := g.reap()
			g.stuck.Stop()
			_ = Report{Group: g.group, Ended: true, Code: code, Signal: signal, Late: late}.write(g.reports)
			return code
		}
		t := g.orders.now()
		for _, s := range t.signals {
			g.deliver(s)
		}
		switch {
		case t.gone:
			late, news = true, nil
			g.kill()
		case t.deadline != deadline: // only ever later
			deadline = t.deadline
			g.alarm.set(deadline)
		case Now() >= deadline:
			late = true
			g.kill()
		}
	}
}

// deliver sends the group a signal. A group that has ended just now needs none.
func (g *guard) deliver(s syscall.Signal) {
	if err := unix.Kill(-g.group, s); errors.Is(err, unix.EPERM) {
		g.tell(fmt.Sprintf("the command has changed its user and cannot be sent %s", unix.SignalName(s)))
	}
}

// kill kills everything in the command's cgroup, or at least its group. It tells of
// processes of the group that are still alive a second later.
func (g *guard) kill() {
	if err := g.cgroup.Kill(); err != nil {
		g.tell("cannot kill the command's cgroup: " + err.Error())
	}
	_ = unix.Kill(-g.group, unix.SIGKILL) // ESRCH: nobody is left; for EPERM see Stuck
	if g.stuck == nil {
		g.stuck = Stuck(g.group, g.tell)
	}
}

// leader waits until the command itself has ended. The process stays in the table, and with
// it the number of the group, which nobody else can have meanwhile.
func (g *guard) leader() {
	for errors.Is(unix.Waitid(unix.P_PID, g.group, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
}

// reap waits until nothing is left of the group, and returns the command's exit code and the
// signal that killed it. What the command has left behind has become the guard's, and was killed.
func (g *guard) reap() (code int, signal syscall.Signal) {
	code = codeOwn
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-g.group, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil: // ECHILD
			return code, signal
		case pid == g.group && status.Signaled():
			signal = status.Signal()
			code = codeSignal + int(signal)
		case pid == g.group:
			code = status.ExitStatus()
		}
	}
}

// start starts a process in a group of its own that becomes the command when it is released.
// Before that the elector must have been told of the group: should the guard be killed, it
// clears the group away.
func start(command []string) (group int, release func(), err error) {
	wait, released, err := os.Pipe()
	if err != nil {
		return 0, nil, err
	}
	defer wait.Close()
	p, err := os.StartProcess(Self, append([]string{"neli", verbExec, "--"}, command...), &os.ProcAttr{Env: os.Environ(),
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr, wait}, Sys: dieWithParent(&syscall.SysProcAttr{Setpgid: true})})
	if err != nil {
		_ = released.Close()
		return 0, nil, err
	}
	return p.Pid, func() {
		_, _ = released.Write([]byte{orderEnd}) // one that has been killed needs none
		_ = released.Close()
	}, nil
}

// become waits until it is released, and becomes the command. It returns only what
// went wrong, as an exit code.
func become(command []string) int {
	wait := os.NewFile(firstFile, "release")
	if _, err := io.ReadFull(wait, make([]byte, 1)); err != nil {
		return codeOwn // the guard has gone
	}
	_ = wait.Close()
	path, err := exec.LookPath(command[0])
	if err == nil {
		err = unix.Exec(path, command, os.Environ())
	}
	fmt.Fprintf(os.Stderr, "neli: %s: %v\n", command[0], err)
	return StartCode(err)
}

// StartCode is the exit code for a command that could not be started.
func StartCode(err error) int {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return CodeMissing
	}
	return CodeUnexecutable
}
