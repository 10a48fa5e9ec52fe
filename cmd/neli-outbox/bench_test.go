//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/goneli/neli/lab/kafkatest"
	"github.com/goneli/neli/lab/pause"
)

// benchRows is the number of rows that are published at a time.
const benchRows = 100_000

const benchSlots = 4

// BenchmarkRelay publishes the same rows by a plain loop without election or fences, by one that uses Kafka transactions, and
// by a relay with each of its fences, in turn. All of them have a goroutine for each slot, and the same batches.
//
//	go test -run '^$' -bench Relay -benchtime 7x .
func BenchmarkRelay(b *testing.B) {
	w := newWorld(b, kafkatest.Options{}, benchSlots)
	ways := []struct {
		name  string
		start func(context.Context) error
	}{
		{"plain", func(ctx context.Context) error { return plainLoop(ctx, w, plainSend) }},
		{"plain-transactions", func(ctx context.Context) error { return plainLoop(ctx, w, plainTransactions) }},
		{"header", func(ctx context.Context) error { return run(ctx, w.config("header")) }},
		{"transactions", func(ctx context.Context) error { return run(ctx, w.config("transactions")) }},
	}
	took := map[string][]float64{}
	round := 0
	for b.Loop() {
		for i := range ways {
			way := ways[(i+round)%len(ways)]
			ctx, stop := context.WithCancel(b.Context())
			publishing := make(chan error, 1)
			go func() { publishing <- way.start(ctx) }()
			w.fill(way.name, 100, publishing) // until each slot has its leader
			took[way.name] = append(took[way.name], benchRows/w.fill(way.name, benchRows, publishing).Seconds())
			stop()
			require.NoError(b, <-publishing)
		}
		round++
	}
	b.ReportMetric(0, "ns/op")
	for name, rates := range took {
		slices.Sort(rates)
		b.Logf("%-18s rows/s: %.0f", name, rates)
		b.ReportMetric(middle(rates), name+"-rows/s")
		if name != "plain" {
			slices.Sort(took["plain"])
			b.ReportMetric(middle(rates)/middle(took["plain"]), name+"/plain")
		}
	}
}

func middle(sorted []float64) float64 { return sorted[len(sorted)/2] }

// config returns a relay's default configuration.
func (w *world) config(rule string) *config {
	var c config
	c.register(pflag.NewFlagSet("", pflag.ContinueOnError))
	c.database, c.bootstrap, c.group, c.fence, c.listen, c.logLevel = w.dsn, w.kafka.Bootstrap(), rule, rule, "", "warn"
	return &c
}

// fill inserts rows of 200 bytes, and waits until they are published. It returns how long that took after the rows were
// committed. If the program that publishes them ends, it fails the benchmark at once.
func (w *world) fill(way string, rows int, publishing <-chan error) time.Duration {
	w.t.Helper()
	pool := w.store.pool
	ctx := w.t.Context()
	_, err := pool.Exec(ctx, "TRUNCATE outbox")
	require.NoError(w.t, err)
	tx, err := pool.Begin(ctx)
	require.NoError(w.t, err)
	defer tx.Rollback(context.WithoutCancel(ctx))
	_, err = tx.Exec(ctx, "SET LOCAL statement_timeout = 0") // a busy machine takes long to insert all these rows
	require.NoError(w.t, err)
	_, err = tx.Exec(ctx, `INSERT INTO outbox (topic, key, payload)
		SELECT $1, 'key ' || i % 1000, convert_to(repeat(md5(i::text), 6), 'UTF8') FROM generate_series(1, $2) i`, w.topicName, rows)
	require.NoError(w.t, err)
	require.NoError(w.t, tx.Commit(ctx))
	began := time.Now()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-publishing:
			w.t.Fatalf("%s has ended: %v", way, err)
		case <-tick.C:
		}
		if w.empty() {
			return time.Since(began)
		}
		if time.Since(began) > 5*time.Minute {
			w.t.Fatalf("%s: %s", way, w.rowsLeft())
		}
	}
}

// send publishes a batch of a slot.
type send func(ctx context.Context, slot int, records []*kgo.Record) error

// plainLoop is the simplest solution: for each slot a loop that reads, publishes, and deletes. If one of the loops fails, all
// of them end.
func plainLoop(ctx context.Context, w *world, open func(*world) (send, func(), error)) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	publish, closeKafka, err := open(w)
	if err != nil {
		return err
	}
	defer closeKafka()
	cfg, err := w.config("plain").pool() // the same as for relays
	if err != nil {
		return err
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return err
	}
	defer pool.Close()
	table := &store{pool: pool}
	most := w.config("plain").most
	errs := make([]error, benchSlots)
	var loops sync.WaitGroup
	for slot := range errs {
		loops.Go(func() {
			var published []ref
			for ctx.Err() == nil {
				seen, err := table.next(ctx, slot, published, nil, most, &floor{})
				rows := seen.rows
				if published = nil; err == nil && len(rows) == 0 {
					_ = pause.For(ctx, 5*time.Millisecond)
				} else if err == nil {
					records := make([]*kgo.Record, len(rows))
					for i, r := range rows {
						records[i] = recordOf(r)
					}
					err = publish(ctx, slot, records)
					published = refsOf(rows)
				}
				if err != nil && ctx.Err() == nil {
					errs[slot] = fmt.Errorf("slot %d: %w", slot, err)
					stop()
					return
				}
			}
		})
	}
	loops.Wait()
	return errors.Join(errs...)
}

func plainClient(w *world, more ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append(more, kgo.SeedBrokers(seeds(w.kafka.Bootstrap())...), kgo.ProducerLinger(0), kgo.RecordPartitioner(byKey{}))...)
}

// plainSend publishes by one idempotent producer with acks=all, which the loops share.
func plainSend(w *world) (send, func(), error) {
	client, err := plainClient(w)
	if err != nil {
		return nil, nil, err
	}
	return func(ctx context.Context, _ int, records []*kgo.Record) error {
		return client.ProduceSync(ctx, records...).FirstErr()
	}, client.Close, nil
}

// plainTransactions publishes each batch in a transaction, with a producer for each slot. No election chooses who does.
func plainTransactions(w *world) (send, func(), error) {
	clients := make([]*kgo.Client, benchSlots)
	for slot := range clients {
		var err error
		if clients[slot], err = plainClient(w, kgo.TransactionalID(fmt.Sprint("plain", slot))); err != nil {
			return nil, nil, err
		}
	}
	closeAll := func() {
		for _, client := range clients {
			client.Close()
		}
	}
	return func(ctx context.Context, slot int, records []*kgo.Record) error {
		client := clients[slot]
		if err := client.BeginTransaction(); err != nil {
			return err
		}
		if err := client.ProduceSync(ctx, records...).FirstErr(); err != nil {
			return err
		}
		return client.EndTransaction(ctx, kgo.TryCommit)
	}, closeAll, nil
}
