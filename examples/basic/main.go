// Command basic relays an outbox: it sends the messages that a service has written into its outbox table,
// in order. However many replicas of it run, only one sends at a time. Start it several times: one process
// sends, the others stand by.
//
//	go run ./basic -name anna
package main

import (
	"context"
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
		group     = flag.String("group", "outbox", "the group whose members contend")
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
	}
	if err := run(ctx, cfg); err != nil {
		fmt.Fprintln(os.Stderr, "basic:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, cfg neli.Config) error {
	n, err := neli.New(cfg)
	if err != nil {
		return err
	}
	logger := log.New(os.Stdout, n.Config().Name+": ", log.Ltime|log.Lmsgprefix)
	relay := &relay{log: logger, box: outbox{began: time.Now()}}

	// The task is called again and again while this process leads. It does a small piece of work and
	// returns, so that leadership is checked in between.
	pulser, err := n.Background(relay.step)
	if err != nil {
		return err
	}
	logger.Print("standing by")

	// Await returns early only after a fatal error, such as a wrong password or a deleted topic. An
	// unreachable broker is retried.
	failed := make(chan error, 1)
	go func() { failed <- pulser.Await() }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	// Close waits for the task and then hands over at once: no lease has to run out.
	if err := n.Close(); err != nil {
		return err
	}
	logger.Print("closed")
	return nil
}

// relay sends the messages in the outbox.
type relay struct {
	log *log.Logger
	box outbox
}

// step sends one message, or waits briefly if there is none.
func (r *relay) step() {
	message, ok := r.box.next()
	if !ok {
		time.Sleep(50 * time.Millisecond)
		return
	}
	r.log.Print("sent ", message)
}

// outbox stands for a database table that other programs write to: a new row appears twice a second.
type outbox struct {
	began time.Time
	taken int
}

func (o *outbox) next() (message string, ok bool) {
	if time.Since(o.began) < time.Duration(o.taken)*500*time.Millisecond {
		return "", false
	}
	o.taken++
	return fmt.Sprintf("invoice %d", o.taken), true
}
