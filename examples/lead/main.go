// Command lead keeps a row of a database up to date, from one process at a time, and protects it by the
// fencing token: the row refuses a delayed write of a former leader.
//
// Two replicas of the service, NAME-1 and NAME-2, run in this one process, so that they can share a database
// in memory. The first leader steps down after -step-down, and leaves behind a write that arrives late.
//
//	go run ./lead -name demo
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/goneli/neli"
)

func main() {
	var (
		bootstrap = flag.String("bootstrap", "localhost:9092", "Kafka brokers, host:port,…")
		group     = flag.String("group", "rates", "the group whose members contend")
		name      = flag.String("name", "replica", "prefix of the replicas' names, in logs")
		stepDown  = flag.Duration("step-down", 3*time.Second, "the first leader closes after this time")
	)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	cfg := neli.Config{
		KafkaConfig:   neli.KafkaConfigMap{"bootstrap.servers": *bootstrap},
		LeaderGroupID: *group,
		Nomination:    neli.NominationOpen, // no consumer group: the next leader takes over within milliseconds
	}
	if err := run(ctx, cfg, *name, *stepDown); err != nil {
		fmt.Fprintln(os.Stderr, "lead:", err)
		os.Exit(1)
	}
}

// run runs two replicas until ctx is done.
func run(ctx context.Context, cfg neli.Config, name string, stepDown time.Duration) error {
	db := &row{}
	late := &lateWrite{}
	errs := make(chan error)
	const replicas = 2
	for i := range replicas {
		cfg.Name = fmt.Sprintf("%s-%d", name, i+1)
		r := &replica{
			log:      log.New(os.Stdout, cfg.Name+": ", log.Ltime|log.Lmsgprefix),
			db:       db,
			late:     late,
			stepDown: stepDown,
		}
		go func() { errs <- r.run(ctx, cfg) }()
	}
	var err error
	for range replicas {
		err = errors.Join(err, <-errs)
	}
	return err
}

// replica is one instance of the service.
type replica struct {
	log      *log.Logger
	db       *row
	late     *lateWrite
	stepDown time.Duration
	stop     context.CancelFunc
}

// run leads whenever it can, until ctx is done or the replica stops itself. Lead calls r.lead for each term.
// Lead returns after r.lead has returned and leadership is given up.
func (r *replica) run(ctx context.Context, cfg neli.Config) error {
	n, err := neli.New(cfg)
	if err != nil {
		return err
	}
	ctx, r.stop = context.WithCancel(ctx)
	defer r.stop()
	return errors.Join(n.Lead(ctx, r.lead), n.Close())
}

// lead is one term. ctx ends with the term, and its cause says how the term ended.
func (r *replica) lead(ctx context.Context, l neli.Leadership) error {
	r.log.Printf("leads, with token %d", l.Token)
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	var over <-chan time.Time
	if r.late.first() {
		over = time.After(r.stepDown)
	}
	for i := 1; l.Valid() && ctx.Err() == nil; i++ {
		// Valid reads the clock, so after a suspension the loop ends. If this process is suspended right
		// here, the row refuses the write.
		if err := r.write(l, fmt.Sprintf("rate %d", i)); err != nil {
			return err
		}
		r.late.arrive(r.log, r.db)
		select {
		case <-tick.C:
		case <-over:
			r.log.Print("steps down; one of its writes is still in flight")
			r.late.send(l.Token, "outdated rate")
			r.stop()
			return nil
		case <-ctx.Done():
		}
	}
	return r.finish(ctx, l)
}

func (r *replica) write(l neli.Leadership, rate string) error {
	err := r.db.update(l.Token, rate)
	if errors.Is(err, errStale) {
		r.log.Printf("a newer leader has written: %v", err)
		return nil // ctx will end shortly
	}
	if err == nil {
		r.log.Printf("wrote %q with token %d", rate, l.Token)
	}
	return err
}

// finish ends a term, depending on the cause.
func (r *replica) finish(ctx context.Context, l neli.Leadership) error {
	if errors.Is(context.Cause(ctx), neli.ErrFenced) {
		r.log.Print("has lost leadership: stops at once")
		return nil
	}
	// neli.ErrRevoked, or the end of the context given to Lead: the lease is kept until this function returns.
	r.log.Print("must stop: one last write")
	return r.write(l, "final rate")
}

// row represents one row of a table, with a column for the token of its last writer.
type row struct {
	mu    sync.Mutex
	token int64
	rate  string
}

var errStale = errors.New("stale token")

// update is, in SQL,
//
//	UPDATE rates SET rate = $2, token = $1 WHERE id = 1 AND token <= $1
//
// and errStale corresponds to "0 rows affected". Tokens increase from leader to leader. So a row that a later
// leader has written refuses all earlier leaders, however late their writes arrive.
func (r *row) update(token int64, rate string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if token < r.token {
		return fmt.Errorf("%w: %d, the row has %d", errStale, token, r.token)
	}
	r.token, r.rate = token, rate
	return nil
}

// lateWrite represents a delayed write: it is stuck in a queue or a switch, or its process was suspended
// between its check and its write.
type lateWrite struct {
	mu    sync.Mutex
	asked bool
	held  func(*row) error
}

// first reports whether the caller is the first leader, which causes the late write.
func (w *lateWrite) first() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	first := !w.asked
	w.asked = true
	return first
}

func (w *lateWrite) send(token int64, rate string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held = func(db *row) error { return db.update(token, rate) }
}

// arrive delivers the write to the row.
func (w *lateWrite) arrive(logger *log.Logger, db *row) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held == nil {
		return
	}
	logger.Printf("a former leader's write arrives late: %v", w.held(db))
	w.held = nil
}
