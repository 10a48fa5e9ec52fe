package neligrpc

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/goneli/neli"
	"github.com/goneli/neli/internal/scenario"
	"github.com/goneli/neli/nelitest"
)

// wires is a network in memory: servers by the addresses that members advertise.
type wires struct {
	c    *scenario.Cluster
	at   map[string]*bufconn.Listener
	work sync.WaitGroup
	stop []func()
	open atomic.Int32  // connections to c
	held chan struct{} // closed when calls with a text may end
}

// wire is a connection that is counted.
type wire struct {
	net.Conn
	close func()
}

func (w wire) Close() error {
	w.close()
	return w.Conn.Close()
}

func (w *wires) close() {
	for _, f := range w.stop {
		f()
	}
	w.work.Wait()
}

// serve starts the server of a process. Its answers name the process and its token.
func (w *wires) serve(n *neli.Neli, name string) {
	l := bufconn.Listen(1 << 16)
	unary, stream := Guard(n)
	s := grpc.NewServer(grpc.UnaryInterceptor(unary), grpc.StreamInterceptor(stream))
	s.RegisterService(echo(func(ctx context.Context, text string) (string, error) {
		if text != "" {
			select {
			case <-w.held:
			case <-ctx.Done():
			}
		}
		_, token, _ := FromContext(ctx)
		return fmt.Sprint(name, " ", token), nil
	}), nil)
	w.at[name+":80"] = l
	w.work.Go(func() { _ = s.Serve(l) })
	w.stop = append(w.stop, s.Stop)
}

func (w *wires) connect(n *neli.Neli) *grpc.ClientConn {
	conn, err := NewClient(n, func(u *url.URL) string { return u.Host }, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, to string) (net.Conn, error) {
			c, err := w.at[to].DialContext(ctx)
			if to != "c:80" || err != nil {
				return c, err
			}
			w.open.Add(1)
			return wire{c, sync.OnceFunc(func() { w.open.Add(-1) })}, nil
		}))
	require.NoError(w.c, err)
	w.stop = append(w.stop, func() { _ = conn.Close() })
	return conn
}

// ask returns who has served a call for a role and with which token, or "none" if nothing was done.
func (w *wires) ask(conn *grpc.ClientConn, role int) string {
	out, err := ask(WithRole(w.c.Context(), role), conn, say, "")
	if err != nil {
		refused(w.c.T, err, "")
		return "none"
	}
	return out
}

// leads returns what the leader of a role must answer.
func leads(c *scenario.Cluster, role int) string {
	m := c.Leader(role, 20*time.Second)
	token, ok := m.Token(role)
	require.True(c, ok)
	return fmt.Sprint(m.As, " ", token)
}

// The leader serves whichever process asks, also an observer, and after moves. A process that is cut off or was suspended
// serves nothing. Connections to a process that is no member any more are closed once their calls have ended.
func TestCallsAmongMembers(t *testing.T) {
	const roles = 6
	prepare := func(c *scenario.Cluster) { c.Roles, c.Period = roles, 20*time.Millisecond }
	scenario.Simulate(t, nelitest.Options{}, prepare, func(c *scenario.Cluster) {
		w := &wires{c: c, at: map[string]*bufconn.Listener{}, held: make(chan struct{})}
		defer w.close()
		conns := map[string]*grpc.ClientConn{}
		for _, name := range []string{"a", "b", "c"} {
			n := c.Work(name, func(cfg *neli.Config) { cfg.Nomination, cfg.Advertise = neli.NominationOpen, name+":80" }).Neli
			w.serve(n, name)
			conns[name] = w.connect(n)
		}
		conns["o"] = w.connect(c.Join("o", func(cfg *neli.Config) { cfg.Observer = true }).Neli)
		all := func(of string) {
			c.Helper()
			for role := range roles {
				require.Equal(c, leads(c, role), w.ask(conns[of], role), "role %d, asked by %s", role, of)
			}
		}
		require.Equal(c, "none", w.ask(conns["a"], 0), "nothing is known yet")
		c.Pass(time.Minute)
		for _, of := range []string{"a", "b", "c", "o"} {
			all(of)
		}
		to := "a"
		if c.Leader(0, time.Second).As == "a" {
			to = "b"
		}
		require.NoError(c, c.Leader(0, time.Second).Transfer(c.Context(), 0, to))
		c.Pass(20 * time.Millisecond) // until all have read of it
		require.Regexp(c, "^"+to+" ", w.ask(conns["o"], 0), "after a Transfer nothing fails")

		c.Broker.CutOff("b", nelitest.LinkAll)
		c.Pass(15 * time.Second)
		all("a")
		require.Equal(c, "none", w.ask(conns["b"], 0), "it reads nothing")
		c.Broker.Restore("b", nelitest.LinkAll)
		c.Pass(time.Minute)
		all("b")

		c.Broker.Freeze("b") // its program wakes, its library has not yet
		c.Pass(15 * time.Second)
		all("o")
		for role := range roles {
			if answer := w.ask(conns["b"], role); answer != "none" {
				require.Equal(c, leads(c, role), answer, "role %d, asked by a process that was suspended", role)
			}
		}
		c.Broker.Resume("b")
		c.Pass(time.Minute)

		answer := make(chan error, 1)
		for role := range c.Members["c"].Led() {
			go func() {
				_, err := ask(WithRole(c.Context(), role), conns["o"], say, "wait")
				answer <- err
			}()
			break
		}
		synctest.Wait()
		require.NoError(c, c.Members["c"].Close())
		c.Pass(5 * time.Second)
		all("o")
		require.Equal(c, "none", w.ask(conns["c"], 0))
		c.Pass(20 * time.Second)
		all("o")
		require.EqualValues(c, 1, w.open.Load(), "c is no member any more: only the connection of the call in progress is left")
		close(w.held)
		require.NoError(c, <-answer)
		synctest.Wait()
		require.Zero(c, w.open.Load(), "its connection is left, too")
	})
}
