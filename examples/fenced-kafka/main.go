// Command fenced-kafka writes reports to a topic, from one process at a time, in Kafka transactions. A
// report takes a while. If the leader is suspended meanwhile and wakes when another one leads, the broker
// refuses its report.
//
// Start it twice. Suspend the leader (kill -STOP) when it says that it prepares a report, and wake it
// (kill -CONT) when the other one has committed one.
//
//	go run ./fenced-kafka
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/goneli/neli"
	"github.com/goneli/neli/fence"
	"github.com/goneli/neli/franz"
	"github.com/goneli/neli/franz/franzfence"
)

func main() {
	var (
		bootstrap = flag.String("bootstrap", "localhost:9092", "Kafka brokers, host:port,…")
		group     = flag.String("group", "reports", "the group whose members contend")
		name      = flag.String("name", "", "this process's name, in logs")
		topic     = flag.String("reports", "", "the topic for the reports, with one partition (default: group + .reports)")
		takes     = flag.Duration("takes", 2*time.Second, "how long a report takes")
	)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	if *topic == "" {
		*topic = *group + ".reports"
	}
	brokers := kgo.SeedBrokers(strings.Split(*bootstrap, ",")...)
	cfg := neli.Config{LeaderGroupID: *group, Name: *name, Provider: franz.Provider(brokers)}
	if err := run(ctx, cfg, reports{brokers, *topic}, *takes); err != nil {
		fmt.Fprintln(os.Stderr, "fenced-kafka:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, cfg neli.Config, reports reports, takes time.Duration) error {
	if err := reports.create(ctx); err != nil {
		return err
	}
	kafkas, err := franzfence.New(ctx, reports.brokers) // asks whether the brokers are suitable
	if err != nil {
		return err
	}
	n, err := neli.New(cfg)
	if err != nil {
		return err
	}
	err = n.Lead(ctx, func(ctx context.Context, l neli.Leadership) error {
		open := kafkas.Open(fence.TransactionalID(cfg.LeaderGroupID, l.Role))
		return fence.Transactions(ctx, l, open, func(ctx context.Context, p *franzfence.Producer) error {
			return write(ctx, l, p, reports, takes)
		})
	})
	return errors.Join(err, n.Close())
}

// write is the work of a term. It is called again if a producer was refused but the term lasts.
func write(ctx context.Context, l neli.Leadership, p *franzfence.Producer, reports reports, takes time.Duration) error {
	last, err := reports.last(ctx) // read only now, so that no report of a former leader is missing
	if err != nil {
		return err
	}
	log.Printf("leads, with token %d; %d reports are there", l.Token, last)
	for number := last + 1; l.Valid() && ctx.Err() == nil; number++ {
		log.Printf("prepares report %d", number)
		<-time.After(takes)
		// There is no second check here, and the context does not end with the term: whatever has happened
		// meanwhile, the fence decides.
		long, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		err := p.Commit(long, &kgo.Record{Topic: reports.topic, Value: fmt.Appendf(nil, "%d %d", number, l.Token)})
		cancel()
		if err != nil {
			log.Printf("report %d is not known to be committed: %v", number, err)
			return err
		}
		log.Printf("committed report %d with token %d", number, l.Token)
	}
	return context.Cause(ctx)
}
