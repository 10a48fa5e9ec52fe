package nelihttp

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goneli/neli"
	"github.com/stretchr/testify/require"
)

// crew is a group of processes with real listeners, whose knowledge a test sets.
type crew struct {
	*testing.T
	peers  map[string]*peer
	client *http.Client
}

func newCrew(t *testing.T, names ...string) *crew {
	transport := &http.Transport{DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	c := &crew{T: t, peers: map[string]*peer{}, client: &http.Client{Transport: transport}}
	for _, name := range names {
		p := &peer{name: name, do: serveBy(name)}
		p.server = httptest.NewUnstartedServer(nil)
		p.at = p.server.Listener.Addr().String()
		p.forwarder = newForwarder(p, roleInPath, func(w http.ResponseWriter, r *http.Request, in Term) { p.do(w, r, in) },
			WithTargets(func(*url.URL) bool { return true }), WithTransport(transport))
		p.server.Config.Handler = p
		p.server.Start()
		t.Cleanup(p.server.Close)
		c.peers[name] = p
	}
	return c
}

// serveBy returns a handler that answers with what it has got.
func serveBy(name string) func(http.ResponseWriter, *http.Request, Term) {
	return func(w http.ResponseWriter, r *http.Request, in Term) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s serves role %d, token %d: %s", name, in.Role, in.Token, body)
	}
}

// roleInPath is the role function of all tests.
func roleInPath(r *http.Request) (int, error) {
	_, role, _ := strings.Cut(r.URL.Path, "/roles/")
	role, _, _ = strings.Cut(role, "/")
	return strconv.Atoi(role)
}

// peer is a process. A test sets what it leads, and which holders it knows.
type peer struct {
	name, at  string
	server    *httptest.Server
	forwarder *forwarder
	do        func(http.ResponseWriter, *http.Request, Term)

	mu    sync.Mutex
	token int64         // with which it leads role 1; 0: it does not
	known []neli.Holder // what Holder returns, one after the other; the last stays
	got   []http.Header // of the requests that have arrived
}

func (p *peer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.got = append(p.got, r.Header.Clone())
	p.mu.Unlock()
	p.forwarder.ServeHTTP(w, r)
}

// arrived returns the headers of the requests that have arrived.
func (p *peer) arrived() []http.Header {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.got)
}

func (p *peer) Config() neli.Config {
	return neli.Config{LeaderGroupID: "the carts", Advertise: p.at, HeartbeatTimeout: 5 * time.Second}
}

func (p *peer) Roles() int { return 8 }

func (p *peer) Token(role int) (int64, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.token, role == 1 && p.token > 0
}

func (p *peer) Holder(int) (neli.Holder, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.known) == 0 {
		return neli.Holder{}, false
	}
	now := p.known[0]
	p.known = p.known[min(1, len(p.known)-1):]
	return now, true
}

// knows sets whom a peer names as the holder of role 1, call by call.
func (c *crew) knows(name string, holders ...string) {
	for _, h := range holders {
		c.peers[name].known = append(c.peers[name].known, c.peers[h].holder())
	}
}

func (p *peer) holder() neli.Holder {
	return neli.Holder{Name: p.name, Member: "id of " + p.name, Advertise: p.at, Token: 17, Age: 1200 * time.Millisecond}
}

// ask sends a request to a peer. The answer's body is read to its end.
func (c *crew) ask(to, method, path string, body io.Reader, change ...func(*http.Request)) (*http.Response, string) {
	c.Helper()
	r, err := http.NewRequestWithContext(c.Context(), method, "http://"+c.peers[to].at+path, body)
	require.NoError(c, err)
	for _, f := range change {
		f(r)
	}
	resp, err := c.client.Do(r)
	require.NoError(c, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(c, err)
	return resp, string(text)
}

// asked says how many requests have arrived at each peer.
func (c *crew) asked() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(c.peers)) {
		all = append(all, fmt.Sprint(name, len(c.peers[name].arrived())))
	}
	return strings.Join(all, " ")
}

// refused asserts that a client is to try again, and after how many seconds.
func (c *crew) refused(resp *http.Response, body, seconds, why string) {
	c.Helper()
	require.Equal(c, http.StatusServiceUnavailable, resp.StatusCode, body)
	require.Equal(c, seconds, resp.Header.Get("Retry-After"), body)
	require.Equal(c, "no-store", resp.Header.Get("Cache-Control"))
	require.Empty(c, resp.Header.Get(notLeader))
	require.Contains(c, jsonOf(c.T, body)["error"], why)
}
