package member

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// become replaces the process's program by another one, which does nothing. The process keeps its
// pid, and has not died.
func (p *process) become() {
	sleep, err := exec.LookPath("sleep")
	if err == nil {
		err = syscall.Exec(sleep, []string{"sleep", "1000"}, nil)
	}
	panic(fmt.Sprintf("executing another program: %v", err))
}

// replace puts /dev/null in the place of each pidfd and of each connection by a unix socket, like a
// program that closes files that are not its own and opens others. It returns the number of files
// replaced. Their descriptors stay taken, so that the library, when it uses them next, does not hit an
// unrelated file.
func replace() (n int64) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		panic(err)
	}
	defer null.Close()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		panic(err)
	}
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil || !ofASentinel(fd) {
			continue
		}
		if unix.Dup3(int(null.Fd()), fd, unix.O_CLOEXEC) == nil {
			n++
		}
	}
	return n
}

// ofASentinel reports whether a file is a pidfd or a connection by a unix socket.
func ofASentinel(fd int) bool {
	if name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd)); err == nil && strings.Contains(name, "pidfd") {
		return true
	}
	peer, err := unix.Getpeername(fd)
	_, is := peer.(*unix.SockaddrUnix)
	return err == nil && is
}
