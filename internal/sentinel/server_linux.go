package sentinel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// network keeps packets apart, and passes files.
	network = "unixpacket"
	// greetWithin is how long who connects may take to say who it is.
	greetWithin = 5 * time.Second
	// drainWithin is how long after a death it is waited for what the dead process had said. A
	// child may have its connection.
	drainWithin = time.Second
	// writeWithin bounds an answer to a member that does not read.
	writeWithin = time.Second
	// maxConnections leaves room for guards, and for those who connect again.
	maxConnections = 2*MaxMembers + 1000
)

// Server takes registrations at a socket.
type Server struct {
	hub      *Hub
	listener *net.UnixListener
	logger   *slog.Logger
	work     sync.WaitGroup

	mu      sync.Mutex // guards what follows
	open    map[*net.UnixConn]bool
	members map[string]registered
	closing bool
}

// registered is what the kernel knows of a member.
type registered struct {
	pidfd *os.File
	link  link
}

// Listen makes the socket, and its directory if that is missing. Nobody but this process's user and root may be able to put another
// socket in its place. A socket that is there already is replaced: what a killed sentinel left.
func Listen(socket string, hub *Hub, logger *slog.Logger) (*Server, error) {
	if err := checkKernel(); err != nil {
		return nil, err
	}
	// A folder that containers share belongs to nobody of them: one in it may.
	if err := os.Mkdir(filepath.Dir(socket), 0o750); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	if err := checkDirectory(socket, uint32(os.Geteuid())); err != nil {
		return nil, err
	}
	if info, err := os.Lstat(socket); err == nil {
		if info.Mode()&os.ModeSocket == 0 {
			return nil, fmt.Errorf("%s is there and is no socket", socket)
		}
		if c, err := net.Dial(network, socket); err == nil {
			_ = c.Close()
			return nil, fmt.Errorf("another sentinel listens at %s", socket)
		}
		if err := os.Remove(socket); err != nil {
			return nil, err
		}
	}
	l, err := net.ListenUnix(network, &net.UnixAddr{Name: socket, Net: network})
	if err != nil {
		return nil, err
	}
	// Who may reach it is what the directory says (mode 0750 and a group, for example).
	if err := os.Chmod(socket, 0o666); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	s := &Server{hub: hub, listener: l, logger: logger, open: map[*net.UnixConn]bool{}, members: map[string]registered{}}
	hub.forgotten = s.forget
	return s, nil
}

// Serve takes registrations until ctx is done. When it returns, nothing of it runs any more.
func (s *Server) Serve(ctx context.Context) error {
	stop := context.AfterFunc(ctx, s.shut)
	defer stop()
	defer s.work.Wait()
	defer s.shut()
	for {
		c, err := s.listener.AcceptUnix()
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE):
			s.logger.Error("no more files: registrations wait (LimitNOFILE)", "error", err)
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
			continue
		case errors.Is(err, net.ErrClosed):
			return err
		case err != nil:
			continue // of the one who connected
		}
		if !s.keep(c) {
			_ = c.Close()
			continue
		}
		s.work.Go(func() {
			defer s.drop(c)
			s.serve(c)
		})
	}
}

func (s *Server) keep(c *net.UnixConn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing || len(s.open) >= maxConnections {
		return false
	}
	s.open[c] = true
	return true
}

func (s *Server) drop(c *net.UnixConn) {
	s.mu.Lock()
	delete(s.open, c)
	s.mu.Unlock()
	_ = c.Close()
}

func (s *Server) shut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing = true
	_ = s.listener.Close()
	for c := range s.open {
		_ = c.Close()
	}
	for _, m := range s.members {
		if m.pidfd != nil {
			_ = m.pidfd.Close()
		}
	}
}

// serve is one connection: of a member, or of a guard.
func (s *Server) serve(c *net.UnixConn) {
	_ = c.SetReadDeadline(time.Now().Add(greetWithin))
	q, files, err := receive(c)
	if err != nil {
		closeAll(files)
		return
	}
	_ = c.SetReadDeadline(time.Time{})
	switch {
	case q.Register != nil:
		s.member(c, *q.Register, files)
	case q.Guard != nil:
		closeAll(files)
		s.guard(c, *q.Guard)
	case q.Count != nil:
		closeAll(files)
		_ = c.SetWriteDeadline(time.Now().Add(writeWithin))
		_ = send(c, s.hub.count(*q.Count), nil) // who asks may have gone
	default:
		closeAll(files)
	}
}

