// Command nonexclusive publishes prices without interruption: every symbol has at least one publisher at all
// times, and may have two. Publishing a price twice does no harm.
//
// After a crash, one group of processes has no publisher for a while. So run two disjoint groups for the same
// symbols. Then only simultaneous crashes in both groups interrupt the prices:
//
//	go run ./nonexclusive -group a
//	go run ./nonexclusive -group b
//
// If each group has a Kafka cluster of its own, even the loss of a cluster does not interrupt them:
//
//	go run ./nonexclusive -group a -bootstrap kafka-a:9092 -alone
//	go run ./nonexclusive -group b -bootstrap kafka-b:9092 -alone
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
		group     = flag.String("group", "a", "the group of this process: a or b")
		topic     = flag.String("topic", "prices.neli", "the topic that carries the election of both groups")
		alone     = flag.Bool("alone", false, "the other group's topic is on another cluster")
		name      = flag.String("name", "", "name of this process in logs (default: host, pid and time)")
	)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	symbols := []string{"AAPL", "MSFT", "NVDA", "ORCL"}
	cfg := neli.Config{
		KafkaConfig:   neli.KafkaConfigMap{"bootstrap.servers": *bootstrap},
		LeaderGroupID: "prices-" + *group,
		LeaderTopic:   *topic,
		Name:          *name,
		Mode:          neli.NonExclusive,
		// Both groups broadcast on the topic, so each may broadcast half as often.
		GroupsOnTopic: 2,
		Roles:         len(symbols),
		Partitions:    len(symbols),
	}
	if *alone {
		cfg.GroupsOnTopic = 1
	}
	if err := run(ctx, cfg, symbols); err != nil {
		fmt.Fprintln(os.Stderr, "nonexclusive:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, cfg neli.Config, symbols []string) error {
	logger := log.New(os.Stdout, "", log.Ltime|log.Lmsgprefix)
	n, err := neli.New(cfg, func(e neli.Event) { logger.Print(e) })
	if err != nil {
		return err
	}
	logger.SetPrefix(n.Config().Name + ": ")
	logger.Print("standing by")

	// Close leaves the group, but this process leads on for a while, until others have taken over.
	// So it publishes until Pulse says that its term is over.
	closed := make(chan error, 1)
	context.AfterFunc(ctx, func() {
		logger.Print("closing")
		closed <- n.Close()
	})
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for now := range tick.C {
		if _, err := n.Pulse(0); errors.Is(err, neli.ErrClosed) {
			return <-closed
		} else if err != nil {
			return err // a fatal error
		}
		for role := range n.Led() {
			logger.Printf("publishes %s at %s", symbols[role], price(now))
		}
	}
	return nil
}

// price represents a feed of prices. It is a function of time, so that all publishers agree.
func price(now time.Time) string {
	return fmt.Sprintf("%.2f", 100+float64(now.Unix()%100)/10)
}
