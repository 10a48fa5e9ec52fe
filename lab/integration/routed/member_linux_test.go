// Package routed sends requests for a thousand roles to three processes on a real broker while roles move and processes
// are killed and suspended: over HTTP by nelihttp.Forward, and over gRPC by neligrpc.
package routed

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/goneli/neli"
	"github.com/goneli/neli/lab/child"
	"github.com/goneli/neli/lab/clients"
	"github.com/goneli/neli/neligrpc"
	"github.com/goneli/neli/nelihttp"
)

const (
	envMember = "NELI_TEST_MEMBER"
	roles     = 1000
	timeout   = 2 * time.Second // T
	between   = "the term begins or ends"
)

func TestMain(m *testing.M) {
	if os.Getenv(envMember) == "" {
		os.Exit(m.Run())
	}
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type params struct{ Name, Bootstrap, Store string }

type command struct {
	Role int // to be transferred
	To   string
}

// told is what a member reports: its address at first, then the result of each command.
type told struct{ At, Error string }

func (p params) config() neli.Config {
	provider, err := clients.Chosen()
	if err != nil {
		panic(err)
	}
	return neli.Config{Provider: provider, KafkaConfig: neli.KafkaConfigMap{"bootstrap.servers": p.Bootstrap}, LeaderGroupID: "routed", Name: p.Name,
		Nomination: neli.NominationOpen, Roles: roles, HeartbeatTimeout: timeout}
}

// app writes each request to the store, with the token of its role.
type app struct {
	grpc_health_v1.UnimplementedHealthServer
	params
	gates [roles]struct {
		sync.RWMutex       // held by requests at work
		ended        int64 // the token of the last term that this process has given up
	}
}

// barrier lets a term end when its requests have ended.
func (a *app) barrier(e neli.Event) {
	if e, ok := e.(neli.LeaderRevoked); ok {
		for _, t := range e.Terms {
			for _, role := range t.Roles {
				a.gates[role].Lock()
				a.gates[role].ended = t.Token
				a.gates[role].Unlock()
			}
		}
	}
}

// write returns "" if the store has taken the request.
func (a *app) write(role int, token int64) string {
	g := &a.gates[role]
	g.RLock()
	defer g.RUnlock()
	if g.ended > 0 && token <= g.ended {
		return between
	}
	resp, err := http.PostForm(a.Store, url.Values{"role": {strconv.Itoa(role)}, "token": {strconv.FormatInt(token, 10)}, "who": {a.Name}})
	if err != nil {
		return err.Error()
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return resp.Status
	}
	return ""
}

func (a *app) overHTTP(w http.ResponseWriter, _ *http.Request, in nelihttp.Term) {
	if why := a.write(in.Role, in.Token); why != "" {
		w.Header().Set("Retry-After", "1")
		http.Error(w, why, http.StatusServiceUnavailable)
		return
	}
	fmt.Fprint(w, a.Name)
}

// Check serves requests over gRPC: the message of the health check will do.
func (a *app) Check(ctx context.Context, _ *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	role, token, _ := neligrpc.FromContext(ctx)
	if why := a.write(role, token); why != "" {
		return nil, status.Error(codes.Aborted, why)
	}
	return &grpc_health_v1.HealthCheckResponse{}, nil
}

// overGRPC returns where a member serves gRPC: on the same port as HTTP, at another address.
func overGRPC(u *url.URL) string { return net.JoinHostPort("127.0.0.2", u.Port()) }

func ours(u *url.URL) bool { return u.Hostname() == "127.0.0.1" }

// serve is the main program of a member.
func serve() error {
	a := &app{}
	self, err := child.Begin(&a.params)
	if err != nil {
		return err
	}
	web, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	cfg := a.config()
	cfg.Advertise, cfg.Logger = web.Addr().String(), self.Logger()
	calls, err := net.Listen("tcp", overGRPC(&url.URL{Host: cfg.Advertise}))
	if err != nil {
		return err
	}
	n, err := neli.New(cfg, a.barrier)
	if err != nil {
		return err
	}
	unary, stream := neligrpc.Guard(n)
	rpc := grpc.NewServer(grpc.UnaryInterceptor(unary), grpc.StreamInterceptor(stream))
	grpc_health_v1.RegisterHealthServer(rpc, a)
	go rpc.Serve(calls)
	role := func(r *http.Request) (int, error) { return strconv.Atoi(r.URL.Path[1:]) }
	server := &http.Server{Handler: nelihttp.Forward(n, role, a.overHTTP, nelihttp.WithTargets(ours))}
	go server.Serve(web)
	if _, err := n.Background(func() { <-time.After(time.Millisecond) }); err != nil {
		return err
	}
	self.Tell(told{At: cfg.Advertise})
	return child.Obey(self, func(c command) (last bool, err error) {
		if c.To != "" {
			err := n.Transfer(context.Background(), c.Role, c.To)
			self.Tell(told{Error: fmt.Sprint(err)})
			return false, nil
		}
		err = n.Close()
		self.Tell(told{Error: fmt.Sprint(err)})
		rpc.GracefulStop()
		return true, errors.Join(err, server.Shutdown(context.Background()))
	})
}
