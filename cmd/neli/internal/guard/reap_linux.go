package guard

import (
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// reapEvery is how often to look for zombies that a spared one hid: no signal announces them.
const reapEvery = time.Second

// Reap waits for adopted children whenever they end, so that they do not stay in the process table.
// spare reports whether other code waits for a child. Reap also spares children in this process's own
// group: a library may have started them, and then the library waits for them. stop ends the reaping.
func Reap(spare func(pid int) bool) (stop func()) {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, unix.SIGCHLD)
	done := make(chan struct{})
	var work sync.WaitGroup
	work.Go(func() {
		tick := time.NewTicker(reapEvery)
		defer tick.Stop()
		for {
			reapZombies(spare)
			select {
			case <-ended:
			case <-tick.C:
			case <-done:
				return
			}
		}
	})
	return func() {
		signal.Stop(ended)
		close(done)
		work.Wait()
	}
}

// reapZombies waits for the present zombies, until it meets one to spare: the kernel would return that
// one every time.
func reapZombies(spare func(pid int) bool) {
	for {
		pid := zombie()
		if pid == 0 || spare(pid) {
			return
		}
		if group, err := unix.Getpgid(pid); err != nil || group == unix.Getpgrp() {
			return
		}
		if _, err := unix.Wait4(pid, nil, unix.WNOHANG, nil); err != nil {
			return
		}
	}
}

// zombie returns a child that has ended, without waiting for it; 0: there is none.
func zombie() int {
	var info unix.Siginfo
	if err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOWAIT|unix.WNOHANG, nil); err != nil {
		return 0
	}
	return int(child(&info, 0))
}

// stoppedChild is Siginfo's Code for a child that was stopped (CLD_STOPPED).
const stoppedChild = 5

// child returns the n-th number that the kernel tells of a child: 0 is its pid, 1 its user, 2 its exit code or signal.
func child(info *unix.Siginfo, n uintptr) int32 {
	// Three int32 come first. These numbers follow, aligned like a pointer.
	offset := (3*unsafe.Sizeof(int32(0)) + unsafe.Alignof(uintptr(0)) - 1) &^ (unsafe.Alignof(uintptr(0)) - 1)
	return *(*int32)(unsafe.Add(unsafe.Pointer(info), offset+n*unsafe.Sizeof(int32(0))))
}

// stat is part of /proc/<pid>/stat.
type stat struct {
	state   byte // of the main thread
	group   int
	threads int
}

// runs reports whether any thread is left. A main thread that ends before the others looks like a
// zombie. A stat that counts no thread may have been read while execve replaced the main thread, so
// that process counts as running, too.
func (s stat) runs() bool { return s.threads != 1 || s.state != 'Z' && s.state != 'X' }

func readStat(pid int) (s stat, ok bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return s, false
	}
	// The name, in brackets, may have any bytes, brackets included.
	fields := strings.Fields(string(text)[strings.LastIndexByte(string(text), ')')+1:])
	if len(fields) < 18 {
		return s, false
	}
	s.state = fields[0][0]
	s.group, _ = strconv.Atoi(fields[2])
	s.threads, _ = strconv.Atoi(fields[17])
	return s, true
}

// groupMembers returns the processes of a group, without zombies.
func groupMembers(group int) (pids []int) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			if s, ok := readStat(pid); ok && s.group == group && s.runs() {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// stuckAfter is how long a killed process may take to die.
const stuckAfter = time.Second

// Stuck calls tell once if processes of a killed group are still alive after a second: a process that
// changed its user cannot be killed. Stop the timer when all have ended.
func Stuck(group int, tell func(trouble string)) *time.Timer {
	return time.AfterFunc(stuckAfter, func() {
		if left := groupMembers(group); len(left) > 0 {
			tell(fmt.Sprintf("processes %v cannot be killed, and run on without a lease", left))
		}
	})
}
