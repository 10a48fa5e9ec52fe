package nelihttp

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/goneli/neli"
	"github.com/stretchr/testify/require"
)

// situations returns the situations that a process can be in, by name.
func situations() map[string]*script {
	leading := newScript(standing(0, "0-2", "a", 17), standing(0, "3", "b", 21))
	leading.led = map[int]int64{0: 17, 1: 17, 2: 17}
	leading.members = []neli.Member{{Name: "a", ID: "id of a", Self: true}, {Name: "b", ID: "id of b"}}
	follower := newScript(standing(0, "0-3", "b", 21))
	vacant := newScript(standing(0, "0-3", "vacant", 0))
	closed := newScript()
	closed.state = neli.StateClosed
	failed := newScript()
	failed.state = neli.StateFailed
	overlapping := newScript()
	overlapping.mode, overlapping.led = neli.NonExclusive, map[int]int64{0: 0}
	presuming := newScript()
	presuming.mode = neli.NonExclusive
	all := map[string]*script{"leading": leading, "follower": follower, "vacant": vacant, "closed": closed, "failed": failed,
		"non-exclusive, leading": overlapping, "non-exclusive, follower": presuming}
	for _, s := range all {
		s.stats = neli.Stats{RecordAge: time.Second}
	}
	return all
}

// Each route answers with the status of the situation, for each method: GET with a body, HEAD and
// OPTIONS without one. Other methods are refused.
func TestStatusOfEachRouteInEachSituation(t *testing.T) {
	const (
		ok   = http.StatusOK
		gone = http.StatusServiceUnavailable
		none = http.StatusNotFound
	)
	want := map[string]map[string]int{
		"leading":                 {"/leader": ok, "/leader/0": ok, "/leader/3": gone, "/leader/9": gone, "/holder/0": ok, "/holder/9": none},
		"follower":                {"/leader": gone, "/leader/0": gone, "/leader/3": gone, "/leader/9": gone, "/holder/0": ok, "/holder/9": none},
		"vacant":                  {"/leader": gone, "/leader/0": gone, "/leader/3": gone, "/leader/9": gone, "/holder/0": none, "/holder/9": none},
		"closed":                  {"/leader": gone, "/leader/0": gone, "/holder/0": gone, "/standings": gone, "/members": gone, "/events": gone, "/healthz": gone},
		"failed":                  {"/leader": gone, "/leader/0": gone, "/holder/0": gone, "/standings": gone, "/members": gone, "/events": gone, "/healthz": gone},
		"non-exclusive, leading":  {"/leader": ok, "/leader/0": ok, "/leader/3": gone, "/holder/0": none, "/standings": none, "/members": none, "/events": none},
		"non-exclusive, follower": {"/leader": gone, "/leader/0": gone, "/holder/0": none, "/standings": none, "/members": none, "/events": none},
	}
	for situation, src := range situations() {
		t.Run(situation, func(t *testing.T) {
			server := httptest.NewServer(newHandler(src))
			defer server.Close()
			for _, route := range []string{"/leader", "/leader/0", "/leader/3", "/leader/9", "/holder/0", "/holder/9",
				"/standings", "/members", "/stats", "/events", "/healthz", "/"} {
				status := ok
				if s, is := want[situation][route]; is {
					status = s
				} else if situation != "leading" && (route == "/leader/3" || route == "/leader/9") {
					status = gone
				} else if route == "/holder/9" {
					status = want[situation]["/holder/0"]
				}
				for _, method := range []string{"GET", "HEAD", "OPTIONS", "POST", "PUT", "DELETE", "PATCH"} {
					if route == "/events" && method == "GET" && status == ok {
						continue // it does not end; see events_test.go
					}
					checkAnswer(t, server, method, route, status)
				}
			}
			for _, route := range []string{"/stepdown", "/transfer", "/leader/", "/leaders", "/holder", "/page/page.js", "/leader/0/1"} {
				checkAnswer(t, server, "GET", route, none)
				checkAnswer(t, server, "POST", route, none)
			}
		})
	}
}

func checkAnswer(t *testing.T, server *httptest.Server, method, route string, status int) {
	t.Helper()
	says := fmt.Sprint(method, " ", route)
	r, err := http.NewRequestWithContext(t.Context(), method, server.URL+route, nil)
	require.NoError(t, err)
	resp, err := server.Client().Do(r)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, "no-store", resp.Header.Get("Cache-Control"), says)
	require.Contains(t, resp.Header.Get("Content-Security-Policy"), "default-src 'none'", says)
	require.Equal(t, "nosniff", resp.Header.Get("X-Content-Type-Options"), says)
	require.Equal(t, "same-origin", resp.Header.Get("Referrer-Policy"), says)
	switch {
	case status == http.StatusNotFound && resp.StatusCode == status && method != "GET" && method != "HEAD":
	case slices.Contains([]string{"GET", "HEAD", "OPTIONS"}, method):
		require.Equal(t, status, resp.StatusCode, says)
		require.Equal(t, method == "GET", len(body) > 0, says)
	default:
		require.Equal(t, http.StatusMethodNotAllowed, resp.StatusCode, says)
		require.Equal(t, "GET, HEAD, OPTIONS", resp.Header.Get("Allow"), says)
	}
}

