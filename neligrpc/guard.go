package neligrpc

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/goneli/neli"
)

const (
	roleHeader = "neli-role"       // of a call: group=role
	notLeader  = "neli-not-leader" // trailer of a call that was refused before its handler ran: the group
)

// Guard returns the interceptors of a server. They let a call run if this process leads the role that the call names, at
// the instant before its handler or the next interceptor is called; [FromContext] then returns the role and the token. A
// stream is checked only when it begins. Put them after interceptors that take time, so that the check comes just before
// the handler:
//
//	unary, stream := neligrpc.Guard(n, "grpc.health.v1.Health")
//	s := grpc.NewServer(grpc.ChainUnaryInterceptor(auth, unary), grpc.ChainStreamInterceptor(authStream, stream))
//
// This process may lose the role while the handler runs, so pass the token to every resource that the call changes. A
// client may name any role: a handler that serves keys checks that neli.Slot(key, R) is the role.
//
// A call for a role that this process does not lead, or of another group, is refused with Unavailable and a trailer that
// tells a connection of [NewClient] to try again. A call whose role cannot be read is refused with InvalidArgument. Calls
// to the services in except run without a check. Guard panics if n is nil, and in non-exclusive mode.
func Guard(n *neli.Neli, except ...string) (grpc.UnaryServerInterceptor, grpc.StreamServerInterceptor) {
	switch {
	case n == nil:
		panic("neligrpc: Guard: n is nil")
	case n.Config().Mode != neli.Exclusive:
		panic("neligrpc: Guard: needs Mode Exclusive: in the other one no process knows who leads")
	}
	return newGuard(member{n}, except)
}

type guard struct {
	src    leaders
	group  string
	except []string
}

func newGuard(src leaders, except []string) (grpc.UnaryServerInterceptor, grpc.StreamServerInterceptor) {
	g := &guard{src: src, group: url.QueryEscape(src.Config().LeaderGroupID), except: except}
	return g.unary, g.stream
}

type termKey struct{}

type term struct {
	role  int
	token int64
}

// FromContext returns the role of a call that a server with [Guard] handles, and the fencing token of the term in which
// the call was let in. ok is false for calls that were not checked.
func FromContext(ctx context.Context) (role int, token int64, ok bool) {
	t, ok := ctx.Value(termKey{}).(term)
	return t.role, t.token, ok
}

func (g *guard) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	in, err := g.admit(ctx, info.FullMethod, func(md metadata.MD) { _ = grpc.SetTrailer(ctx, md) })
	if err != nil {
		return nil, err
	}
	return handle(in, req)
}

func (g *guard) stream(srv any, s grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	in, err := g.admit(s.Context(), info.FullMethod, s.SetTrailer)
	if err != nil {
		return err
	}
	return handle(srv, admitted{s, in})
}

type admitted struct {
	grpc.ServerStream
	ctx context.Context
}

func (a admitted) Context() context.Context { return a.ctx }

// admit returns the context of the handler, or why the call is refused.
func (g *guard) admit(ctx context.Context, method string, trailer func(metadata.MD)) (context.Context, error) {
	service, _, _ := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	if slices.Contains(g.except, service) {
		return ctx, nil
	}
	named := metadata.ValueFromIncomingContext(ctx, roleHeader)
	if len(named) != 1 {
		return nil, status.Errorf(codes.InvalidArgument, "the call has %d headers %s, must have one: use a connection of neligrpc.NewClient", len(named), roleHeader)
	}
	group, number, _ := strings.Cut(named[0], "=")
	role, err := strconv.ParseUint(number, 10, 31)
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "header %s: %.40q must be group=role", roleHeader, named[0])
	}
	if group == g.group {
		if token, ok := g.src.Token(int(role)); ok {
			return context.WithValue(ctx, termKey{}, term{int(role), token}), nil
		}
	}
	trailer(metadata.Pairs(notLeader, group))
	return nil, unavailable(0, "this process does not lead role %d of group %.40q", role, group)
}
