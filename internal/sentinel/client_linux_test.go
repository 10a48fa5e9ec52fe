package sentinel

import (
	"context"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/goneli/neli/internal/said"
)

// refusedClient lets a Client be refused several times for the same reason, and returns its log.
func refusedClient(t *testing.T, socket string) *said.Text {
	t.Helper()
	log := &said.Text{}
	c := NewClient(socket, log.Logger(slog.LevelInfo))
	c.reg = registration(NewSecret())
	retry := time.NewTimer(time.Hour)
	defer retry.Stop()
	for range 5 {
		c.register(retry)
		require.Equal(t, Refused, c.State())
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { c.Run(ctx); close(ended) }()
	file, over := c.Guard() // works without a sentinel, too
	require.NoError(t, file.Close())
	over()
	cancel()
	<-ended
	require.Equal(t, None, c.State())
	require.Equal(t, 1, log.Count("no sentinel watches this process"), "said once")
	return log
}

func TestMissingSocketIsLoggedOnce(t *testing.T) {
	log := refusedClient(t, socketIn(directory(t)))
	require.Equal(t, 1, log.Count("no such file"))
}

// Anybody who may write to the directory could listen there and learn secrets.
func TestASocketThatAnotherUserMayReplaceIsRefused(t *testing.T) {
	dir := directory(t)
	require.NoError(t, os.Chmod(dir, 0o777)) //nolint:gosec // that is what is refused
	l, err := net.ListenUnix(network, &net.UnixAddr{Name: socketIn(dir), Net: network})
	require.NoError(t, err)
	defer l.Close()
	log := refusedClient(t, socketIn(dir))
	require.Equal(t, 1, log.Count("others may write"))
}

// If the directory belongs to neither root nor the listening user, its owner could replace the socket.
func TestASocketInAnotherUsersDirectoryIsRefused(t *testing.T) {
	dir := directory(t)
	owner := os.Geteuid()
	if owner == 0 {
		owner = 4711
		require.NoError(t, os.Chown(dir, owner, 0))
	}
	require.NoError(t, checkDirectory(socketIn(dir), uint32(owner)))
	require.ErrorIs(t, checkDirectory(socketIn(dir), 4712), errDirectory, "the directory's user could replace the socket")
	require.NoError(t, checkDirectory(socketIn("/"), 4712), "root may always")
}

// The directory's mode does not let the member's user reach the socket.
func TestASocketThatMayNotBeReachedIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		require.NotZero(t, os.Geteuid(), "another user's socket takes root to make")
		return
	}
	dir, err := os.MkdirTemp("/tmp", "neli")
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	p := startPost(t, socketIn(dir), nil)
	require.NoError(t, os.Chmod(dir, 0o700))
	self, err := os.Executable()
	require.NoError(t, err)
	open, err := os.MkdirTemp("/tmp", "neli") // another run of this test has its own
	require.NoError(t, err)
	defer os.RemoveAll(open)
	require.NoError(t, os.Chmod(open, 0o755)) //nolint:gosec // another user looks there
	copied := filepath.Join(open, "child")
	b, err := os.ReadFile(self)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(copied, b, 0o755)) //nolint:gosec // another user runs it
	m := startChild(t, p.socket, "member", func(c *exec.Cmd) {
		c.Path = copied
		c.Dir = "/"
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	})
	m.says("refused")
	require.NoError(t, os.Chmod(dir, 0o755)) //nolint:gosec // now it may
	m.says("watching")
	m.kill()
	p.dies(m.id)
}

func TestAKernelWithoutPidfdsIsRefused(t *testing.T) {
	p := startPost(t, socketIn(directory(t)), nil)
	openPidfd = func(int, int) (int, error) { return -1, unix.ENOSYS }
	defer func() { openPidfd = unix.PidfdOpen }()
	log := refusedClient(t, p.socket)
	require.Equal(t, 1, log.Count("Linux 5.3"))
	p.stop()
	_, err := Listen(p.socket, p.hub, p.said.Logger(slog.LevelInfo))
	require.ErrorIs(t, err, errKernel)
}

