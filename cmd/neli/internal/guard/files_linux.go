package guard

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"

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

// closeEachOnExec does the same one by one, with the files that a directory like /proc/self/fd lists.
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
