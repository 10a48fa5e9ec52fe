// Package web serves what a running neli knows: to people and load balancers what
// package nelihttp does, to Prometheus what package metrics does.
package web

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/net/netutil"

	"github.com/goneli/neli"
	"github.com/goneli/neli/metrics"
	"github.com/goneli/neli/nelihttp"
)

const (
	// headerLimit is how long a client may take to say what it wants. The answers have limits of
	// their own: a stream of events is to last.
	headerLimit = 5 * time.Second
	// idleLimit is how long a connection may last on which nothing is asked for.
	idleLimit = 30 * time.Second
	// maxConnections is how many there may be at a time, those of streams included: others wait.
	// Without a limit a stranger takes all descriptors of the process, and no command can be started.
	maxConnections = 256
	// farewell is how long requests that are under way may take when the process ends.
	farewell = time.Second
)

// Serve answers at l, which it owns from now on, the routes of [nelihttp.Handler] for n, and
// /metrics. There is no authentication. stop ends it, and returns when no request is under way any
// more; call it when n is closed, which ends streams.
func Serve(l net.Listener, n *neli.Neli, log *slog.Logger) (stop func(), err error) {
	handler, err := routes(n)
	if err != nil {
		_ = l.Close()
		return nil, err
	}
	server := newServer(handler, log)
	var work sync.WaitGroup
	work.Go(func() {
		if err := server.Serve(netutil.LimitListener(l, maxConnections)); err != http.ErrServerClosed {
			log.Warn("the page and the metrics are not served any more", "error", err)
		}
	})
	log.Info("serving the page and the metrics", "address", l.Addr().String())
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), farewell)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			_ = server.Close()
		}
		work.Wait()
	}, nil
}

func newServer(handler http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{Handler: handler, ReadHeaderTimeout: headerLimit, IdleTimeout: idleLimit,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn)}
}

func routes(n *neli.Neli) (http.Handler, error) {
	collector, err := metrics.NewCollector(n)
	if err != nil {
		return nil, err
	}
	registry := prometheus.NewRegistry() // not the global one, which has the Go runtime's, too
	if err := registry.Register(collector); err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("/", nelihttp.Handler(n, nelihttp.WithMetrics("metrics")))
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return mux, nil
}
