package sentinel

import (
	"context"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Tests of packets that are read late, because the sentinel was suspended or had no processor.

// A sentinel is suspended while a member registers. The member gives up, starts a command, and dies. Only then does the
// sentinel read the member's packets.
func TestRegistrationThatWasGivenUpIsNotAccepted(t *testing.T) {
	dir := directory(t)
	start := prepare(t, socketIn(dir), nil)
	impatient := func(c *exec.Cmd) { c.Env = append(c.Env, "NELI_ANSWER=100ms", "NELI_LASTS="+dir) }
	m := startChild(t, socketIn(dir), "member", impatient)
	m.says("refused")
	m.order("guard")
	m.says("guarded <nil>")
	m.kill()
	_ = m.cmd.Wait()
	p := start()
	given, reg := dialRaw(t, p), registration(NewSecret()) // this one gives up when it has the answer
	require.NoError(t, given.SetReadDeadline(time.Now().Add(20*time.Second)))
	a, err := exchange(given, request{Register: &reg}, []int{own(t)})
	require.NoError(t, err)
	require.Equal(t, Asked, a.State)
	require.NoError(t, given.Close())
	last := startChild(t, p.socket, "member") // the sentinel takes it after all earlier connections
	last.says("watching")
	require.Eventually(t, func() bool { return p.connections() == 1 }, 20*time.Second, time.Millisecond)
	require.Equal(t, 1, p.members(), "the members have given up")
	require.False(t, p.isDead(m.id), "the command lives")
}

// connections returns how many connections are open.
func (p *post) connections() int {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	return len(p.server.open)
}

func TestAConnectionLastsAfterItsRegistration(t *testing.T) {
	start := prepare(t, socketIn(directory(t)), nil)
	p := start(func(s *Server) { s.greetWithin = 2 * time.Second })
	c := registers(t, p, registration(NewSecret()))
	require.NoError(t, c.SetReadDeadline(time.Now().Add(3*time.Second)))
	var err error
	for err == nil {
		_, err = hear(c)
	}
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "the connection has ended")
}

// pair returns both ends of a connection.
func pair(t *testing.T) (sentinel, member *net.UnixConn) {
	t.Helper()
	l, file, err := newLine()
	require.NoError(t, err)
	defer file.Close()
	c, err := net.FileConn(file)
	require.NoError(t, err)
	t.Cleanup(func() { l.close(); _ = c.Close() })
	return l.c, c.(*net.UnixConn)
}

// The sentinel reads the packets that a member sent before it died, even after a suspension: one may be a goodbye.
func TestGoodbyeOfADeadMemberIsRead(t *testing.T) {
	p := startPost(t, socketIn(directory(t)), nil)
	own, member := pair(t)
	require.NoError(t, send(member, request{Goodbye: true}, nil))
	require.NoError(t, own.SetReadDeadline(time.Unix(1, 0)))
	p.hears(own)
	require.Zero(t, p.members(), "the sentinel was suspended when the process died")
}

// The kernel reports an error if the other side has closed without reading everything.
func TestMemberThatHasNotReadEverythingIsKept(t *testing.T) {
	p := startPost(t, socketIn(directory(t)), nil)
	own, member := pair(t)
	require.NoError(t, send(own, Answer{State: Watching}, nil))
	require.NoError(t, member.Close())
	p.hears(own)
	require.Equal(t, 1, p.members(), "its pidfd is kept")

	own, member = pair(t)
	require.NoError(t, send(own, Answer{State: Watching}, nil))
	require.NoError(t, send(member, request{Goodbye: true}, nil))
	require.NoError(t, member.Close())
	p.hears(own)
	require.Equal(t, 1, p.members(), "a goodbye is read all the same")
}

// hears lets the sentinel read a connection of a member that has registered.
func (p *post) hears(own *net.UnixConn) {
	reg, tell := registration(NewSecret()), &Teller{Tell: func(Answer) {}}
	a, _ := p.hub.Register(reg, sound, tell)
	require.NotEqual(p.t, Refused, a.State)
	p.server.listen(reg, link{c: own}, tell)
}

func TestSentinelForgetsMembersItDisconnects(t *testing.T) {
	p := startPost(t, socketIn(directory(t)), nil)
	c := registers(t, p, registration(NewSecret()))
	require.NoError(t, sendBytes(c, []byte("no packet"), nil))
	require.NoError(t, c.SetReadDeadline(time.Now().Add(20*time.Second)))
	var err error
	for err == nil {
		_, err = hear(c)
	}
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
	require.Zero(t, p.members(), "it may start a command of which the sentinel is not told")
}

