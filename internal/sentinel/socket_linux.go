package sentinel

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// socketFile is the file of the socket on which a sentinel listens, and the lock that keeps other sentinels from it.
type socketFile struct {
	listener *net.UnixListener
	path     string
	info     os.FileInfo
	lock     *os.File
	once     sync.Once
}

// listenAlone listens at a path, in place of a sentinel that was killed. It locks a file beside the socket
// first: of two sentinels that start at the same time, both could find the old socket abandoned, and one would
// remove the other's. The lock lasts as long as this process listens, also while it is suspended.
func listenAlone(path string) (f *socketFile, err error) {
	lock, err := lockFile(path + ".lock")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	defer func() {
		if err != nil {
			_ = lock.Close()
		}
	}()
	if err := removeAbandoned(path); err != nil {
		return nil, err
	}
	l, err := net.ListenUnix(network, &net.UnixAddr{Name: path, Net: network})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // by then another program's socket may be there
	// The mode of the directory decides who can reach the socket (0750 and a group, for example).
	if err := os.Chmod(path, 0o666); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	info, err := os.Lstat(path)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return &socketFile{listener: l, path: path, info: info, lock: lock}, nil
}

var errListens = errors.New("another sentinel listens there")

// lockFile opens and locks a file. A lock on the directory would not do: anybody who may read it can lock it.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600) //nolint:gosec // the sentinel's own setting
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = errListens
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// removeAbandoned removes a socket on which nobody listens. It returns an error if somebody does, or if the file is not a
// socket.
func removeAbandoned(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return nil // nothing is there
	}
	if info.Mode()&os.ModeSocket == 0 {
		return fmt.Errorf("%s is there and is no socket", path)
	}
	c, err := net.Dial(network, path)
	switch {
	case err == nil:
		_ = c.Close()
		return fmt.Errorf("%s: %w", path, errListens)
	case !errors.Is(err, unix.ECONNREFUSED): // it is not abandoned: another program may listen, on another kind of socket
		return fmt.Errorf("%s is in use: %w", path, err)
	}
	return os.Remove(path)
}

// remove removes the socket, unless another one is in its place, and unlocks the path. The empty file of the lock
// stays: another sentinel may be about to lock it.
func (f *socketFile) remove() {
	f.once.Do(func() {
		if info, err := os.Lstat(f.path); err == nil && os.SameFile(info, f.info) {
			_ = os.Remove(f.path)
		}
		_ = f.lock.Close()
	})
}
