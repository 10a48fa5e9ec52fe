package sentinel

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// unixConnection is the connection over a unix socket.
type unixConnection struct {
	socket string
	c      *net.UnixConn
	said   chan Answer
}

// dial connects and registers a member. It returns the sentinel's first answer.
func dial(socket string, reg Registration) (connection, Answer, error) {
	c, err := connect(socket)
	if err != nil {
		return nil, Answer{}, err
	}
	fd, err := ownPidfd()
	if err != nil {
		return nil, Answer{}, errors.Join(err, c.Close())
	}
	defer unix.Close(fd)
	_ = c.SetReadDeadline(time.Now().Add(answerWithin))
	a, err := exchange(c, request{Register: &reg}, []int{fd})
	if err == nil && a.State == Asked {
		a, err = exchange(c, request{Confirm: true}, nil)
	}
	if err != nil {
		_ = send(c, request{Goodbye: true}, nil) // the sentinel may read the confirmation later
		return nil, Answer{}, errors.Join(err, c.Close())
	}
	_ = c.SetReadDeadline(time.Time{})
	u := &unixConnection{socket: socket, c: c, said: make(chan Answer)}
	u.follow()
	return u, a, nil
}

// connect connects to a sentinel. It returns an error if another user could have put the socket
// there, because the caller goes on to send the secret.
func connect(socket string) (*net.UnixConn, error) {
	if err := CheckSocket(socket); err != nil {
		return nil, fmt.Errorf("%s %w", socket, err)
	}
	c, err := net.DialTimeout(network, socket, answerWithin)
	if err != nil {
		return nil, fmt.Errorf("no sentinel: %w", err)
	}
	u := c.(*net.UnixConn)
	cred, err := peerOf(u)
	owner := cred.Uid
	if err == nil {
		err = checkDirectory(socket, owner)
	}
	if err == nil && owner != 0 && owner != uint32(os.Geteuid()) { // else root or this user listens there
		err = checkAbove(socket, owner)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return u, nil
}

// peerOf returns user and id of the process at the other end, as they were when it connected or listened.
func peerOf(c *net.UnixConn) (unix.Ucred, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return unix.Ucred{}, err
	}
	var cred *unix.Ucred
	if e := raw.Control(func(fd uintptr) { cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); e != nil {
		return unix.Ucred{}, e
	}
	if err != nil {
		return unix.Ucred{}, err
	}
	return *cred, nil
}

// exchange sends a packet and waits for the answer, until the connection's deadline.
func exchange(c *net.UnixConn, q request, files []int) (Answer, error) {
	if err := send(c, q, files); err != nil {
		return Answer{}, err
	}
	return hear(c)
}

func hear(c *net.UnixConn) (Answer, error) {
	b := make([]byte, maxMessage)
	n, err := c.Read(b)
	if err != nil {
		return Answer{}, fmt.Errorf("no answer from the sentinel: %w", err)
	}
	var a Answer
	return a, json.Unmarshal(b[:n], &a)
}

// Ask asks the sentinel at a socket how many members of a group it has registered.
func Ask(socket, topic, group string) (n Count, err error) {
	c, err := connect(socket)
	if err != nil {
		return n, err
	}
	defer c.Close()
	_ = c.SetReadDeadline(time.Now().Add(answerWithin))
	if err := send(c, request{Count: &query{topic, group}}, nil); err != nil {
		return n, err
	}
	b := make([]byte, maxMessage)
	size, err := c.Read(b)
	if err != nil {
		return n, fmt.Errorf("no answer from the sentinel: %w", err)
	}
	return n, json.Unmarshal(b[:size], &n)
}

// follow passes on the sentinel's packets until the connection ends.
func (u *unixConnection) follow() {
	go func() {
		defer close(u.said)
		for {
			a, err := hear(u.c)
			if err != nil {
				return
			}
			u.said <- a
		}
	}()
}

func (u *unixConnection) heard() <-chan Answer { return u.said }

func (u *unixConnection) guard(g guardian) (guardConnection, *os.File, error) {
	c, err := connect(u.socket)
	if err != nil {
		return nil, nil, err
	}
	_ = c.SetReadDeadline(time.Now().Add(answerWithin))
	a, err := exchange(c, request{Guard: &g}, nil)
	if err == nil && a.State != Registered {
		err = errors.New(a.Reason)
	}
	if err != nil {
		return nil, nil, errors.Join(err, c.Close())
	}
	f, err := c.File()
	if err != nil {
		return nil, nil, errors.Join(err, c.Close())
	}
	return guardEnd{c}, f, nil
}

func (u *unixConnection) settled() { _ = send(u.c, request{Settled: true}, nil) } // if it fails, the connection has ended

func (u *unixConnection) goodbye() {
	if send(u.c, request{Goodbye: true}, nil) == nil {
		_ = u.c.SetReadDeadline(time.Now().Add(answerWithin))
		for a := range u.said {
			if a.State == Gone {
				break
			}
		}
	}
	u.close()
}

func (u *unixConnection) leave() {
	_ = send(u.c, request{Goodbye: true}, nil) // the sentinel reads it before the end of the connection
	u.close()
}

func (u *unixConnection) close() {
	_ = u.c.Close()
	for range u.said { // wait for the end of follow
	}
}

// guardEnd is this process's end of a guard's connection.
type guardEnd struct{ c *net.UnixConn }

func (g guardEnd) clear() {
	_ = send(g.c, request{Clear: true}, nil) // usually the guard has said so already
	_ = g.c.Close()
}

func (g guardEnd) close() { _ = g.c.Close() }
