package nelihttp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goneli/neli"
	"github.com/goneli/neli/nelitest"
	"github.com/stretchr/testify/require"
)

// A process serves the roles that it leads, with its token. It ignores the header of hops then, and
// allocates nothing.
func TestForwardServesRolesOfThisProcess(t *testing.T) {
	c := newCrew(t, "a", "b")
	c.peers["a"].token = 17
	c.knows("a", "b")
	for _, hops := range []string{"", "the+carts=1", "the+carts=9", "nonsense"} {
		resp, body := c.ask("a", "POST", "/roles/1/x", strings.NewReader("hello"), func(r *http.Request) { r.Header.Set(hopsHeader, hops) })
		require.Equal(t, http.StatusOK, resp.StatusCode)
		require.Equal(t, "a serves role 1, token 17: hello", body)
	}
	require.Equal(t, "a4 b0", c.asked())

	c.peers["a"].do = func(http.ResponseWriter, *http.Request, Term) {}
	w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/roles/1", nil)
	require.Zero(t, testing.AllocsPerRun(1000, func() { c.peers["a"].forwarder.ServeHTTP(w, r) }))
}

// The holder gets the request as the client has sent it, and the client gets the holder's answer.
func TestForwardSendsTheRequestAsItCame(t *testing.T) {
	c := newCrew(t, "a", "b")
	c.peers["b"].token = 17
	c.knows("a", "b")
	const uri = "/roles/1/a%2Fb/%C3%A4?q=1&bad=%zz;x=2&empty"
	c.peers["b"].do = func(w http.ResponseWriter, r *http.Request, in Term) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Add("Set-Cookie", "a=1")
		w.Header().Add("Set-Cookie", "b=2")
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprintln(w, r.Method, r.Host, r.RequestURI, r.Header.Get("X-User"), string(body), in)
	}
	resp, body := c.ask("a", "PATCH", uri, strings.NewReader("the body"), func(r *http.Request) {
		r.Host = "carts.example:8443"
		r.Header.Set("X-User", "ada")
		r.Header.Set("X-Forwarded-For", "10.9.8.7")
		r.Header.Set("X-Forwarded-Proto", "https")
	})
	require.Equal(t, http.StatusTeapot, resp.StatusCode)
	require.Equal(t, []string{"a=1", "b=2"}, resp.Header["Set-Cookie"])
	require.Equal(t, "PATCH carts.example:8443 "+uri+" ada the body {1 17}\n", body)
	got := c.peers["b"].arrived()[0]
	require.Equal(t, "10.9.8.7, 127.0.0.1", got.Get("X-Forwarded-For"))
	require.Equal(t, "https", got.Get("X-Forwarded-Proto"), "the proxy before us knew")
	require.Equal(t, "carts.example:8443", got.Get("X-Forwarded-Host"))
	require.Equal(t, []string{"the+carts=1"}, got[hopsHeader])
}

// A request reaches the leader over two others at most. Only the first process looks again, once, and only if it can send
// the body again. knows is what Holder returns in each process, one after the other.
func TestForwardFindsTheLeader(t *testing.T) {
	const hello, gone = "serves role 1, token 17: hello", "does not lead it any more"
	known, streamed, large := strings.NewReader, func(s string) io.Reader { return io.MultiReader(strings.NewReader(s)) }, make([]byte, maxReplay+1)
	for _, s := range []struct {
		what, knows, leads string
		body               io.Reader
		says, reaches      string
	}{
		{"another holder", "a:bc", "c", known("hello"), "c " + hello, "a1 b1 c1 d0"},
		{"another holder without a body", "a:bc", "c", nil, "c serves role 1, token 17: ", "a1 b1 c1 d0"},
		{"the same holder", "a:bb", "", known("hello"), gone, "a1 b1 c0 d0"},
		{"another holder that does not lead either", "a:bcd", "d", known("hello"), gone, "a1 b1 c1 d0"},
		{"a body of unknown length", "a:bc", "c", streamed("hello"), gone, "a1 b1 c0 d0"},
		{"a body that is large", "a:bc", "c", bytes.NewReader(large), gone, "a1 b1 c0 d0"},
		{"a former holder that knows the successor", "a:b b:c", "c", streamed("hello"), "c " + hello, "a1 b1 c1 d0"},
		{"too many former holders", "a:b b:c c:d", "d", known("hello"), gone, "a1 b1 c1 d0"},
		{"a ring", "a:b b:a", "", nil, gone, "a2 b1 c0 d0"},
		{"a former holder that could look again", "a:b b:cd", "d", nil, gone, "a1 b1 c1 d0"},
		{"this process itself", "a:a", "", nil, "this process is known as its holder", "a1 b0 c0 d0"},
	} {
		t.Run(s.what, func(t *testing.T) {
			c := newCrew(t, "a", "b", "c", "d")
			for word := range strings.FieldsSeq(s.knows) {
				name, holders, _ := strings.Cut(word, ":")
				c.knows(name, strings.Split(holders, "")...)
			}
			if s.leads != "" {
				c.peers[s.leads].token = 17
			}
			resp, body := c.ask("a", "POST", "/roles/1", s.body)
			require.Equal(t, s.reaches, c.asked())
			if strings.Contains(s.says, "serves") {
				require.Equal(t, s.says, body)
			} else {
				c.refused(resp, body, "1", s.says)
			}
		})
	}
}

