package sentinel

import (
	"log/slog"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/goneli/neli/internal/elector"
)

func TestAKilledMemberIsDead(t *testing.T) {
	p := startPost(t, socketIn(directory(t)), nil)
	m := startChild(t, p.socket, "member")
	m.says("watching")
	require.False(t, p.isDead(m.id))
	p.log.claim(m.id, 1, minimumT)
	m.kill()
	p.dies(m.id)
	require.Zero(t, p.members())
}

// A connection can end while its member lives.
func TestEndOfAConnectionIsNoDeath(t *testing.T) {
	p := startPost(t, socketIn(directory(t)), nil)
	m := startChild(t, p.socket, "member")
	m.says("watching")
	m.order("break")
	m.says("broken")
	m.says("refused") // no sentinel has refused it: its connection has ended
	m.says("watching")
	require.False(t, p.isDead(m.id), "the end of a connection is no death")
	m.kill()
	p.dies(m.id)
}

func TestOnlyPOLLINIsADeath(t *testing.T) {
	require.False(t, readable(own(t)), "a process that runs")
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, writer.Close())
	require.False(t, readable(int(reader.Fd())), "POLLHUP")
	fd := int(reader.Fd())
	require.NoError(t, reader.Close())
	require.False(t, readable(fd), "POLLNVAL")
	c := exec.Command("sleep", "60")
	require.NoError(t, c.Start())
	pidfd, err := unix.PidfdOpen(c.Process.Pid, 0)
	require.NoError(t, err)
	defer unix.Close(pidfd)
	require.NoError(t, c.Process.Kill())
	require.Eventually(t, func() bool { return readable(pidfd) }, 10*time.Second, time.Millisecond, "a zombie is dead")
	_ = c.Wait()
	require.True(t, readable(pidfd))
}

// The member need not connect again to be released when it dies.
func TestDeathIsNoticedWithoutAConnection(t *testing.T) {
	p := startPost(t, socketIn(directory(t)), nil)
	reg := registration(NewSecret())
	c := registers(t, p, reg)
	require.NoError(t, c.Close())
	require.Eventually(t, func() bool {
		p.server.mu.Lock()
		defer p.server.mu.Unlock()
		return len(p.server.open) == 0
	}, 10*time.Second, time.Millisecond)
	require.Equal(t, 1, p.members(), "its pidfd was kept")
}

func TestSentinelReportsHowManyMembersItWatches(t *testing.T) {
	p := startPost(t, socketIn(directory(t)), nil)
	m := startChild(t, p.socket, "member")
	m.says("watching")
	n, err := Ask(p.socket, "t", "g")
	require.NoError(t, err)
	require.Equal(t, Count{1, 1}, n)
	n, err = Ask(p.socket, "t", "another")
	require.NoError(t, err)
	require.Zero(t, n)
	p.stop()
	_, err = Ask(p.socket, "t", "g")
	require.Error(t, err)
}

func TestAStoppedMemberIsNotDead(t *testing.T) {
	p := startPost(t, socketIn(directory(t)), nil)
	m := startChild(t, p.socket, "member")
	m.says("watching")
	require.NoError(t, m.cmd.Process.Signal(syscall.SIGSTOP))
	other := startChild(t, p.socket, "member")
	other.says("watching")
	other.kill()
	p.dies(other.id)
	require.False(t, p.isDead(m.id), "a process that is stopped is not dead")
	require.NoError(t, m.cmd.Process.Signal(syscall.SIGCONT))
	m.order("goodbye")
	m.says("ended")
}

func TestMemberThatSaysGoodbyeIsForgotten(t *testing.T) {
	p := startPost(t, socketIn(directory(t)), nil)
	m := startChild(t, p.socket, "member")
	m.says("watching")
	m.order("goodbye")
	m.says("ended")
	require.Zero(t, p.members(), "the goodbye has been heard when Close returns")
	m.kill()
	_ = m.cmd.Wait()
	require.False(t, p.isDead(m.id))
}

