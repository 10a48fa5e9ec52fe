package guard

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// closeOnExec marks all files of this process from number first on, so that a program that it starts
// does not get them.
func closeOnExec(first int) error {
	// Linux has the flag since 5.11, and a filter of system calls may refuse the call.
	err := unix.CloseRange(uint(first), math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
	if err == nil {
		return nil
	}
	if each := closeEachOnExec("/proc/self/fd", first); each != nil {
		return fmt.Errorf("cannot keep this process's files from the command: close_range: %w; %w", err, each)
	}
	return nil
}

// closeEachOnExec marks the files one by one. dir lists the open files, like /proc/self/fd.
func closeEachOnExec(dir string, first int) error {
	list, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range list {
		fd, err := strconv.Atoi(e.Name())
		if err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
		if fd < first {
			continue
		}
		// The list's own file is closed by now.
		if _, err = unix.FcntlInt(uintptr(fd), unix.F_SETFD, unix.FD_CLOEXEC); err != nil && !errors.Is(err, unix.EBADF) {
			return fmt.Errorf("file %d: %w", fd, err)
		}
	}
	return nil
}

// Now reads CLOCK_BOOTTIME, which also counts the time while the machine is suspended.
func Now() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic("guard: CLOCK_BOOTTIME: " + err.Error()) // Linux has it since 2.6.39
	}
	return time.Duration(ts.Nano())
}

// dieWithParent makes the kernel kill the command when the thread that started it ends.
func dieWithParent(attr *syscall.SysProcAttr) *syscall.SysProcAttr {
	attr.Pdeathsig = syscall.SIGKILL
	return attr
}

// stillDieWithParent makes the setting of [dieWithParent] for the calling thread. Each thread has its own
// setting, and a new thread begins without it. A program that replaces this one inherits the setting of the
// thread that calls execve(2). There is no gap: while one thread has it, the whole process is killed.
func stillDieWithParent() {
	runtime.LockOSThread()
	_ = unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0, 0, 0) // Linux has it since 2.1.57
}

// adoptOrphans makes this process the parent of its descendants whose parent ends.
func adoptOrphans() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) } // Linux has it since 3.4

// AdoptOrphans makes this process the parent of the processes that a killed guard leaves behind.
func AdoptOrphans() { adoptOrphans() }

// alarm fires at a time of CLOCK_BOOTTIME, or right after a suspension in which that time passed.
type alarm struct {
	fired chan struct{}
	file  *os.File
}

func newAlarm() (*alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("timerfd_create", err)
	}
	a := &alarm{fired: make(chan struct{}, 1), file: os.NewFile(uintptr(fd), "alarm")}
	go func() {
		var count [8]byte
		for {
			if _, err := a.file.Read(count[:]); err != nil {
				return
			}
			a.fired <- struct{}{}
		}
	}()
	return a, nil
}

func (a *alarm) set(at time.Duration) {
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(max(1, int64(at)))} // 0 would disarm it
	raw, err := a.file.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { err = unix.TimerfdSettime(int(fd), unix.TFD_TIMER_ABSTIME, &spec, nil) })
	}
	if err != nil {
		panic("guard: timerfd_settime: " + err.Error())
	}
}