// A process that has become the leader meanwhile serves the request that the former one has refused.
func TestForwardServesARequestSentBack(t *testing.T) {
	c := newCrew(t, "a", "b")
	c.knows("a", "b")
	refuse := c.peers["b"].forwarder.role
	c.peers["b"].forwarder.role = func(r *http.Request) (int, error) {
		c.peers["a"].mu.Lock()
		defer c.peers["a"].mu.Unlock()
		c.peers["a"].token = 17
		return refuse(r)
	}
	resp, body := c.ask("a", "POST", "/roles/1", strings.NewReader("hello"))
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Equal(t, "a serves role 1, token 17: hello", body)
	require.Equal(t, "a1 b1", c.asked())
}

// A request with a malformed header is not forwarded. The counts of other groups are passed on.
func TestForwardChecksTheHeaderOfHops(t *testing.T) {
	c := newCrew(t, "a", "b")
	c.knows("a", "b")
	c.peers["b"].token = 17
	for _, hops := range []string{"", "1", "the+carts", "the+carts=", "the+carts=0", "the+carts=-1", "the+carts=+1", "the+carts=2", "the+carts=256",
		"the+carts=1, the+carts=1", "=1", "bills", "bills=x", ",", "the+carts=1,", strings.Repeat("x", maxGroup+1) + "=1",
		strings.TrimSuffix(strings.Repeat("bills=1,", maxOthers+1), ",")} {
		resp, body := c.ask("a", "GET", "/roles/1", nil, func(r *http.Request) { r.Header[hopsHeader] = []string{hops} })
		require.Equal(t, http.StatusMisdirectedRequest, resp.StatusCode, "hops %q are too many", hops)
		require.Equal(t, "the+carts", resp.Header.Get(notLeader))
		require.Contains(t, jsonOf(t, body)["error"], "forwarded too often")
	}
	require.Empty(t, c.peers["b"].arrived())
	for _, s := range []struct {
		before []string
		after  string
	}{
		{[]string{"the+carts=1"}, "the+carts=2"},
		{[]string{"bills=2"}, "bills=2, the+carts=1"},
		{[]string{strings.Repeat("bills=1,", maxOthers) + "the+carts=1"}, strings.Repeat("bills=1, ", maxOthers) + "the+carts=2"},
		{[]string{"bills=2", " the+carts=1 , the%2Ccarts=3"}, "bills=2, the%2Ccarts=3, the+carts=2"},
	} {
		resp, _ := c.ask("a", "GET", "/roles/1", nil, func(r *http.Request) {
			r.Header[hopsHeader] = s.before
			r.Header.Set("Connection", hopsHeader) // asks to remove it
		})
		require.Equal(t, http.StatusOK, resp.StatusCode)
		got := c.peers["b"].arrived()
		require.Equal(t, []string{s.after}, got[len(got)-1][hopsHeader])
	}
}

// sends is a RoundTripper that keeps what it is to send.
type sends struct{ out []*http.Request }

func (s *sends) RoundTrip(r *http.Request) (*http.Response, error) {
	s.out = append(s.out, r)
	return &http.Response{StatusCode: http.StatusNoContent, Header: http.Header{}, Body: http.NoBody}, nil
}

// lone returns a peer without a server that knows a holder with that address, and the requests that it sends.
func lone(advertise string, allow func(*url.URL) bool) (*peer, *sends) {
	p, out := &peer{at: "10.0.0.1:80", known: []neli.Holder{{Member: "id of b", Advertise: advertise, Age: time.Second}}}, &sends{}
	p.forwarder = newForwarder(p, roleInPath, serveBy("a"), WithTargets(allow), WithTransport(out))
	return p, out
}

