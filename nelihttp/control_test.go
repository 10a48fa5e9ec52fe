package nelihttp

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/goneli/neli"
	"github.com/stretchr/testify/require"
)

func everybody(*http.Request) bool { return true }

// sent returns a function that gives a request a body.
func sent(kind, body string) func(*http.Request) {
	return func(r *http.Request) {
		r.Header.Set("Content-Type", kind)
		r.Body = io.NopCloser(strings.NewReader(body))
	}
}

const (
	asJSON = "application/json"
	asForm = "application/x-www-form-urlencoded"
)

// Nothing can be changed without WithControl, or with a nil function.
func TestNoControlByDefault(t *testing.T) {
	for _, opts := range [][]Option{nil, {WithControl(nil)}} {
		src := situations()["leading"]
		h := newHandler(src, opts...)
		for _, route := range []string{"/stepdown", "/transfer"} {
			w, _ := ask(t, h, "POST", route, sent(asForm, "role=0&to=b"))
			require.Equal(t, http.StatusNotFound, w.Code)
		}
		_, page := ask(t, h, "GET", "/")
		require.NotContains(t, page, "<button")
		require.NotContains(t, page, "method=\"post\"")
		require.Empty(t, src.asked)
	}
}

func TestControl(t *testing.T) {
	src := situations()["leading"]
	h := newHandler(src, WithControl(everybody))
	w, body := ask(t, h, "POST", "/stepdown")
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, "live", jsonOf(t, body)["state"])
	w, _ = ask(t, h, "POST", "/transfer", sent(asJSON, `{"role":2,"to":"b"}`))
	require.Equal(t, http.StatusOK, w.Code)
	w, _ = ask(t, h, "POST", "/transfer", sent(asForm+"; charset=utf-8", "role=0&to=b+%26+c"), func(r *http.Request) {
		r.Header.Set("Accept", "text/html,application/xhtml+xml")
	})
	require.Equal(t, http.StatusSeeOther, w.Code)
	require.Equal(t, "./", w.Header().Get("Location"), "back to the page, under any prefix")
	require.Equal(t, []string{"step down", "transfer 2 to b", "transfer 0 to b & c"}, src.asked)

	for _, method := range []string{"GET", "HEAD", "OPTIONS", "PUT"} {
		w, _ := ask(t, h, method, "/stepdown")
		require.Equal(t, http.StatusMethodNotAllowed, w.Code)
		require.Equal(t, "POST", w.Header().Get("Allow"))
	}
	_, page := ask(t, h, "GET", "/")
	require.Contains(t, page, `action="stepdown"`)
	require.Contains(t, page, `action="transfer"`)
	require.Len(t, src.asked, 3)
}

// A client that is not allowed changes nothing. Neither does a page of another origin in the browser of
// a user who is allowed.
func TestControlIsRefused(t *testing.T) {
	src := situations()["leading"]
	h := newHandler(src, WithControl(func(r *http.Request) bool { return r.Header.Get("X-Operator") == "yes" }))
	operator := func(r *http.Request) { r.Header.Set("X-Operator", "yes") }
	foreign := func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }
	older := func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }
	for _, route := range []string{"/stepdown", "/transfer"} {
		body := sent(asForm, "role=0&to=b")
		w, _ := ask(t, h, "POST", route, body)
		require.Equal(t, http.StatusForbidden, w.Code)
		w, _ = ask(t, h, "POST", route, body, operator, foreign)
		require.Equal(t, http.StatusForbidden, w.Code)
		w, _ = ask(t, h, "POST", route, body, operator, older)
		require.Equal(t, http.StatusForbidden, w.Code)
		require.Empty(t, src.asked)
	}
	w, _ := ask(t, h, "POST", "/stepdown", operator)
	require.Equal(t, http.StatusOK, w.Code)
}

