package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/goneli/neli"
	"github.com/goneli/neli/fence"
	"github.com/goneli/neli/franz"
	"github.com/goneli/neli/metrics"
	"github.com/goneli/neli/nelihttp"
)

// run runs the relay until ctx ends.
func run(ctx context.Context, c *config) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	log, err := c.logger(os.Stderr)
	if err != nil {
		return err
	}
	opts, err := c.kafka()
	if err != nil {
		return err
	}
	cfg, err := c.pool()
	if err != nil {
		return err
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return err
	}
	defer pool.Close()
	s := &store{pool: pool, record: int(c.record)}
	slots, err := awaitSchema(ctx, s, cfg.ConnConfig, log)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	p, err := c.publisher(ctx, s, slots, opts, log)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	wake := newWakeups()
	listening := make(chan struct{})
	go func() {
		defer close(listening)
		wake.listen(ctx, cfg.ConnConfig, log)
	}()
	r := &relay{publisher: p, group: c.group, wake: wake, most: c.most, memory: newMemory(c.most, int(c.record)), poll: c.poll, log: log, metrics: newMeters(registry)}
	r.memory.limit()
	err = contend(ctx, c, slots, opts, registry, r)
	cancel()
	<-listening
	return err
}

// awaitSchema waits for the database, and returns its number of slots.
func awaitSchema(ctx context.Context, s *store, cfg *pgx.ConnConfig, log *slog.Logger) (int, error) {
	return backoff.Retry(ctx, func() (int, error) {
		limited, cancel := context.WithTimeout(ctx, storeTimeout)
		defer cancel()
		if err := sharesSessions(limited, &cfg.Config); err != nil {
			return 0, again(err, passing(err))
		}
		slots, err := s.slots(limited)
		return slots, again(err, err != nil && passing(err))
	}, patiently(backoff.WithNotify(func(err error, after time.Duration) {
		log.Warn("the database does not answer, retrying", "error", err, "after", after)
	}))...)
}

// publisher returns the publisher. It waits for Kafka, since it asks for the topic of notes.
func (c *config) publisher(ctx context.Context, s *store, slots int, opts []kgo.Opt, log *slog.Logger) (publisher, error) {
	return backoff.Retry(ctx, func() (publisher, error) {
		limited, cancel := context.WithTimeout(ctx, publishTimeout)
		defer cancel()
		if c.fence == "header" {
			h := newHeaders(s, c.group, slots, opts, log)
			err := h.progress.create(limited, log)
			return h, again(err, err != nil && absent(err))
		}
		p, err := newTransactions(limited, s, c.group, slots, opts, log)
		return p, again(err, err != nil && absent(err))
	}, patiently(backoff.WithNotify(func(err error, after time.Duration) {
		log.Warn("Kafka does not answer, retrying", "error", err, "after", after)
	}))...)
}

// absent reports whether a later attempt may succeed: Kafka did not answer, or not with a refusal.
func absent(err error) bool {
	if answer, ok := errors.AsType[*kerr.Error](err); ok {
		return answer.Retriable
	}
	return !errors.Is(err, fence.ErrUnverified) && !errors.Is(err, fence.ErrPermanent)
}

// contend leads slots, and shows which ones.
func contend(ctx context.Context, c *config, slots int, opts []kgo.Opt, registry *prometheus.Registry, r *relay) error {
	n, err := neli.New(neli.Config{Provider: franz.Provider(opts...), LeaderGroupID: c.group, Name: c.name,
		Roles: slots, HeartbeatTimeout: c.timeout, DrainTimeout: publishTimeout + 2*time.Second, Logger: r.log})
	if err != nil {
		return err
	}
	shown, err := show(c.listen, n, registry)
	if err != nil {
		return errors.Join(err, n.Close())
	}
	defer shown.Close()
	return errors.Join(n.Lead(ctx, r.lead), n.Close())
}

// show serves the metrics and the leaders' page, unless at is empty.
func show(at string, n *neli.Neli, registry *prometheus.Registry) (*http.Server, error) {
	election, err := metrics.NewCollector(n)
	if err != nil {
		return nil, err
	}
	if err := registry.Register(election); err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.Handle("/", nelihttp.Handler(n))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	if at == "" {
		return server, nil
	}
	listener, err := net.Listen("tcp", at)
	if err != nil {
		return nil, fmt.Errorf("--listen: %w", err)
	}
	go server.Serve(listener)
	return server, nil
}