// If a term ends while an answer is being made, the answer does not show a leader without roles.
func TestATermThatEndsWhileAnAnswerIsMade(t *testing.T) {
	for route, leader := range map[string]string{"/leader": `"leader":true`, "/": "leads 0 roles"} {
		src := situations()["leading"]
		src.ending = true
		w, body := ask(t, newHandler(src), "GET", route)
		require.NotContains(t, body, leader)
		if route == "/leader" {
			require.Equal(t, http.StatusServiceUnavailable, w.Code)
		}
	}
}

// The answers name this process, the roles that it leads, and the holder that it knows.
func TestContentsOfAnswers(t *testing.T) {
	all := situations()
	h := newHandler(all["leading"])

	_, body := ask(t, h, "GET", "/leader")
	require.Equal(t, map[string]any{"leader": true, "group": "carts", "name": "a", "state": "live", "roles": "0-2", "count": 3.0}, jsonOf(t, body))

	_, body = ask(t, h, "GET", "/leader/1")
	answer := jsonOf(t, body)
	require.Equal(t, []any{true, 1.0, 17.0}, []any{answer["leader"], answer["role"], answer["token"]})
	require.Equal(t, "a", answer["holder"].(map[string]any)["name"])
	require.Equal(t, 0.25, answer["holder"].(map[string]any)["age"])

	_, body = ask(t, h, "GET", "/leader/3")
	answer = jsonOf(t, body)
	require.Equal(t, false, answer["leader"])
	require.NotContains(t, answer, "token")
	require.Equal(t, "b", answer["holder"].(map[string]any)["name"])

	_, body = ask(t, h, "GET", "/holder/3")
	answer = jsonOf(t, body)
	require.Equal(t, 3.0, answer["role"])
	require.Equal(t, 21.0, answer["holder"].(map[string]any)["token"])

	_, body = ask(t, h, "GET", "/standings")
	answer = jsonOf(t, body)
	require.Equal(t, map[string]any{"held": 4.0, "vacant": 0.0, "unknown": 0.0}, answer["roles"])
	require.Len(t, answer["standings"], 2)
	require.Equal(t, "0-2", answer["standings"].([]any)[0].(map[string]any)["roles"])

	_, body = ask(t, h, "GET", "/members")
	require.Equal(t, "b", jsonOf(t, body)["members"].([]any)[1].(map[string]any)["name"])

	_, body = ask(t, h, "GET", "/stats")
	require.Contains(t, jsonOf(t, body), "stats")

	_, body = ask(t, newHandler(all["vacant"]), "GET", "/leader/0")
	require.NotContains(t, jsonOf(t, body), "holder")

	_, body = ask(t, newHandler(all["non-exclusive, leading"]), "GET", "/leader/0")
	answer = jsonOf(t, body)
	require.Equal(t, true, answer["leader"])
	require.NotContains(t, answer, "token", "there are none in that mode")

	_, body = ask(t, newHandler(all["vacant"]), "GET", "/members")
	require.Equal(t, []any{}, jsonOf(t, body)["members"], "a list, if an empty one")
}

// An invalid role is refused with a reason, and does no harm.
func TestHostileRoles(t *testing.T) {
	h := newHandler(situations()["leading"])
	for _, role := range []string{"-1", "+1", "01", "1.0", "1e3", "0x1", "%201", "1%20", "x", "%3Cscript%3E", "%00", "%F0%9F%92%A9",
		"99999999999999999999", "2147483648", "1;drop", "%E2%80%AE", "1%0d%0aX:y"} {
		for _, route := range []string{"/leader/", "/holder/"} {
			w, body := ask(t, h, "GET", route+role)
			require.Equal(t, http.StatusBadRequest, w.Code, route+role)
			require.Contains(t, jsonOf(t, body)["error"], "must be a number from 0", route+role)
			require.NotContains(t, body, "<", "it may be shown on a page")
		}
	}
	w, _ := ask(t, h, "GET", "/leader/..%2F..%2Fleader")
	require.Equal(t, http.StatusNotFound, w.Code)
	w, _ = ask(t, h, "GET", "/leader/2147483647")
	require.Equal(t, http.StatusServiceUnavailable, w.Code, "no role that anybody leads")
}

