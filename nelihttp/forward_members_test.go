package nelihttp

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
	"github.com/goneli/neli/internal/scenario"
	"github.com/goneli/neli/nelitest"
)

// wires is a network in memory: servers by the addresses that members advertise.
type wires struct {
	at      map[string]*pipes
	servers []*http.Server
	work    sync.WaitGroup
	client  *http.Transport
}

func newWires() *wires {
	w := &wires{at: map[string]*pipes{}}
	w.client = &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		return w.at[address].dial(ctx, network, address)
	}}
	return w
}

// serve starts the server of a process. Its answers name the process and its token.
func (w *wires) serve(n *neli.Neli, name string) {
	p := newPipes()
	server := &http.Server{Handler: Forward(n, roleInPath, func(out http.ResponseWriter, _ *http.Request, in Term) {
		fmt.Fprint(out, name, " ", in.Token)
	}, WithTargets(func(u *url.URL) bool { return u.Port() == "80" }), WithTransport(w.client))}
	w.at[name+":80"] = p
	w.servers = append(w.servers, server)
	w.work.Go(func() { _ = server.Serve(p) })
}

func (w *wires) close() {
	w.client.CloseIdleConnections()
	for _, s := range w.servers {
		_ = s.Close()
	}
	w.work.Wait()
}

// ask sends a request for a role to a member, and returns who has served it and with which token, or the status.
func (w *wires) ask(c *scenario.Cluster, to string, role int) string {
	resp, err := (&http.Client{Transport: w.client}).Get(fmt.Sprintf("http://%s:80/roles/%d", to, role))
	require.NoError(c, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(c, err)
	if resp.StatusCode == http.StatusOK {
		return string(body)
	}
	require.NotEmpty(c, resp.Header.Get("Retry-After"), string(body))
	return fmt.Sprint(resp.StatusCode)
}

// leads returns what the leader of a role must answer.
func leads(c *scenario.Cluster, role int) string {
	m := c.Leader(role, 20*time.Second)
	token, ok := m.Token(role)
	require.True(c, ok)
	return fmt.Sprint(m.As, " ", token)
}

// Whichever process is asked, the leader serves, also if an observer is asked. A process that is cut off, suspended or
// closed serves nothing.
func TestForwardAmongMembers(t *testing.T) {
	const roles = 6
	prepare := func(c *scenario.Cluster) { c.Roles, c.Period = roles, 20*time.Millisecond }
	scenario.Simulate(t, nelitest.Options{}, prepare, func(c *scenario.Cluster) {
		w := newWires()
		defer w.close()
		for _, name := range []string{"a", "b", "c"} {
			w.serve(c.Work(name, func(cfg *neli.Config) { cfg.Nomination, cfg.Advertise = neli.NominationOpen, name+":80" }).Neli, name)
		}
		w.serve(c.Join("o", func(cfg *neli.Config) { cfg.Observer = true }).Neli, "o")
		all := func(of string) {
			c.Helper()
			for role := range roles {
				require.Equal(c, leads(c, role), w.ask(c, of, role), "role %d, asked %s", role, of)
			}
		}
		require.Equal(c, "503", w.ask(c, "a", 0), "nothing is known yet")
		c.Pass(time.Minute)
		for _, of := range []string{"a", "b", "c", "o"} {
			all(of)
			require.Equal(c, of != "o", c.Members[of].IsLeader())
		}

		c.Broker.CutOff("b", nelitest.LinkAll)
		c.Pass(15 * time.Second)
		all("a")
		require.Equal(c, "503", w.ask(c, "b", 0), "it reads nothing, and leads nothing")
		c.Broker.Restore("b", nelitest.LinkAll)
		c.Pass(time.Minute)
		all("b")

		c.Broker.Freeze("b") // its program wakes, its library has not yet
		c.Pass(15 * time.Second)
		all("o")
		for role := range roles {
			if answer := w.ask(c, "b", role); answer != "503" {
				require.Equal(c, leads(c, role), answer, "role %d, asked a process that was suspended", role)
			}
		}
		c.Broker.Resume("b")
		c.Pass(time.Minute)

		require.NoError(c, c.Members["c"].Close())
		c.Pass(5 * time.Second)
		all("b")
		require.Equal(c, "503", w.ask(c, "c", 0))
	})
}

// BenchmarkForward measures what a request for a role that this process leads costs.
func BenchmarkForward(b *testing.B) {
	broker := nelitest.NewBroker(nelitest.Options{})
	defer broker.Close()
	n, err := neli.New(neli.Config{LeaderGroupID: "carts", Roles: 1000, Provider: broker.Provider("a")})
	require.NoError(b, err)
	defer n.Close()
	for !n.IsLeaderOf(999) {
		_, err := n.Pulse(time.Minute)
		require.NoError(b, err)
	}
	served := 0
	h := Forward(n, roleInPath, func(http.ResponseWriter, *http.Request, Term) { served++ }, WithTargets(nowhere))
	w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/roles/999", nil)
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(w, r)
	}
	require.Positive(b, served)
}
