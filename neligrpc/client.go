// Package neligrpc sends gRPC calls to the process that leads their role. In a client, which may be an observer:
//
//	conn, err := neligrpc.NewClient(n, targets, grpc.WithTransportCredentials(creds))
//	_, err = pb.NewOrdersClient(conn).Add(neligrpc.WithKey(ctx, customer), order)
//
// and in the members, each of which advertises an address (Config.Advertise):
//
//	unary, stream := neligrpc.Guard(n)
//	s := grpc.NewServer(grpc.ChainUnaryInterceptor(unary), grpc.ChainStreamInterceptor(stream))
//
// Each attempt of a call asks Neli.Holder who leads, so calls move as soon as the client's process has read of a move. If
// the server refuses a call before its handler ran, because it does not lead the role, the client waits up to
// HeartbeatTimeout/5 until its process knows another term of the role, and then tries again, once. It does not repeat
// a call in which the client sends a stream.
//
// # Errors
//
//   - Unavailable with a RetryInfo: nothing was done. No holder is known; or its address is not known or not allowed; or
//     it cannot be reached; or it does not lead any more. The delay is the rest of the holder's lease as known here, at
//     least a second. In all cases but the last, a call with [grpc.WaitForReady] waits instead, until it can be sent or its
//     context ends.
//   - Unavailable without one: the connection broke, and the handler may have run.
//   - InvalidArgument: the call names no role, or one that is not from 0 to R−1.
//
// This is a module of its own, so that programs without it do not depend on google.golang.org/grpc. grpc calls its API for
// balancers experimental: a later grpc may need a later version of this module.
package neligrpc

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/goneli/neli"
	"github.com/goneli/neli/internal/advertised"
	"github.com/goneli/neli/internal/inside"
)

// NewClient returns a connection whose calls reach the process that leads their role: [WithRole] or [WithKey] names it.
// The caller closes the connection, before or after n.
//
// targets returns the host:port to which calls for a holder are sent, given what the holder advertises (a host:port as
// http://host:port), and "" if nothing may be sent there. Anybody who can write to the leader topic can make a holder's
// Advertise point to any host, so accept only hosts on which members run:
//
//	func(u *url.URL) string {
//		if !strings.HasSuffix(u.Hostname(), ".orders.svc") {
//			return ""
//		}
//		return net.JoinHostPort(u.Hostname(), "9090") // or u.Host, if gRPC is served there
//	}
//
// It is called for each attempt of a call, and now and then for each member, concurrently. Connections that no call has
// used for two HeartbeatTimeouts, to addresses that no member advertises any more, are closed once their calls have ended.
//
// opts must have transport credentials. With TLS, the certificate must be valid for the host that targets returns,
// unless the credentials or [grpc.WithAuthority] name another. A service config in opts is ignored. No proxy is used
// unless a dialer in opts does.
//
// NewClient fails if n or targets is nil, if [grpc.NewClient] fails, and in non-exclusive mode, where no process knows
// who leads.
func NewClient(n *neli.Neli, targets func(advertised *url.URL) string, opts ...grpc.DialOption) (*grpc.ClientConn, error) {
	switch {
	case n == nil:
		return nil, errors.New("neligrpc: NewClient: n is nil")
	case targets == nil:
		return nil, errors.New("neligrpc: NewClient: targets is nil: it says to which addresses calls may be sent")
	case n.Config().Mode != neli.Exclusive:
		return nil, errors.New("neligrpc: NewClient: needs Mode Exclusive: in the other one no process knows who leads")
	}
	return newClient(member{n}, targets, opts...)
}

// leaders is what this package needs of a member.
type leaders interface {
	Config() neli.Config
	Roles() int
	Token(role int) (token int64, ok bool)
	Holder(role int) (neli.Holder, bool)
	Members() []neli.Member
	Watch(context.Context) iter.Seq[neli.Standing]
}

// member is a Neli with R, which it does not show itself.
type member struct{ *neli.Neli }

func (m member) Roles() int { return inside.Roles(m.Neli) }

// client is what the parts of a connection share.
type client struct {
	src     leaders
	targets func(*url.URL) string
	group   string        // as headers have it
	timeout time.Duration // T

	mu   sync.Mutex
	news chan struct{} // closed at the next change that this process learns of
}

func newClient(src leaders, targets func(*url.URL) string, opts ...grpc.DialOption) (*grpc.ClientConn, error) {
	cfg := src.Config()
	c := &client{src: src, targets: targets, group: url.QueryEscape(cfg.LeaderGroupID), timeout: cfg.HeartbeatTimeout, news: make(chan struct{})}
	// Without a dialer, grpc would use HTTPS_PROXY, and take the host "unix" for a socket.
	dial := grpc.WithContextDialer(func(ctx context.Context, to string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", to)
	})
	return grpc.NewClient(scheme+":///"+url.PathEscape(cfg.LeaderGroupID), slices.Concat([]grpc.DialOption{dial}, opts, []grpc.DialOption{
		grpc.WithResolvers(builder{c}),
		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig":[{"` + policy + `":{}}]}`),
		grpc.WithChainUnaryInterceptor(c.unary), // innermost: those of opts see one call, even if it is tried again
		grpc.WithChainStreamInterceptor(c.stream),
	})...)
}

