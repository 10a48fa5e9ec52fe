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

// farewell is how long requests that are under way may take when the process ends.
const farewell = time.Second

// limits are what one client, or all of them, can take of the process.
type limits struct {
	// header is how long a client may take to say what it wants. The answers have limits of
	// their own: a stream of events is to last.
	header time.Duration
	// idle is how long a connection may last on which nothing is asked for.
	idle time.Duration
	// connections is how many there may be at a time, those of streams included: others wait.
	// Without a limit a stranger takes all descriptors of the process, and no command can be started.
	connections int
}

var usual = limits{header: 5 * time.Second, idle: 30 * time.Second, connections: 256}

// Serve answers at l, which it owns from now on, the routes of [nelihttp.Handler] for n, and
// /metrics. There is no authentication. stop ends it, and returns when no request is under way any
// more; call it when n is closed, which ends streams.
func Serve(l net.Listener, n *neli.Neli, log *slog.Logger) (stop func(), err error) {
	handler, err := routes(n)
	if err != nil {
		_ = l.Close()
		return nil, err
	}
	return serve(l, handler, usual, log), nil
}

// serve answers at l within limits until it is stopped.
func serve(l net.Listener, handler http.Handler, most limits, log *slog.Logger) (stop func()) {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: most.header, IdleTimeout: most.idle,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn)}
	var work sync.WaitGroup
	work.Go(func() {
		if err := server.Serve(netutil.LimitListener(l, most.connections)); err != http.ErrServerClosed {
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
	}
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
