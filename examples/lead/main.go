// Command lead keeps a row of a database up to date, from one process at a time,
// and guards it with the fencing token: a write of a former leader that was held
// up on its way is refused by the row itself.
//
// Two replicas of the service, NAME-1 and NAME-2, run in this one process, so that
// they can share a database that is only in memory. The first leader steps down
// after -step-down and leaves a write behind that arrives late.
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
		topic     = flag.String("topic", "", "the topic that carries the election (default: group + .neli)")
		name      = flag.String("name", "replica", "prefix of the replicas' names, in logs")
		stepDown  = flag.Duration("step-down", 3*time.Second, "the first leader closes after this time")
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
	cfg := neli.Config{
		KafkaConfig:   neli.KafkaConfigMap{"bootstrap.servers": *bootstrap},
		LeaderGroupID: *group,
		LeaderTopic:   *topic,
		Nomination:    neli.Open, // no group: the next leader is there in milliseconds
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

// run leads whenever it can, until ctx is done or the replica stops itself. Lead
// calls r.lead anew for each term; it returns when that has returned and
// leadership is given up.
func (r *replica) run(ctx context.Context, cfg neli.Config) error {
	n, err := neli.New(cfg)
	if err != nil {
		return err
	}
	ctx, r.stop = context.WithCancel(ctx)
	defer r.stop()
	return errors.Join(n.Lead(ctx, r.lead), n.Close())
}

// lead is one term. ctx ends with it, and its cause tells how.
func (r *replica) lead(ctx context.Context, l neli.Leadership) error {
	r.log.Printf("leads, with token %d", l.Token)
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	var over <-chan time.Time
	if r.late.first() {
		over = time.After(r.stepDown)
	}
	for i := 1; ctx.Err() == nil; i++ {
		// ctx asks the clock: after a suspension nothing is tried that is too late. If this
		// process is suspended right here, the row refuses the write.
		if err := r.write(l, fmt.Sprintf("rate %d", i)); err != nil {
			return err
		}
		r.late.arrive(r.log, r.db)
		select {
		case <-tick.C:
		case <-over:
			r.log.Print("steps down; one of its writes is still on its way")
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
		r.log.Printf("somebody newer has written: %v", err)
		return nil // ctx will end in a moment
	}
	if err == nil {
		r.log.Printf("wrote %q with token %d", rate, l.Token)
	}
	return err
}

// finish ends a term as its cause demands.
func (r *replica) finish(ctx context.Context, l neli.Leadership) error {
	if errors.Is(context.Cause(ctx), neli.ErrFenced) {
		r.log.Print("has lost leadership: stops at once")
		return nil
	}
	// neli.ErrRevoked, or the end of the context given to Lead: the lease is kept
	// until this function returns.
	r.log.Print("is to stop: one last write")
	return r.write(l, "final rate")
}

// row stands for one row of a table, with a column for the token of its last
// writer.
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
// and errStale is "0 rows affected". Tokens of successive leaders increase, so a
// row that a later leader has written refuses all earlier ones, however late their
// writes arrive.
func (r *row) update(token int64, rate string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if token < r.token {
		return fmt.Errorf("%w: %d, the row has %d", errStale, token, r.token)
	}
	r.token, r.rate = token, rate
	return nil
}

// lateWrite stands for a write that is held up on its way, in a queue or a switch,
// or by a process that was suspended between its check and its write.
type lateWrite struct {
	mu    sync.Mutex
	asked bool
	held  func(*row) error
}

// first tells the first leader, which is to cause it, from all others.
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

// arrive lets the write through to the row.
func (w *lateWrite) arrive(logger *log.Logger, db *row) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held == nil {
		return
	}
	logger.Printf("a former leader's write arrives late: %v", w.held(db))
	w.held = nil
}