// To the browser, an attacker's page whose name resolves to this server is of the same origin: only the
// Host header gives it away. Addresses and localhost cannot be made to resolve elsewhere.
func TestControlIsForKnownHostsOnly(t *testing.T) {
	rebound := func(host string) func(*http.Request) {
		return func(r *http.Request) {
			r.Host = host
			r.Header.Set("Origin", "http://"+host)
			r.Header.Set("Sec-Fetch-Site", "same-origin")
		}
	}
	src := situations()["leading"]
	asked := 0
	h := newHandler(src, WithControl(func(*http.Request) bool { asked++; return true }), WithHosts("Ops.example.com", "münchen.example."))
	for _, host := range []string{"evil.example", "evil.example:8080", "ops.example.com.evil.example", "xops.example.com", "localhost.evil.example",
		"127.0.0.1.evil.example:80", "", ":8080", "[::1", "[localhost].evil", "\"><script>", strings.Repeat("x", 5000)} {
		for _, route := range []string{"/stepdown", "/transfer"} {
			w, body := ask(t, h, "POST", route, sent(asForm, "role=0&to=b"), rebound(host))
			require.Equal(t, http.StatusForbidden, w.Code, "host %q is a stranger's", host)
			require.Contains(t, jsonOf(t, body)["error"], "must be an IP address, localhost, or a name given to nelihttp.WithHosts")
			require.Less(t, len(body), 1000)
			require.NotContains(t, body, "<")
		}
	}
	require.Empty(t, src.asked)
	require.Zero(t, asked)
	known := []string{"127.0.0.1:8080", "10.0.0.7", "[::1]:8080", "[fe80::1]", "localhost", "LOCALHOST:80", "ops.example.com:8443", "OPS.example.com.",
		"münchen.example"}
	for _, host := range known {
		w, _ := ask(t, h, "POST", "/stepdown", rebound(host))
		require.Equal(t, http.StatusOK, w.Code, "host %q is ours", host)
	}
	require.Len(t, src.asked, len(known))

	w, _ := ask(t, h, "GET", "/leader", rebound("evil.example"))
	require.Equal(t, http.StatusOK, w.Code, "a load balancer asks for whatever host it likes")
}

func TestWithHostsTakesOnlyHostNames(t *testing.T) {
	for _, name := range []string{"", ".", "ops:8080", "http://ops", "*.example.com", "ops/neli", "a b"} {
		require.PanicsWithValue(t, fmt.Sprintf("nelihttp: WithHosts: name %q: must be a host name without port, path or wildcard", name),
			func() { WithHosts("ok.example", name) })
	}
}

func TestInvalidTransfersAreRefused(t *testing.T) {
	src := situations()["leading"]
	h := newHandler(src, WithControl(everybody))
	for _, c := range []struct{ kind, body, why string }{
		{"", "", "content type"},
		{"text/plain", `{"role":1,"to":"b"}`, "content type"},
		{"multipart/form-data", `role=1&to=b`, "content type"},
		{asJSON, ``, "EOF"},
		{asJSON, `{"role":"1","to":"b"}`, "cannot unmarshal"},
		{asJSON, `{"to":"b"}`, "role is missing"},
		{asJSON, `{"role":1}`, "to is missing"},
		{asForm, `to=b`, "must be a number"},
		{asForm, `role=x&to=b`, "must be a number"},
		{asForm, `role=1`, "to is missing"},
		{asForm, `role=%zz`, "invalid URL escape"},
		{asJSON, `{"to":"` + strings.Repeat("b", 5000) + `"}`, "too large"},
		{asForm, `to=` + strings.Repeat("b", 5000), "too large"},
	} {
		w, body := ask(t, h, "POST", "/transfer", sent(c.kind, c.body))
		require.Equal(t, http.StatusBadRequest, w.Code, c.body)
		require.Contains(t, jsonOf(t, body)["error"], c.why)
	}
	require.Empty(t, src.asked)
}