func TestMembersRegisterAtARestartedSentinel(t *testing.T) {
	dir := directory(t)
	p := startPost(t, socketIn(dir), nil)
	m := startChild(t, p.socket, "member")
	m.says("watching")
	p.stop()
	m.says("refused")
	q := startPost(t, socketIn(dir), nil)
	m.says("watching")
	m.kill()
	q.dies(m.id)
}

// The elector of neli run is dead, and its command still runs.
func TestReportOfADeathWaitsForTheGuard(t *testing.T) {
	p := startPost(t, socketIn(directory(t)), nil)
	u := &unixConnection{socket: p.socket}
	// The test acts as the guard of a member in its own process, whose secret it knows.
	reg := registration(NewSecret())
	c := NewClient(p.socket, p.said.Logger(slog.LevelInfo))
	go c.Run(t.Context())
	c.Opened(reg)
	require.Eventually(t, func() bool { return c.State() == Watching }, 10*time.Second, time.Millisecond)
	end, file, err := u.guard(guardian{reg.Process, reg.Secret, 1})
	require.NoError(t, err)
	p.hub.Fired(reg.Process, 1) // as if it had died
	require.False(t, p.isDead(reg.Process), "its command may run yet")
	_, err = file.WriteString(`{"clear":true}`)
	require.NoError(t, err)
	p.dies(reg.Process)
	end.clear()
	require.NoError(t, file.Close())

	other := registration(NewSecret())
	registers(t, p, other)
	guard, err := connect(p.socket)
	require.NoError(t, err)
	_, err = exchange(guard, request{Guard: &guardian{other.Process, other.Secret, other.Number}}, nil)
	require.NoError(t, err)
	require.NoError(t, guard.Close())
	p.hub.Fired(other.Process, other.Number)
	require.True(t, fired(p.hub, other.Process))
	require.False(t, p.isDead(other.Process), "a guard that ends without a word has not said that nothing is left")
}

func fired(h *Hub, process string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.registry.members[process]
	return m != nil && m.fired
}

func TestCommandThatHasEndedDoesNotDelayARelease(t *testing.T) {
	p := startPost(t, socketIn(directory(t)), nil)
	m := startChild(t, p.socket, "member")
	m.says("watching")
	m.order("guard")
	m.says("guarded <nil>")
	m.order("over")
	m.says("over")
	m.kill()
	p.dies(m.id)
}

// A sentinel that starts while a command runs is told of it, and the command's guard gets a connection to it. This holds
// for the first sentinel as for the third one.
func TestGuardOfARunningCommandConnectsToTheNextSentinel(t *testing.T) {
	dir := directory(t)
	m := startChild(t, socketIn(dir), "member")
	m.order("guard")
	m.says("guarded <nil>")
	var p *post
	for range 3 {
		if p != nil {
			p.stop()
			m.says("refused")
		}
		p = startPost(t, socketIn(dir), nil)
		m.says("watching")
		n, err := Ask(p.socket, "t", "g")
		require.NoError(t, err)
		require.Equal(t, Count{1, 1}, n)
		p.hub.mu.Lock()
		known := p.hub.registry.members[m.id].guards
		p.hub.mu.Unlock()
		require.Equal(t, 1, known, "the member has said that a command runs")
	}
	m.kill()
	p.dies(m.id)
}

// registers registers a member, and returns its connection.
func registers(t *testing.T, p *post, reg Registration) *net.UnixConn {
	t.Helper()
	c := dialRaw(t, p)
	a := registersOn(t, c, reg, own(t))
	require.NotEqual(t, Refused, a.State, a.Reason)
	return c
}

// registersOn registers a member over a connection, confirms, and returns the answer.
func registersOn(t *testing.T, c *net.UnixConn, reg Registration, files ...int) Answer {
	t.Helper()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(answerWithin)))
	a, err := exchange(c, request{Register: &reg}, files)
	if err == nil && a.State == Asked {
		a, err = exchange(c, request{Confirm: true}, nil)
	}
	require.NoError(t, err)
	return a
}

