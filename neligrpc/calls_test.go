package neligrpc

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
)

const served = " serves role 1, token 17: hello"

// answers returns what a leader answers to a method.
func answers(method, name string) string {
	if method == repeat {
		return name + served + ", " + name + served
	}
	return name + served
}

// A call reaches the leader, by role and by key, and moves with the role. A forged header of the caller is replaced.
func TestCallsReachTheLeader(t *testing.T) {
	c := newCrew(t, "a", "b")
	for _, method := range []string{say, repeat, chat} {
		for _, name := range []string{"a", "b", "a"} {
			c.peers["a"].token, c.peers["b"].token = 0, 0
			c.peers[name].token = 17
			c.knows(name)
			out, err := c.ask(method)
			require.NoError(t, err)
			require.Equal(t, answers(method, name), out)
		}
	}
	require.Equal(t, "a6 b3", c.reached())
	key := "x"
	for neli.Slot(key, 8) != 1 {
		key += "x"
	}
	out, err := ask(WithKey(t.Context(), key), c.conn, say, "hello")
	require.NoError(t, err)
	require.Equal(t, answers(say, "a"), out)
}

// If the server refuses a call before its handler runs, the client looks once more for another term of the role. It
// does not repeat a stream of messages, nor what a handler may have done.
func TestARefusedCallIsTriedOnceMore(t *testing.T) {
	const gone = "this process does not lead role 1"
	for _, s := range []struct {
		what, method, holders, leads, says, reaches string
	}{
		{"a call", say, "ab", "b", "b" + served, "a1 b1 c0"},
		{"a stream of answers", repeat, "ab", "b", answers(repeat, "b"), "a1 b1 c0"},
		{"a stream of messages", chat, "ab", "b", gone, "a1 b0 c0"},
		{"another holder that does not lead either", say, "abc", "c", gone, "a1 b1 c0"},
		{"a stream to another holder that does not lead either", repeat, "abc", "c", gone, "a1 b1 c0"},
		{"the same holder", say, "aa", "", gone, "a1 b0 c0"},
		{"a holder that is gone", say, "a-", "", gone, "a1 b0 c0"},
	} {
		t.Run(s.what, func(t *testing.T) {
			c := newCrew(t, "a", "b", "c")
			if s.leads != "" {
				c.peers[s.leads].token = 17
			}
			for i, name := range strings.Split(s.holders, "") {
				next := ""
				if i++; i < len(s.holders) && s.holders[i] != '-' {
					next = s.holders[i : i+1]
				}
				if p := c.peers[name]; p != nil && i < len(s.holders) {
					p.upon = func() { c.knows(next) }
				}
			}
			c.knows("a")
			out, err := c.ask(s.method)
			require.Equal(t, s.reaches, c.reached())
			if s.says != gone {
				require.NoError(t, err)
				require.Equal(t, s.says, out)
				return
			}
			refused(t, err, gone)
		})
	}
}

// A call is not repeated once a handler has answered, or once its connection breaks: the handler may have run.
func TestACallThatMayHaveRunIsNotRepeated(t *testing.T) {
	c := newCrew(t, "a", "b")
	c.peers["a"].token, c.peers["b"].token = 17, 17
	for _, method := range []string{say, repeat} {
		c.peers["a"].do = func(context.Context, string) (string, error) {
			c.knows("b")
			return "", status.Error(codes.Unavailable, "of the application")
		}
		c.knows("a")
		_, err := c.ask(method)
		require.EqualError(t, err, "rpc error: code = Unavailable desc = of the application")
	}
	require.Equal(t, "a2 b0", c.reached())
	c.peers["a"].do = func(ctx context.Context, _ string) (string, error) {
		c.knows("b")
		go c.peers["a"].server.Stop()
		<-ctx.Done()
		return "", ctx.Err()
	}
	c.knows("a")
	_, err := c.ask(say)
	require.Equal(t, codes.Unavailable, status.Code(err), "%v", err)
	require.Empty(t, status.Convert(err).Details())
	require.Equal(t, "a3 b0", c.reached())
}