// Requests go to addresses that the holder has advertised, with http or https, and that are allowed. Since the holder
// serves the same routes, the path is the client's, also under a prefix.
func TestForwardSendsToAllowedAddressesOnly(t *testing.T) {
	allow := func(u *url.URL) bool {
		return u.Hostname() == "10.0.0.2" && u.Path != "/no" || strings.HasSuffix(u.Hostname(), ".svc")
	}
	for _, s := range []struct{ advertise, to, why string }{
		{"10.0.0.2:8080", "http://10.0.0.2:8080/x/roles/1?q", ""},
		{"https://10.0.0.2", "https://10.0.0.2/x/roles/1?q", ""},
		{"https://10.0.0.2:8443/base/?a=b#c", "https://10.0.0.2:8443/base/x/roles/1?q", ""},
		{"", "", "is not known"},
		{"10.0.0.1:80", "", "this process"},
		{"http://10.0.0.1:80", "", "this process"},
		{"169.254.169.254:80", "", "not allowed"},
		{"http://10.0.0.2.evil.example/", "", "not allowed"},
		{"http://10.0.0.2:80/no", "", "not allowed"},
		{"http://10.0.0.2@evil.example/", "", "neither"},
		{"ws://10.0.0.2:80", "", "neither"},
		{"grpc://10.0.0.2:80", "", "neither"},
		{"file:///10.0.0.2", "", "neither"},
		{"http://", "", "neither"},
		{"http://:80", "", "neither"},
		{"http://10.0.0.2:x", "", "neither"},
		{"10.0.0.2:80 ", "", "neither"},
		{"http://[::ffff:169.254.169.254%25.svc]", "", "neither"}, // is dialled as 169.254.169.254
	} {
		p, out := lone(s.advertise, allow)
		w, body := ask(t, http.StripPrefix("/x", p.forwarder), "GET", "/x/roles/1?q")
		if s.to != "" {
			require.Equal(t, http.StatusNoContent, w.Code, s.advertise)
			require.Equal(t, s.to, out.out[0].URL.String())
			continue
		}
		require.Empty(t, out.out, "nothing is sent to %q", s.advertise)
		require.Equal(t, http.StatusServiceUnavailable, w.Code, s.advertise)
		seconds := "4" // the rest of the holder's lease
		if s.why == "this process" {
			seconds = "1"
		}
		require.Equal(t, seconds, w.Header().Get("Retry-After"))
		require.Contains(t, jsonOf(t, body)["error"], s.why, s.advertise)
	}
}

// coded is an error with a status.
type coded int

func (c coded) Error() string   { return "no such <key>" }
func (c coded) StatusCode() int { return int(c) }

func TestForwardRefusesRequestsWithoutARole(t *testing.T) {
	p, out := lone("10.0.0.2:80", func(*url.URL) bool { return true })
	for _, s := range []struct {
		role   int
		err    error
		status int
		why    string
	}{
		{-1, nil, 400, "role -1: must be from 0 to 7"},
		{8, nil, 400, "role 8: must be from 0 to 7"},
		{1 << 40, nil, 400, "must be from 0 to 7"},
		{0, errors.New("no key"), 400, "no key"},
		{0, fmt.Errorf("shop: %w", coded(404)), 404, "shop: no such <key>"},
		{0, coded(503), 503, "no such <key>"},
		{0, coded(200), 400, "no such <key>"},
		{0, coded(1000), 400, "no such <key>"},
	} {
		p.forwarder.role = func(*http.Request) (int, error) { return s.role, s.err }
		w, body := ask(t, p.forwarder, "GET", "/")
		require.Equal(t, s.status, w.Code)
		require.Contains(t, jsonOf(t, body)["error"], s.why)
	}
	require.Empty(t, out.out)
}

// A client is told when the known lease of the holder is over.
func TestForwardSaysWhenToTryAgain(t *testing.T) {
	c := newCrew(t, "a", "b")
	resp, body := c.ask("a", "GET", "/roles/1", nil)
	c.refused(resp, body, "1", "role 1: no holder is known")
	c.peers["b"].server.Close()
	for age, seconds := range map[time.Duration]string{0: "5", 1200 * time.Millisecond: "4", 4 * time.Second: "1", time.Hour: "1"} {
		b := c.peers["b"].holder()
		b.Age = age
		c.peers["a"].known = []neli.Holder{b}
		resp, body := c.ask("a", "POST", "/roles/1", strings.NewReader("hello"))
		c.refused(resp, body, seconds, "cannot be reached")
	}
}

// A holder that breaks the connection may have done what was asked. The client must not take it for undone.
func TestForwardRepeatsNothingThatMayHaveRun(t *testing.T) {
	c := newCrew(t, "a", "b", "c")
	c.knows("a", "b", "c")
	c.peers["b"].token = 17
	c.peers["c"].token = 17
	c.peers["b"].do = func(http.ResponseWriter, *http.Request, Term) { panic(http.ErrAbortHandler) }
	resp, body := c.ask("a", "POST", "/roles/1", strings.NewReader("hello"))
	require.Equal(t, http.StatusBadGateway, resp.StatusCode)
	require.Empty(t, resp.Header.Get("Retry-After"))
	require.Contains(t, jsonOf(t, body)["error"], "did not answer")
	require.Equal(t, "a1 b1 c0", c.asked())
}

