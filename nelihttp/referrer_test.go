package nelihttp

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

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
