package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/goneli/neli/cmd/neli/internal/needs"
)

// ward is a leader beside a sentinel, its only possible successor, and what happens to the leader.
type ward struct {
	name     string
	socket   string          // of the leader
	start    func(*exec.Cmd) // of the leader
	happens  func(w *ward)
	released bool // otherwise the successor waits for T
	lives    bool // the leader lives afterwards

	leader, follower *member
	at               time.Time // when the event happened
}

func (w *ward) kill() { w.leader.signal(unix.SIGKILL) }

// Only the roles of a dead member are released. A member that lives keeps its roles for T, whatever
// happens to it, its connection or its files. If the proof of a death is missing, the death costs T.
// The sentinel, the members and the events are real.
func TestOnlyRolesOfDeadMembersAreReleased(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		needs.Missing(t, "root")
	}
	c := broker(t)
	sentinel, socket := startSentinel(t, c)
	apart, apartSocket := startSentinelBy(t, c, inPIDNamespace)
	foreign := listenAsAnother(t)
	wards := []*ward{
		{name: "killed", socket: socket, happens: (*ward).kill, released: true},
		{name: "namespaces", socket: apartSocket, start: inPIDNamespace, happens: (*ward).kill, released: true},
		{name: "exec", socket: socket, happens: func(w *ward) { w.leader.order("exec") }, lives: true},
		{name: "foreign", socket: foreign.path, happens: (*ward).kill},
		{name: "proxied-without-file", socket: proxy(t, socket, 0, false), happens: (*ward).kill},
	}
	if inPidfs(t) { // older kernels cannot tell the peer's pidfd from another one
		wards = append(wards, &ward{name: "proxied-late", socket: proxy(t, socket, 500*time.Millisecond, true), happens: (*ward).kill})
	}
	thaw := map[string]func(){}
	for version, f := range freezers(t) {
		w := &ward{name: "frozen-" + version, socket: socket, happens: func(w *ward) { f.freeze(w.leader.cmd.Process.Pid) }, lives: true}
		thaw[w.name] = f.thaw
		wards = append(wards, w)
	}
	require.NotEmpty(t, thaw, "the cgroups of one version at least have a freezer")
	closed := &ward{name: "closed", socket: socket}
	all := append(wards, closed)

	for _, w := range all {
		w.leader = startMember(t, c, w.name, w.name+"-leader", w.socket, w.start)
	}
	var latest time.Time
	for _, w := range all {
		latest = later(latest, w.leader.led())
		w.follower = startMember(t, c, w.name, w.name+"-follower", w.socket, nil)
	}
	for _, w := range all {
		word := "a sentinel watches this process"
		if strings.HasPrefix(w.name, "proxied") || w.name == "foreign" {
			word = "no sentinel watches this process"
		}
		w.leader.logs(word)
		w.follower.logs(word)
	}
	closed.leader.order("close")
	require.Equal(t, "1", closed.leader.says("closed", 1))
	<-time.After(time.Until(latest.Add(wardT + wardT/10))) // no term is released before it is T old

	for _, w := range wards {
		w.at = time.Now()
		w.happens(w)
	}
	for _, w := range wards {
		took := w.follower.led().Sub(w.at)
		t.Logf("%s: the next one leads after %v", w.name, took.Round(time.Millisecond))
		if w.released {
			require.Less(t, took, wardT/2, "%s: round trips, on a busy machine", w.name)
		} else {
			require.Greater(t, took, wardT/2, "%s: its lease has to run out", w.name)
		}
		if w.lives {
			require.True(t, alive(w.leader.cmd.Process.Pid), w.name)
			require.False(t, sentinel.noted(w.leader.name), "%s: it lives", w.name)
		}
	}
	apart.notes("namespaces-leader")
	require.Zero(t, foreign.heard(), "nobody tells the secret to a socket that another user may have put there")

	// The members that live can still die. The closed connection has released nothing.
	require.False(t, closed.follower.leads(), "the end of a connection is no death")
	for _, w := range append(wards, closed) {
		if w.lives || w == closed {
			w.at = time.Now()
			w.kill()
			if f := thaw[w.name]; f != nil {
				f()
			}
			sentinel.notes(w.leader.name)
		}
	}
	require.Less(t, closed.follower.led().Sub(closed.at), wardT/2, "its pidfd was kept")
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// inPIDNamespace makes a command process 1 of a PID namespace of its own.
func inPIDNamespace(cmd *exec.Cmd) { cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWPID }

// inPidfs reports whether each process has an inode of its own among pidfds (Linux 6.9).
func inPidfs(t *testing.T) bool {
	t.Helper()
	fd, err := unix.PidfdOpen(os.Getpid(), 0)
	require.NoError(t, err)
	defer unix.Close(fd)
	var fs unix.Statfs_t
	require.NoError(t, unix.Fstatfs(fd, &fs))
	return fs.Type == unix.PID_FS_MAGIC
}

