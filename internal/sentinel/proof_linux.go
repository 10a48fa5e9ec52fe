package sentinel

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// errKernel: the kernel cannot open or poll pidfds.
var errKernel = errors.New("the kernel has no pidfds that can be waited for: it takes Linux 5.3")

// checkKernel returns an error if this kernel has no pidfds.
func checkKernel() error {
	fd, err := ownPidfd()
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

// openPidfd is pidfd_open(2). A test replaces it to act as an older kernel.
var openPidfd = unix.PidfdOpen

// ownPidfd opens this process's own pidfd.
func ownPidfd() (int, error) {
	fd, err := openPidfd(os.Getpid(), 0)
	if err != nil {
		return -1, fmt.Errorf("%w (%w)", errKernel, err)
	}
	return fd, nil
}

// unique reports whether each process's pidfds have an inode of their own (Linux 6.9).
func unique() bool {
	fd, err := ownPidfd()
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	return inPidfs(fd)
}

func inPidfs(fd int) bool {
	var fs unix.Statfs_t
	return unix.Fstatfs(fd, &fs) == nil && fs.Type == unix.PID_FS_MAGIC
}

// prove asks the kernel about the files that came over a connection.
func prove(c *net.UnixConn, files []int) Proof {
	p := Proof{Files: len(files)}
	if peer, err := peerOf(c); err == nil {
		p.PID = int(peer.Pid)
	}
	if len(files) != 1 || files[0] < 0 {
		return p
	}
	fd := files[0]
	// Only a pidfd counts: another file, such as a directory, may always be readable.
	if unique() {
		p.Pidfd = inPidfs(fd)
		p.Inode, p.Peer = inode(fd), peer(c)
	} else {
		link, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
		p.Pidfd = err == nil && strings.HasPrefix(link, "anon_inode:[pidfd]")
	}
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	p.Thread = err != nil || flags&unix.O_EXCL != 0 // PIDFD_THREAD
	_ = unix.SetNonblock(fd, true)                  // for the runtime's poller
	return p
}

// peer returns the inode of the connected process's pidfd, or 0 if this kernel cannot tell.
func peer(c *net.UnixConn) uint64 {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0
	}
	n := uint64(0)
	_ = raw.Control(func(s uintptr) {
		if fd, err := unix.GetsockoptInt(int(s), unix.SOL_SOCKET, unix.SO_PEERPIDFD); err == nil {
			n = inode(fd)
			_ = unix.Close(fd)
		}
	})
	return n
}

func inode(fd int) uint64 {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil {
		return 0
	}
	return st.Ino
}

// readable reports whether the process of a pidfd is dead, which is POLLIN. POLLERR, POLLNVAL and
// POLLHUP do not mean that.
func readable(fd int) bool {
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(p, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		return err == nil && n > 0 && p[0].Revents&unix.POLLIN != 0
	}
}
