package nelihttp

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/goneli/neli"
)

// With a gate a process serves requests only while Serve runs for the same term, which waits for those in progress.
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
