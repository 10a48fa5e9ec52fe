package guard

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// refuseCloseRange refuses close_range, like a filter that does not know the call.
	refuseCloseRange = "close_range"
	// refuseBoth also refuses to mark a file close-on-exec.
	refuseBoth = "close_range,F_SETFD"
)

// refuse makes these system calls fail, for this thread and for the program that it becomes.
func refuse(calls string) error {
	const (
		number, argument = 0, 24 // offsets in what a filter gets: of the call, and of its second argument (seccomp(2))
		eperm            = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	)
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	end := func(with uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: with} }
	unless := func(k uint32, skip uint8) unix.SockFilter { // skips that many instructions if the value is not k
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: k, Jf: skip}
	}
	p := []unix.SockFilter{load(number), unless(unix.SYS_CLOSE_RANGE, 1), end(eperm)}
	if calls == refuseBoth {
		p = append(p, unless(unix.SYS_FCNTL, 3), load(argument), unless(unix.F_SETFD, 1), end(eperm))
	}
	p = append(p, end(unix.SECCOMP_RET_ALLOW))
	program := unix.SockFprog{Len: uint16(len(p)), Filter: &p[0]}
	defer runtime.KeepAlive(p)
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
}