// Under a stripped prefix there are no redirects for unclean paths. The prefix alone leads to the page.
func TestHandlerUnderAStrippedPrefix(t *testing.T) {
	mux := http.NewServeMux()
	h := http.StripPrefix("/ops/neli", newHandler(situations()["leading"]))
	mux.Handle("/ops/neli/", h)
	for path, status := range map[string]int{"/ops/neli/": 200, "/ops/neli/leader": 200, "/ops/neli/leader/3": 503, "/leader": 404} {
		w, _ := ask(t, mux, "GET", path)
		require.Equal(t, status, w.Code, path)
	}
	w, _ := ask(t, h, "GET", "/ops/neli?q=b")
	require.Equal(t, http.StatusTemporaryRedirect, w.Code)
	require.Equal(t, "./neli/?q=b", w.Header().Get("Location"))
	w, _ = ask(t, http.StripPrefix("/ops team", newHandler(situations()["leading"])), "GET", "/ops%20team")
	require.Equal(t, "./ops%20team/", w.Header().Get("Location"))
	for _, path := range []string{"/ops/neli//leader", "/ops/neli/./leader", "/ops/neli/x/../leader", "/ops/neli//evil.example/.."} {
		w, _ := ask(t, h, "GET", path)
		require.Equal(t, http.StatusNotFound, w.Code, path)
		require.Empty(t, w.Header().Get("Location"), path)
	}
}

// Requests are redirected to the holder's URL, if it is a web address.
func TestRedirectToTheHolder(t *testing.T) {
	src := situations()["follower"]
	to := "https://10.0.0.7:8443/neli/?x=1"
	h := newHandler(src, WithURL(func(of neli.Holder) string {
		require.Equal(t, "b", of.Name)
		return to
	}))
	w, _ := ask(t, h, "GET", "/holder/0?redirect=1")
	require.Equal(t, http.StatusTemporaryRedirect, w.Code)
	require.Equal(t, to, w.Header().Get("Location"))
	w, _ = ask(t, h, "GET", "/holder/9?redirect=1")
	require.Equal(t, http.StatusNotFound, w.Code)
	for _, to = range []string{"", "javascript:alert(1)", "//evil.example/", "/local", "data:text/html,x", "http://", "http://[", "ftp://x/", "mailto:x"} {
		w, _ = ask(t, h, "GET", "/holder/0?redirect=1")
		require.Equal(t, http.StatusNotFound, w.Code, to)
		require.Empty(t, w.Header().Get("Location"), to)
		_, body := ask(t, h, "GET", "/")
		require.NotContains(t, body, "<a href=\""+to+"\"")
		require.NotContains(t, body, "javascript:")
	}
	w, _ = ask(t, newHandler(src), "GET", "/holder/0?redirect=1")
	require.Equal(t, http.StatusNotFound, w.Code, "without WithURL")
}

// A process is healthy while it is live and reads, whoever leads. It may read nothing for three T, or for
// 15 s if that is longer.
func TestHealth(t *testing.T) {
	src := situations()["follower"]
	for _, c := range []struct {
		timeout, silence time.Duration
		status           int
		reason           string
	}{
		{5 * time.Second, 0, 200, ""},
		{5 * time.Second, 14900 * time.Millisecond, 200, ""},
		{5 * time.Second, 15 * time.Second, 503, "nothing was read from the leader topic for 15s; the limit is 15s"},
		{300 * time.Millisecond, 14900 * time.Millisecond, 200, ""},
		{300 * time.Millisecond, 15 * time.Second, 503, "the limit is 15s"},
		{18 * time.Second, 53900 * time.Millisecond, 200, ""},
		{18 * time.Second, 54 * time.Second, 503, "the limit is 54s"},
	} {
		src.timeout, src.stats.RecordAge = c.timeout, c.silence
		w, body := ask(t, newHandler(src), "GET", "/healthz")
		require.Equal(t, c.status, w.Code)
		answer := jsonOf(t, body)
		require.Equal(t, c.status == 200, answer["healthy"])
		if c.reason != "" {
			require.Contains(t, answer["reason"], c.reason)
		}
		w, _ = ask(t, newHandler(src), "GET", "/stats")
		require.Equal(t, http.StatusOK, w.Code, "a liveness probe does not fail for want of brokers")
	}
	_, body := ask(t, newHandler(situations()["failed"]), "GET", "/healthz")
	require.Equal(t, "this process is failed", jsonOf(t, body)["reason"])
}

func TestHandlerNeedsANeli(t *testing.T) {
	require.PanicsWithValue(t, "nelihttp: Handler: n is nil", func() { Handler(nil) })
}