// Each of the library's errors maps to its own status.
func TestStatusOfErrors(t *testing.T) {
	for want, errs := range map[int][]error{
		http.StatusConflict:           {neli.ErrNotLeader, neli.ErrLeadsAlready, neli.ErrNotDone, neli.ErrObserver},
		http.StatusNotFound:           {neli.ErrNoMember},
		http.StatusGatewayTimeout:     {neli.ErrNoAnswer},
		http.StatusServiceUnavailable: {neli.ErrClosed, context.Canceled, errScripted},
	} {
		for _, err := range errs {
			src := situations()["leading"]
			src.refuse = fmt.Errorf("neli: Transfer: role 0 to %q: %w", "<b>", err)
			w, body := ask(t, newHandler(src, WithControl(everybody)), "POST", "/transfer", sent(asForm, "role=0&to=b"))
			require.Equal(t, want, w.Code, err)
			require.Contains(t, jsonOf(t, body)["error"], err.Error())
			require.NotContains(t, body, "<b>")
		}
	}
}

// A hand-over takes as long as the application's work. The server's timeouts do not apply to it.
func TestTransferMayTakeLongerThanTimeouts(t *testing.T) {
	simulate(t, func(t *testing.T, net *pipes) {
		src := situations()["leading"]
		src.transfers = func(ctx context.Context) {
			time.Sleep(time.Minute)
			require.NoError(t, ctx.Err())
		}
		client := net.serve(t, &http.Server{Handler: newHandler(src, WithControl(everybody)), ReadTimeout: time.Second, WriteTimeout: time.Second})
		resp, err := client.Post("http://127.0.0.1/transfer", asJSON, strings.NewReader(`{"role":0,"to":"b"}`))
		require.NoError(t, err)
		defer resp.Body.Close()
		require.Equal(t, http.StatusOK, resp.StatusCode)
	})
}

// With Assigned nomination the consumer group decides who leads. The status must not make clients
// try again, as a 503 does.
func TestTransferIsRefusedWithAssignedNomination(t *testing.T) {
	src := situations()["leading"]
	src.nomination = neli.NominationAssigned
	w, body := ask(t, newHandler(src, WithControl(everybody)), "POST", "/transfer", sent(asForm, "role=0&to=b"))
	require.Equal(t, http.StatusConflict, w.Code)
	require.Contains(t, jsonOf(t, body)["error"], "Nomination Assigned")
	require.Empty(t, src.asked)
}

// In non-exclusive mode nothing can be handed over, so there are neither routes nor buttons for it.
func TestNoControlInNonExclusiveMode(t *testing.T) {
	src := situations()["non-exclusive, leading"]
	src.nomination = neli.NominationOpen
	h := newHandler(src, WithControl(everybody))
	for _, route := range []string{"/stepdown", "/transfer"} {
		w, _ := ask(t, h, "POST", route, sent(asForm, "role=0&to=b"))
		require.Equal(t, http.StatusNotFound, w.Code, route)
	}
	require.Empty(t, src.asked)
	_, page := ask(t, h, "GET", "/")
	require.NotContains(t, page, "<button")
}

// With "Referrer-Policy: no-referrer" browsers send "Origin: null" with a form of the page. Over plain HTTP, except to
// localhost, they send no Sec-Fetch-Site either, so that the handler must refuse the page's own buttons.
func TestReferrerPolicyLetsBrowsersSendTheOrigin(t *testing.T) {
	src := situations()["leading"]
	h := newHandler(src, WithControl(func(*http.Request) bool { return true }))
	page, _ := ask(t, h, "GET", "/")
	origin := "http://10.0.0.7:8080"
	if page.Header().Get("Referrer-Policy") == "no-referrer" {
		origin = "null" // as https://fetch.spec.whatwg.org/#append-a-request-origin-header says
	}
	w, body := ask(t, h, "POST", "/stepdown", func(r *http.Request) {
		r.Host = "10.0.0.7:8080"
		r.Header.Set("Origin", origin)
		r.Header.Set("Accept", "text/html")
	})
	require.Equal(t, http.StatusSeeOther, w.Code, body)
}