// member serves a member's connection until it ends.
func (s *Server) member(c *net.UnixConn, reg Registration, files []int) {
	proof := prove(c, files)
	tell := &Teller{func(a Answer) { // a packet is sent whole, whoever else sends one
		_ = c.SetWriteDeadline(time.Now().Add(writeWithin))
		_ = send(c, a, nil) // one that cannot be told connects again
	}}
	a, fresh := s.hub.Register(reg, proof, tell)
	if a.State == Refused {
		closeAll(files)
		tell.Tell(a)
		return
	}
	done := make(chan struct{})
	defer close(done)
	s.link(reg.Process, link{c, done})
	if fresh {
		f := os.NewFile(uintptr(files[0]), "pidfd")
		if s.watch(reg.Process, f) {
			s.work.Go(func() { s.await(reg.Process, f) })
		}
	} else {
		closeAll(files)
	}
	tell.Tell(a)
	if now := s.hub.state(reg.Place()); now != a {
		tell.Tell(now) // it has changed before it was told the first time
	}
	for {
		q, files, err := receive(c)
		closeAll(files)
		switch {
		case err != nil:
			if !s.hub.lost(reg.Process, tell) {
				s.forget(reg.Process) // it was refused after all
			}
			return
		case q.Goodbye:
			s.hub.Goodbye(reg.Process)
			s.forget(reg.Process)
			tell.Tell(Answer{State: Gone})
			return
		}
	}
}

// guard serves the connection of a guard until it ends. Only its word clears its command.
func (s *Server) guard(c *net.UnixConn, g guardian) {
	if err := s.hub.guard(g.Process, g.Secret); err != nil {
		_ = send(c, Answer{State: Refused, Reason: err.Error()}, nil)
		return
	}
	_ = c.SetWriteDeadline(time.Now().Add(writeWithin))
	_ = send(c, Answer{State: Registered}, nil)
	for {
		q, files, err := receive(c)
		closeAll(files)
		if err != nil {
			return
		}
		if q.Clear {
			s.hub.clear(g.Process)
			return
		}
	}
}

// await waits for a death: the pidfd becomes readable, and nothing else counts.
func (s *Server) await(process string, f *os.File) {
	defer f.Close()
	raw, err := f.SyscallConn()
	if err != nil {
		return
	}
	dead := false
	err = raw.Read(func(fd uintptr) bool { // the runtime waits, without a thread for each
		dead = readable(int(fd))
		return dead
	})
	if err != nil || !dead {
		return // forgotten
	}
	// What it had said before is read first: its goodbye, perhaps. A child may have its
	// connection, which does not end then.
	if l, ok := s.linked(process); ok {
		_ = l.c.SetReadDeadline(time.Now().Add(drainWithin))
		<-l.done
	}
	s.hub.Fired(process)
	s.forget(process)
}

// link is a member's newest connection.
type link struct {
	c    *net.UnixConn
	done chan struct{} // closed when all of it was read
}

func (s *Server) link(process string, l link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.members[process]
	m.link = l
	s.members[process] = m
}

func (s *Server) linked(process string) (link, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.members[process].link
	return l, l.c != nil
}

// watch notes the pidfd of a member, unless this process ends.
func (s *Server) watch(process string, f *os.File) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.members[process]
	if m.pidfd != nil {
		_ = m.pidfd.Close() // it was forgotten, and has registered anew
	}
	if s.closing {
		_ = f.Close()
		return false
	}
	m.pidfd = f
	s.members[process] = m
	return true
}

// forget closes a member's pidfd, which ends await.
func (s *Server) forget(process string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.members[process]; m.pidfd != nil {
		_ = m.pidfd.Close()
	}
	delete(s.members, process)
}

// checkDirectory reports whether somebody but the owner of a socket, and root, may replace it.
func checkDirectory(socket string, owner uint32) error {
	dir := filepath.Dir(socket)
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	if st.Uid != 0 && st.Uid != owner || st.Mode&0o022 != 0 {
		return fmt.Errorf("%s: %w", dir, errDirectory)
	}
	return nil
}

var errDirectory = errors.New("others may write to the socket's directory: it must be the sentinel's, with mode 0750 for example")

// send writes a packet, with files.
func send(c *net.UnixConn, v any, files []int) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var oob []byte
	if len(files) > 0 {
		oob = unix.UnixRights(files...)
	}
	_, _, err = c.WriteMsgUnix(b, oob, nil)
	return err
}

// receive reads a packet, with the files that came with it.
func receive(c *net.UnixConn) (q request, files []int, err error) {
	b, oob := make([]byte, maxMessage+1), make([]byte, unix.CmsgSpace(4*4))
	n, m, flags, _, err := c.ReadMsgUnix(b, oob)
	if m > 0 {
		files = passed(oob[:m])
	}
	switch {
	case err != nil:
		return q, files, err
	case n == 0:
		return q, files, net.ErrClosed // a packet of no bytes is the end
	case n > maxMessage || flags&unix.MSG_TRUNC != 0:
		return q, files, errors.New("a packet is too long")
	}
	if flags&unix.MSG_CTRUNC != 0 {
		files = append(files, -1) // more came than there was room for
	}
	return q, files, json.Unmarshal(b[:n], &q)
}

// passed takes the files out of control messages.
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
