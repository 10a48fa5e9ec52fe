// Package web serves the state of a running neli: the routes of package nelihttp for people and load
// balancers, and those of package metrics for Prometheus.
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

// farewell is how long pending requests may take when the process ends.
const farewell = time.Second

// limits bound what clients can take of the process.
type limits struct {
	// request is how long a client may take to send its request: the header, and a body, although no route reads one.
	request time.Duration
	// answer is how long an answer may take, from the request until the client has accepted it. Streams
	// of events, which are meant to last, have limits of their own.
	answer time.Duration
	// idle is how long a connection without a request is kept open.
	idle time.Duration
	// connections is how many there may be at a time, including those of streams. Further ones wait.
	// Without a limit a stranger could take all file descriptors, and no command could be started. There
	// are more than the 256 streams that a handler serves: health checks need connections, too.
	connections int
}

var usual = limits{request: 5 * time.Second, answer: 30 * time.Second, idle: 30 * time.Second, connections: 300}

// Serve serves the routes of [nelihttp.Handler] for n and /metrics at l, which it closes in any case.
// There is no authentication. stop ends the serving, and returns when no request is pending, within
// farewell. Close n first, since streams last until n is closed.
func Serve(l net.Listener, n *neli.Neli, log *slog.Logger) (stop func(), err error) {
	handler, err := routes(n)
	if err != nil {
		_ = l.Close()
		return nil, err
	}
	return serve(l, handler, usual, log), nil
}

// serve serves handler at l within limits until it is stopped.
func serve(l net.Listener, handler http.Handler, most limits, log *slog.Logger) (stop func()) {
	server := &http.Server{Handler: handler, ReadTimeout: most.request, WriteTimeout: most.answer, IdleTimeout: most.idle,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn)}
	var work sync.WaitGroup
	work.Go(func() {
		if err := server.Serve(netutil.LimitListener(l, most.connections)); err != http.ErrServerClosed {
			log.Warn("the page and the metrics are no longer served", "error", err)
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
	registry := prometheus.NewRegistry() // the global one also has the Go runtime's metrics
	if err := registry.Register(collector); err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("/", nelihttp.Handler(n, nelihttp.WithMetrics("metrics")))
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return mux, nil
}
