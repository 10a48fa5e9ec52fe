// Command cron runs a robfig/cron schedule on one of several processes. Each term has a schedule of its
// own, which starts when the term begins and is drained when it ends.
//
// Start it twice and end the leader. A tick that is due before the next leader takes over is missed and not
// made up for; docs/jobs.md says which ticks may come twice.
//
//	go run ./cron -name anna
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

	"github.com/robfig/cron/v3"

	"github.com/goneli/neli"
)

func main() {
	var (
		bootstrap = flag.String("bootstrap", "localhost:9092", "Kafka brokers, host:port,…")
		group     = flag.String("group", "cron", "the group whose members contend")
		name      = flag.String("name", "", "name of this process in logs (default: host, pid and time)")
		schedule  = flag.String("schedule", "* * * * * *", "when the report is due, with seconds")
	)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	cfg := neli.Config{KafkaConfig: neli.KafkaConfigMap{"bootstrap.servers": *bootstrap}, LeaderGroupID: *group, Name: *name}
	if err := run(ctx, cfg, *schedule); err != nil {
		fmt.Fprintln(os.Stderr, "cron:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, cfg neli.Config, schedule string) error {
	if _, err := cron.New(cron.WithSeconds()).AddFunc(schedule, func() {}); err != nil { // a follower would miss an error
		return fmt.Errorf("-schedule %q: %w", schedule, err)
	}
	n, err := neli.New(cfg)
	if err != nil {
		return err
	}
	logger := log.New(os.Stdout, n.Config().Name+": ", log.Ltime|log.Lmsgprefix)
	err = n.Lead(ctx, func(ctx context.Context, l neli.Leadership) error { return lead(ctx, l, logger, schedule) })
	return errors.Join(err, n.Close())
}

// lead is one term.
func lead(ctx context.Context, l neli.Leadership, logger *log.Logger, schedule string) error {
	c := cron.New(cron.WithSeconds(), cron.WithChain(cron.SkipIfStillRunning(cron.DiscardLogger)))
	if _, err := c.AddFunc(schedule, func() { report(l, logger) }); err != nil {
		return err
	}
	logger.Printf("starts the schedule, with token %d", l.Token)
	c.Start()
	<-ctx.Done()
	// After Stop no run begins. Unless the lease is lost, it is kept until the last run has ended.
	<-c.Stop().Done()
	logger.Printf("has drained the schedule (%v)", context.Cause(ctx))
	return nil
}

// report is a job. A timer may fire when the process wakes from a suspension, so the job checks the lease
// before each thing that it does.
func report(l neli.Leadership, logger *log.Logger) {
	for part := 1; part <= 3 && l.Valid(); part++ {
		logger.Printf("sends part %d of the report", part)
		time.Sleep(100 * time.Millisecond)
	}
}