// A suspended sentinel delays a member only until answerWithin is over.
func TestSilentSentinelDelaysMembersOnlyBriefly(t *testing.T) {
	dir := directory(t)
	l, err := net.ListenUnix(network, &net.UnixAddr{Name: socketIn(dir), Net: network})
	require.NoError(t, err)
	defer l.Close()
	c := NewClient(socketIn(dir), slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { c.Run(ctx); close(ended) }()
	c.Opened(registration(NewSecret()))
	require.Eventually(t, func() bool { return c.State() == Refused }, 3*answerWithin, 10*time.Millisecond)
	cancel()
	<-ended
}

// A command does not wait longer than answerWithin for a sentinel that was suspended after it had registered
// the member. The sentinel is told to forget the member, which then registers again with its command.
func TestGuardWaitsForOneAnswerOnly(t *testing.T) {
	dir := directory(t)
	l, err := net.ListenUnix(network, &net.UnixAddr{Name: socketIn(dir), Net: network})
	require.NoError(t, err)
	defer l.Close()
	next := func() (*net.UnixConn, request) {
		require.NoError(t, l.SetDeadline(time.Now().Add(3*answerWithin)))
		c, err := l.AcceptUnix()
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		q, files, err := receive(c)
		closeAll(files)
		require.NoError(t, err)
		if q.Register != nil {
			require.NoError(t, send(c, Answer{State: Asked}, nil))
			confirm, _, err := receive(c)
			require.NoError(t, err)
			require.True(t, confirm.Confirm)
		}
		return c, q
	}
	c := NewClient(socketIn(dir), slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { c.Run(ctx); close(ended) }()
	c.Opened(registration(NewSecret()))
	first, q := next()
	require.False(t, q.Register.Running)
	require.NoError(t, send(first, Answer{State: Watching}, nil))
	require.Eventually(t, func() bool { return c.State() == Watching }, 20*time.Second, time.Millisecond)

	began := time.Now()
	file, over := c.Guard()
	require.Less(t, time.Since(began), answerWithin+answerWithin/2, "it waits for one answer")
	require.Equal(t, Refused, c.State())
	clearance := NewClearance(file)
	q, _, err = receive(first)
	require.NoError(t, err, "the sentinel must not release anything while the command runs")
	require.True(t, q.Goodbye)
	_, q = next()
	require.NotNil(t, q.Guard)
	second, q := next()
	require.True(t, q.Register.Running, "it says that a command runs")
	require.NoError(t, send(second, Answer{State: Registered}, nil))
	guard, q := next()
	require.Equal(t, uint64(2), q.Guard.Number, "the guard is of this registration")
	require.NoError(t, send(guard, Answer{State: Registered}, nil))
	q, _, err = receive(second)
	require.NoError(t, err)
	require.True(t, q.Settled, "all guards have registered")
	require.NoError(t, send(second, Answer{State: Watching}, nil))
	require.Eventually(t, func() bool { return c.State() == Watching }, 20*time.Second, time.Millisecond)

	require.NoError(t, clearance.Say())
	q, _, err = receive(guard)
	require.NoError(t, err, "the guard has got the new connection")
	require.True(t, q.Clear)
	over()
	require.Equal(t, Watching, c.State())
	cancel()
	require.NoError(t, second.Close())
	<-ended
}

// A sentinel keeps nothing on disk, so a restarted one knows only the members that connect again.
func TestRefusedMemberTriesAgain(t *testing.T) {
	c := NewClient(socketIn(directory(t)), slog.New(slog.DiscardHandler))
	c.reg = registration(NewSecret())
	retry := time.NewTimer(time.Hour)
	retry.Stop()
	for range 3 {
		c.register(retry)
		require.Equal(t, Refused, c.State())
		require.True(t, retry.Stop(), "it will try again")
	}
	c.note(Answer{State: Watching}, retry)
	c.note(Answer{State: Refused, Reason: errEnded.Error()}, retry)
	require.True(t, retry.Stop(), "it will try again when a sentinel has gone")
}

func TestReconnectPausesAreBounded(t *testing.T) {
	c := NewClient("/nowhere", slog.New(slog.DiscardHandler))
	for range 50 { // the sentinel was away for long
		require.LessOrEqual(t, c.pause.NextBackOff(), 15*time.Second)
	}
}

func TestAClientThatIsNeverOpenedEnds(t *testing.T) {
	c := NewClient("/nowhere", slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { c.Run(ctx); close(ended) }()
	require.Equal(t, None, c.State())
	cancel()
	<-ended
	file, over := c.Guard()
	require.NoError(t, file.Close())
	over()
}
