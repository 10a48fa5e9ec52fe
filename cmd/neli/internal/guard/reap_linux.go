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

// reapEvery is for zombies that stood behind one that was spared: nothing tells of them.
const reapEvery = time.Second

// Reap waits for the children that this process has adopted whenever they end, so that they do not
// stay in the table of processes. spare names the children that others wait for. Children of
// this process's own group are nobody's orphans: a library may have started them, and waits for
// them. stop ends it.
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

// reapZombies waits for the zombies that are to be had now, until it meets one to spare: the
// kernel shows that one again and again.
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

// zombie is a child that has ended, and stays one; 0: there is none.
func zombie() int {
	var info unix.Siginfo
	if err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOWAIT|unix.WNOHANG, nil); err != nil {
		return 0
	}
	// Three numbers come first, aligned as a pointer is; then the process's.
	offset := (3*unsafe.Sizeof(int32(0)) + unsafe.Alignof(uintptr(0)) - 1) &^ (unsafe.Alignof(uintptr(0)) - 1)
	return int(*(*int32)(unsafe.Add(unsafe.Pointer(&info), offset)))
}

// stat is what the kernel says of a process.
type stat struct {
	state byte
	group int
}

func readStat(pid int) (s stat, ok bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return s, false
	}
	// The name, in brackets, may have any bytes, brackets included.
	fields := strings.Fields(string(text)[strings.LastIndexByte(string(text), ')')+1:])
	if len(fields) < 3 {
		return s, false
	}
	s.state = fields[0][0]
	s.group, _ = strconv.Atoi(fields[2])
	return s, true
}

// groupMembers are the processes of a group that run.
func groupMembers(group int) (pids []int) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			if s, ok := readStat(pid); ok && s.group == group && s.state != 'Z' && s.state != 'X' {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// stuckAfter is how long a process may take to die.
const stuckAfter = time.Second

// Stuck calls tell, once, if processes of a group, which was killed, are still alive after a second: what
// has changed its user cannot be killed. Stop the timer when all have ended.
func Stuck(group int, tell func(trouble string)) *time.Timer {
	return time.AfterFunc(stuckAfter, func() {
		if left := groupMembers(group); len(left) > 0 {
			tell(fmt.Sprintf("processes %v cannot be killed, and run on without a lease", left))
		}
	})
}
