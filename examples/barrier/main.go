// Command barrier imports records in batches, in one process at a time. It shows full control over what
// happens when leadership comes and goes: it opens a batch when it becomes leader, commits it when it must
// hand over, and discards it when it has lost leadership.
//
//	go run ./barrier -name anna
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/goneli/neli"
)

func main() {
	var (
		bootstrap = flag.String("bootstrap", "localhost:9092", "Kafka brokers, host:port,…")
		group     = flag.String("group", "importer", "the group whose members contend")
		name      = flag.String("name", "", "name of this process in logs (default: host, pid and time)")
	)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	cfg := neli.Config{
		KafkaConfig:   neli.KafkaConfigMap{"bootstrap.servers": *bootstrap},
		LeaderGroupID: *group,
		Name:          *name,
		DrainTimeout:  5 * time.Second, // how long a commit may delay the successor
	}
	if err := run(ctx, cfg); err != nil {
		fmt.Fprintln(os.Stderr, "barrier:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, cfg neli.Config) (err error) {
	imp := &importer{log: log.New(os.Stdout, "", log.Ltime|log.Lmsgprefix)}
	n, err := neli.New(cfg, imp.barrier)
	if err != nil {
		return err
	}
	imp.log.SetPrefix(n.Config().Name + ": ")
	imp.leads = n.IsLeader
	// Close delivers LeaderRevoked on this goroutine. So the last batch is committed before another process
	// becomes leader.
	defer func() {
		if closeErr := n.Close(); err == nil {
			err = closeErr
		}
	}()
	imp.log.Print("standing by")
	for ctx.Err() == nil {
		// For a leader Pulse only checks the clock. Other processes wait in it, here for up to 100 ms, to
		// become leader.
		leads, err := n.Pulse(100 * time.Millisecond)
		if err != nil {
			return err // closed, or a fatal error; everything else is retried
		}
		if leads {
			imp.importRecord()
		}
	}
	return nil
}

// importer needs no lock: the barrier runs inside Pulse and Close, on the goroutine that calls them.
type importer struct {
	log   *log.Logger
	leads func() bool
	batch []string // open while this process leads
	done  int
}

// barrier is called for every change of leadership.
func (i *importer) barrier(e neli.Event) {
	switch e := e.(type) {
	case neli.LeaderAcquired:
		// From now on no other process leads. Initialise what leading needs.
		i.log.Printf("leader, with token %d: opens a batch", e.Terms[0].Token)
		i.batch = []string{}
	case neli.LeaderRevoked:
		// This process still leads until barrier returns, at most until the deadline.
		ctx, cancel := context.WithDeadline(context.Background(), e.Deadline)
		defer cancel()
		if err := i.commit(ctx); err != nil {
			i.log.Printf("no longer leader (%s): commit failed: %v", e.Reason, err)
			return
		}
		i.log.Printf("no longer leader (%s): committed", e.Reason)
	case neli.LeaderFenced:
		// Another leader may already be working: touch nothing that is shared.
		i.log.Printf("leadership lost (%s): throws away a batch of %d", e.Reason, len(i.batch))
		i.batch = nil
	}
}

// importRecord is one small piece of a leader's work. Preparing it takes a while, and the process may be
// suspended meanwhile. So it checks its leadership again before it does anything that others can see.
func (i *importer) importRecord() {
	time.Sleep(20 * time.Millisecond) // the work
	if !i.leads() {
		return // the next Pulse delivers how the term ended
	}
	i.done++
	i.batch = append(i.batch, fmt.Sprintf("record %d", i.done))
	if len(i.batch) == 50 {
		i.log.Printf("imported a batch of %d", len(i.batch))
		i.batch = []string{}
	}
}

// commit writes the batch. It fails if ctx ends first, or if this process no longer leads. After a suspension
// during the preparation both cases of select may be ready, so that ctx alone would not stop the commit.
func (i *importer) commit(ctx context.Context) error {
	select {
	case <-time.After(time.Duration(len(i.batch)) * time.Millisecond): // prepares the transaction
	case <-ctx.Done():
		return ctx.Err()
	}
	if !i.leads() {
		return errors.New("the lease is lost")
	}
	i.batch = nil // commits it
	return nil
}
