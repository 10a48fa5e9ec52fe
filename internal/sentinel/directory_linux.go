package sentinel

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// A member sends its secret to whoever listens at the socket. So nobody else may be able to put a socket
// there, or another directory in the place of one above it.

// errDirectory: somebody else may write to the directory of the socket.
var errDirectory = errors.New("others may write to the socket's directory: it must be the sentinel's or root's, with mode 0750 for example")

// errAbove: somebody else may replace a directory above the socket.
var errAbove = errors.New("others may write there, above the socket, and put a socket of their own in its place: take that permission away, or run sentinel and members as the same user")

// maxLinks is how many symbolic links a path may have, as for the kernel.
const maxLinks = 40

// makeDirectory makes a directory that the group may enter, whatever the umask is. It does not follow a link that others
// may have put in its place.
func makeDirectory(path string) error {
	if err := os.Mkdir(path, 0o750); err != nil {
		return err
	}
	dir, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0) //nolint:gosec // the sentinel's own setting
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Chmod(0o750)
}

// directoryOf returns the directory of a socket as the kernel finds it: filepath.Dir would drop a ".." together
// with the symbolic link before it.
func directoryOf(socket string) string {
	i := strings.LastIndexByte(socket, '/')
	switch i {
	case -1:
		return "."
	case 0:
		return "/"
	}
	return socket[:i]
}

// checkDirectory returns an error if anybody but the owner of a socket and root could replace it in its directory.
func checkDirectory(socket string, owner uint32) error {
	dir := directoryOf(socket)
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	if st.Uid != 0 && st.Uid != owner || st.Mode&0o022 != 0 {
		return fmt.Errorf("%s: %w", dir, errDirectory)
	}
	return nil
}

// checkAbove returns an error if anybody but root, the owner of a socket and this process's user could
// replace one of the directories above it, or a symbolic link on the way to it. In a directory with the
// sticky bit others cannot replace what is there, but they may have been the first to put it there.
func checkAbove(socket string, owner uint32) error {
	dir := directoryOf(socket)
	if !filepath.IsAbs(dir) {
		wd, err := os.Getwd()
		if err != nil {
			return err
		}
		dir = wd + "/" + dir
	}
	self := uint32(os.Geteuid())
	at, rest, links := "/", strings.Split(dir, "/"), 0
	shared := false // others may write to the directory in which at is
	for {
		var st unix.Stat_t
		if err := unix.Lstat(at, &st); err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
		if st.Uid != 0 && st.Uid != self && (shared || st.Uid != owner) {
			return fmt.Errorf("%s: %w", at, errAbove)
		}
		if st.Mode&unix.S_IFMT == unix.S_IFLNK {
			to, err := os.Readlink(at)
			if links++; err != nil || links > maxLinks {
				return fmt.Errorf("%s: too many symbolic links, or one that cannot be read: %w", at, errAbove)
			}
			if rest = append(strings.Split(to, "/"), rest...); filepath.IsAbs(to) {
				at, shared = "/", false
			} else {
				at = filepath.Dir(at)
			}
		} else if shared = st.Mode&0o022 != 0; shared && st.Mode&unix.S_ISVTX == 0 {
			return fmt.Errorf("%s: %w", at, errAbove)
		}
		for len(rest) > 0 && (rest[0] == "" || rest[0] == ".") {
			rest = rest[1:]
		}
		if len(rest) == 0 {
			return nil
		}
		at, rest = filepath.Join(at, rest[0]), rest[1:] // at has no links: ".." is the directory above it
	}
}