// freezer freezes a process, until it is thawed.
type freezer struct {
	freeze func(pid int) // may be called for several processes
	frozen func() bool   // all of them are frozen
	thaw   func()
}

// freezers returns a freezer for each version of cgroups that this machine has.
func freezers(t *testing.T) map[string]freezer {
	t.Helper()
	all := map[string]freezer{}
	for version, f := range map[string]struct{ file, on, off, told, word string }{
		"v1": {"freezer.state", "FROZEN", "THAWED", "freezer.state", "FROZEN"},
		"v2": {"cgroup.freeze", "1", "0", "cgroup.events", "frozen 1"},
	} {
		dir := cgroupWith(t, f.file)
		if dir == "" {
			continue
		}
		write := func(name, text string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		}
		all[version] = freezer{
			freeze: func(pid int) {
				write("cgroup.procs", fmt.Sprint(pid))
				t.Cleanup(func() { write(f.file, f.off) })
				write(f.file, f.on)
			},
			frozen: func() bool {
				text, err := os.ReadFile(filepath.Join(dir, f.told))
				return err == nil && strings.Contains(string(text), f.word)
			},
			thaw: func() { write(f.file, f.off) },
		}
	}
	return all
}

// cgroupWith makes a cgroup that has a certain file. It returns an empty path if no hierarchy of
// this machine has such a file.
func cgroupWith(t *testing.T, file string) string {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mounts")
	require.NoError(t, err)
	for line := range strings.Lines(string(mounts)) {
		f := strings.Fields(line)
		if !strings.HasPrefix(f[2], "cgroup") {
			continue
		}
		dir, err := os.MkdirTemp(f[1], "neli-test-")
		if err != nil {
			continue // read-only
		}
		if _, err := os.Stat(filepath.Join(dir, file)); err != nil {
			require.NoError(t, os.Remove(dir))
			continue
		}
		t.Cleanup(func() { // when its processes have ended
			require.Eventually(t, func() bool { return os.Remove(dir) == nil }, soon, 5*time.Millisecond)
		})
		return dir
	}
	return ""
}

// stranger listens as root in a directory of another user. That user could have put the socket there.
type stranger struct {
	path string

	mu    sync.Mutex
	bytes int
}

func (s *stranger) heard() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes
}

func listenAsAnother(t *testing.T) *stranger {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o755)) //nolint:gosec // others may read it
	require.NoError(t, os.Chown(dir, 65534, 65534))
	s := &stranger{path: filepath.Join(dir, "s")}
	serve(t, s.path, func(c *net.UnixConn) {
		b := make([]byte, 10_000)
		for {
			n, err := c.Read(b)
			if err != nil || n == 0 {
				return
			}
			s.mu.Lock()
			s.bytes += n
			s.mu.Unlock()
		}
	})
	return s
}

// serve serves each connection to a socket until the test ends.
func serve(t *testing.T, path string, f func(*net.UnixConn)) {
	t.Helper()
	l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"})
	require.NoError(t, err)
	var work sync.WaitGroup
	var mu sync.Mutex
	var open []*net.UnixConn
	work.Go(func() {
		for {
			c, err := l.AcceptUnix()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, c)
			mu.Unlock()
			work.Go(func() {
				defer c.Close()
				f(c)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		for _, c := range open {
			_ = c.Close()
		}
		mu.Unlock()
		work.Wait()
	})
}

// proxy stands before a sentinel and returns its own socket. It delays what members say. It passes on
// the files that come with that only if files is set.
func proxy(t *testing.T, sentinel string, delay time.Duration, files bool) string {
	t.Helper()
	path := filepath.Join(filepath.Dir(sentinel), fmt.Sprint("proxy", delay.Milliseconds()))
	serve(t, path, func(member *net.UnixConn) {
		c, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: sentinel, Net: "unixpacket"})
		if err != nil {
			return
		}
		defer c.Close()
		go func() {
			b := make([]byte, 10_000)
			for {
				n, err := c.Read(b)
				if err != nil || n == 0 {
					_ = member.Close()
					return
				}
				_, _ = member.Write(b[:n])
			}
		}()
		b, oob := make([]byte, 10_000), make([]byte, 1000)
		for {
			n, m, _, _, err := member.ReadMsgUnix(b, oob)
			if err != nil || n == 0 {
				return
			}
			<-time.After(delay)
			if !files {
				m = closeFiles(oob[:m])
			}
			if _, _, err := c.WriteMsgUnix(b[:n], oob[:m], nil); err != nil {
				return
			}
			closeFiles(oob[:m])
		}
	})
	return path
}

// closeFiles closes the files that came with a packet. It returns 0, the length of the oob that is left.
func closeFiles(oob []byte) int {
	messages, _ := unix.ParseSocketControlMessage(oob)
	for _, m := range messages {
		fds, _ := unix.ParseUnixRights(&m)
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
	}
	return 0
}