// Without a leader a call fails at once, or with WaitForReady waits for one.
func TestACallWithoutALeader(t *testing.T) {
	c := newCrew(t, "a")
	c.peers["a"].token = 17
	_, err := c.ask(say)
	refused(t, err, "role 1: no holder is known")
	type result struct {
		out string
		err error
	}
	done := make(chan result)
	wait := func() {
		out, err := c.ask(say, grpc.WaitForReady(true))
		done <- result{out, err}
	}
	go wait()
	c.hears("a", "127.0.0.1:1") // nobody is there
	select {
	case r := <-done:
		require.Fail(t, "the call does not wait", "%v", r)
	case <-time.After(50 * time.Millisecond):
	}
	_, err = c.ask(say)
	refused(t, err, "role 1: the process that leads it cannot be reached")
	c.knows("a")
	require.Equal(t, result{"a" + served, nil}, <-done)

	c.knows("")
	ctx, cancel := context.WithTimeout(WithRole(t.Context(), 1), 50*time.Millisecond)
	defer cancel()
	_, err = ask(ctx, c.conn, say, "hello", grpc.WaitForReady(true))
	require.Equal(t, codes.DeadlineExceeded, status.Code(err))
	require.ErrorContains(t, err, "no holder is known")
}

// Watch does not tell when the address of a holder becomes known.
func TestACallWaitsForAnAddress(t *testing.T) {
	c := newCrew(t, "a")
	c.peers["a"].token = 17
	is := func(advertise string) {
		c.client.mu.Lock()
		defer c.client.mu.Unlock()
		c.client.known = &neli.Holder{Member: "id of a", Advertise: advertise}
	}
	is("")
	_, err := c.ask(say)
	refused(t, err, "the address of its holder is not known")
	done := make(chan error)
	go func() {
		_, err := c.ask(say, grpc.WaitForReady(true))
		done <- err
	}()
	<-time.After(50 * time.Millisecond)
	is(c.peers["a"].at)
	require.NoError(t, <-done)
}

// A process that serves again at its address is reached again.
func TestACallAfterAConnectionBroke(t *testing.T) {
	c := newCrew(t, "a", "b")
	c.peers["a"].token = 17
	c.knows("a")
	for range 3 {
		_, err := c.ask(say)
		require.NoError(t, err)
		c.peers["a"].server.Stop()
		require.True(t, c.conn.WaitForStateChange(t.Context(), connectivity.Ready))
		l, err := net.Listen("tcp", c.peers["a"].at)
		require.NoError(t, err)
		unary, _ := newGuard(c.peers["a"], nil)
		c.peers["a"].server = grpc.NewServer(grpc.UnaryInterceptor(unary))
		c.peers["a"].server.RegisterService(echo(c.peers["a"].do), nil)
		go c.peers["a"].server.Serve(l)
	}
	out, err := c.ask(say, grpc.WaitForReady(true))
	require.NoError(t, err)
	require.Equal(t, "a"+served, out)
	c.peers["a"].server.Stop()
}

// Calls go to addresses that the holder has advertised and that are allowed, with the port that the program says.
func TestCallsGoToAllowedAddressesOnly(t *testing.T) {
	c := newCrew(t)
	var mu sync.Mutex
	var dialled []string
	conn := c.connect(func(u *url.URL) string {
		switch {
		case u.Hostname() != "10.0.0.2" && !strings.HasSuffix(u.Hostname(), ".svc"):
			return ""
		case u.Path == "/odd":
			return "10.0.0.2"
		}
		return net.JoinHostPort(u.Hostname(), "90"+u.Port())
	}, grpc.WithContextDialer(func(_ context.Context, to string) (net.Conn, error) {
		mu.Lock()
		defer mu.Unlock()
		dialled = append(dialled, to)
		return nil, errors.New("no network")
	}))
	for _, s := range []struct{ advertise, to, why string }{
		{"10.0.0.2:80", "10.0.0.2:9080", "cannot be reached"},
		{"https://10.0.0.2:43/base", "10.0.0.2:9043", "cannot be reached"},
		{"10.0.0.2/odd", "", `the target of its holder is "10.0.0.2", must be host:port`},
		{" ", "", "neither"},
		{"169.254.169.254:80", "", "not allowed"},
		{"unix:80", "", "not allowed"},
		{"http://10.0.0.2.evil.example/", "", "not allowed"},
		{"http://10.0.0.2@evil.example/", "", "neither"},
		{"dns://10.0.0.2:80", "", "neither"},
		{"http://[::ffff:169.254.169.254%25.svc]", "", "neither"}, // is dialled as 169.254.169.254
	} {
		c.hears("b", s.advertise)
		_, err := ask(WithRole(t.Context(), 1), conn, say, "hello")
		refused(t, err, s.why)
		mu.Lock()
		require.Equal(t, s.to, strings.Join(dialled, " "), s.advertise)
		dialled = nil
		mu.Unlock()
	}
}