type wantedKey struct{}

// WithRole returns a context whose calls go to the process that leads a role, from 0 to R−1.
func WithRole(ctx context.Context, role int) context.Context {
	return context.WithValue(ctx, wantedKey{}, func(int) int { return role })
}

// WithKey returns a context whose calls go to the process that leads the role neli.Slot(key, R), with the R of the
// client's process at the time of the call.
func WithKey(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, wantedKey{}, func(roles int) int { return neli.Slot(key, roles) })
}

type callKey struct{}

// call is one attempt of a call.
type call struct {
	role int
	wait bool // for a leader
	to   atomic.Pointer[neli.Holder]
}

// attempt begins an attempt of a call: the context that it returns has the call, and the header for the server.
func (c *client) attempt(ctx context.Context, opts []grpc.CallOption) (context.Context, *call, error) {
	wanted, ok := ctx.Value(wantedKey{}).(func(roles int) int)
	if !ok {
		return nil, nil, status.Error(codes.InvalidArgument, "the context of the call names no role: use neligrpc.WithRole or WithKey")
	}
	roles := c.src.Roles()
	now := &call{role: wanted(roles)}
	if now.role < 0 || now.role >= roles {
		return nil, nil, status.Errorf(codes.InvalidArgument, "role %d: must be from 0 to %d", now.role, roles-1)
	}
	for _, o := range opts {
		if f, ok := o.(grpc.FailFastCallOption); ok {
			now.wait = !f.FailFast
		}
	}
	headers, _ := metadata.FromOutgoingContext(ctx)
	headers = metadata.Join(headers) // a copy
	headers.Set(roleHeader, fmt.Sprintf("%s=%d", c.group, now.role))
	return context.WithValue(metadata.NewOutgoingContext(ctx, headers), callKey{}, now), now, nil
}

func (c *client) unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	var trailer metadata.MD
	opts = append(slices.Clip(opts), grpc.Trailer(&trailer))
	for again := false; ; again = true {
		attempt, now, err := c.attempt(ctx, opts)
		if err != nil {
			return err
		}
		if err = invoke(attempt, method, req, reply, cc, opts...); err == nil || again || !c.refused(trailer) || !c.moved(ctx, now) {
			return err
		}
	}
}

// refused reports whether a server has refused a call before its handler ran.
func (c *client) refused(trailer metadata.MD) bool {
	return slices.Contains(trailer.Get(notLeader), c.group)
}

// moved waits, T/5 at most, until this process knows another term of the role than that of the holder that refused a
// call. It reports whether it does.
func (c *client) moved(ctx context.Context, refused *call) bool {
	ctx, cancel := context.WithTimeout(ctx, c.timeout/5)
	defer cancel()
	was := refused.to.Load()
	for {
		c.mu.Lock()
		news := c.news
		c.mu.Unlock()
		if h, ok := c.src.Holder(refused.role); ok && was != nil && (h.Member != was.Member || h.Token != was.Token || !h.Since.Equal(was.Since)) {
			return true
		}
		select {
		case <-news:
		case <-ctx.Done():
			return false
		}
	}
}

// find returns the holder of a role and where its calls go, or an error that says why there is none.
func (c *client) find(role int) (h neli.Holder, at string, err error) {
	h, ok := c.src.Holder(role)
	if !ok {
		return h, "", unavailable(0, "role %d: no holder is known", role)
	}
	u, why := advertised.URL(h.Advertise), ""
	switch {
	case h.Advertise == "":
		why = "the address of its holder is not known"
	case u == nil:
		why = "the address of its holder is neither host:port nor an http or https URL, or has an IPv6 zone"
	default:
		if at = c.targets(u); at == "" {
			why = "the address of its holder is not allowed"
		} else if host, port, err := net.SplitHostPort(at); err != nil || host == "" || port == "" {
			why = fmt.Sprintf("the target of its holder is %q, must be host:port", at)
		}
	}
	if why != "" {
		return h, "", unavailable(c.timeout-h.Age, "role %d: %s", role, why)
	}
	return h, at, nil
}

// unavailable is the error of a call that was not sent, or not handled.
func unavailable(wait time.Duration, format string, args ...any) error {
	s := status.Newf(codes.Unavailable, format, args...)
	if s, err := s.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(max(wait, time.Second))}); err == nil {
		return s.Err()
	}
	return s.Err()
}
