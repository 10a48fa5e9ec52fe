// Command fenced-sql writes reports to a table of PostgreSQL, from one process at a time. A report takes a
// while. If the leader is suspended meanwhile and wakes when another one leads, the database refuses its
// report.
//
// Start it twice. Suspend the leader (kill -STOP) when it says that it prepares a report, and wake it
// (kill -CONT) when the other one has stored one.
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
	)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
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
	if err := createTables(ctx, db); err != nil {
		return err
	}
	n, err := neli.New(cfg)
	if err != nil {
		return err
	}
	w := &writer{db: db, key: fence.TransactionalID(cfg.LeaderGroupID, 0), takes: takes}
	return errors.Join(n.Lead(ctx, w.lead), n.Close())
}

// createTables creates the tables unless they exist. It takes a lock first: of two processes that execute CREATE TABLE IF NOT EXISTS
// at once, one may get a unique violation.
func createTables(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	const lock = `SELECT pg_advisory_xact_lock(hashtext('fenced-sql'))`
	const table = `CREATE TABLE IF NOT EXISTS report (number int PRIMARY KEY, token bigint)`
	for _, statement := range []string{lock, fence.Schema, table} {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// writer writes the reports of one role.
type writer struct {
	db    *sql.DB
	key   string
	takes time.Duration
}

// lead is one term.
func (w *writer) lead(ctx context.Context, l neli.Leadership) error {
	var last int // read after the fence has taken the token, so that no report of a former leader is missing
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
		// There is no second check here, and the context does not end with the term: whatever has happened
		// meanwhile, the fence decides.
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

// ended returns the result of lead. An error at the end of the term only means that the term is over.
// ErrStale while the term lasts ends the program: it means that tokens went back.
func (*writer) ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// fenced runs f in a transaction that begins by giving the token to the fence.
func (w *writer) fenced(ctx context.Context, token int64, f func(*sql.Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	tx, err := w.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // has no effect after Commit
	if err := fence.Postgres(ctx, tx, w.key, token); err != nil {
		return err
	}
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}