// http.Transport repeats some requests if an idle connection breaks. If it cannot connect then, the holder may still
// have done what was asked.
func TestForwardAnswers502IfTheRequestWasSent(t *testing.T) {
	c := newCrew(t, "a", "b")
	c.knows("a", "b")
	c.peers["b"].token = 17
	keyed := func(r *http.Request) { r.Header.Set("Idempotency-Key", "k") }
	resp, _ := c.ask("a", "POST", "/roles/1", strings.NewReader("hello"), keyed)
	require.Equal(t, http.StatusOK, resp.StatusCode)
	c.peers["b"].do = func(http.ResponseWriter, *http.Request, Term) {
		_ = c.peers["b"].server.Listener.Close()
		panic(http.ErrAbortHandler)
	}
	resp, body := c.ask("a", "POST", "/roles/1", strings.NewReader("hello"), keyed)
	require.Equal(t, "a2 b2", c.asked())
	require.Equal(t, http.StatusBadGateway, resp.StatusCode, body)
}

// A 421 of the application is an answer like others.
func TestForwardPassesOnTheApplications421(t *testing.T) {
	c := newCrew(t, "a", "b", "c")
	c.knows("a", "b", "c")
	c.peers["b"].token = 17
	c.peers["b"].do = func(w http.ResponseWriter, _ *http.Request, _ Term) {
		w.Header().Set(notLeader, "other+group")
		w.WriteHeader(http.StatusMisdirectedRequest)
	}
	resp, _ := c.ask("a", "GET", "/roles/1", nil)
	require.Equal(t, http.StatusMisdirectedRequest, resp.StatusCode)
	require.Equal(t, "a1 b1 c0", c.asked())
}

func TestForwardNeedsAllItsParts(t *testing.T) {
	p, _ := lone("", nowhere)
	require.PanicsWithValue(t, "nelihttp: Forward: n is nil", func() { Forward(nil, roleInPath, p.do) })
	require.PanicsWithValue(t, "nelihttp: Forward: WithTargets is missing: it says to which addresses requests may be sent",
		func() { newForwarder(p, roleInPath, p.do) })
	broker := nelitest.NewBroker(nelitest.Options{})
	defer broker.Close()
	n, err := neli.New(neli.Config{LeaderGroupID: "g", Mode: neli.NonExclusive, Provider: broker.Provider("a")})
	require.NoError(t, err)
	defer n.Close()
	require.PanicsWithValue(t, "nelihttp: Forward: needs Mode Exclusive: in the other one no process knows who leads",
		func() { Forward(n, roleInPath, p.do) })
}

func nowhere(*url.URL) bool { return false }

// With a gate a process serves requests only while Serve runs for the same term. Serve waits for those in progress.
func TestGateKeepsARoleForItsRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var gate Gate
		p, busy := &peer{at: "10.0.0.1:80", token: 17}, make(chan struct{})
		h := newForwarder(p, roleInPath, func(_ http.ResponseWriter, r *http.Request, _ Term) {
			if r.URL.Query().Has("slow") {
				<-busy
			}
		}, WithTargets(nowhere), WithGate(&gate))
		refuses := func(why string) {
			t.Helper()
			w, body := ask(t, h, "GET", "/roles/1")
			require.Equal(t, http.StatusServiceUnavailable, w.Code, why)
			require.Equal(t, "1", w.Header().Get("Retry-After"))
			require.Contains(t, jsonOf(t, body)["error"], "role 1: this process begins or ends its term")
			w, _ = ask(t, h, "GET", "/roles/1", func(r *http.Request) { r.Header.Set(hopsHeader, "the+carts=1") })
			require.Equal(t, http.StatusMisdirectedRequest, w.Code, "forwarded by another process")
		}
		serve := func(token int64) (end func(), returned chan error) {
			ctx, cancel := context.WithCancel(t.Context())
			returned = make(chan error, 1)
			go func() { returned <- gate.Serve(ctx, neli.Leadership{Role: 1, Token: token}) }()
			synctest.Wait()
			return func() { cancel(); synctest.Wait() }, returned
		}
		refuses("its function does not run yet")
		end, returned := serve(16)
		done := make(chan int, 1)
		p.token = 16
		go func() { w, _ := ask(t, h, "GET", "/roles/1?slow"); done <- w.Code }()
		synctest.Wait()
		p.token = 17
		refuses("another term")
		p.token = 16
		end()
		refuses("its context has ended")
		require.Empty(t, returned, "a request is in progress")
		close(busy)
		require.Equal(t, http.StatusOK, <-done)
		require.NoError(t, <-returned)

		p.token = 17
		end, returned = serve(17)
		w, _ := ask(t, h, "GET", "/roles/1")
		require.Equal(t, http.StatusOK, w.Code)
		end()
		require.NoError(t, <-returned)
	})
}
