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
	// network is a kind of socket that keeps packets apart and can pass files.
	network = "unixpacket"
	// greetWithin bounds the wait for the first packet of a connection.
	greetWithin = 5 * time.Second
	// drainWithin bounds the time that the sentinel goes on reading a dead member's connection: a
	// child that inherited the connection may keep it open.
	drainWithin = time.Second
	// writeWithin bounds the time to write an answer: the member may not be reading.
	writeWithin = time.Second
	// acceptAgain is shorter than the time for which a member waits for an answer.
	acceptAgain = time.Second
	// maxConnections leaves room for guards, and for members that connect again.
	maxConnections = 2*MaxMembers + 1000
	// longestPath leaves room for the zero that ends the path in a sockaddr_un.
	longestPath = len(unix.RawSockaddrUnix{}.Path) - 1
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

// registered holds the files of a member.
type registered struct {
	pidfd *os.File
	link  link
}

// Listen creates the socket, and its directory if that is missing. It returns an error if anybody but
// this process's user and root could replace the socket, or if another sentinel listens on it. It
// replaces a socket that a killed sentinel left.
func Listen(socket string, hub *Hub, logger *slog.Logger) (*Server, error) {
	if err := checkKernel(); err != nil {
		return nil, err
	}
	// The kernel would say only that an argument is invalid.
	if len(socket) > longestPath {
		return nil, fmt.Errorf("%s is too long: a socket's path has at most %d bytes", socket, longestPath)
	}
	// Containers that share a folder do not own it. The sentinel creates its own directory in it.
	if err := makeDirectory(filepath.Dir(socket)); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	if err := checkDirectory(socket, uint32(os.Geteuid())); err != nil {
		return nil, err
	}
	if info, err := os.Lstat(socket); err == nil {
		if info.Mode()&os.ModeSocket == 0 {
			return nil, fmt.Errorf("%s is there and is no socket", socket)
		}
		c, err := net.Dial(network, socket)
		switch {
		case err == nil:
			_ = c.Close()
			return nil, fmt.Errorf("another sentinel listens at %s", socket)
		case !errors.Is(err, unix.ECONNREFUSED): // it is not abandoned: another program may listen, on another kind of socket
			return nil, fmt.Errorf("%s is in use: %w", socket, err)
		}
		if err := os.Remove(socket); err != nil {
			return nil, err
		}
	}
	l, err := net.ListenUnix(network, &net.UnixAddr{Name: socket, Net: network})
	if err != nil {
		return nil, err
	}
	// The mode of the directory decides who can reach the socket (0750 and a group, for example).
	if err := os.Chmod(socket, 0o666); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	s := &Server{hub: hub, listener: l, logger: logger, open: map[*net.UnixConn]bool{}, members: map[string]registered{}}
	hub.forgotten = func(process string) { s.forget(process, nil) }
	return s, nil
}

// makeDirectory makes a directory that the group may enter, whatever the umask is. Others may be able to put a link in its
// place, which it does not follow.
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

// Serve takes registrations until ctx is done. When it returns, all its goroutines have ended.
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
			pause(ctx)
			continue
		case errors.Is(err, net.ErrClosed):
			return err
		case err != nil:
			s.logger.Error("cannot take a connection: registrations wait", "error", err)
			pause(ctx)
			continue
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

// pause waits after a failure to accept, since the next attempt may fail at once: a kernel without memory
// stays so for a while.
func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(acceptAgain):
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

// serve serves one connection of a member, of a guard, or of a process that asks for a count.
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
		_ = send(c, s.hub.count(*q.Count), nil) // the process that asked may have gone
	default:
		closeAll(files)
	}
}

// member serves a member's connection until it ends.
func (s *Server) member(c *net.UnixConn, reg Registration, files []int) {
	proof := prove(c, files)
	tell := &Teller{func(a Answer) { // concurrent calls are safe: the kernel sends each packet whole
		_ = c.SetWriteDeadline(time.Now().Add(writeWithin))
		_ = send(c, a.fitting(), nil) // a member that is not told connects again
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
		tell.Tell(now) // the state has changed since Register
	}
	for {
		q, files, err := receive(c)
		closeAll(files)
		switch {
		case err != nil:
			if !s.hub.lost(reg.Process, tell) {
				s.forget(reg.Process, c) // the hub no longer has the member
			}
			return
		case q.Goodbye:
			if s.hub.left(reg.Process, tell) { // false: it is late, and the member has connected again
				s.forget(reg.Process, c)
			}
			tell.Tell(Answer{State: Gone})
			return
		}
	}
}

// guard serves a guard's connection until it ends. The end alone clears nothing: the guard must say
// that nothing is left of its command.
func (s *Server) guard(c *net.UnixConn, g guardian) {
	serial, err := s.hub.guard(g.Process, g.Secret)
	if err != nil {
		_ = send(c, Answer{State: Refused, Reason: err.Error()}.fitting(), nil)
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
			s.hub.clear(g.Process, serial)
			return
		}
	}
}

// await waits until a member's pidfd becomes readable, and then reports its death to the hub.
func (s *Server) await(process string, f *os.File) {
	defer f.Close()
	raw, err := f.SyscallConn()
	if err != nil {
		return
	}
	dead := false
	err = raw.Read(func(fd uintptr) bool { // the runtime's poller waits, without a thread for each member
		dead = readable(int(fd))
		return dead
	})
	if err != nil || !dead {
		return // forget has closed the pidfd
	}
	// First read what the member sent before it died, which may be its goodbye. The deadline is for a
	// connection that does not end because a child inherited it.
	if l, ok := s.linked(process); ok {
		_ = l.c.SetReadDeadline(time.Now().Add(drainWithin))
		<-l.done
	}
	s.hub.Fired(process)
	s.forget(process, nil)
}

// link is a member's newest connection.
type link struct {
	c    *net.UnixConn
	done chan struct{} // closed when the connection was read to its end
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

// watch keeps the pidfd of a member. It returns false if the Server is closing.
func (s *Server) watch(process string, f *os.File) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.members[process]
	if m.pidfd != nil {
		_ = m.pidfd.Close() // the hub forgot the member, which has registered again
	}
	if s.closing {
		_ = f.Close()
		return false
	}
	m.pidfd = f
	s.members[process] = m
	return true
}

// forget closes a member's pidfd, which ends await for it. If c is not nil, it does so only while c is the
// member's newest connection: a newer one may have brought a pidfd of its own.
func (s *Server) forget(process string, c *net.UnixConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.members[process]
	if c != nil && m.link.c != c {
		return
	}
	if m.pidfd != nil {
		_ = m.pidfd.Close()
	}
	delete(s.members, process)
}

// checkDirectory returns an error if anybody but the owner of a socket and root could replace it.
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
		return q, files, net.ErrClosed // zero bytes: the connection has ended
	case n > maxMessage || flags&unix.MSG_TRUNC != 0:
		return q, files, errors.New("a packet is too long")
	}
	if flags&unix.MSG_CTRUNC != 0 {
		files = append(files, -1) // the kernel dropped files: the proof must count too many
	}
	return q, files, json.Unmarshal(b[:n], &q)
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
