package sentinel

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// network is a kind of socket that keeps packets apart and can pass files.
	network = "unixpacket"
	// greetWithin bounds the wait for the first packet of a connection, and for a member's confirmation.
	greetWithin = 5 * time.Second
	// maxPackets is how many packets of a dead member are read: a child that inherited the connection may
	// go on writing.
	maxPackets = 1000
	// acceptAgain is shorter than the time for which a member waits for an answer.
	acceptAgain = time.Second
	// maxConnections leaves room for guards, and for members that connect again.
	maxConnections = 2*MaxMembers + 1000
	// maxOfProcess bounds the connections of one process in the same way.
	maxOfProcess = 2*MaxOwned + 100
)

// Server takes registrations at a socket.
type Server struct {
	own         error // why only members of this process's user are taken; nil: all are
	hub         *Hub
	listener    *net.UnixListener
	file        *socketFile
	logger      *slog.Logger
	greetWithin time.Duration
	work        sync.WaitGroup

	mu      sync.Mutex // guards what follows
	open    map[*net.UnixConn]bool
	by      map[int32]int // how many of them each process has
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
	if err := CheckSocket(socket); err != nil {
		return nil, fmt.Errorf("%s %w", socket, err)
	}
	// Containers that share a folder do not own it. The sentinel creates its own directory in it.
	if err := makeDirectory(directoryOf(socket)); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	if err := checkDirectory(socket, uint32(os.Geteuid())); err != nil {
		return nil, err
	}
	file, err := listenAlone(socket)
	if err != nil {
		return nil, err
	}
	s := &Server{own: ownOnly(socket, logger), hub: hub, listener: file.listener, file: file, logger: logger, greetWithin: greetWithin, open: map[*net.UnixConn]bool{}, by: map[int32]int{}, members: map[string]registered{}}
	hub.forgotten = func(process string) { s.forget(process, nil) }
	return s, nil
}

// ownOnly returns why members of other users would refuse this sentinel; nil: they would not. They trust a sentinel
// of root. They trust another user's only if nobody else could have put its socket there.
func ownOnly(socket string, logger *slog.Logger) error {
	if os.Geteuid() == 0 {
		return nil
	}
	err := checkAbove(socket, uint32(os.Geteuid()))
	if err != nil {
		logger.Info("only members of this user are taken", "reason", err)
	}
	return err
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
		peer, _ := peerOf(c)
		if !s.keep(c, peer.Pid) {
			_ = c.Close()
			continue
		}
		s.work.Go(func() {
			defer s.drop(c, peer.Pid)
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

// keep notes a connection of a process. It returns false if there are too many.
func (s *Server) keep(c *net.UnixConn, pid int32) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	// The kernel reports 0 for all processes in PID namespaces that this process does not see.
	if s.closing || len(s.open) >= maxConnections || pid != 0 && s.by[pid] >= maxOfProcess {
		return false
	}
	s.open[c] = true
	s.by[pid]++
	return true
}

func (s *Server) drop(c *net.UnixConn, pid int32) {
	s.mu.Lock()
	delete(s.open, c)
	if s.by[pid]--; s.by[pid] == 0 {
		delete(s.by, pid)
	}
	s.mu.Unlock()
	_ = c.Close()
}

func (s *Server) shut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing = true // before connections end
	s.file.remove()
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
	_ = c.SetReadDeadline(time.Now().Add(s.greetWithin))
	q, files, err := receive(c)
	if err != nil {
		closeAll(files)
		return
	}
	switch {
	case q.Register != nil:
		s.member(c, *q.Register, files)
	case q.Guard != nil:
		closeAll(files)
		_ = c.SetReadDeadline(time.Time{})
		s.guard(c, *q.Guard)
	case q.Count != nil:
		closeAll(files)
		_ = send(c, s.hub.count(*q.Count), nil) // the process that asked may have gone
	default:
		closeAll(files)
	}
}

// member serves a member's connection until it ends.
func (s *Server) member(c *net.UnixConn, reg Registration, files []int) {
	if peer, err := peerOf(c); s.own != nil && (err != nil || peer.Uid != uint32(os.Geteuid())) {
		closeAll(files)
		_ = send(c, s.hub.refuse(reg, s.own).fitting(), nil)
		return
	}
	proof := prove(c, files)
	if a := s.hub.Offer(reg, proof); send(c, a.fitting(), nil) != nil || a.State == Refused || !confirmed(c) {
		closeAll(files)
		return
	}
	_ = c.SetReadDeadline(time.Time{})
	l := link{c: c, number: reg.Number, done: make(chan struct{})}
	defer close(l.done)
	tell := &Teller{}
	tell.Tell = func(a Answer) {
		// A member that cannot be told its state must not go on to believe an older one. If it has ended the
		// connection, it connects again. If it does not read, the end of the connection makes it connect again.
		if errors.Is(send(c, a.fitting(), nil), unix.EAGAIN) {
			s.end(reg.Process, l, tell)
		}
	}
	tell.Taken = func(fresh bool) {
		if fresh {
			s.keepPidfd(reg.Process, l, files[0])
			files = nil
		} else {
			s.relink(reg.Process, l)
		}
	}
	a, _ := s.hub.Register(reg, proof, tell)
	closeAll(files)
	if a.State == Refused {
		_ = send(c, a.fitting(), nil)
		return
	}
	s.hub.tell(reg.Process, tell)
	s.listen(reg, l, tell)
}

// confirmed reports whether a member confirms its registration. Until then it may have given it up, for
// example because the sentinel was suspended, and may start a command that this sentinel is not told of.
func confirmed(c *net.UnixConn) bool {
	q, files, err := receive(c)
	closeAll(files)
	return err == nil && q.Confirm
}

// listen reads what a registered member says, until the connection ends.
func (s *Server) listen(reg Registration, l link, tell *Teller) {
	get, left := receive, maxPackets
	dead := false
	for {
		q, files, err := get(l.c)
		closeAll(files)
		if dead {
			left--
		}
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded) && !dead:
			// The process is dead, so nothing more comes. But what it has sent may not have been read yet.
			dead, get = true, receiveNow
			_ = l.c.SetReadDeadline(time.Time{})
		case errors.Is(err, net.ErrClosed) || dead && err != nil:
			if !s.hub.lost(reg.Process, tell) {
				s.forget(reg.Process, l.c) // the hub no longer has the member
			}
			return
		case err != nil || left == 0:
			s.end(reg.Process, l, tell)
			return
		case q.Settled:
			s.hub.settled(reg.Process, reg.Number)
			s.hub.tell(reg.Process, tell)
		case q.Goodbye:
			if s.hub.left(reg.Process, tell) { // false: it is late, and the member has connected again
				s.forget(reg.Process, l.c)
			}
			_ = send(l.c, Answer{State: Gone}, nil)
			return
		}
	}
}

