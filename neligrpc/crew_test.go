package neligrpc

import (
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/goneli/neli"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	say    = "/test.Echo/Say"    // one message, one answer
	repeat = "/test.Echo/Repeat" // one message, two answers
	chat   = "/test.Echo/Chat"   // an answer to each message
)

// echo serves the three methods by calling do, which gets the context of the call and its message.
func echo(do func(context.Context, string) (string, error)) *grpc.ServiceDesc {
	answer := func(s grpc.ServerStream, times int) error {
		in := new(wrapperspb.StringValue)
		if err := s.RecvMsg(in); err != nil {
			return err
		}
		out, err := do(s.Context(), in.Value)
		for ; err == nil && times > 0; times-- {
			err = s.SendMsg(wrapperspb.String(out))
		}
		return err
	}
	return &grpc.ServiceDesc{
		ServiceName: "test.Echo", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Say", Handler: func(_ any, ctx context.Context, decode func(any) error, by grpc.UnaryServerInterceptor) (any, error) {
			in := new(wrapperspb.StringValue)
			if err := decode(in); err != nil {
				return nil, err
			}
			handle := func(ctx context.Context, in any) (any, error) {
				out, err := do(ctx, in.(*wrapperspb.StringValue).Value)
				return wrapperspb.String(out), err
			}
			if by == nil {
				return handle(ctx, in)
			}
			return by(ctx, in, &grpc.UnaryServerInfo{FullMethod: say}, handle)
		}}},
		Streams: []grpc.StreamDesc{
			{StreamName: "Repeat", ServerStreams: true, Handler: func(_ any, s grpc.ServerStream) error { return answer(s, 2) }},
			{StreamName: "Chat", ServerStreams: true, ClientStreams: true, Handler: func(_ any, s grpc.ServerStream) error {
				for {
					if err := answer(s, 1); err == io.EOF {
						return nil
					} else if err != nil {
						return err
					}
				}
			}},
		},
	}
}

// ask makes a call, and returns the answers or the error.
func ask(ctx context.Context, conn *grpc.ClientConn, method, text string, opts ...grpc.CallOption) (string, error) {
	if method == say {
		out := new(wrapperspb.StringValue)
		err := conn.Invoke(ctx, method, wrapperspb.String(text), out, opts...)
		return out.Value, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: method == chat}, method, opts...)
	if err != nil {
		return "", err
	}
	if err := s.SendMsg(wrapperspb.String(text)); err != nil && err != io.EOF {
		return "", err
	}
	if err := s.CloseSend(); err != nil {
		return "", err
	}
	var all []string
	for {
		out := new(wrapperspb.StringValue)
		if err := s.RecvMsg(out); err == io.EOF {
			return strings.Join(all, ", "), nil
		} else if err != nil {
			return "", err
		}
		all = append(all, out.Value)
	}
}

// crew is a group of processes with real listeners, and a client; a test sets what each leads and knows.
type crew struct {
	*testing.T
	peers  map[string]*peer
	client *peer
	conn   *grpc.ClientConn
}

func newCrew(t *testing.T, names ...string) *crew {
	c := &crew{T: t, peers: map[string]*peer{}, client: &peer{news: make(chan struct{}, 1)}}
	for _, name := range names {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		p := &peer{name: name, at: l.Addr().String(), do: says(name)}
		unary, stream := newGuard(p, []string{"test.Free"})
		p.server = grpc.NewServer(grpc.UnaryInterceptor(unary), grpc.StreamInterceptor(stream))
		desc := echo(func(ctx context.Context, text string) (string, error) { return p.do(ctx, text) })
		p.server.RegisterService(desc, nil)
		free := *desc
		free.ServiceName, free.Methods = "test.Free", nil
		p.server.RegisterService(&free, nil)
		var work sync.WaitGroup
		work.Go(func() { _ = p.server.Serve(l) })
		t.Cleanup(func() { p.server.Stop(); work.Wait() })
		c.peers[name] = p
	}
	c.conn = c.connect(func(u *url.URL) string { return u.Host })
	return c
}

func (c *crew) connect(targets func(*url.URL) string, opts ...grpc.DialOption) *grpc.ClientConn {
	conn, err := newClient(c.client, targets, append([]grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}, opts...)...)
	require.NoError(c, err)
	c.Cleanup(func() { require.NoError(c, conn.Close()) })
	return conn
}

// says returns the function of a peer's handler. Its answers name the peer, and the role and token of the call.
func says(name string) func(context.Context, string) (string, error) {
	return func(ctx context.Context, text string) (string, error) {
		role, token, _ := FromContext(ctx)
		return fmt.Sprintf("%s serves role %d, token %d: %s", name, role, token, text), nil
	}
}

// peer is a process. A test sets what it leads, and which holder it knows.
type peer struct {
	name, at string
	server   *grpc.Server
	do       func(context.Context, string) (string, error)
	news     chan struct{}

	mu    sync.Mutex
	token int64 // with which it leads role 1; 0: it does not
	known *neli.Holder
	asked int
	upon  func() // when it is asked whether it leads
}

func (p *peer) Config() neli.Config {
	return neli.Config{LeaderGroupID: "the carts", HeartbeatTimeout: time.Second}
}

func (p *peer) Roles() int { return 8 }

func (p *peer) Token(role int) (int64, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
	if p.upon != nil {
		p.upon()
	}
	return p.token, role == 1 && p.token > 0
}

func (p *peer) Holder(int) (neli.Holder, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil {
		return neli.Holder{}, false
	}
	return *p.known, true
}

func (p *peer) Members() []neli.Member { return nil }

func (p *peer) Watch(ctx context.Context) iter.Seq[neli.Standing] {
	return func(yield func(neli.Standing) bool) {
		for {
			select {
			case <-p.news:
				if !yield(neli.Standing{}) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

// knows tells the client that a peer holds role 1, or "" that nobody does.
func (c *crew) knows(name string) { c.hears(name, "") }

// hears is knows with another address.
func (c *crew) hears(name, advertise string) {
	c.client.mu.Lock()
	c.client.known = nil
	if name != "" {
		c.client.known = &neli.Holder{Name: name, Member: "id of " + name, Advertise: advertise, Token: 17, Age: 200 * time.Millisecond}
		if p := c.peers[name]; p != nil && advertise == "" {
			c.client.known.Advertise = p.at
		}
	}
	c.client.mu.Unlock()
	select {
	case c.client.news <- struct{}{}:
	default:
	}
}

// ask makes a call for role 1.
func (c *crew) ask(method string, opts ...grpc.CallOption) (string, error) {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), 20*time.Second)
	defer cancel()
	return ask(metadata.AppendToOutgoingContext(WithRole(ctx, 1), roleHeader, "forged=1"), c.conn, method, "hello", opts...)
}

// reached says how many calls have arrived at each peer.
func (c *crew) reached() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(c.peers)) {
		p := c.peers[name]
		p.mu.Lock()
		all = append(all, fmt.Sprint(name, p.asked))
		p.mu.Unlock()
	}
	return strings.Join(all, " ")
}

// refused asserts that nothing was done, and that the error says when to try again.
func refused(t testing.TB, err error, why string) {
	t.Helper()
	require.ErrorContains(t, err, why)
	s := status.Convert(err)
	require.Equal(t, codes.Unavailable, s.Code(), "%v", err)
	require.Len(t, s.Details(), 1, "%v", err)
	require.GreaterOrEqual(t, s.Details()[0].(*errdetails.RetryInfo).RetryDelay.AsDuration(), time.Second)
}
