package guard

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/goneli/neli/internal/sentinel"
)

const (
	// CodeUnexecutable and CodeMissing are the exit codes that timeout(1) and shells use.
	CodeUnexecutable = 126
	CodeMissing      = 127
	// codeSignal is added to the number of a signal.
	codeSignal = 128
	// codeOwn: the guard itself failed.
	codeOwn = 125

	// firstFile is the number of the first file after the standard ones.
	firstFile = 3
)

// Self is the path of this program. It works even if the program's file was replaced or removed.
const Self = "/proc/self/exe"

// verbExec is the argument that tells a process to become a command.
const verbExec = "__exec"

// Main runs a guard, or becomes a command, if the arguments ask for one, and returns the exit code.
// ok is false if they do not.
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

// keep runs a command until it ends or must not run any longer. pipe brings the elector's orders, and
// reports leads to the elector.
func keep(pipe, reports *os.File, command []string) int {
	outliveSignals()
	// The command must not get the elector's own files. Libraries do not mark all of theirs to be closed.
	if err := closeOnExec(firstFile); err != nil {
		_ = Report{Error: err.Error(), Code: codeOwn, Ended: true}.write(reports) // fails if the elector is gone
		return codeOwn
	}
	adoptOrphans()
	told := sentinel.NewClearance(socket(firstFile + 3))

	g := &guard{orders: newOrders(pipe), reports: reports, cgroup: inherited(firstFile + 2)}
	go g.orders.listen()
	first, ok := g.first()
	if !ok {
		_ = told.Say() // nothing was started
		// Without a report the elector would take this guard for killed.
		_ = Report{Code: codeSignal + int(unix.SIGKILL), Late: true, Ended: true}.write(reports) // fails if the elector is gone
		return codeOwn
	}
	alarm, err := newAlarm()
	if err != nil {
		_ = Report{Error: err.Error(), Code: codeOwn, Ended: true}.write(reports) // fails if the elector is gone
		return codeOwn
	}
	g.alarm = alarm
	// The command dies with the thread that starts it, so this thread must last.
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

// clear tells a sentinel that nothing is left of the command, so that it may release a dead elector's
// roles. It stays silent if something may be left.
func (g *guard) clear(told *sentinel.Clearance) {
	if told == nil || g.cgroup.Empty() != nil {
		return
	}
	_ = told.Say() // without it leadership lasts until its lease is over
}

// socket returns the socket that this process was given as an open file; nil: none was given.
func socket(fd int) *os.File {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return nil
	}
	return os.NewFile(uintptr(fd), "sentinel")
}

// outliveSignals keeps the guard alive when a supervisor signals all processes of a service: it must
// not end before the command. It does not ignore the signals, since the command would inherit that.
func outliveSignals() {
	if signals := NotIgnored(unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT); len(signals) > 0 { // to Notify, none means all
		signal.Notify(make(chan os.Signal, 1), signals...)
	}
}

// NotIgnored returns the signals without those that this process was started to ignore. A starter that
// has it ignore signals, like nohup, wants the command to ignore them, too.
func NotIgnored(signals ...os.Signal) []os.Signal { return slices.DeleteFunc(signals, signal.Ignored) }

// guard is the state of the first guard. Only one goroutine changes it.
type guard struct {
	orders  *orders
	reports io.Writer
	alarm   *alarm
	group   int
	cgroup  *Cgroup     // the command's; nil: it has none of its own
	stuck   *time.Timer // started when the command is killed
}

// enclose puts the process that will become the command into its cgroup.
func (g *guard) enclose() {
	if g.cgroup == nil {
		return
	}
	if err := g.cgroup.add(g.group); err != nil {
		g.cgroup = nil
		g.tell("the command runs without a cgroup of its own: " + err.Error())
	}
}

// tell reports trouble to the elector, or on standard error if the elector is gone.
func (g *guard) tell(trouble string) {
	if (Report{Group: g.group, Trouble: trouble}).write(g.reports) != nil {
		say(trouble)
	}
}

// say writes to standard error. It waits for a second at most, since a pipe may be full. It catches the
// signals that would end this process if the pipe has no reader or the file may not grow.
func say(text string) {
	signal.Notify(make(chan os.Signal, 1), unix.SIGPIPE, unix.SIGXFSZ)
	said := make(chan struct{})
	go func() {
		defer close(said)
		fmt.Fprintln(os.Stderr, "neli:", text)
	}()
	timer := time.NewTimer(time.Second)
	defer timer.Stop()
	select {
	case <-said:
	case <-timer.C:
	}
}