// A member whose sentinel did not answer in time has connected again before the sentinel reads its
// goodbye on the former connection.
func TestLateGoodbyeHasNoEffect(t *testing.T) {
	p := startPost(t, socketIn(directory(t)), nil)
	reg := registration(NewSecret())
	former, present := &Teller{Tell: func(Answer) {}}, &Teller{Tell: func(Answer) {}}
	for _, tell := range []*Teller{former, present} {
		reg.Number++
		a, _ := p.hub.Register(reg, sound, tell)
		require.NotEqual(t, Refused, a.State, a.Reason)
	}
	require.False(t, p.hub.left(reg.Process, former), "the member has connected again")
	require.Equal(t, 1, p.members())
	require.True(t, p.hub.left(reg.Process, present))
	require.Zero(t, p.members())
}

// A member may register again while the sentinel forgets it, since its group could not be watched.
func TestAMemberThatRegistersWhileItIsForgottenIsWatched(t *testing.T) {
	p := startPost(t, socketIn(directory(t)), func(o *Options, _ *memoryLog) {
		open, first := o.Open, true
		o.Open = func(at Place, logger *slog.Logger) (elector.Log, error) {
			if first {
				first = false
				return nil, errTest
			}
			return open(at, logger)
		}
	})
	reg, forget, forgotten := registration(NewSecret()), p.hub.forgotten, make(chan bool, 1) // buffered: the first answer may come after it
	p.hub.mu.Lock()                                                                          // for the race detector, which does not see order across a socket
	p.hub.forgotten = func(process string) {
		between := p.hub.mu.TryLock()
		if between {
			p.hub.mu.Unlock()
			reg.Number++
			registers(t, p, reg)
		}
		forget(process)
		forgotten <- between
	}
	p.hub.mu.Unlock()
	registersOn(t, dialRaw(t, p), reg, own(t))
	reg.Number++
	if between := <-forgotten; !between {
		registers(t, p, reg)
	}
	p.server.mu.Lock()
	kept := p.server.members[reg.Process].pidfd
	p.server.mu.Unlock()
	require.NotNil(t, kept, "its pidfd was kept")
}

func TestListenRefusesUnsafeSockets(t *testing.T) {
	dir := directory(t)
	p := startPost(t, socketIn(dir), nil)
	_, err := Listen(p.socket, p.hub, p.said.Logger(slog.LevelInfo))
	require.ErrorContains(t, err, "another sentinel listens")
	_, err = Listen(dir+"/"+strings.Repeat("s", 107-len(dir)), p.hub, p.said.Logger(slog.LevelInfo))
	require.ErrorContains(t, err, "is too long: a socket's path has at most 107 bytes")
	p.stop()

	file := dir + "/file"
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err = Listen(file, p.hub, p.said.Logger(slog.LevelInfo))
	require.ErrorContains(t, err, "no socket")
	require.FileExists(t, file)

	require.NoError(t, os.Chmod(dir, 0o777)) //nolint:gosec // that is what is refused
	_, err = Listen(socketIn(dir), p.hub, p.said.Logger(slog.LevelInfo))
	require.ErrorIs(t, err, errDirectory)
	_, err = Listen("/nowhere/at/all", p.hub, p.said.Logger(slog.LevelInfo))
	require.Error(t, err)
}

// Containers share a folder that everybody may write to. The sentinel creates its own directory in it.
func TestSocketsDirectoryIsCreated(t *testing.T) {
	defer unix.Umask(unix.Umask(0o077)) // members are processes of other users
	shared := directory(t)
	require.NoError(t, os.Chmod(shared, 0o777)) //nolint:gosec // as an emptyDir is
	p := startPost(t, socketIn(shared+"/own"), nil)
	info, err := os.Stat(shared + "/own")
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o750), info.Mode().Perm(), "the group may enter it, whatever the umask is")
	m := startChild(t, p.socket, "member")
	m.says("watching")
	m.kill()
	p.dies(m.id)
}
