package sentinel

import (
	"encoding/json"
	"errors"
	"net"

	"golang.org/x/sys/unix"
)

// send writes a packet, with files. It never waits: an error that wraps EAGAIN says that the other side
// does not read. A deadline would be worse, since a process that is suspended at the wrong instant would
// not send the packet though there is room for it.
func send(c *net.UnixConn, v any, files []int) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return sendBytes(c, b, files)
}

func sendBytes(c *net.UnixConn, b []byte, files []int) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var oob []byte
	if len(files) > 0 {
		oob = unix.UnixRights(files...)
	}
	// Control, unlike Write, does not look at a deadline.
	failed := raw.Control(func(fd uintptr) {
		for {
			err = unix.Sendmsg(int(fd), b, oob, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
			if !errors.Is(err, unix.EINTR) {
				return
			}
		}
	})
	return errors.Join(failed, err)
}

// receive waits for a packet, and returns it with the files that came with it. The error is net.ErrClosed
// if the connection has ended.
func receive(c *net.UnixConn) (q request, files []int, err error) {
	b, files, err := packet(c, true)
	if err != nil {
		return q, files, err
	}
	return q, files, json.Unmarshal(b, &q)
}

// receiveNow is receive for a packet that is there already. Without one the error is EAGAIN.
func receiveNow(c *net.UnixConn) (q request, files []int, err error) {
	b, files, err := packet(c, false)
	if err != nil {
		return q, files, err
	}
	return q, files, json.Unmarshal(b, &q)
}

// packet reads a packet. If wait is set, it waits for one.
func packet(c *net.UnixConn, wait bool) (text []byte, files []int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, nil, err
	}
	b, oob := make([]byte, maxMessage+1), make([]byte, unix.CmsgSpace(4*4))
	var n, m, flags int
	failed := raw.Read(func(fd uintptr) bool {
		for {
			n, m, flags, _, err = unix.Recvmsg(int(fd), b, oob, unix.MSG_DONTWAIT|unix.MSG_CMSG_CLOEXEC)
			switch {
			case errors.Is(err, unix.EINTR):
			case errors.Is(err, unix.ECONNRESET):
				// The other side has closed without having read everything. The kernel says so once, and before
				// it hands out what the other side has sent, which may be a goodbye.
			default:
				return !wait || !errors.Is(err, unix.EAGAIN)
			}
		}
	})
	if failed != nil {
		return nil, nil, failed
	}
	if err == nil && m > 0 {
		files = passed(oob[:m])
	}
	switch {
	case err != nil:
		return nil, files, err
	case n == 0:
		return nil, files, net.ErrClosed // zero bytes: the connection has ended
	case n > maxMessage || flags&unix.MSG_TRUNC != 0:
		return nil, files, errors.New("a packet is too long")
	}
	if flags&unix.MSG_CTRUNC != 0 {
		files = append(files, -1) // the kernel dropped files: with −1 no proof is accepted
	}
	return b[:n], files, nil
}

// passed returns the files of control messages.
func passed(oob []byte) (files []int) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil
	}
	for _, m := range messages {
		if fds, err := unix.ParseUnixRights(&m); err == nil {
			files = append(files, fds...)
		}
	}
	return files
}

func closeAll(files []int) {
	for _, fd := range files {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
}
