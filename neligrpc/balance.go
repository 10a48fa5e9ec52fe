package neligrpc

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"google.golang.org/grpc/attributes"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/status"

	"github.com/goneli/neli/internal/advertised"
)

const (
	scheme = "neli"        // of targets
	policy = "neli_leader" // the name of the balancer
)

func init() { balancer.Register(policyBuilder{}) }

// builder makes the resolver of a connection. It names no addresses: the balancer asks for them when a call needs one.
type builder struct{ *client }

func (builder) Scheme() string { return scheme }

func (b builder) Build(_ resolver.Target, to resolver.ClientConn, _ resolver.BuildOptions) (resolver.Resolver, error) {
	ctx, cancel := context.WithCancel(context.Background())
	w := &watcher{client: b.client, to: to, cancel: cancel}
	w.report()
	w.work.Go(func() {
		for range b.src.Watch(ctx) {
			w.report()
		}
	})
	w.work.Go(func() { w.tick(ctx) })
	return w, nil
}

// watcher is the resolver: at each change it lets the calls that wait ask again.
type watcher struct {
	client *client
	to     resolver.ClientConn
	cancel context.CancelFunc
	work   sync.WaitGroup
}

// tick reports after each T, because Watch does not tell when the address of a holder becomes known.
func (w *watcher) tick(ctx context.Context) {
	every := time.NewTicker(w.client.timeout)
	defer every.Stop()
	for {
		select {
		case <-every.C:
			w.report()
		case <-ctx.Done():
			return
		}
	}
}

type clientKey struct{}

func (w *watcher) report() {
	_ = w.to.UpdateState(resolver.State{Attributes: attributes.New(clientKey{}, w.client)}) // fails only without the attribute
	w.client.mu.Lock()
	defer w.client.mu.Unlock()
	close(w.client.news)
	w.client.news = make(chan struct{})
}

func (w *watcher) ResolveNow(resolver.ResolveNowOptions) {}

func (w *watcher) Close() {
	w.cancel()
	w.work.Wait()
}

type policyBuilder struct{}

func (policyBuilder) Name() string { return policy }

func (policyBuilder) Build(cc balancer.ClientConn, _ balancer.BuildOptions) balancer.Balancer {
	return &balance{cc: cc, conns: map[string]*conn{}}
}

// balance connects to the processes that calls go to, and picks one for each attempt of a call.
type balance struct {
	cc balancer.ClientConn

	mu     sync.Mutex
	client *client          // nil until the first report, and after Close
	conns  map[string]*conn // by host:port
	swept  time.Time        // when unused connections were last looked for
}

type conn struct {
	sub   balancer.SubConn // nil while it is made
	state connectivity.State
	err   error     // why connecting failed
	used  time.Time // when a call last picked it
}

func (b *balance) UpdateClientConnState(s balancer.ClientConnState) error {
	c, ok := s.ResolverState.Attributes.Value(clientKey{}).(*client)
	if !ok {
		return balancer.ErrBadResolverState
	}
	b.mu.Lock()
	b.client = c
	b.mu.Unlock()
	if now := time.Now(); now.Sub(b.swept) >= c.timeout {
		b.swept = now
		b.closeFormer(c, now.Add(-2*c.timeout))
	}
	b.repick()
	return nil
}

// closeFormer closes connections that lead to no member and were last picked at since or earlier.
func (b *balance) closeFormer(c *client, since time.Time) {
	members := map[string]bool{}
	for _, m := range c.src.Members() {
		if u := advertised.URL(m.Advertise); u != nil {
			members[c.targets(u)] = true
		}
	}
	b.close(func(at string, to *conn) bool { return !members[at] && !to.used.After(since) })
}

