// Command fenced-sql writes reports to a table of PostgreSQL, from one process at a time. A
// report takes a while; a leader that is suspended meanwhile, and wakes when another one
// leads, is refused by the database.
//
// Start it twice. Suspend the leader (kill -STOP) when it says that it prepares a report,
// wake it (kill -CONT) when the other one has stored one.
//
//	go run ./fenced-sql -dsn postgres://localhost/postgres
package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/goneli/neli"
	"github.com/goneli/neli/fence"
)

func main() {
	var (
		bootstrap = flag.String("bootstrap", "localhost:9092", "Kafka brokers, host:port,…")
		dsn       = flag.String("dsn", "postgres://localhost/postgres", "the database")
		group     = flag.String("group", "reports", "the group whose members contend")
		name      = flag.String("name", "", "this process's name, in logs")
		takes     = flag.Duration("takes", 2*time.Second, "how long a report takes")
		limit     = flag.Duration("for", 0, "end after this time; 0: when interrupted")
	)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, *limit)
		defer cancel()
	}
	cfg := neli.Config{KafkaConfig: neli.KafkaConfigMap{"bootstrap.servers": *bootstrap}, LeaderGroupID: *group, Name: *name}
	if err := run(ctx, cfg, *dsn, *takes); err != nil {
		fmt.Fprintln(os.Stderr, "fenced-sql:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, cfg neli.Config, dsn string, takes time.Duration) error {
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	const table = `CREATE TABLE IF NOT EXISTS report (number int PRIMARY KEY, token bigint)`
	for _, schema := range []string{fence.Schema, table} {
		if _, err := db.ExecContext(ctx, schema); err != nil {
			return err
		}
	}
	n, err := neli.New(cfg)
	if err != nil {
		return err
	}
	w := &writer{db: db, key: fence.TransactionalID(cfg.LeaderGroupID, 0), takes: takes}
	return errors.Join(n.Lead(ctx, w.lead), n.Close())
}

// writer writes the reports of one role.
type writer struct {
	db    *sql.DB
	key   string
	takes time.Duration
}

// lead is one term.
func (w *writer) lead(ctx context.Context, l neli.Leadership) error {
	var last int // read after a claim: then nothing of a former leader is missing
	err := w.fenced(ctx, l.Token, func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, "SELECT COALESCE(max(number), 0) FROM report").Scan(&last)
	})
	if err != nil {
		return w.ended(ctx, err)
	}
	log.Printf("leads, with token %d; %d reports are there", l.Token, last)
	for number := last + 1; l.Valid() && ctx.Err() == nil; number++ {
		log.Printf("prepares report %d", number)
		<-time.After(w.takes)
		// It does not ask again here, and does not hand on the end of the term: whatever has
		// happened meanwhile, the fence decides.
		err := w.fenced(context.WithoutCancel(ctx), l.Token, func(tx *sql.Tx) error {
			_, err := tx.Exec("INSERT INTO report VALUES ($1, $2)", number, l.Token)
			return err
		})
		if err != nil {
			log.Printf("report %d is not stored: %v", number, err)
			return w.ended(ctx, err)
		}
		log.Printf("stored report %d with token %d", number, l.Token)
	}
	return context.Cause(ctx)
}

// ended is what lead returns: an error that came with the end of the term is the end of the
// term. ErrStale in a term that lasts ends the program: tokens went back.
func (*writer) ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// fenced runs f in a transaction that begins with the claim.
func (w *writer) fenced(ctx context.Context, token int64, f func(*sql.Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	tx, err := w.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // nothing, once it is committed
	if err := fence.Postgres(ctx, tx, w.key, token); err != nil {
		return err
	}
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}