// first waits for the first deadline. Nothing may be started before it. ok is false if the lease is
// over or the elector is gone.
func (g *guard) first() (t told, ok bool) {
	var signals []syscall.Signal // signals before the first deadline are for the command, too
	for range g.orders.news {
		t = g.orders.now()
		signals = append(signals, t.signals...)
		if t.signals = signals; t.deadline > 0 {
			return t, t.deadline > Now() && !t.gone
		}
	}
	return t, false
}

// watch lets the command run until it ends or must not run on, and returns its exit code.
func (g *guard) watch(first told) int {
	ended := make(chan struct{})
	go func() {
		g.leader()
		close(ended)
	}()
	go g.stops()
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
		case t.deadline != deadline: // a deadline never becomes earlier
			deadline = t.deadline
			g.alarm.set(deadline)
		case Now() >= deadline:
			late = true
			g.kill()
		}
	}
}

// deliver sends the group a signal. It does not matter if the group has just ended.
func (g *guard) deliver(s syscall.Signal) {
	if err := unix.Kill(-g.group, s); errors.Is(err, unix.EPERM) && s != unix.SIGCONT { // tell has reported the signal before CONT
		g.tell(fmt.Sprintf("the command has changed its user and cannot be sent %s", unix.SignalName(s)))
	}
}

// kill kills everything in the command's cgroup, and its process group. It reports processes of the
// group that are still alive a second later.
func (g *guard) kill() {
	err := g.cgroup.Kill()
	_ = unix.Kill(-g.group, unix.SIGKILL) // ESRCH: none is left; for EPERM see Stuck
	if err != nil {
		g.tell("cannot kill the command's cgroup: " + err.Error())
	}
	if g.stuck == nil {
		g.stuck = Stuck(g.group, g.tell)
	}
}

// leader waits until the command itself has ended. It leaves the zombie in the process table, so that
// the group's number cannot be reused meanwhile.
func (g *guard) leader() {
	for errors.Is(unix.Waitid(unix.P_PID, g.group, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
}

// stops reports whenever the command itself is stopped or continued, until it has ended.
func (g *guard) stops() {
	for {
		var info unix.Siginfo
		switch err := unix.Waitid(unix.P_PID, g.group, &info, unix.WSTOPPED|unix.WCONTINUED, nil); {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return // ECHILD
		case info.Code == stoppedChild:
			_ = Report{Group: g.group, Stopped: syscall.Signal(child(&info, 2))}.write(g.reports)
		default:
			_ = Report{Group: g.group, Continued: true}.write(g.reports)
		}
	}
}

// reap waits until nothing is left of the group, and returns the command's exit code and the signal
// that killed it. Processes that the command left behind are the guard's children by now, and were killed.
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

// start starts a process in a group of its own. It becomes the command when it is released. Tell the
// elector of the group before the release: if the guard is killed, the elector kills the group.
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
		_, _ = released.Write([]byte{orderEnd}) // fails if the process was killed
		_ = released.Close()
	}, nil
}

// become waits until it is released, and becomes the command. It returns only if that fails, with an exit code.
func become(command []string) int {
	wait := os.NewFile(firstFile, "release")
	if _, err := io.ReadFull(wait, make([]byte, 1)); err != nil {
		return codeOwn // the guard has gone
	}
	_ = wait.Close()
	path, err := exec.LookPath(command[0])
	if err == nil {
		stillDieWithParent()
		// neli run ignores SIGTTOU, and execve keeps that. For a handled signal execve restores the default.
		signal.Notify(make(chan os.Signal, 1), unix.SIGTTOU)
		err = unix.Exec(path, command, os.Environ())
	}
	say(Unstarted(command[0], err).Error())
	return StartCode(err)
}

// Unstarted returns why a command could not be started. The error names the command once, and no system call.
func Unstarted(command string, err error) error {
	if of, ok := errors.AsType[*exec.Error](err); ok {
		err = of.Err
	}
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		err = at.Err
	}
	return fmt.Errorf("%s: %w", command, err)
}

// StartCode returns the exit code for a command that could not be started.
func StartCode(err error) int {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return CodeMissing
	}
	return CodeUnexecutable
}