// With TLS, targets must return a host for which the certificate is valid.
func TestCallsWithTLS(t *testing.T) {
	web := httptest.NewTLSServer(http.NotFoundHandler()) // has a certificate for 127.0.0.1
	defer web.Close()
	roots := x509.NewCertPool()
	roots.AddCert(web.Certificate())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	c := newCrew(t)
	p := &peer{token: 17}
	unary, _ := newGuard(p, nil)
	s := grpc.NewServer(grpc.UnaryInterceptor(unary), grpc.Creds(credentials.NewServerTLSFromCert(&web.TLS.Certificates[0])))
	s.RegisterService(echo(says("a")), nil)
	go s.Serve(l)
	defer s.Stop()
	c.hears("a", "https://"+l.Addr().String())
	for host, fails := range map[string]bool{"127.0.0.1": false, "localhost": true} {
		conn := c.connect(func(u *url.URL) string { return net.JoinHostPort(host, u.Port()) },
			grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: roots})))
		out, err := ask(WithRole(t.Context(), 1), conn, say, "hello")
		if fails {
			refused(t, err, "x509: certificate is valid for example.com")
			continue
		}
		require.NoError(t, err)
		require.Equal(t, "a"+served, out)
	}
}

// A call that does not say for which role is refused on both sides.
func TestACallNamesOneRole(t *testing.T) {
	c := newCrew(t, "a")
	c.peers["a"].token = 17
	c.knows("a")
	for _, ctx := range []context.Context{t.Context(), WithRole(t.Context(), -1), WithRole(t.Context(), 8)} {
		for _, method := range []string{say, repeat} {
			_, err := ask(ctx, c.conn, method, "hello")
			require.Equal(t, codes.InvalidArgument, status.Code(err), "%v", err)
		}
	}
	plain, err := grpc.NewClient("passthrough:///"+c.peers["a"].at, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer plain.Close()
	require.Equal(t, "a0", c.reached())
	for _, s := range []struct {
		headers []string
		code    codes.Code
	}{
		{nil, codes.InvalidArgument},
		{[]string{"the+carts=1", "the+carts=1"}, codes.InvalidArgument},
		{[]string{""}, codes.InvalidArgument},
		{[]string{"1"}, codes.InvalidArgument},
		{[]string{"the+carts=-1"}, codes.InvalidArgument},
		{[]string{"the+carts=4294967297"}, codes.InvalidArgument},
		{[]string{"the+carts=2"}, codes.Unavailable},
		{[]string{"=1"}, codes.Unavailable},
		{[]string{"bills=1"}, codes.Unavailable},
		{[]string{"the+carts=1"}, codes.OK},
	} {
		ctx := metadata.NewOutgoingContext(t.Context(), metadata.MD{roleHeader: s.headers})
		for _, method := range []string{say, repeat, chat} {
			var trailer metadata.MD
			_, err := ask(ctx, plain, method, "hello", grpc.Trailer(&trailer))
			require.Equal(t, s.code, status.Code(err), "%s %q: %v", method, s.headers, err)
			require.Equal(t, s.code == codes.Unavailable, len(trailer.Get(notLeader)) == 1)
		}
	}
	out, err := ask(t.Context(), plain, "/test.Free/Repeat", "hello")
	require.NoError(t, err)
	require.Contains(t, out, "role 0, token 0: hello", "a service that needs no role")
}

func TestInvalidUsesAreRefused(t *testing.T) {
	creds := grpc.WithTransportCredentials(insecure.NewCredentials())
	broker := nelitest.NewBroker(nelitest.Options{})
	defer broker.Close()
	n, err := neli.New(neli.Config{LeaderGroupID: "g", Mode: neli.NonExclusive, Provider: broker.Provider("a")})
	require.NoError(t, err)
	defer n.Close()
	_, err = NewClient(nil, func(*url.URL) string { return "" }, creds)
	require.EqualError(t, err, "neligrpc: NewClient: n is nil")
	_, err = NewClient(n, nil, creds)
	require.EqualError(t, err, "neligrpc: NewClient: targets is nil: it says to which addresses calls may be sent")
	_, err = NewClient(n, func(*url.URL) string { return "" }, creds)
	require.EqualError(t, err, "neligrpc: NewClient: needs Mode Exclusive: in the other one no process knows who leads")
	require.PanicsWithValue(t, "neligrpc: Guard: n is nil", func() { Guard(nil) })
	require.PanicsWithValue(t, "neligrpc: Guard: needs Mode Exclusive: in the other one no process knows who leads", func() { Guard(n) })
}