// close closes some connections. grpc lets their calls in progress end.
func (b *balance) close(which func(at string, to *conn) bool) {
	var subs []balancer.SubConn
	b.mu.Lock()
	maps.DeleteFunc(b.conns, func(at string, to *conn) bool {
		if to.sub == nil || !which(at, to) {
			return false
		}
		subs = append(subs, to.sub)
		return true
	})
	b.mu.Unlock()
	for _, s := range subs {
		s.Shutdown()
	}
}

// repick lets the calls that wait pick again.
func (b *balance) repick() {
	b.mu.Lock()
	state := connectivity.Idle
	for _, c := range b.conns {
		if c.state == connectivity.Ready {
			state = connectivity.Ready
		}
	}
	b.mu.Unlock()
	b.cc.UpdateState(balancer.State{ConnectivityState: state, Picker: b})
}

// Pick asks who leads at this moment.
func (b *balance) Pick(info balancer.PickInfo) (balancer.PickResult, error) {
	b.mu.Lock()
	c := b.client
	b.mu.Unlock()
	if c == nil {
		return balancer.PickResult{}, balancer.ErrNoSubConnAvailable // closed: grpc has another balancer, or ends the call
	}
	now, ok := info.Ctx.Value(callKey{}).(*call)
	if !ok {
		return balancer.PickResult{}, status.Error(codes.Internal, "neligrpc: the call has passed by the interceptors of its connection")
	}
	h, at, err := c.find(now.role)
	if err == nil {
		to := b.connTo(at)
		switch to.state {
		case connectivity.Ready:
			now.to.Store(&h)
			return balancer.PickResult{SubConn: to.sub}, nil
		case connectivity.TransientFailure:
			err = unavailable(c.timeout-h.Age, "role %d: the process that leads it cannot be reached: %v", now.role, to.err)
		default:
			err = balancer.ErrNoSubConnAvailable
		}
	}
	if now.wait && status.Code(err) == codes.Unavailable {
		err = errors.New(status.Convert(err).Message()) // no status: grpc waits for the next report
	}
	return balancer.PickResult{}, err
}

// connTo returns the connection to a process, and makes it if there is none. Calls wait until it is ready or fails.
func (b *balance) connTo(at string) conn {
	b.mu.Lock()
	if c := b.conns[at]; c != nil {
		defer b.mu.Unlock()
		c.used = time.Now()
		return *c
	}
	c := &conn{state: connectivity.Connecting, used: time.Now()}
	b.conns[at] = c
	b.mu.Unlock()
	//lint:ignore SA1019 only several addresses are deprecated
	sub, err := b.cc.NewSubConn([]resolver.Address{{Addr: at, ServerName: at}},
		balancer.NewSubConnOptions{StateListener: func(s balancer.SubConnState) { b.changed(c, s) }})
	b.mu.Lock()
	c.sub = sub
	closed := b.client == nil
	if err != nil || closed {
		delete(b.conns, at)
	}
	b.mu.Unlock()
	switch {
	case err != nil:
		b.repick()
		return conn{state: connectivity.TransientFailure, err: err}
	case closed:
		sub.Shutdown()
	default:
		sub.Connect()
	}
	return conn{state: connectivity.Connecting}
}

// changed forgets a connection that has ended, or whose process could not be reached some time ago: the next call makes
// another one.
func (b *balance) changed(c *conn, now balancer.SubConnState) {
	b.mu.Lock()
	c.state, c.err = now.ConnectivityState, now.ConnectionError
	b.mu.Unlock()
	if now.ConnectivityState == connectivity.Idle {
		b.close(func(_ string, to *conn) bool { return to == c })
	}
	b.repick()
}

func (b *balance) ResolverError(error) {} // the resolver has none

func (b *balance) UpdateSubConnState(balancer.SubConn, balancer.SubConnState) {} // each SubConn has a listener

func (b *balance) ExitIdle() {} // calls make connections

func (b *balance) Close() {
	b.mu.Lock()
	b.client = nil // so that connTo closes a connection that it is making
	b.mu.Unlock()
	b.close(func(string, *conn) bool { return true })
}