func TestMemberThatReadsNoAnswersIsForgotten(t *testing.T) {
	p := startPost(t, socketIn(directory(t)), nil)
	reg := registration(NewSecret())
	registers(t, p, reg)
	p.hub.mu.Lock()
	tell := p.hub.notify[reg.Process]
	p.hub.mu.Unlock()
	for range 10_000 { // it reads nothing
		tell.Tell(Answer{State: Registered})
	}
	require.Eventually(t, func() bool { return p.members() == 0 && p.connections() == 0 }, 20*time.Second, time.Millisecond)
}

// When a sentinel ends, so do its connections. A member that has noticed may start a command, and be killed, before the
// sentinel has come to its own end.
func TestClosingSentinelReportsNoDeath(t *testing.T) {
	p := startPost(t, socketIn(directory(t)), nil)
	m := startChild(t, p.socket, "member")
	m.says("watching")
	p.server.mu.Lock()
	p.server.closing = true
	p.server.mu.Unlock()
	m.kill()
	require.Eventually(t, func() bool {
		p.server.mu.Lock()
		defer p.server.mu.Unlock()
		return len(p.server.members) == 0
	}, 20*time.Second, time.Millisecond)
	require.Equal(t, 1, p.members(), "its connection may have ended before it died")
	require.False(t, p.isDead(m.id))
}

// puppet returns a Client, and a function that accepts the Client's next connection as its sentinel would.
func puppet(t *testing.T) (c *Client, next func() (*net.UnixConn, request)) {
	t.Helper()
	dir := directory(t)
	l, err := net.ListenUnix(network, &net.UnixAddr{Name: socketIn(dir), Net: network})
	require.NoError(t, err)
	c = NewClient(socketIn(dir), slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { c.Run(ctx); close(ended) }()
	t.Cleanup(func() {
		require.NoError(t, l.Close())
		cancel()
		<-ended
	})
	c.Opened(registration(NewSecret()))
	return c, func() (*net.UnixConn, request) {
		require.NoError(t, l.SetDeadline(time.Now().Add(30*time.Second)))
		c, err := l.AcceptUnix()
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		q, files, err := receive(c)
		closeAll(files)
		require.NoError(t, err)
		return c, q
	}
}

func TestAMemberThatIsRefusedSaysGoodbye(t *testing.T) {
	_, next := puppet(t)
	c, _ := next()
	require.NoError(t, send(c, Answer{State: Asked}, nil))
	_, _, err := receive(c)
	require.NoError(t, err)
	require.NoError(t, send(c, Answer{State: Watching}, nil))
	require.NoError(t, send(c, Answer{State: Refused}, nil))
	q, _, err := receive(c)
	require.NoError(t, err, "a goodbye: from now on a command may start without the sentinel")
	require.True(t, q.Goodbye)
}

// The sentinel has asked, and does not answer the confirmation.
func TestAMemberThatGivesUpSaysGoodbye(t *testing.T) {
	old := answerWithin
	answerWithin = 200 * time.Millisecond
	t.Cleanup(func() { answerWithin = old }) // after the Client has ended
	_, next := puppet(t)
	c, _ := next()
	require.NoError(t, send(c, Answer{State: Asked}, nil))
	q, _, err := receive(c)
	require.NoError(t, err)
	require.True(t, q.Confirm)
	q, _, err = receive(c)
	require.NoError(t, err, "a goodbye: the confirmation may be read later")
	require.True(t, q.Goodbye)
}

func TestTheGuardUsesTheNewestConnection(t *testing.T) {
	line, file, err := newLine()
	require.NoError(t, err)
	defer line.close()
	c, err := net.FileConn(file)
	require.NoError(t, err)
	require.NoError(t, file.Close())
	var sentinels []*net.UnixConn
	for range 3 {
		sentinel, guard := pair(t)
		f, err := guard.File()
		require.NoError(t, err)
		require.NoError(t, line.pass(f))
		require.NoError(t, f.Close())
		require.NoError(t, guard.Close())
		sentinels = append(sentinels, sentinel)
	}
	clearance := &Clearance{c: c.(*net.UnixConn), newest: -1} // one that had no processor until now
	require.NoError(t, clearance.Say())
	for i, s := range sentinels {
		q, _, err := receive(s)
		require.Equal(t, i == 2, err == nil && q.Clear, "the newest connection and no other")
	}
	require.NoError(t, (*Clearance)(nil).Say())
	require.Nil(t, NewClearance(nil))
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	require.Nil(t, NewClearance(w), "a pipe")
}
