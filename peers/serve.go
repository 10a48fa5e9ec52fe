package peers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"golang.org/x/net/netutil"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"github.com/goneli/neli/peers/internal/wire"
	"github.com/goneli/neli/peers/smalllog"
)

const (
	// maxMessage is the largest size of a record with its envelope, or of a hello with its list. The
	// header of a longer message suffices to refuse it, before anything is allocated for it.
	maxMessage = smalllog.MaxValue + 8<<10
	// maxHeaders is the largest size of a call's headers. The library sends a few hundred bytes; gRPC
	// would accept 16 MiB.
	maxHeaders = 16 << 10
	// window is how many bytes may be in flight to a member or host that does not read. Since it is set,
	// gRPC does not probe for a better one with messages of its own.
	window = 256 << 10
	// maxStreams is how many streams one connection may have. A client needs one.
	maxStreams = 4
	// maxConnections is how many connections may exist at a time, including those still in the TLS
	// handshake and those of strangers. Each subscriber needs one, and each other host needs one
	// for a moment. Without a limit a stranger could use up all descriptors of the process.
	maxConnections = maxSubscribers + 24
	// idleFor is how long a connection may have no stream. Every useful client has one.
	idleFor = 30 * time.Second
	// shakeWithin is the time limit for TLS and the HTTP/2 preface, so that nonsense on the port
	// does not hold a connection.
	shakeWithin = 10 * time.Second
)

// server is a log host on the network.
type server struct {
	wire.UnimplementedSmallLogServer
	host   *host
	keys   *keys // nil: no TLS
	grpc   *grpc.Server
	listen net.Listener
	served chan error
	stop   context.CancelFunc
}

// newServer listens, with a new and empty log.
func newServer(ctx context.Context, s *settings, logger *slog.Logger) (*server, error) {
	address := s.self.Address
	if s.config.Listen != "" {
		address = s.config.Listen
	}
	var lc net.ListenConfig
	listen, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("peers: log host %s cannot listen: %w (one address has one log host)", s.self.ID, err)
	}
	// The file is opened after listening: until the former host has ended, it may still change.
	top, err := openTop(s.config.TopFile, s.agreed.group, s.self.ID)
	if err != nil {
		_ = listen.Close() // nothing was accepted
		return nil, err
	}
	v := &server{host: newHost(s.self, s.agreed, top, logger), keys: s.keys, listen: listen, served: make(chan error, 1)}
	v.host.ask = s.ask
	v.host.closing, v.stop = context.WithCancel(context.WithoutCancel(ctx))
	v.grpc = grpc.NewServer(
		grpc.Creds(s.serverCredentials()),
		grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage), grpc.MaxHeaderListSize(maxHeaders), grpc.InTapHandle(bounded),
		grpc.InitialWindowSize(window), grpc.InitialConnWindowSize(window),
		grpc.MaxConcurrentStreams(maxStreams), grpc.ConnectionTimeout(shakeWithin), grpc.WaitForHandlers(true),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: idleFor, Time: max(5*time.Second, 3*s.agreed.timeout), Timeout: 5 * time.Second}),
	)
	wire.RegisterSmallLogServer(v.grpc, v)
	go func() { v.served <- v.grpc.Serve(netutil.LimitListener(listen, maxConnections)) }()
	logger.Info("log host is up, with an empty log", "host", s.self.ID, "address", listen.Addr(), "incarnation", v.host.store.ID(),
		"timeout", s.agreed.timeout)
	return v, nil
}

// close ends all streams, and waits for them.
func (v *server) close() error {
	v.stop()
	v.grpc.Stop()
	err := <-v.served
	v.host.work.Wait()
	if errors.Is(err, grpc.ErrServerStopped) {
		return nil
	}
	return err
}

// Follow implements the wire protocol.
func (v *server) Follow(s grpc.BidiStreamingServer[wire.ToHost, wire.FromHost]) error {
	if err := v.admit(s.Context()); err != nil {
		return err
	}
	return v.host.follow(s)
}

// bounded gives a call of Check a time limit. gRPC waits for the message before it calls Check, so
// Check, unlike Follow, cannot limit that wait itself.
func bounded(ctx context.Context, call *tap.Info) (context.Context, error) {
	if call.FullMethodName == wire.SmallLog_Check_FullMethodName {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, helloWithin)
		context.AfterFunc(ctx, cancel)
	}
	return ctx, nil
}

// Check implements the wire protocol.
func (v *server) Check(ctx context.Context, other *wire.Agreement) (*wire.Agreement, error) {
	if err := v.admit(ctx); err != nil {
		return nil, err
	}
	return v.host.check(other)
}

// admit returns an error if the client's certificate is neither that of a host nor one of Members.
func (v *server) admit(ctx context.Context) error {
	if v.keys == nil {
		return nil
	}
	who, _ := peer.FromContext(ctx)
	info, ok := who.AuthInfo.(credentials.TLSInfo)
	if !ok || len(info.State.PeerCertificates) == 0 {
		return status.Error(codes.Unauthenticated, "no certificate")
	}
	if err := v.keys.admits(info.State.PeerCertificates[0], v.host.agreed.all()); err != nil {
		if v.host.refusals.due(err.Error()) {
			v.host.logger.Error("refused: may not connect", "host", v.host.self.ID, "from", who.Addr, "error", err)
		}
		return status.Error(codes.PermissionDenied, err.Error())
	}
	return nil
}

func (s *settings) serverCredentials() credentials.TransportCredentials {
	if s.keys == nil {
		return insecure.NewCredentials()
	}
	return s.keys.credentials("")
}

// connect makes a connection for one attempt only: a connection that the network has silently
// lost must not be used again.
func (s *settings) connect(h Host) (*grpc.ClientConn, error) {
	creds := insecure.NewCredentials()
	if s.keys != nil {
		name, err := splitAddress(h.Address)
		if err != nil {
			return nil, err
		}
		creds = s.keys.credentials(name)
	}
	return grpc.NewClient("passthrough:///"+strings.ReplaceAll(h.Address, "%", "%25"), // the zone of an IPv6 address, in a URL
		grpc.WithTransportCredentials(creds),
		grpc.WithContextDialer(s.config.dial),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
		grpc.WithInitialWindowSize(window), grpc.WithInitialConnWindowSize(window),
		grpc.WithDisableServiceConfig(), grpc.WithDisableRetry(), grpc.WithDisableHealthCheck(),
	)
}

// plain returns the text of a call's error, without gRPC's wrapping.
func plain(err error) error {
	if s, ok := status.FromError(err); ok {
		text := strings.TrimPrefix(s.Message(), "connection error: desc = ")
		if unquoted, ok := strings.CutPrefix(text, `"`); ok {
			text = strings.TrimSuffix(unquoted, `"`)
		}
		return errors.New(brief(text))
	}
	return err
}
