package sentinel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/goneli/neli/internal/elector"
	"github.com/goneli/neli/internal/said"
)

// A reason that does not fit into a packet is cut, so that a member's log shows it.
func TestALongReasonIsCut(t *testing.T) {
	long := "cannot open: " + strings.Repeat("ü<", 100_000)
	p := startPost(t, socketIn(directory(t)), func(o *Options, _ *memoryLog) {
		o.Open = func(Place, *slog.Logger) (elector.Log, error) { return nil, errors.New(long) }
	})
	reg := registration(NewSecret())
	c := dialRaw(t, p)
	a := registersOn(t, c, reg, own(t))
	for a.State != Refused {
		var err error
		a, err = hear(c)
		require.NoError(t, err)
	}
	require.Regexp(t, "^cannot open: ü<.*…$", a.Reason)

	for size := range 20 {
		a := Answer{State: Refused, Reason: strings.Repeat("x", 4055+size)}
		b, err := json.Marshal(a.fitting())
		require.NoError(t, err)
		require.LessOrEqual(t, len(b), maxMessage)
		require.Greater(t, len(b), maxMessage-10*4, "no more is cut than must be")
		whole, err := json.Marshal(a)
		require.NoError(t, err)
		require.Equal(t, len(whole) <= maxMessage, a.fitting() == a)
	}
}

// An accept that fails may fail again at once. The sentinel says so, and waits before it tries again.
func TestAFailedAcceptIsRepeatedAfterAPause(t *testing.T) {
	p := startPost(t, socketIn(directory(t)), nil)
	began := time.Now()
	require.NoError(t, p.server.listener.SetDeadline(began)) // from now on each accept fails at once
	const says = "cannot take a connection: registrations wait"
	require.Eventually(t, func() bool { return p.said.Count(says) > 1 }, 20*time.Second, time.Millisecond, "it says so")
	require.GreaterOrEqual(t, time.Since(began), acceptAgain)
	require.NoError(t, p.server.listener.SetDeadline(time.Time{}))
	registers(t, p, registration(NewSecret()))
}

// dialRaw connects without a Client, as a process that knows the wire form.
func dialRaw(t *testing.T, p *post) *net.UnixConn {
	t.Helper()
	return dialRawAt(t, p.socket)
}

func dialRawAt(t *testing.T, socket string) *net.UnixConn {
	t.Helper()
	c, err := net.DialUnix(network, nil, &net.UnixAddr{Name: socket, Net: network})
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func tryRegister(t *testing.T, p *post, reg Registration, files ...int) Answer {
	t.Helper()
	return registersOn(t, dialRaw(t, p), reg, files...)
}

func own(t *testing.T) int {
	t.Helper()
	fd, err := ownPidfd()
	require.NoError(t, err)
	t.Cleanup(func() { _ = unix.Close(fd) })
	return fd
}

func TestBadProofsAreRefusedAndLoggedOnce(t *testing.T) {
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
	require.Equal(t, 1, p.said.Count(errNotPeer.Error()), "said once")
	require.Equal(t, 1, p.said.Count(errFiles.Error()), "said once")
	require.Zero(t, p.members())
	require.Zero(t, p.hub.opt.Limit-MaxMembers)
	bad := registration(NewSecret())
	bad.Secret = NewSecret()
	require.Equal(t, Answer{Refused, errNotItsSecret.Error()}, tryRegister(t, p, bad, own(t)), "an id that is not of the secret")
}

func TestPacketsThatAreNoRegistrationAreDropped(t *testing.T) {
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

func TestReconnectingAThousandTimesCostsNothing(t *testing.T) {
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
		reg.Number++
		a := registersOn(t, c, reg, fd)
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
		a, fresh := p.hub.Register(registration(fmt.Sprint(i)), of(i), &Teller{Tell: func(Answer) {}})
		require.True(t, fresh, a.Reason)
	}
	a := tryRegister(t, p, registration(NewSecret()), own(t))
	require.Equal(t, Answer{Refused, errFull.Error()}, a)
	a = tryRegister(t, p, registration(NewSecret()), own(t))
	require.Equal(t, Refused, a.State)
	require.Equal(t, 1, p.said.Count(errFull.Error()), "said once")
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
		a, _ := p.hub.Register(reg, of(i), &Teller{Tell: func(Answer) {}})
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
			log := &said.Text{}
			client := NewClient(p.socket, log.Logger(slog.LevelInfo))
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
			require.Equal(t, 1, log.Count("no sentinel watches this process"), "the member says so once")
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
	require.Eventually(t, func() bool {
		select {
		case <-p.log.closed:
			return true
		default:
			return false
		}
	}, 10*time.Second, time.Millisecond, "its log is closed")
	require.Eventually(t, func() bool {
		p.hub.mu.Lock()
		defer p.hub.mu.Unlock()
		return len(p.hub.places) == 0
	}, 10*time.Second, time.Millisecond)
}
