package sentinel

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A guard outlives the process that elects, and the sentinel may be started again meanwhile. So the guard
// does not get one connection to a sentinel, but a socket over which it gets one connection after another.

// Line is a process's way to the guard of a command.
type Line struct{ c *net.UnixConn }

var errNoLine = errors.New("there is no socket to the command's guard")

// newLine returns a Line, and the file for the guard, or an error that says why there is none.
func newLine() (Line, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return Line{}, nil, err
	}
	own, file := os.NewFile(uintptr(fds[0]), "guard"), os.NewFile(uintptr(fds[1]), "elector")
	defer own.Close()
	c, err := net.FileConn(own)
	if err != nil {
		return Line{}, nil, errors.Join(err, file.Close())
	}
	return Line{c.(*net.UnixConn)}, file, nil
}

// pass gives the guard a connection to a sentinel.
func (l Line) pass(connection *os.File) error {
	if l.c == nil {
		return errNoLine
	}
	raw, err := connection.SyscallConn()
	if err != nil {
		return err
	}
	failed := raw.Control(func(fd uintptr) { err = sendBytes(l.c, []byte{0}, []int{int(fd)}) })
	if err = errors.Join(failed, err); err != nil {
		return fmt.Errorf("the command's guard cannot be given a connection to the sentinel: %w", err)
	}
	return nil
}

func (l Line) close() {
	if l.c != nil {
		_ = l.c.Close()
	}
}

// Clearance is a guard's way to say to the present sentinel that nothing is left of its command.
type Clearance struct {
	c        *net.UnixConn
	followed sync.WaitGroup
	newest   int // the newest connection to a sentinel; -1: none yet
}

// NewClearance takes the file that Guard has returned. If file is nil, it returns nil, on which Say does nothing.
func NewClearance(file *os.File) *Clearance {
	if file == nil {
		return nil
	}
	defer file.Close()
	c, err := net.FileConn(file)
	if err != nil {
		return nil // it is no socket
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		_ = c.Close()
		return nil
	}
	r := &Clearance{c: u, newest: -1}
	r.followed.Go(func() { r.take(true) })
	return r
}

// take takes connections. It waits for them, or takes only those that are there already.
func (r *Clearance) take(wait bool) {
	for {
		_, files, err := packet(r.c, wait)
		if err != nil {
			closeAll(files)
			return
		}
		for _, fd := range files {
			closeAll([]int{r.newest})
			r.newest = fd
		}
	}
}

// Say says that nothing is left of the command. Call it at most once.
func (r *Clearance) Say() error {
	if r == nil {
		return nil
	}
	_ = r.c.SetReadDeadline(time.Unix(1, 0))
	r.followed.Wait()
	_ = r.c.SetReadDeadline(time.Time{})
	r.take(false) // what the elector has sent last
	defer r.c.Close()
	if r.newest < 0 {
		return nil
	}
	defer closeAll([]int{r.newest})
	if err := unix.Sendmsg(r.newest, []byte(`{"clear":true}`), nil, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL); err != nil {
		return fmt.Errorf("the sentinel was not told that nothing is left of the command: %w", err)
	}
	return nil
}
