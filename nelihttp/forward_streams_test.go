package nelihttp

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// pair returns a crew in which b leads role 1 and serves it with do, and a sends it there.
func pair(t *testing.T, do func(http.ResponseWriter, *http.Request, Term)) *crew {
	c := newCrew(t, "a", "b")
	c.peers["b"].token = 17
	c.knows("a", "b")
	c.peers["b"].do = do
	return c
}

func TestForwardOfAWebSocket(t *testing.T) {
	c := pair(t, func(w http.ResponseWriter, r *http.Request, _ Term) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", r.Header.Get("Upgrade"))
		_, _ = io.Copy(conn, rw)
	})
	conn, err := net.Dial("tcp", c.peers["a"].at)
	require.NoError(t, err)
	defer conn.Close()
	fmt.Fprint(conn, "GET /roles/1 HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusSwitchingProtocols, resp.StatusCode)
	require.Equal(t, "websocket", resp.Header.Get("Upgrade"))
	for _, line := range []string{"ping\n", "and again\n"} {
		fmt.Fprint(conn, line)
		echo, err := in.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, line, echo)
	}
}

// Each event of a stream reaches the client at once. The end of the client's request ends the leader's.
func TestForwardOfAStream(t *testing.T) {
	first, ended := make(chan struct{}), make(chan struct{})
	c := pair(t, func(w http.ResponseWriter, r *http.Request, _ Term) {
		defer close(ended)
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: 1\n")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-first:
			fmt.Fprint(w, "data: 2\n")
			_ = http.NewResponseController(w).Flush()
		case <-r.Context().Done():
		}
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "GET", "http://"+c.peers["a"].at+"/roles/1", nil)
	require.NoError(t, err)
	resp, err := c.client.Do(r)
	require.NoError(t, err)
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	require.True(t, lines.Scan())
	require.Equal(t, "data: 1", lines.Text())
	close(first) // only now is there a second one
	require.True(t, lines.Scan())
	require.Equal(t, "data: 2", lines.Text())
	cancel()
	<-ended
}

func TestForwardOfTrailers(t *testing.T) {
	c := pair(t, func(w http.ResponseWriter, r *http.Request, _ Term) {
		w.Header().Set("Trailer", "X-Sum")
		fmt.Fprint(w, "te: ", r.Header.Get("Te"))
		w.Header().Set("X-Sum", "42")
		w.Header().Set(http.TrailerPrefix+"X-Unannounced", "43")
	})
	resp, body := c.ask("a", "GET", "/roles/1", nil, func(r *http.Request) { r.Header.Set("Te", "trailers") })
	require.Equal(t, "te: trailers", body)
	require.Equal(t, http.Header{"X-Sum": {"42"}, "X-Unannounced": {"43"}}, resp.Trailer)
}

// A member may advertise an https URL. The Transport then decides whom to trust, and uses HTTP/2.
func TestForwardOverTLS(t *testing.T) {
	c := pair(t, func(w http.ResponseWriter, r *http.Request, in Term) {
		fmt.Fprint(w, r.Proto, " ", in.Token)
	})
	secure := httptest.NewUnstartedServer(c.peers["b"])
	secure.EnableHTTP2, secure.Config.ErrorLog = true, log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	b := c.peers["b"].holder()
	b.Advertise = secure.URL
	require.True(t, strings.HasPrefix(secure.URL, "https://"))
	a := c.peers["a"]
	a.known[0] = b
	resp, body := c.ask("a", "GET", "/roles/1", nil)
	require.Equal(t, http.StatusBadGateway, resp.StatusCode, "its certificate is unknown: %s", body)
	a.forwarder = newForwarder(a, roleInPath, a.do, WithTargets(func(u *url.URL) bool { return u.Scheme == "https" }), WithTransport(secure.Client().Transport))
	resp, body = c.ask("a", "GET", "/roles/1", nil)
	require.Equal(t, http.StatusOK, resp.StatusCode, body)
	require.Equal(t, "HTTP/2.0 17", body)
}
