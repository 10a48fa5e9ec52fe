package sentinel

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"runtime"
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
func TestTheEndOfAConnectionIsNoDeath(t *testing.T) {
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

func TestNothingButPOLLINIsADeath(t *testing.T) {
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
func TestAMemberWhoseConnectionHasEndedStillDies(t *testing.T) {
	p := startPost(t, socketIn(directory(t)), nil)
	reg := registration(NewSecret())
	c := dialRaw(t, p)
	_, err := exchange(c, request{Register: &reg}, []int{own(t)})
	require.NoError(t, err)
	require.NoError(t, c.Close())
	require.Eventually(t, func() bool {
		p.server.mu.Lock()
		defer p.server.mu.Unlock()
		return len(p.server.open) == 0
	}, 10*time.Second, time.Millisecond)
	require.Equal(t, 1, p.members(), "its pidfd was kept")
}

func TestItSaysHowManyItWatches(t *testing.T) {
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

func TestWhoSaysGoodbyeIsForgotten(t *testing.T) {
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

func TestASentinelThatIsRestartedLearnsWhoIsThere(t *testing.T) {
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
func TestADeathWaitsForTheGuard(t *testing.T) {
	p := startPost(t, socketIn(directory(t)), nil)
	m := startChild(t, p.socket, "member")
	m.says("watching")
	u := &unixConnection{socket: p.socket}
	// The test acts as the guard of a member in its own process, whose secret it knows.
	reg := registration(NewSecret())
	c := NewClient(p.socket, p.said.logger())
	go c.Run(t.Context())
	c.Opened(reg)
	require.Eventually(t, func() bool { return c.State() == Watching }, 10*time.Second, time.Millisecond)
	end, file, err := u.guard(reg.Process, reg.Secret)
	require.NoError(t, err)
	p.hub.Fired(reg.Process) // as if it had died
	require.False(t, p.isDead(reg.Process), "its command may run yet")
	require.NoError(t, SayClear(file))
	p.dies(reg.Process)
	end.clear()
	require.NoError(t, file.Close())

	m.order("guard")
	m.says("guarded true")
	m.kill()
	_ = m.cmd.Wait()
	require.Eventually(t, func() bool { return fired(p.hub, m.id) }, 10*time.Second, time.Millisecond)
	require.False(t, p.isDead(m.id), "a guard that ends without a word has not said that nothing is left")
}

func fired(h *Hub, process string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.registry.members[process]
	return m != nil && m.fired
}

func TestACommandThatEndsInTimeHoldsNothingUp(t *testing.T) {
	p := startPost(t, socketIn(directory(t)), nil)
	m := startChild(t, p.socket, "member")
	m.says("watching")
	m.order("guard")
	m.says("guarded true")
	m.order("over")
	m.says("over")
	m.kill()
	p.dies(m.id)
}

// A sentinel that starts while a command runs has no connection to the guard.
func TestASentinelThatComesLaterHearsOfTheCommand(t *testing.T) {
	dir := directory(t)
	m := startChild(t, socketIn(dir), "member")
	m.order("guard")
	m.says("guarded false")
	p := startPost(t, socketIn(dir), nil)
	m.says("watching")
	p.hub.mu.Lock()
	require.Equal(t, 1, p.hub.registry.members[m.id].guards, "the member has said that a command runs")
	p.hub.mu.Unlock()
	m.order("over")
	m.says("over")
	m.kill()
	p.dies(m.id)
}

// registers registers a member, and returns its connection.
func registers(t *testing.T, p *post, reg Registration) *net.UnixConn {
	t.Helper()
	c := dialRaw(t, p)
	a, err := exchange(c, request{Register: &reg}, []int{own(t)})
	require.NoError(t, err)
	require.NotEqual(t, Refused, a.State, a.Reason)
	return c
}

// saysGoodbye says goodbye on a member's connection, and returns when the sentinel has heard it.
func saysGoodbye(t *testing.T, c *net.UnixConn) {
	t.Helper()
	require.NoError(t, c.SetDeadline(time.Now().Add(20*time.Second)))
	require.NoError(t, send(c, request{Goodbye: true}, nil))
	for {
		a, err := hear(c)
		require.NoError(t, err)
		if a.State == Gone {
			return
		}
	}
}

// A member whose sentinel did not answer in time has connected again before the sentinel reads its
// goodbye on the former connection.
func TestALateGoodbyeEndsNothing(t *testing.T) {
	p := startPost(t, socketIn(directory(t)), nil)
	reg := registration(NewSecret())
	former := registers(t, p, reg)
	registers(t, p, reg)
	saysGoodbye(t, former)
	require.Equal(t, 1, p.members(), "the member has connected again")
	p.server.mu.Lock()
	require.NotNil(t, p.server.members[reg.Process].pidfd, "its pidfd was kept")
	p.server.mu.Unlock()
}

// The guard of a former command is heard late, when the guard of another command has registered.
func TestALateGuardClearsNoOtherCommand(t *testing.T) {
	p := startPost(t, socketIn(directory(t)), nil)
	reg := registration(NewSecret())
	guard := func() *net.UnixConn {
		c := dialRaw(t, p)
		a, err := exchange(c, request{Guard: &guardian{reg.Process, reg.Secret}}, nil)
		require.NoError(t, err)
		require.Equal(t, Registered, a.State)
		return c
	}
	member := registers(t, p, reg)
	former := guard()
	saysGoodbye(t, member)
	registers(t, p, reg)
	present := guard()
	commands := func() int {
		p.hub.mu.Lock()
		defer p.hub.mu.Unlock()
		return p.hub.registry.members[reg.Process].guards
	}
	clears := func(c *net.UnixConn) {
		require.NoError(t, send(c, request{Clear: true}, nil))
		_, err := hear(c)
		require.Error(t, err, "the sentinel has heard it, and has closed the connection")
	}
	clears(former)
	require.Equal(t, 1, commands(), "the present command may run yet")
	clears(present)
	require.Zero(t, commands())
}

// dialRaw connects without a Client, as a process that knows the wire form.
func dialRaw(t *testing.T, p *post) *net.UnixConn {
	t.Helper()
	c, err := net.DialUnix(network, nil, &net.UnixAddr{Name: p.socket, Net: network})
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func tryRegister(t *testing.T, p *post, reg Registration, files ...int) Answer {
	t.Helper()
	a, err := exchange(dialRaw(t, p), request{Register: &reg}, files)
	require.NoError(t, err)
	return a
}

func own(t *testing.T) int {
	t.Helper()
	fd, err := ownPidfd()
	require.NoError(t, err)
	t.Cleanup(func() { _ = unix.Close(fd) })
	return fd
}

func TestBadProofsAreRefusedAndSaidOnce(t *testing.T) {
	p := startPost(t, socketIn(directory(t)), nil)
	dir, err := os.Open("/proc/self")
	require.NoError(t, err)
	defer dir.Close()
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	defer reader.Close()
	defer writer.Close()
	another := exec.Command("sleep", "60")
	require.NoError(t, another.Start())
	defer func() { _ = another.Process.Kill(); _ = another.Wait() }()
	foreign, err := unix.PidfdOpen(another.Process.Pid, 0)
	require.NoError(t, err)
	defer unix.Close(foreign)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	thread, err := unix.PidfdOpen(unix.Gettid(), unix.O_EXCL)
	require.NoError(t, err, "PIDFD_THREAD")
	defer unix.Close(thread)
	for _, c := range []struct {
		what  string
		files []int
		want  error
	}{
		{"no file", nil, errFiles},
		{"two files", []int{own(t), own(t)}, errFiles},
		{"nine files", []int{own(t), own(t), own(t), own(t), own(t), own(t), own(t), own(t), own(t)}, errFiles},
		{"a directory of /proc, which is always readable", []int{int(dir.Fd())}, errNoPidfd},
		{"a pipe", []int{int(reader.Fd())}, errNoPidfd},
		{"a thread's", []int{thread}, errThread},
		{"another process's", []int{foreign}, errNotPeer},
	} {
		for range 3 {
			a := tryRegister(t, p, registration(NewSecret()), c.files...)
			require.Equal(t, Answer{Refused, c.want.Error()}, a, c.what)
		}
	}
	require.Equal(t, 1, p.said.count(errNotPeer.Error()), "said once")
	require.Equal(t, 1, p.said.count(errFiles.Error()), "said once")
	require.Zero(t, p.members())
	require.Zero(t, p.hub.opt.Limit-MaxMembers)
	bad := registration(NewSecret())
	bad.Secret = NewSecret()
	require.Equal(t, Answer{Refused, errNotItsSecret.Error()}, tryRegister(t, p, bad, own(t)), "an id that is not of the secret")
}

func TestWhatIsNoRegistrationIsDropped(t *testing.T) {
	p := startPost(t, socketIn(directory(t)), nil)
	for _, text := range []string{"", "{", "[]", "{}", `{"clear":true}`, `{"goodbye":true}`, `{"register":{}}`, string(make([]byte, maxMessage+100))} {
		c := dialRaw(t, p)
		_, _, err := c.WriteMsgUnix([]byte(text), unix.UnixRights(own(t), own(t)), nil)
		require.NoError(t, err)
		_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
		b := make([]byte, 100)
		for err == nil {
			var n int
			n, err = c.Read(b)
			var a Answer
			if n > 0 && json.Unmarshal(b[:n], &a) == nil {
				require.Equal(t, Refused, a.State)
			}
		}
		require.False(t, os.IsTimeout(err), "the connection ends: %q", text)
	}
	require.Zero(t, p.members())
}

func TestAMemberThatReconnectsAThousandTimesCostsNothing(t *testing.T) {
	p := startPost(t, socketIn(directory(t)), nil)
	reg := registration(NewSecret())
	fds := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		require.NoError(t, err)
		return len(list)
	}
	connectOnce := func() {
		c, err := connect(p.socket)
		require.NoError(t, err)
		fd, err := ownPidfd()
		require.NoError(t, err)
		a, err := exchange(c, request{Register: &reg}, []int{fd})
		require.NoError(t, err)
		require.NotEqual(t, Refused, a.State, a.Reason)
		require.NoError(t, unix.Close(fd))
		require.NoError(t, c.Close())
	}
	connectOnce()
	before, goroutines := fds(), runtime.NumGoroutine()
	for range 1000 {
		connectOnce()
	}
	require.Equal(t, 1, p.members())
	require.Eventually(t, func() bool { return fds() <= before+5 && runtime.NumGoroutine() <= goroutines+5 }, 10*time.Second, 10*time.Millisecond,
		"files or goroutines are left behind")
	p.server.mu.Lock()
	require.Len(t, p.server.members, 1)
	p.server.mu.Unlock()
}

func TestTenThousandRegistrations(t *testing.T) {
	p := startPost(t, socketIn(directory(t)), nil)
	for i := range MaxMembers {
		a, fresh := p.hub.Register(registration(fmt.Sprint(i)), sound, &Teller{func(Answer) {}})
		require.True(t, fresh, a.Reason)
	}
	a := tryRegister(t, p, registration(NewSecret()), own(t))
	require.Equal(t, Answer{Refused, errFull.Error()}, a)
	a = tryRegister(t, p, registration(NewSecret()), own(t))
	require.Equal(t, Refused, a.State)
	require.Equal(t, 1, p.said.count(errFull.Error()), "said once")
	for i := range MaxMembers {
		p.hub.Goodbye(ProcessID(fmt.Sprint(i)))
	}
	a = tryRegister(t, p, registration(NewSecret()), own(t))
	require.NotEqual(t, Refused, a.State, "there is room again")
}

func TestTooManyGroupsAreRefused(t *testing.T) {
	p := startPost(t, socketIn(directory(t)), func(o *Options, _ *memoryLog) {
		o.Open = func(place Place, _ *slog.Logger) (elector.Log, error) { return newMemoryLog("id", place.Group), nil }
	})
	for i := range maxPlaces {
		reg := registration(fmt.Sprint(i))
		reg.Group = fmt.Sprint(i)
		a, _ := p.hub.Register(reg, sound, &Teller{func(Answer) {}})
		require.NotEqual(t, Refused, a.State)
	}
	reg := registration(NewSecret())
	reg.Group = "one more"
	require.Equal(t, Answer{Refused, errPlaces.Error()}, tryRegister(t, p, reg, own(t)))
}

func TestATopicThatIsNotAllowedIsRefused(t *testing.T) {
	p := startPost(t, socketIn(directory(t)), func(o *Options, _ *memoryLog) { o.Allow = []string{"orders.*"} })
	require.Equal(t, Answer{Refused, errNotAllowed.Error()}, tryRegister(t, p, registration(NewSecret()), own(t)))
	reg := registration(NewSecret())
	reg.Topic = "orders.eu"
	require.NotEqual(t, Refused, tryRegister(t, p, reg, own(t)).State)
}

// A sentinel of another cluster, or without rights, first accepts a member and then refuses it.
func TestAGroupThatCannotBeWatchedIsRefused(t *testing.T) {
	for what, c := range map[string]struct {
		brokerless bool
		change     func(*Options, *memoryLog)
		want       string
	}{
		"another cluster":  {false, func(_ *Options, m *memoryLog) { m.id = "another id" }, errOtherTopic.Error()},
		"other hosts":      {true, func(_ *Options, m *memoryLog) { m.id = "another id" }, errOtherLogs.Error()},
		"no rights":        {false, func(_ *Options, m *memoryLog) { m.lostErr = errTest }, errTest.Error()},
		"no rights to see": {false, func(_ *Options, m *memoryLog) { m.openErr = errTest }, errTest.Error()},
		"no client for that": {false, func(o *Options, _ *memoryLog) {
			o.Open = func(Place, *slog.Logger) (elector.Log, error) { return nil, errTest }
		}, errTest.Error()},
	} {
		t.Run(what, func(t *testing.T) {
			p := startPost(t, socketIn(directory(t)), c.change)
			said := &lines{}
			client := NewClient(p.socket, said.logger())
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go client.Run(ctx)
			reg := registration(NewSecret())
			if c.brokerless {
				reg.Topic = ""
			}
			client.Opened(reg)
			require.Eventually(t, func() bool { return client.state.Load().Reason == c.want }, 10*time.Second, time.Millisecond)
			require.Equal(t, Refused, client.State())
			require.Equal(t, 1, said.count("no sentinel watches this process"), "the member says so once")
			cancel()
			require.Eventually(t, func() bool {
				p.hub.mu.Lock()
				defer p.hub.mu.Unlock()
				p.server.mu.Lock()
				defer p.server.mu.Unlock()
				return p.hub.registry.Members() == 0 && len(p.hub.places) == 0 && len(p.server.members) == 0
			}, 10*time.Second, time.Millisecond, "nothing is kept of it")
		})
	}
}

func TestAGroupThatNobodyNeedsIsForgotten(t *testing.T) {
	p := startPost(t, socketIn(directory(t)), nil)
	m := startChild(t, p.socket, "member")
	m.says("watching")
	p.hub.expire(time.Now().Add(time.Hour))
	m.order("goodbye")
	m.says("ended")
	p.hub.expire(time.Now())
	p.hub.expire(time.Now().Add(lingers + time.Second))
	<-p.log.closed
	require.Eventually(t, func() bool {
		p.hub.mu.Lock()
		defer p.hub.mu.Unlock()
		return len(p.hub.places) == 0
	}, 10*time.Second, time.Millisecond)
}

func TestTheSocketIsTheSentinelsOwn(t *testing.T) {
	dir := directory(t)
	p := startPost(t, socketIn(dir), nil)
	_, err := Listen(p.socket, p.hub, p.said.logger())
	require.ErrorContains(t, err, "another sentinel listens")
	p.stop()

	file := dir + "/file"
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err = Listen(file, p.hub, p.said.logger())
	require.ErrorContains(t, err, "no socket")
	require.FileExists(t, file)

	require.NoError(t, os.Chmod(dir, 0o777)) //nolint:gosec // that is what is refused
	_, err = Listen(socketIn(dir), p.hub, p.said.logger())
	require.ErrorIs(t, err, errDirectory)
	_, err = Listen("/nowhere/at/all", p.hub, p.said.logger())
	require.Error(t, err)
}

// Containers share a folder that everybody may write to. The sentinel creates its own directory in it.
func TestTheSocketsDirectoryIsMade(t *testing.T) {
	shared := directory(t)
	require.NoError(t, os.Chmod(shared, 0o777)) //nolint:gosec // as an emptyDir is
	p := startPost(t, socketIn(shared+"/own"), nil)
	info, err := os.Stat(shared + "/own")
	require.NoError(t, err)
	require.Zero(t, info.Mode().Perm()&0o027, "%v", info.Mode())
	m := startChild(t, p.socket, "member")
	m.says("watching")
	m.kill()
	p.dies(m.id)
}