// end ends a member's connection. It forgets the member first: once the member sees that its connection
// has ended, it may start a command that this sentinel is not told of.
func (s *Server) end(process string, l link, tell *Teller) {
	if s.hub.left(process, tell) {
		s.forget(process, l.c)
	}
	_ = l.c.Close()
}

// guard serves a guard's connection until it ends. The end alone clears nothing: the guard must say
// that nothing is left of its command.
func (s *Server) guard(c *net.UnixConn, g guardian) {
	serial, err := s.hub.guard(g)
	if err != nil {
		_ = send(c, Answer{State: Refused, Reason: err.Error()}.fitting(), nil)
		return
	}
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
	// First read what the member sent before it died, which may be its goodbye. The deadline makes listen do
	// so, since the connection does not end if a child has inherited it.
	for {
		l, open := s.linked(process)
		if l.c != nil {
			_ = l.c.SetReadDeadline(time.Unix(1, 0))
			<-l.done
		}
		if !open || !s.hub.Fired(process, l.number) {
			break
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.members[process].pidfd == f { // else there is a later registration, with a pidfd of its own
		delete(s.members, process)
	}
}

// link is the connection of a member's newest registration.
type link struct {
	c      *net.UnixConn
	number uint64        // of the registration
	done   chan struct{} // closed when the connection was read to its end
}

// linked returns a member's connection. open is false if the Server is closing: then connections of living
// members end, too, and these may start commands that this sentinel is not told of.
func (s *Server) linked(process string) (l link, open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.members[process].link, !s.closing
}

// relink replaces a member's connection, and ends the former one, which the member has given up. The
// hub's mutex is held.
func (s *Server) relink(process string, l link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.members[process]
	if m.link.c != nil {
		_ = m.link.c.Close()
	}
	m.link = l
	s.members[process] = m
}

// keepPidfd keeps the pidfd of a member with its connection, and begins to wait for its death. The hub's
// mutex is held.
func (s *Server) keepPidfd(process string, l link, fd int) {
	f := os.NewFile(uintptr(fd), "pidfd")
	s.relink(process, l)
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.members[process]
	if m.pidfd != nil {
		_ = m.pidfd.Close() // the hub forgot the member, which has registered again
	}
	if s.closing {
		_ = f.Close()
		return
	}
	m.pidfd = f
	s.members[process] = m
	s.work.Go(func() { s.await(process, f) })
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
